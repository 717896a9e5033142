"""What a memory or a reading holds may be changed under it: it notices, or is not touched."""

from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor

from regard import Attention, attend, kernels, masks, scores, selection
from regard.attention.core.errors import ChangedInputError, KernelError, ShapeError
from regard.native.eligibility import usable

C = pytest.mark.skipif(not usable(), reason="the C extension was not built")

ITEMS, KEYS, SIZE, VALUE = 3, 5, 7, 11


def tensors(seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(seed)
    sizes = (1, SIZE), (KEYS, SIZE), (KEYS, VALUE)
    queries, keys, values = (torch.randn(ITEMS, *size) for size in sizes)
    return queries, keys, values


def replaced(tensor: Tensor, other: Tensor) -> None:
    tensor.data = other


def set_to(tensor: Tensor, other: Tensor) -> None:
    tensor.set_(other.untyped_storage(), 0, other.shape, other.stride())


def shared(tensor: Tensor, other: Tensor) -> None:
    tensor.share_memory_().copy_(other)


def in_place(tensor: Tensor, other: Tensor) -> None:
    tensor.copy_(other)


MOVES = [replaced, set_to, shared, in_place]


@pytest.fixture
def rubbish() -> Iterator[None]:
    """What was freed is soon overwritten, so that reading it gives something else."""
    yield
    del _HELD[:]


_HELD: list[Tensor] = []


def overwrite_freed() -> None:
    _HELD.extend(torch.full((ITEMS, KEYS, VALUE), torch.nan) for _ in range(64))
    _HELD.extend(torch.full((ITEMS, KEYS, SIZE), torch.nan) for _ in range(64))


@pytest.mark.usefixtures("rubbish")
@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize("which", [0, 1], ids=["keys", "values"])
@pytest.mark.parametrize("score", [scores.Dot, scores.ScaledDot])
def test_a_step_reads_keys_and_values_where_they_lie_now(
    score: Callable[[], scores.Score], which: int, move: Callable[[Tensor, Tensor], None]
) -> None:
    attention = Attention(score())
    queries, *pairs = tensors()
    with torch.no_grad():
        memory = attention.prepare(*pairs)
        for _ in range(3):  # the last goes straight to the kernel
            attention.read(queries, memory)
        move(pairs[which], tensors(seed=1)[1 + which].clone())
        overwrite_freed()
        found = attention.read(queries, memory).context
        truth = attend(queries, *(pair.clone() for pair in pairs), score=score()).context
    torch.testing.assert_close(found, truth)


@pytest.mark.usefixtures("rubbish")
@pytest.mark.parametrize("move", MOVES)
def test_a_step_of_additive_scores_reads_values_where_they_lie_now(
    move: Callable[[Tensor, Tensor], None],
) -> None:
    attention = Attention(scores.Additive(SIZE, SIZE, 13))
    queries, keys, values = tensors()
    with torch.no_grad():
        memory = attention.prepare(keys, values)
        for _ in range(3):
            attention.read(queries, memory)
        move(values, tensors(seed=1)[2].clone())
        overwrite_freed()
        found = attention.read(queries, memory).context
        truth = attention(queries, keys, values.clone()).context
    torch.testing.assert_close(found, truth)


@pytest.mark.parametrize("length", [1, KEYS - 1, KEYS + 8])
@pytest.mark.parametrize("step", [True, False])
def test_fewer_or_more_values_than_keys_are_refused(length: int, step: bool) -> None:
    attention = Attention()
    queries, keys, values = tensors()
    queries = queries if step else queries.expand(ITEMS, 4, SIZE)
    with torch.no_grad():
        memory = attention.prepare(keys, values)
        for _ in range(3):
            attention.read(queries, memory)
        values.data = torch.zeros(ITEMS, length, VALUE)
        with pytest.raises(ShapeError, match=f"{KEYS} keys but {length} values"):
            attention.read(queries, memory)


@C
@pytest.mark.parametrize("score", [scores.Dot, lambda: scores.Additive(SIZE, SIZE, 13)])
def test_a_backward_of_steps_does_not_read_what_was_freed(
    score: Callable[[], scores.Score],
) -> None:
    attention = Attention(score())
    queries, keys, values = tensors()
    queries.requires_grad_()
    with kernels.deferred_gradients():
        memory = attention.prepare(keys, values)
        context = attention.read(queries, memory).context
    values.data = torch.zeros(ITEMS, KEYS, VALUE)
    with pytest.raises(KernelError, match="were replaced before its gradient"):
        context.sum().backward()


ASKED = {
    "weights": lambda reading: reading.weights,
    "rows": lambda reading: reading.rows([0]),
    "unpacked": tuple,
    "log_probs": lambda reading: reading.log_probs,
    "entropy": lambda reading: reading.entropy,
}


@pytest.mark.parametrize("ask", ASKED)
@pytest.mark.parametrize("batch", [(), (2,), (2, 3)], ids=["2-D", "3-D", "4-D"])
@pytest.mark.parametrize("which", ["queries", "keys", "bias", "mask"])
def test_weights_after_a_change_in_place_are_an_error(
    which: str, batch: tuple[int, ...], ask: str
) -> None:
    given = {
        "queries": torch.randn(*batch, 3, SIZE),
        "keys": torch.randn(*batch, KEYS, SIZE),
        "bias": torch.randn(*batch, 3, KEYS),
        "mask": torch.ones(*batch, 3, KEYS, dtype=torch.bool),
    }
    options = {} if which in ("queries", "keys") else {which: given[which]}
    values = torch.randn(*batch, KEYS, VALUE)
    reading = attend(given["queries"], given["keys"], values, **options)
    again = attend(given["queries"], given["keys"], values, **options)
    used = again.weights.clone()
    with torch.no_grad():
        given[which].copy_(~given[which] if which == "mask" else given[which] + 1)
    assert torch.equal(again.weights, used)  # asked for in time, they are kept
    if reading.parts[0].cached_weights is None:
        with pytest.raises(ChangedInputError, match="changed in place"):
            ASKED[ask](reading)
    else:
        assert torch.equal(reading.weights, used)


def test_what_weights_do_not_depend_on_may_change() -> None:
    queries, keys, values = (tensor.expand(ITEMS, KEYS, -1).clone() for tensor in tensors())
    reading = attend(queries, keys, values, mask=masks.Causal())
    values.add_(1)
    assert reading.weights.shape == (ITEMS, KEYS, KEYS)


def test_parameters_may_learn_between_reading_and_weights() -> None:
    attention = Attention(scores.Additive(SIZE, SIZE, 13), selection.Sparsemax())
    queries, keys, values = tensors()
    reading = attention(queries, keys, values)
    used = attention(queries, keys, values).weights.detach()
    with torch.no_grad():
        for parameter in attention.parameters():
            parameter.add_(1)
    assert torch.equal(reading.weights, used)


@pytest.mark.parametrize("shape", [(2, 3), (2,), ()])
def test_keys_with_fewer_axes_than_queries_are_refused(shape: tuple[int, ...]) -> None:
    """Sizes that happen to match must not be taken for batch axes."""
    queries = torch.randn(2, 3, 5, 4)
    keys = torch.randn(*shape[:1], 3, 4) if shape else torch.randn(3, 4)
    with pytest.raises(ShapeError, match="axes"):
        attend(queries, keys, keys)
    with pytest.raises(ShapeError, match="axes"):
        attend(queries, queries, keys)
