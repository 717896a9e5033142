"""Packing: padding undoes it, and reversing reverses each sequence."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.seq2seq.nn.packing import Packing

LENGTHS = st.lists(st.integers(0, 5), min_size=1, max_size=6)


@given(lengths=LENGTHS, more=st.integers(0, 2))
def test_pad_undoes_pack(lengths: list[int], more: int) -> None:
    """With zeros in the padding, also at steps that no sequence has."""
    length = max(lengths) + more
    ids = torch.arange(1, len(lengths) * length + 1).view(len(lengths), length)
    packing = Packing(torch.tensor(lengths), length)
    rows = packing.pack(ids)
    assert len(rows) == sum(lengths) == sum(packing.batch_sizes)
    expected = ids * (torch.arange(length) < torch.tensor(lengths)[:, None])
    assert torch.equal(packing.pad(rows[:, None].double())[..., 0], expected.double())


def test_vectors_are_packed_like_ids() -> None:
    packing = Packing(torch.tensor([2, 0, 4]), 5)
    ids = torch.arange(15).view(3, 5)
    vectors = torch.stack([ids, -ids], -1).double()
    expected = torch.stack([packing.pack(ids), -packing.pack(ids)], -1).double()
    assert torch.equal(packing.pack(vectors), expected)


@given(lengths=LENGTHS)
def test_sequences_of_a_step_are_the_first_of_the_step_before(lengths: list[int]) -> None:
    packing = Packing(torch.tensor(lengths), max(lengths))
    assert packing.batch_sizes == sorted(packing.batch_sizes, reverse=True)
    sentences = torch.arange(len(lengths))[:, None].expand(-1, max(lengths))
    order = packing.unsorted_indices.argsort()
    for count, step in zip(
        packing.batch_sizes, packing.pack(sentences).split(packing.batch_sizes), strict=True
    ):
        assert torch.equal(step, order[:count])


@given(lengths=LENGTHS)
def test_reverse_is_each_sequence_from_its_end(lengths: list[int]) -> None:
    length = max(lengths)
    packing = Packing(torch.tensor(lengths), length)
    rows = torch.randn(sum(lengths), 2)
    before, after = packing.pad(rows), packing.pad(packing.reverse(rows))
    for forward, backward, count in zip(before, after, lengths, strict=True):
        assert torch.equal(backward[:count], forward[:count].flip(0))
    assert torch.equal(packing.reverse(packing.reverse(rows)), rows)


def test_gradients() -> None:
    packing = Packing(torch.tensor([2, 0, 4, 3]), 5)
    rows = torch.randn(9, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(packing.reverse, rows)
    assert torch.autograd.gradcheck(packing.pad, rows)
