"""Sequences without padding: what is packed comes back, and turning is turning each sequence."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.seq2seq.nn.packed_sequence import PackedSequence

LENGTHS = st.lists(st.integers(0, 5), min_size=1, max_size=6)


@given(lengths=LENGTHS, more=st.integers(0, 2))
def test_what_is_packed_comes_back(lengths: list[int], more: int) -> None:
    """Whatever stood in the padding is zeros then, also where nobody has a token."""
    length = max(lengths) + more
    ids = torch.arange(1, len(lengths) * length + 1).view(len(lengths), length)
    ragged = PackedSequence(torch.tensor(lengths), length)
    rows = ragged.packed(ids)
    assert len(rows) == sum(lengths) == sum(ragged.counts)
    expected = ids * (torch.arange(length) < torch.tensor(lengths)[:, None])
    assert torch.equal(ragged.padded(rows[:, None].double())[..., 0], expected.double())


@given(lengths=LENGTHS)
def test_those_who_have_a_step_had_the_one_before(lengths: list[int]) -> None:
    ragged = PackedSequence(torch.tensor(lengths), max(lengths))
    assert ragged.counts == sorted(ragged.counts, reverse=True)
    sentences = torch.arange(len(lengths))[:, None].expand(-1, max(lengths))
    order = ragged.ranks.argsort()
    for count, step in zip(
        ragged.counts, ragged.packed(sentences).split(ragged.counts), strict=True
    ):
        assert torch.equal(step, order[:count])


@given(lengths=LENGTHS)
def test_turned_is_each_sequence_from_its_end(lengths: list[int]) -> None:
    length = max(lengths)
    ragged = PackedSequence(torch.tensor(lengths), length)
    rows = torch.randn(sum(lengths), 2)
    before, after = ragged.padded(rows), ragged.padded(ragged.reversed(rows))
    for own, turned, count in zip(before, after, lengths, strict=True):
        assert torch.equal(turned[:count], own[:count].flip(0))
    assert torch.equal(ragged.reversed(ragged.reversed(rows)), rows)


def test_gradients_go_the_same_ways() -> None:
    ragged = PackedSequence(torch.tensor([2, 0, 4, 3]), 5)
    rows = torch.randn(9, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(ragged.reversed, rows)
    assert torch.autograd.gradcheck(ragged.padded, rows)
