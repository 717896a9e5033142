"""A state goes back to the mechanism, the batch and the memory that it came from."""

import pytest
import torch

from regard import Attention, attend, scores, selection
from regard.attention.core.errors import DtypeError, ShapeError, StateError
from tests.attention.error_cases import (
    BATCH,
    HIDDEN,
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
looking = Attention(scores.LocationAware(SIZE, SIZE, HIDDEN))
covering = Attention(scores.Coverage(scores.Dot()))
nested = Attention(scores.Coverage(scores.LocationAware(SIZE, SIZE, HIDDEN)))
moving = Attention(select=selection.Monotonic())


def stepped(attention: Attention, batch: int = BATCH, length: int = KEYS) -> object:
    keys, values = torch.ones(batch, length, SIZE), torch.ones(batch, length, VALUE)
    return attention.read(torch.ones(batch, 1, SIZE), attention.prepare(keys, values)).state


def on(attention: Attention, state: object) -> object:
    return attention.read(queries, attention.prepare(keys, values), state=state)


OWN = "Pass the state of its own last read, reading.state, or None to start again."
SAME = "Pass a state of the same batch and memory, or None to start again."


@table(
    ("of another score", lambda: on(looking, stepped(covering)), StateError,
     "this state belongs to Coverage; this attention expects the state of LocationAware.", OWN),
    ("of the same around another", lambda: on(nested, stepped(covering)), StateError,
     "this state belongs to Coverage; this attention expects the state of "
     "Coverage(LocationAware).", OWN),
    ("of a selection", lambda: on(looking, stepped(moving)), StateError,
     "this state belongs to Monotonic; this attention expects the state of LocationAware.", OWN),
    ("of what is not stateful", lambda: on(moving, stepped(dot)), StateError,
     "this state belongs to no part; this attention expects the state of Monotonic.", OWN),
    ("for what is not stateful", lambda: on(dot, stepped(looking)), StateError,
     "this state belongs to LocationAware; this attention expects the state of no part.", OWN),
    ("of another batch", lambda: on(looking, stepped(looking, batch=3)), StateError,
     "the state's 'last' has shape (3, 1, 5) but this batch and these keys need (2, 1, 5).", SAME),
    ("of more keys", lambda: on(moving, stepped(moving, length=7)), StateError,
     "the state's 'last' has shape (2, 1, 7) but this batch and these keys need (2, 1, 5).", SAME),
    ("of a larger batch than all others",
     lambda: attend(queries[:1], keys[:1], values[:1], score=covering.score,
                    state=stepped(covering)), StateError,
     "the state's 'covered' has shape (2, 1, 5) but this batch and these keys need (1, 1, 5).",
     SAME),
    ("weights", lambda: on(moving, torch.ones(BATCH, 1, KEYS)), StateError,
     "a Tensor of shape (2, 1, 5) is not a state.", "Pass the last reading's: reading.state."),
    ("a reading", lambda: on(moving, on(moving, None)), StateError,
     "is not a state.", "Pass the last reading's: reading.state."),
)  # fmt: skip
def test_states(wrong: Wrong) -> None:
    assert_refuses(wrong)


def test_the_state_from_before_a_write() -> None:
    memory = moving.prepare(keys, values)
    state = moving.read(queries, memory).state
    memory.write(keys[:, :2], values[:, :2])
    assert_refuses(Wrong(
        "write", lambda: moving.read(queries, memory, state=state), StateError,
        "the state's 'last' has shape (2, 1, 5) but this batch and these keys need (2, 1, 7).",
        SAME,
    ))  # fmt: skip


LONG = "Pass a tensor of torch.long."


@table(
    ("past the last", lambda: stepped(looking).reorder(torch.tensor([0, 2])), ShapeError,
     "beams from 0 to 2 were selected but there are 2.", "Beams go from 0 to 1."),
    ("a number", lambda: stepped(looking).reorder(torch.tensor(1)), ShapeError,
     "an index of shape (n,) or (batch, n), not ().", "Give one number for each beam."),
    ("a list", lambda: stepped(looking).reorder([0, 1]), DtypeError,
     "beams are selected by whole numbers, not by [0, 1].", LONG),
)  # fmt: skip
def test_beams(wrong: Wrong) -> None:
    assert_refuses(wrong)
