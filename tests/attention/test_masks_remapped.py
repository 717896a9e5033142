"""When keys move in a memory, masks of keys follow, masks of positions stay, new keys are allowed.

The model is a list: `origins[n]` is where key n stood when the mask was made, None if it is new.
"""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from regard import masks
from regard.attention.core.errors import MaskError
from regard.attention.masks import Mask, PairIndex
from tests.attention.mask_trees import MOVABLE, Sizes, by_hand_rule, grow, odd_sizes, trees

many = settings(max_examples=250, deadline=None, derandomize=True)
some = settings(max_examples=20, deadline=None, derandomize=True)

edits = st.lists(
    st.tuples(st.sampled_from(["append", "erase", "replace"]), st.integers(0, 2**7 - 1)), max_size=4
)
"""What is done to the keys; a number's bits say to which."""


def sources(edit: tuple[str, int], keys: int) -> list[int]:
    """From which column each column comes, −1 if it is new."""
    what, number = edit
    if what == "append":
        return [*range(keys), *[-1] * (number % 3)]
    chosen = [bool(number >> key & 1) for key in range(keys)]
    if what == "erase":
        return [key for key in range(keys) if not chosen[key]]
    return [-1 if chosen[key] else key for key in range(keys)]


def moved(mask: Mask, plan, keys: int) -> tuple[Mask, list[int | None]]:
    """The mask after all edits, and where each key stood before the first."""
    origins: list[int | None] = list(range(keys))
    for edit in plan:
        source = sources(edit, len(origins))
        mask = mask.remap_keys(torch.tensor(source, dtype=torch.long), len(origins))
        origins = [None if column < 0 else origins[column] for column in source]
    return mask, origins


def whole(mask: Mask, of: Sizes, keys: int) -> Tensor:
    return mask.dense(of.queries, keys).expand(of.items, of.queries, keys)


@many
@given(tree=trees(MOVABLE), plan=edits, of=odd_sizes())
def test_a_mask_follows_its_keys(tree, plan, of: Sizes) -> None:
    grown = grow(tree, of)
    mask, origins = moved(grown.mask, plan, of.keys)
    assert torch.equal(whole(mask, of, len(origins)), by_hand_rule(grown.says, of, origins))


@many
@given(tree=trees(MOVABLE), plan=edits, of=odd_sizes(), seed=st.integers(0, 2**16))
def test_some_pairs_of_a_moved_mask(tree, plan, of: Sizes, seed: int) -> None:
    mask, origins = moved(grow(tree, of).mask, plan, of.keys)
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randint(0, of.queries, (2,), generator=generator)
    columns = torch.randperm(len(origins), generator=generator)[:3]
    pairs = PairIndex(of.queries, len(origins), rows=rows, columns=columns)
    expected = whole(mask, of, len(origins))[:, rows][:, :, columns]
    assert torch.equal(mask.allows(pairs).expand_as(expected), expected)
    visible = mask.visible_counts(pairs).expand(*expected.shape[:-1], 1)
    assert torch.equal(visible, expected.sum(-1, keepdim=True))


@many
@given(tree=trees(MOVABLE), plan=edits, of=odd_sizes(), seed=st.integers(0, 2**16))
def test_windows_of_a_moved_mask(tree, plan, of: Sizes, seed: int) -> None:
    mask, origins = moved(grow(tree, of).mask, plan, of.keys)
    if not origins:
        return
    generator = torch.Generator().manual_seed(seed)
    columns = torch.randint(0, len(origins), (of.items, of.queries, 3), generator=generator)
    expected = whole(mask, of, len(origins)).gather(-1, columns)
    allowed = mask.allows(PairIndex(of.queries, len(origins)).at(columns))
    assert torch.equal(allowed.expand_as(expected), expected)


@many
@given(tree=trees(MOVABLE), plan=edits, of=odd_sizes())
def test_a_moved_mask_fits_its_keys_and_takes_heads(tree, plan, of: Sizes) -> None:
    mask, origins = moved(grow(tree, of).mask, plan, of.keys)
    mask.check((of.items, of.queries, len(origins)), torch.device("cpu"))
    expected = whole(mask, of, len(origins))[:, None, None]
    found = mask.heads(2).dense(of.queries, len(origins))
    assert torch.equal(found.expand_as(expected), expected)


@pytest.mark.parametrize("leaf", MOVABLE)
@some
@given(seed=st.integers(0, 2**16), of=odd_sizes())
def test_all_keys_erased_and_new_ones_written(leaf, seed: int, of: Sizes) -> None:
    grown = grow((leaf, seed), of)
    plan = [("erase", 2**7 - 1), ("append", 2)]
    mask, origins = moved(grown.mask, plan, of.keys)
    assert origins == [None, None]
    assert torch.equal(whole(mask, of, 2), by_hand_rule(grown.says, of, origins))
    assert torch.equal(whole(~mask, of, 2), ~whole(mask, of, 2))


@pytest.mark.parametrize("leaf", sorted(set(MOVABLE) - {"causal", "window"}))
@some
@given(seed=st.integers(0, 2**16), of=odd_sizes())
def test_a_new_key_is_open_whatever_the_sign(leaf, seed: int, of: Sizes) -> None:
    mask = grow((leaf, seed), of).mask
    for signed in (mask, ~mask, ~~mask, mask & ~mask, ~(mask | ~mask)):
        after, origins = moved(signed, [("append", 1)], of.keys)
        assert whole(after, of, len(origins))[:, :, -1].all()


def test_own_blocks_cannot_follow() -> None:
    with pytest.raises(MaskError, match="Blocks"):
        masks.Blocks([0, 0, 1]).remap_keys(torch.tensor([0, 2]), 3)
