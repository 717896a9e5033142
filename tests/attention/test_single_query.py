"""One query at a time from a prepared memory: the same answer in one call, and nothing stale."""

from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor

from regard import Attention, MultiHead, kernels, masks, scores, selection
from regard.attention.core.errors import KernelError, ShapeError
from regard.attention.kernels.single_query import MAX_KEYS
from regard.native import loader, parallel
from regard.native.eligibility import usable

BUILT = usable()
pytestmark = pytest.mark.skipif(not BUILT, reason="the C extension was not built")
SIZE, COUNT = 37, 11

MAKES: dict[str, Callable[[], scores.Score]] = {
    "dot": scores.Dot,
    "scaled": scores.ScaledDot,
    "learned scale": lambda: scores.ScaledDot(learned=True),
    "cosine": scores.Cosine,
    "bilinear": lambda: scores.Bilinear(SIZE, SIZE),
    "additive": lambda: scores.Additive(SIZE, SIZE, 45),
}
BATCHES = {
    "no batch": ((), ()),
    "items": ((3,), (3,)),
    "two axes": ((2, 3), (2, 3)),
    "beams of each": ((2, 3), (2, 1)),
    "one for all": ((2, 3), (1, 1)),
}


def draw(batch: tuple[int, ...], held: tuple[int, ...]) -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(1)
    return (
        torch.randn(*batch, 1, SIZE),
        torch.randn(*held, COUNT, SIZE),
        torch.randn(*held, COUNT, 5),
    )


def lengths(held: tuple[int, ...]) -> masks.Mask:
    """Some read all, some read a part, the first reads nothing."""
    count = torch.Size(held).numel()
    return masks.Lengths((torch.arange(count) * 7 % (COUNT + 1)).view(held))


@pytest.fixture(autouse=True)
def _no_gradient() -> Iterator[None]:
    with torch.no_grad():
        yield


@pytest.mark.parametrize("level", range(loader.level() + 1))
@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("name", MAKES)
def test_it_reads_what_the_reference_reads(
    name: str, masked: bool, batch: str, level: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loader, "level", lambda: level)
    queries, keys, values = draw(*BATCHES[batch])
    attention = Attention(MAKES[name](), selection.Softmax(temperature=0.7))
    memory = attention.prepare(keys, values, lengths(BATCHES[batch][1]) if masked else None)
    for step in range(3):
        asked = queries * (step + 1)
        with kernels.using(kernels.SingleQuery()):
            found = attention.read(asked, memory)
        with kernels.using(kernels.Reference()):
            truth = attention.read(asked, memory)
        torch.testing.assert_close(found.context, truth.context, atol=2e-6, rtol=2e-5)
        torch.testing.assert_close(found.weights, truth.weights, atol=2e-6, rtol=2e-5)
        assert ((found.weights == 0) == (truth.weights == 0)).all()


@pytest.mark.parametrize("threads", [1, 2, 3, 9])
def test_any_number_of_threads(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    queries, keys, values = draw((7,), (7,))
    attention = Attention(scores.Additive(SIZE, SIZE, 45))
    memory = attention.prepare(keys, values)
    alone = attention.read(queries, memory)
    monkeypatch.setattr(parallel, "threads", lambda _: threads)
    together = attention.read(queries, memory)
    assert torch.equal(alone.context, together.context)
    assert torch.equal(alone.weights, together.weights)


def test_it_is_what_a_decoder_gets() -> None:
    queries, keys, values = draw((3,), (3,))
    reading = Attention().prepare(keys, values).read(queries)
    assert reading.parts[0].cached_weights is not None  # the weights came with the context
    assert reading.parts[0].request.view.cache.packed is not None


def test_one_after_another_counts_the_steps() -> None:
    queries, keys, values = draw((3,), (3,))
    attention = Attention(select=selection.Softmax())
    memory, state = attention.prepare(keys, values), None
    for _ in range(3):
        state = attention.read(queries, memory, state=state).state
    assert state is not None
    assert state.step == 3


def test_the_last_answer_is_not_overwritten() -> None:
    queries, keys, values = draw((3,), (3,))
    attention = Attention()
    memory = attention.prepare(keys, values)
    first = attention.read(queries, memory)
    context, weights = first.context.clone(), first.weights.clone()
    attention.read(-queries, memory)
    assert torch.equal(first.context, context)
    assert torch.equal(first.weights, weights)


@pytest.mark.parametrize("name", ["scaled", "additive"])
def test_what_is_written_is_read_at_the_next_step(name: str) -> None:
    queries, keys, values = draw((2,), (2,))
    attention = Attention(MAKES[name]())
    memory = attention.prepare(keys, values, masks.Lengths([4, COUNT]))
    attention.read(queries, memory)
    memory.write(keys[:, :2] + 1, values[:, :2] - 1)
    memory.erase([1, 5])
    found = attention.read(queries, memory)
    with kernels.using(kernels.Reference()):
        truth = attention.read(queries, memory)
    assert found.weights.shape[-1] == COUNT
    torch.testing.assert_close(found.context, truth.context)
    reordered = memory.reorder(torch.tensor([1, 0]))
    torch.testing.assert_close(
        attention.read(queries.flip(0), reordered).context, found.context.flip(0)
    )


def test_additive_scores_out_of_range_are_read_all_the_same() -> None:
    queries, keys, values = draw((3,), (3,))
    attention = Attention(scores.Additive(SIZE, SIZE, 45))
    memory = attention.prepare(keys, values)
    attention.read(queries, memory)
    for far in (30.0, 100.0, 1e4):
        found = attention.read(queries * far, memory)
        with kernels.using(kernels.Reference()):
            truth = attention.read(queries * far, memory)
        torch.testing.assert_close(found.context, truth.context, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", ["scaled", "additive"])
@pytest.mark.parametrize("wrong", [torch.nan, torch.inf])
def test_a_nonfinite_query_affects_itself_alone(name: str, wrong: float) -> None:
    queries, keys, values = draw((3,), (3,))
    attention = Attention(MAKES[name]())
    memory = attention.prepare(keys, values, masks.Lengths([0, 5, COUNT]))
    whole = attention.read(queries, memory).context
    nonfinite = queries.clone()
    nonfinite[:2, 0, 3] = wrong
    context = attention.read(nonfinite, memory).context
    with kernels.using(kernels.Reference()):
        truth = attention.read(nonfinite, memory).context
    assert (context[0] == 0).all()  # it may read nothing
    torch.testing.assert_close(context[1], truth[1], equal_nan=True)
    torch.testing.assert_close(context[2], whole[2], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("level", range(loader.level() + 1))
@pytest.mark.parametrize("far", [60.0, 200.0, 1e30, torch.inf])
def test_a_score_far_below_the_others_weighs_nothing(
    level: int, far: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loader, "level", lambda: level)
    keys = torch.zeros(1, COUNT, SIZE)
    keys[0, 3, 0] = -far
    queries = torch.ones(1, 1, SIZE)
    attention = Attention(scores.Dot()).eval()
    memory = attention.prepare(keys, torch.eye(COUNT)[None])
    with kernels.using(kernels.SingleQuery()):
        read = attention.read(queries, memory)
    with kernels.using(kernels.Reference()):
        plain = attention.read(queries, memory)
    torch.testing.assert_close(read.context, plain.context, rtol=1e-6, atol=1e-38, equal_nan=True)


def test_queries_of_another_kind_are_still_refused() -> None:
    queries, keys, values = draw((3,), (3,))
    attention = Attention()
    memory = attention.prepare(keys, values)
    attention.read(queries, memory)
    with pytest.raises(ShapeError, match="batch of"):
        attention.read(queries[:2], memory)
    with pytest.raises(ShapeError, match="vectors of one size"):
        attention.read(queries[..., :5], memory)


def test_lengths_that_change_after_prepare_change_nothing() -> None:
    queries, keys, values = draw((2,), (2,))
    lengths = torch.tensor([3, 4])
    attention = Attention()
    memory = attention.prepare(keys, values, masks.Lengths(lengths))
    before = attention.read(queries, memory).weights
    lengths += 5
    assert torch.equal(attention.read(queries, memory).weights, before)


def test_why_it_refuses() -> None:
    queries, keys, values = draw((2,), (2,))

    def reasons(attention: Attention, queries: Tensor = queries, keys: Tensor = keys) -> str:
        memory = attention.prepare(keys, values[..., : keys.shape[-2], :])
        with kernels.using(kernels.SingleQuery()), pytest.raises(KernelError) as refused:
            attention.read(queries, memory)
        return str(refused.value)

    assert "Gauss" in reasons(Attention(scores.Gaussian()))
    assert "by softmax" in reasons(Attention(select=selection.Sparsemax()))
    assert "one query an item" in reasons(Attention(), queries.expand(2, 3, SIZE))
    with torch.enable_grad():
        assert "no gradient" in reasons(Attention(), queries.clone().requires_grad_())
    assert "contiguous" in reasons(Attention(), keys=keys.mT.contiguous().mT)
    long = torch.zeros(1, MAX_KEYS + 1, SIZE)
    memory = Attention().prepare(long, long)
    with (
        kernels.using(kernels.SingleQuery()),
        pytest.raises(KernelError, match=f"up to {MAX_KEYS} keys"),
    ):
        memory.read(queries[:1])


def test_heads_step_as_they_read_whole() -> None:
    torch.manual_seed(0)
    heads = MultiHead(Attention, 4, 24, 24, 6)
    source, target = torch.randn(3, 9, 24), torch.randn(3, 5, 24)
    memory = heads.prepare(source, source, masks.Lengths([9, 4, 0]))
    whole = heads.read(target, memory).context
    steps = [heads.read(target[:, [t]], memory).context for t in range(5)]
    torch.testing.assert_close(torch.cat(steps, 1), whole, atol=1e-5, rtol=1e-5)
