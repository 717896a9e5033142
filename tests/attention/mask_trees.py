"""Masks as expression trees that hypothesis draws, and what each of them says by hand.

Hypothesis draws plain numbers alone; masks are grown from them outside of it. Beside every mask
grows a rule in plain Python, pair by pair, that shares nothing with it but the numbers.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from hypothesis import strategies as st
from torch import Generator, Tensor

from regard import masks
from regard.attention.masks import Mask

Tree = tuple
"""`(leaf, seed)`, `("not", tree)`, `("and", tree, tree)` or `("or", tree, tree)`."""


@dataclass(frozen=True)
class Sizes:
    """How many items, queries and keys there are."""

    items: int
    queries: int
    keys: int

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.items, self.queries, self.keys


@dataclass(frozen=True)
class Pair:
    """One query and one key of one item."""

    item: int
    query: int
    key: int | None
    """Where the key stood when the mask was made; None if it came later."""
    distance: int
    """How many positions the key now stands after the query's own; before it, below 0."""


@dataclass(frozen=True)
class Grown:
    """A mask, and its rule by hand: `says(pair, fresh)`, with `fresh` for a key that is new."""

    mask: Mask
    says: Callable[[Pair, bool], bool]


def by_hand_rule(says: Callable[[Pair, bool], bool], sizes: Sizes, origins=None) -> Tensor:
    """What a rule says of every pair, where key n stood at `origins[n]` when the mask was made."""
    origins = range(sizes.keys) if origins is None else origins
    stands = len(origins) - sizes.queries  # the last query at the last key
    table = [
        [
            [says(Pair(item, q, key, k - (q + stands)), True) for k, key in enumerate(origins)]
            for q in range(sizes.queries)
        ]
        for item in range(sizes.items)
    ]
    return torch.tensor(table, dtype=torch.bool).reshape(*sizes.shape[:2], len(origins))


def grow(tree: Tree, sizes: Sizes) -> Grown:
    """The mask of a tree, and its rule."""
    match tree:
        case ("not", inner):
            grown = grow(inner, sizes)
            return Grown(~grown.mask, lambda pair, fresh: not grown.says(pair, not fresh))
        case ("and", *both):
            left, right = (grow(side, sizes) for side in both)
            return Grown(left.mask & right.mask, lambda *of: left.says(*of) and right.says(*of))
        case ("or", *both):
            left, right = (grow(side, sizes) for side in both)
            return Grown(left.mask | right.mask, lambda *of: left.says(*of) or right.says(*of))
        case (leaf, seed):
            return LEAVES[leaf](sizes, Generator().manual_seed(seed))
    raise AssertionError(tree)


def _of_places(mask: Mask, says: Callable[[Pair], bool]) -> Grown:
    return Grown(mask, lambda pair, _: says(pair))


def _of_keys(mask: Mask, says: Callable[[Pair], bool]) -> Grown:
    return Grown(mask, lambda pair, fresh: fresh if pair.key is None else says(pair))


def _number(highest: int, generator: Generator) -> int:
    return int(torch.randint(0, highest + 1, (), generator=generator))


def _causal(sizes: Sizes, generator: Generator) -> Grown:
    return _of_places(masks.Causal(), lambda pair: pair.distance <= 0)


def _window(sizes: Sizes, generator: Generator) -> Grown:
    before, after = _number(3, generator), _number(3, generator)
    return _of_places(masks.Window(before, after), lambda pair: -before <= pair.distance <= after)


def _prefix(sizes: Sizes, generator: Generator) -> Grown:
    size = _number(sizes.keys + 1, generator)
    return _of_keys(masks.Prefix(size), lambda pair: pair.key < size)


def _lengths(sizes: Sizes, generator: Generator) -> Grown:
    lengths = torch.randint(0, sizes.keys + 1, (sizes.items,), generator=generator)
    counts = lengths.tolist()
    return _of_keys(masks.Lengths(lengths), lambda pair: pair.key < counts[pair.item])


def _one_length(sizes: Sizes, generator: Generator) -> Grown:
    length = _number(sizes.keys, generator)
    return _of_keys(masks.Lengths([length]), lambda pair: pair.key < length)


def _dense(*shared: int) -> Callable[[Sizes, Generator], Grown]:
    """A tensor of its own for each pair, but for the axes that are shared."""

    def dense(sizes: Sizes, generator: Generator) -> Grown:
        shape = [1 if axis in shared else size for axis, size in enumerate(sizes.shape)]
        allowed = torch.rand(shape, generator=generator) < 0.6
        table = allowed.expand(sizes.shape).tolist()
        return _of_keys(masks.Dense(allowed), lambda pair: table[pair.item][pair.query][pair.key])

    return dense


def _blocks(sizes: Sizes, generator: Generator) -> Grown:
    keys, queries = (
        torch.randint(-1, 2, (sizes.items, size), generator=generator)
        for size in (sizes.keys, sizes.queries)
    )
    of_key, of_query = keys.tolist(), queries.tolist()
    return _of_keys(
        masks.Blocks(keys, queries),
        lambda pair: of_key[pair.item][pair.key] == of_query[pair.item][pair.query],
    )


def _own_blocks(sizes: Sizes, generator: Generator) -> Grown:
    """Blocks of the keys alone: each query is of the block in which it stands."""
    keys = torch.randint(-1, 2, (sizes.items, sizes.keys), generator=generator)
    of_key = keys.tolist()
    return _of_places(
        masks.Blocks(keys),
        lambda pair: of_key[pair.item][pair.key] == of_key[pair.item][pair.key - pair.distance],
    )


LEAVES: dict[str, Callable[[Sizes, Generator], Grown]] = {
    "causal": _causal,
    "window": _window,
    "prefix": _prefix,
    "lengths": _lengths,
    "one length": _one_length,
    "dense": _dense(),
    "dense for all items": _dense(0),
    "dense for all queries": _dense(1),
    "dense for all keys": _dense(2),
    "blocks": _blocks,
    "own blocks": _own_blocks,
}
MOVABLE = sorted(set(LEAVES) - {"own blocks"})
"""Leaves that go with any number of queries, and that follow their keys when these move."""


def trees(leaves=tuple(LEAVES)) -> st.SearchStrategy[Tree]:
    """Any expression over these leaves."""
    leaf = st.tuples(st.sampled_from(sorted(leaves)), st.integers(0, 2**16))

    def branches(inner: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
        joined = st.tuples(st.sampled_from(["and", "or"]), inner, inner)
        return st.tuples(st.just("not"), inner) | joined

    return st.recursive(leaf, branches, max_leaves=5)


def sizes() -> st.SearchStrategy[Sizes]:
    """Sizes for any leaf: no more queries than keys."""
    return st.builds(Sizes, st.integers(1, 3), st.integers(1, 3), st.integers(3, 7))


def odd_sizes() -> st.SearchStrategy[Sizes]:
    """Sizes for movable leaves: no key at all, or more queries than keys."""
    return st.builds(Sizes, st.integers(1, 3), st.integers(1, 5), st.integers(0, 7))
