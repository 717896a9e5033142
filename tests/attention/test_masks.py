"""Masks form an algebra, and say of each pair what a rule in plain Python says of it."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from regard import masks
from regard.attention.core.errors import MaskError
from regard.attention.masks import Mask, PairIndex
from tests.attention.mask_trees import (
    LEAVES,
    MOVABLE,
    Sizes,
    by_hand_rule,
    grow,
    odd_sizes,
    sizes,
    trees,
)

some = settings(max_examples=20, deadline=None, derandomize=True)
MILLION = 10**6


def table(mask: Mask, of: Sizes) -> Tensor:
    """What a mask says of every pair, items included."""
    return mask.dense(of.queries, of.keys).expand(of.shape)


def held(mask: Mask) -> list[Tensor]:
    """The tensors that a mask holds, however deep."""
    found: list[Tensor] = []

    def note(tensor: Tensor) -> Tensor:
        found.append(tensor)
        return tensor

    mask.map(note)
    return found


LAWS = {
    "double negation": lambda a, *_: (~~a, a),
    "De Morgan, and": lambda a, b, *_: (~(a & b), ~a | ~b),
    "De Morgan, or": lambda a, b, *_: (~(a | b), ~a & ~b),
    "and commutes": lambda a, b, *_: (a & b, b & a),
    "or commutes": lambda a, b, *_: (a | b, b | a),
    "and associates": lambda a, b, c: ((a & b) & c, a & (b & c)),
    "or associates": lambda a, b, c: ((a | b) | c, a | (b | c)),
    "and distributes": lambda a, b, c: (a & (b | c), (a & b) | (a & c)),
    "or distributes": lambda a, b, c: (a | (b & c), (a | b) & (a | c)),
    "and twice is once": lambda a, *_: (a & a, a),
    "or twice is once": lambda a, *_: (a | a, a),
    "absorption": lambda a, b, *_: (a & (a | b), a),
}


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
@some
@given(three=st.tuples(trees(), trees(), trees()), of=sizes())
def test_laws_of_the_algebra(law, three, of: Sizes) -> None:
    left, right = law(*(grow(tree, of).mask for tree in three))
    assert torch.equal(table(left, of), table(right, of))


@some
@given(tree=trees(), of=sizes())
def test_a_mask_is_never_its_own_negation(tree, of: Sizes) -> None:
    mask = grow(tree, of).mask
    assert not table(mask & ~mask, of).any()
    assert table(mask | ~mask, of).all()


@pytest.mark.parametrize("leaf", LEAVES)
@some
@given(seed=st.integers(0, 2**16), of=sizes())
def test_each_mask_says_what_its_rule_says(leaf, seed: int, of: Sizes) -> None:
    grown = grow((leaf, seed), of)
    assert torch.equal(table(grown.mask, of), by_hand_rule(grown.says, of))


@settings(some, max_examples=60)
@given(tree=trees(MOVABLE), of=odd_sizes())
def test_expressions_say_what_their_rules_say_for_any_lengths(tree, of: Sizes) -> None:
    grown = grow(tree, of)
    assert torch.equal(table(grown.mask, of), by_hand_rule(grown.says, of))


@settings(some, max_examples=60)
@given(tree=trees(), of=sizes(), chosen=st.tuples(*[st.lists(st.integers(0, 2))] * 2))
def test_some_pairs_are_taken_from_the_whole(tree, of: Sizes, chosen) -> None:
    mask = grow(tree, of).mask
    rows, columns = (torch.tensor(index, dtype=torch.long) for index in chosen)
    rows, whole = rows % of.queries, table(mask, of)
    cases = {
        (rows, None): whole[:, rows],
        (None, columns): whole[:, :, columns],
        (rows, columns): whole[:, rows][:, :, columns],
    }
    for (some_rows, some_columns), expected in cases.items():
        pairs = PairIndex(of.queries, of.keys, rows=some_rows, columns=some_columns)
        assert torch.equal(mask.allows(pairs).expand_as(expected), expected)
        visible = mask.visible_counts(pairs).expand(*expected.shape[:-1], 1)
        assert torch.equal(visible, expected.sum(-1, keepdim=True))


@settings(some, max_examples=60)
@given(tree=trees(), of=sizes(), shared=st.booleans(), seed=st.integers(0, 2**16))
def test_each_query_may_have_columns_of_its_own(tree, of: Sizes, shared: bool, seed: int) -> None:
    mask, generator = grow(tree, of).mask, torch.Generator().manual_seed(seed)
    items, rows = 1 if shared else of.items, torch.arange(of.queries).flip(0)
    columns = torch.randint(0, of.keys, (items, of.queries, 5), generator=generator)
    expected = table(mask, of).gather(-1, columns.expand(of.items, -1, -1))
    pairs = PairIndex(of.queries, of.keys).at(columns)
    cases = {pairs: expected, pairs.take_rows(rows): expected[:, rows]}
    for some_pairs, truth in cases.items():
        assert torch.equal(mask.allows(some_pairs).expand_as(truth), truth)
        visible = mask.visible_counts(some_pairs).expand(*truth.shape[:-1], 1)
        assert torch.equal(visible, truth.sum(-1, keepdim=True))


@some
@given(tree=trees(), of=sizes(), rows=st.lists(st.integers(0, 2), min_size=1, max_size=3))
def test_rows_of_rows_are_rows(tree, of: Sizes, rows) -> None:
    mask, rows = grow(tree, of).mask, torch.tensor(rows) % of.queries
    reversed_rows = torch.arange(len(rows)).flip(0)
    pairs = PairIndex(of.queries, of.keys).take_rows(rows).take_rows(reversed_rows)
    expected = table(mask, of)[:, rows.flip(0)]
    assert torch.equal(mask.allows(pairs).expand_as(expected), expected)


@pytest.mark.parametrize("leaf", LEAVES)
@some
@given(seed=st.integers(0, 2**16), of=sizes())
def test_visible_counts_the_keys_that_may_be_read(leaf, seed: int, of: Sizes) -> None:
    mask = grow((leaf, seed), of).mask
    visible = mask.visible_counts(PairIndex(of.queries, of.keys)).expand(*of.shape[:2], 1)
    assert torch.equal(visible, table(mask, of).sum(-1, keepdim=True))


@settings(some, max_examples=60)
@given(tree=trees(MOVABLE), of=odd_sizes())
def test_visible_counts_the_keys_for_any_lengths(tree, of: Sizes) -> None:
    mask = grow(tree, of).mask
    visible = mask.visible_counts(PairIndex(of.queries, of.keys)).expand(*of.shape[:2], 1)
    assert torch.equal(visible, table(mask, of).sum(-1, keepdim=True))


@pytest.mark.parametrize(("queries", "keys"), [(3, 7), (7, 3), (5, 5), (1, 7), (7, 1)])
def test_the_last_query_stands_at_the_last_key(queries: int, keys: int) -> None:
    causal = masks.Causal().dense(queries, keys)
    assert causal[-1].all()
    own = masks.Window(0).dense(queries, keys)
    for row in range(queries):
        position = row + keys - queries
        assert own[row].nonzero().flatten().tolist() == ([position] if position >= 0 else [])
        assert int(causal[row].sum()) == max(0, position + 1)


@pytest.mark.parametrize("mask", [masks.Causal(), masks.Window(2), masks.Window(1, 0)], ids=repr)
def test_fewer_queries_are_the_last_of_more(mask: Mask) -> None:
    whole = mask.dense(7, 7)
    for last in range(1, 7):
        assert torch.equal(mask.dense(last, 7), whole[-last:])


def test_windows_reach_as_far_as_they_say() -> None:
    assert torch.equal(masks.Window(2).dense(5, 7), masks.Window(2, 2).dense(5, 7))
    backward = masks.Window(2, 0).dense(5, 7)
    assert torch.equal(backward, (masks.Window(2) & masks.Causal()).dense(5, 7))
    behind = masks.Causal() & ~masks.Window(0)
    assert torch.equal((~masks.Window(0, 7)).dense(7, 7), behind.dense(7, 7))


def test_a_prefix_is_open_to_all_and_the_rest_is_causal() -> None:
    queries, keys, size = 5, 7, 3
    found = (masks.Prefix(size) | masks.Causal()).dense(queries, keys)
    for query in range(queries):
        for key in range(keys):
            assert found[query, key] == (key < size or key <= query + keys - queries)


def test_packed_documents_do_not_read_each_other() -> None:
    lengths = [2, 0, 3, 5]
    document = [n for n, length in enumerate(lengths) for _ in range(length)]
    found = masks.Blocks.packed(lengths).dense(len(document), len(document))
    assert found.tolist() == [[mine == other for other in document] for mine in document]


def test_packed_documents_step_by_step_are_the_whole() -> None:
    documents = torch.tensor([[0, 0, 1, 1, 1, 2, 2], [4, 4, 4, 4, 3, 3, 9]])
    whole = (masks.Blocks(documents) & masks.Causal()).dense(7, 7)
    for step in range(7):
        so_far = documents[:, : step + 1]
        one = masks.Blocks(so_far).dense(1, step + 1)
        assert torch.equal(one, whole[:, step : step + 1, : step + 1])
        named = masks.Blocks(so_far, documents[:, step : step + 1]).dense(1, step + 1)
        assert torch.equal(one, named)


@pytest.mark.parametrize("queries", [5, 7])
def test_queries_past_the_first_key_have_no_block(queries: int) -> None:
    with pytest.raises(MaskError):
        masks.Blocks([0, 0, 1]).dense(queries, 3)


@pytest.mark.parametrize("axes", [1, 2])
@some
@given(tree=trees(), of=sizes())
def test_heads_are_axes_before_the_last_two(axes: int, tree, of: Sizes) -> None:
    mask = grow(tree, of).mask
    for before, after in zip(held(mask), held(mask.heads(axes)), strict=True):
        assert after.shape == (*before.shape[:-2], *[1] * axes, *before.shape[-2:])
    found = mask.heads(axes).dense(of.queries, of.keys)
    expected = table(mask, of).reshape(of.items, *[1] * axes, of.queries, of.keys)
    assert torch.equal(found.expand_as(expected), expected)


@some
@given(tree=trees(), of=sizes())
def test_a_change_reaches_every_tensor_and_leaves_the_mask_alone(tree, of: Sizes) -> None:
    mask = grow(tree, of).mask
    before = table(mask, of).clone()
    flipped = mask.map(lambda tensor: tensor.flip(0))
    assert torch.equal(table(flipped, of), before.flip(0))
    assert torch.equal(table(mask, of), before)


@some
@given(tree=trees(), of=sizes())
def test_a_mask_moves_with_all_its_tensors(tree, of: Sizes) -> None:
    mask = grow(tree, of).mask
    assert all(tensor.device.type == "meta" for tensor in held(mask.to("meta")))
    assert all(tensor.device.type == "cpu" for tensor in held(mask))
    assert torch.equal(table(mask.to("cpu"), of), table(mask, of))


def test_masks_over_a_million_keys_hold_a_few_numbers() -> None:
    lengths = torch.tensor([MILLION, 999_983, 0])
    mask = masks.Causal() & masks.Window(128) & masks.Lengths(lengths)
    mask = ~(mask.heads(2) | masks.Prefix(MILLION // 2))
    assert sum(tensor.numel() for tensor in held(mask)) == len(lengths)


def test_a_few_pairs_of_a_million_squared_cost_a_few_numbers() -> None:
    mask = masks.Causal() & masks.Window(128) & masks.Lengths([999_983])
    rows, columns = torch.tensor([0, 500_000, 999_999]), torch.tensor([0, 499_873, 999_990])
    allowed = mask.allows(PairIndex(MILLION, MILLION, rows=rows, columns=columns))
    assert allowed.tolist() == [[[True, False, False], [False, True, False], [False] * 3]]
    visible = mask.visible_counts(PairIndex(MILLION**2, MILLION**2, rows=rows))
    assert visible.flatten().tolist() == [1, 129, 112]
