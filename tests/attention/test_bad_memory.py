"""A memory is read, written to and reordered for what it is, or not at all."""

import pytest
import torch

from regard import Attention, Memory, MultiHead, attend, masks, scores
from regard.attention.core.errors import DtypeError, ForeignMemoryError, MaskError, ShapeError
from tests.attention.error_cases import (
    BATCH,
    KEYS,
    SIZE,
    VALUE,
    Wrong,
    assert_refuses,
    keys,
    queries,
    table,
    values,
)

pytestmark = pytest.mark.usefixtures("unchecked")

dot = Attention(scores.Dot())
ownerless = Memory({"keys": keys}, values, None, {}, None, None)
NUMBERS = "Give whole numbers: a list, such as [0, 2], or a tensor."


def memory(mask: masks.Mask | None = None) -> Memory:
    return dot.prepare(keys, values, mask)


def multi() -> MultiHead:
    return MultiHead(Attention, 3, SIZE, SIZE, 2, value_size=VALUE)


@table(
    ("by another attention", lambda: Attention().read(queries, memory()), ForeignMemoryError,
     "this memory was prepared by another attention", "or prepare the keys again with this one."),
    ("by several heads", lambda: multi().read(queries, memory()), ForeignMemoryError,
     "this memory was prepared by another attention", "Read it with the one that prepared it"),
    ("keys for a memory", lambda: dot.read(queries, keys), DtypeError,
     "a Tensor of shape (2, 5, 7) is not a memory.", "memory = attention.prepare(keys, values)"),
    ("turned around", lambda: dot.read(memory(), queries), DtypeError,
     "a Tensor of shape (2, 3, 7) is not a memory.", "attention.read(queries, memory)."),
    ("without an attention", lambda: ownerless.read(queries), ForeignMemoryError,
     "this memory was prepared by no attention.", "Make one: Attention(…).prepare(…)."),
)  # fmt: skip
def test_reads(wrong: Wrong) -> None:
    assert_refuses(wrong)


def write(*sizes: tuple[int, ...], at: object = None, mask: masks.Mask | None = None) -> Memory:
    return memory(mask).write(*(torch.ones(size) for size in sizes), at=at)


PAIR = ((BATCH, 1, SIZE), (BATCH, 1, VALUE))
PAIRS = ((BATCH, 3, SIZE), (BATCH, 3, VALUE))


@table(
    ("one key without its axis", lambda: write((SIZE,), (VALUE,)), ShapeError,
     "keys have shape (7,);", "keys[None, :] for one key."),
    ("without the batch", lambda: write((1, SIZE), (1, VALUE)), ShapeError,
     "the new pairs are for a batch of () but the memory's is (2,).", "Give them the same batch"),
    ("another batch", lambda: write((3, 1, SIZE), (3, 1, VALUE)), ShapeError,
     "the new pairs are for a batch of (3,) but the memory's is (2,).", "or 1 to broadcast."),
    ("fewer values", lambda: write((BATCH, 3, SIZE), (BATCH, 2, VALUE)), ShapeError,
     "keys have 3 positions but values have 2", "pass values of shape (2, 3, …)."),
    ("keys of another size", lambda: write((BATCH, 1, 3), (BATCH, 1, VALUE)), ShapeError,
     "the new keys and values have sizes (3, 11) but the memory's (7, 11).", "the same sizes."),
    ("values of another size", lambda: write((BATCH, 1, SIZE), (BATCH, 1, 3)), ShapeError,
     "the new keys and values have sizes (7, 3) but the memory's (7, 11).", "the same sizes."),
    ("another precision", lambda: memory().write(keys.double(), values.double()), DtypeError,
     "the new pairs are torch.float64 but the memory torch.float32.", ".to(torch.float32)"),
    ("arrays", lambda: memory().write(keys.numpy(), values.numpy()), DtypeError,
     "keys are of type ndarray.", "torch.as_tensor(…)."),
    ("under blocks without the queries' own",
     lambda: write(*PAIR, mask=masks.Blocks([[0] * KEYS])), MaskError,
     "Blocks take the queries' blocks from the keys' positions, which a write or an erasure moves.",
     "Give both: masks.Blocks(keys, queries)."),
)  # fmt: skip
def test_writes(wrong: Wrong) -> None:
    assert_refuses(wrong)


@table(
    ("too few", lambda: write(*PAIRS, at=[0, 1]), ShapeError,
     "3 pairs cannot be written at the indices [0, 1].", "Give 3 different indices"),
    ("one twice", lambda: write(*PAIRS, at=[0, 1, -5]), ShapeError,
     "3 pairs cannot be written at the indices [0, 1, 0].", "Give 3 different indices"),
    ("past the end", lambda: write(*PAIR, at=[5]), ShapeError,
     "indices [5] were given but there are 5.", "They go from 0 to 4, or from the end, from −1."),
    ("before the first", lambda: memory().erase([-7]), ShapeError,
     "indices [-7] were given but there are 5.", "They go from 0 to 4"),
    ("one number", lambda: write(*PAIR, at=2), DtypeError, "indices are 2.", NUMBERS),
    ("a slice", lambda: memory().erase(slice(2)), DtypeError,
     "indices are slice(None, 2, None).", NUMBERS),
    ("a word", lambda: memory().erase("last"), DtypeError, "indices are 'last'.", NUMBERS),
    ("floats", lambda: write(*PAIR, at=[2.0]), DtypeError,
     "indices are torch.float32 of shape (1,).", "or one boolean for each of the 5."),
    ("too few booleans", lambda: memory().erase(torch.tensor([True, False])), DtypeError,
     "indices are torch.bool of shape (2,).", "or one boolean for each of the 5."),
    ("for each item", lambda: memory().erase(torch.tensor([[1], [2]])), ShapeError,
     "indices have shape (2, 1);", "Give them on one axis, such as [0, 2]."),
)  # fmt: skip
def test_places(wrong: Wrong) -> None:
    assert_refuses(wrong)


def test_places_may_be_none_or_booleans() -> None:
    assert len(memory().erase([])) == KEYS
    assert len(memory().erase(torch.tensor([True, False, True, False, False]))) == 3


@table(
    ("past the last", lambda: attend(queries, keys, values).rows(3), ShapeError,
     "rows [3] were given but there are 3.", "They go from 0 to 2, or from the end, from −1."),
    ("before the first", lambda: attend(queries, keys, values).rows([0, -5]), ShapeError,
     "rows [0, -5] were given but there are 3.", "They go from 0 to 2"),
    ("a float", lambda: attend(queries, keys, values).rows(1.5), DtypeError,
     "rows are 1.5.", NUMBERS),
    ("floats", lambda: attend(queries, keys, values).rows(torch.tensor([0.0, 1.0])), DtypeError,
     "rows are torch.float32 of shape (2,).", "or one boolean for each of the 3."),
    ("too few booleans", lambda: attend(queries, keys, values).rows([True, False]), DtypeError,
     "rows are torch.bool of shape (2,).", "or one boolean for each of the 3."),
    ("nothing", lambda: attend(queries, keys, values).rows(None), DtypeError,
     "rows are None.", NUMBERS),
)  # fmt: skip
def test_rows(wrong: Wrong) -> None:
    assert_refuses(wrong)


def beams(*index: object) -> torch.Tensor:
    return torch.tensor(index)


def beamed() -> Memory:
    return dot.prepare(keys[:, None].repeat(1, 3, 1, 1), values[:, None].repeat(1, 3, 1, 1))


LONG = "Pass a tensor of torch.long."


@table(
    ("past the last", lambda: memory().reorder(beams(0, 2)), ShapeError,
     "beams from 0 to 2 were selected but there are 2.", "Beams go from 0 to 1."),
    ("past the last, of each item", lambda: beamed().reorder(beams([0, 5], [1, 2])), ShapeError,
     "beams from 0 to 5 were selected but there are 3.", "Beams go from 0 to 2."),
    ("of too many items", lambda: beamed().reorder(beams([0, 1], [1, 2], [2, 2])), ShapeError,
     "the index selects beams of 3 items but there are 2.", "Give it the shape (2, n)."),
    ("of too few items", lambda: beamed().reorder(beams([0, 1])), ShapeError,
     "the index selects beams of 1 items but there are 2.", "Give it the shape (2, n)."),
    ("without an axis of beams", lambda: memory().reorder(beams([0, 1], [1, 0])), ShapeError,
     "an index of shape (2, 2) selects along batch axis 2 but this memory's batch is (2,).",
     "Prepare it with an axis of beams."),
    ("heads for beams", lambda: multi().prepare(keys, values).reorder(beams([0, 1], [1, 0])),
     ShapeError, "selects along batch axis 2 but this memory's batch is (2,).", "axis of beams."),
    ("without a batch", lambda: dot.prepare(keys[0], values[0]).reorder(beams(0, 1)), ShapeError,
     "selects along batch axis 1 but this memory's batch is ().", "Prepare it with an axis"),
    ("a number", lambda: memory().reorder(torch.tensor(1)), ShapeError,
     "an index of shape (n,) or (batch, n), not ().", "Give one number for each beam."),
    ("a cube", lambda: memory().reorder(beams([[0]])), ShapeError,
     "an index of shape (n,) or (batch, n), not (1, 1, 1).", "Give one number for each beam."),
    ("floats", lambda: memory().reorder(beams(0.0, 1.0)), DtypeError,
     "beams are selected by whole numbers, not by torch.float32.", LONG),
    ("booleans", lambda: memory().reorder(beams(True, False)), DtypeError,
     "beams are selected by whole numbers, not by torch.bool.", LONG),
    ("a list", lambda: memory().reorder([0, 1]), DtypeError,
     "beams are selected by whole numbers, not by [0, 1].", LONG),
)  # fmt: skip
def test_beams(wrong: Wrong) -> None:
    assert_refuses(wrong)


def test_a_memory_that_was_written_to_goes_with_its_beams() -> None:
    padded = beamed().owner.prepare(
        beamed().prepared["keys"], beamed().values, masks.Lengths([[3], [5]])
    )
    written = padded.write(torch.ones(1, 1, 1, SIZE), torch.ones(1, 1, 1, VALUE))
    whole = written.read(queries[:, None].expand(-1, 3, -1, -1)).context
    chosen = written.reorder(beams([2, 0], [1, 1])).read(queries[:, None].expand(-1, 2, -1, -1))
    torch.testing.assert_close(chosen.context, whole[beams([0], [1]), beams([2, 0], [1, 1])])
