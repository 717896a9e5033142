"""Symmetrisation of two directions: intersection, union and grow-diag (Koehn 2003)."""

from collections.abc import Callable

from jaxtyping import Float
from torch import Tensor

from regard.attention.core.errors import OptionError, ShapeError
from regard.seq2seq.alignment.links import Link, Links

NEIGHBOURS = ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1))

SoftAlignment = Float[Tensor, "target source"]


def symmetrize(rule: str, forward: Links, backward: Links) -> Links:
    """Links of both directions by a rule; both are `(source, target)`.

    >>> forward, backward = frozenset({(0, 0), (1, 1)}), frozenset({(0, 0), (1, 2)})
    >>> sorted(symmetrize("intersection", forward, backward))
    [(0, 0)]
    """
    if rule not in SYMMETRIES:
        raise OptionError(f"symmetrisation is {rule!r}. Choose {', '.join(SYMMETRIES)}.")
    return SYMMETRIES[rule](forward, backward)


def product(forward: SoftAlignment, backward: Float[Tensor, "rows columns"]) -> SoftAlignment:
    """√(forward · backwardᵀ): large where both directions agree.

    The other direction's weights are `(source, target)`, as its model has them.
    """
    if forward.shape != backward.mT.shape:
        raise ShapeError(
            f"one direction has weights {tuple(forward.shape)} and the other "
            f"{tuple(backward.shape)}, which must be its transpose. Align the same pair both ways."
        )
    return (forward * backward.mT).sqrt()


def _grow_diag(forward: Links, backward: Links) -> Links:
    """Grow the intersection by neighbours from the union, where a word has no link yet."""
    union, found = forward | backward, set(forward & backward)
    sources, targets = {s for s, _ in found}, {t for _, t in found}
    while True:
        # Sorted, so that the result does not depend on the order of a set.
        new = [
            link for link in sorted(found) for link in _neighbours(link)
            if link in union and link not in found
        ]  # fmt: skip
        before = len(found)
        for source, target in new:
            if source not in sources or target not in targets:
                found.add((source, target))
                sources.add(source)
                targets.add(target)
        if len(found) == before:
            return frozenset(found)


def _neighbours(link: Link) -> list[Link]:
    return [(link[0] + s, link[1] + t) for s, t in NEIGHBOURS]


def _final(found: Links, forward: Links, backward: Links, *, both: bool) -> Links:
    """Add links of one direction where either word, or both, have no link yet."""
    links = set(found)
    sources, targets = {s for s, _ in links}, {t for _, t in links}
    for source, target in [*sorted(forward), *sorted(backward)]:
        free = source not in sources, target not in targets
        if all(free) if both else any(free):
            links.add((source, target))
            sources.add(source)
            targets.add(target)
    return frozenset(links)


SYMMETRIES: dict[str, Callable[[Links, Links], Links]] = {
    "intersection": lambda forward, backward: forward & backward,
    "union": lambda forward, backward: forward | backward,
    "grow-diag": _grow_diag,
    "grow-diag-final": lambda f, b: _final(_grow_diag(f, b), f, b, both=False),
    "grow-diag-final-and": lambda f, b: _final(_grow_diag(f, b), f, b, both=True),
}
"""By their names in Moses."""
