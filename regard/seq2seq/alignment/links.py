"""A word alignment: pairs of word positions."""

Link = tuple[int, int]
"""`(source, target)`, counted from 0."""

Links = frozenset[Link]


def swapped(links: Links) -> Links:
    """The links of the other direction.

    >>> sorted(swapped(frozenset({(0, 1), (2, 0)})))
    [(0, 2), (1, 0)]
    """
    return frozenset((target, source) for source, target in links)
