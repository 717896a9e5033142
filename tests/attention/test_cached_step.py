"""A step like the last one takes the fast path, and reads the same."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from regard import Attention, Memory, kernels, masks, scores, selection
from regard.attention import attend as recipe
from regard.attention.core.errors import DeviceError, DtypeError, StateError
from regard.attention.reading import Reading
from regard.native.eligibility import usable
from tests.attention.test_single_query import COUNT, MAKES, SIZE, draw

BUILT = usable()
pytestmark = pytest.mark.skipif(not BUILT, reason="the C extension was not built")


@pytest.fixture(autouse=True)
def _no_gradient() -> Iterator[None]:
    with torch.no_grad():
        yield


@pytest.fixture
def fast(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each read, in order: did it take the fast path?"""
    taken: list[bool] = []
    inner = recipe.cached_step

    def watched(*given: Any) -> Reading | None:
        found = inner(*given)
        taken.append(found is not None)
        return found

    monkeypatch.setattr(recipe, "cached_step", watched)
    return taken


def ready(attention: Attention, mask: masks.Mask | None = None) -> tuple[Tensor, Memory]:
    queries, keys, values = draw((3,), (3,))
    return queries, attention.prepare(keys, values, mask)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("name", MAKES)
def test_it_reads_what_the_usual_path_reads(name: str, masked: bool, fast: list[bool]) -> None:
    attention = Attention(MAKES[name](), selection.Softmax(temperature=0.7))
    mask = masks.Lengths([2, 7, COUNT]) if masked else None
    queries, memory = ready(attention, mask)
    for step in range(3):
        asked = queries * (step + 1)
        found = attention.read(asked, memory)
        truth = attention.read(asked, ready(attention, mask)[1])
        assert torch.equal(found.context, truth.context)
        assert torch.equal(found.weights, truth.weights)
        assert torch.equal(found.rows(0), truth.rows(0))
        assert torch.equal(found.entropy, truth.entropy)
        assert found.state.step == truth.state.step == 1
    assert fast == [False, False, True, False, True, False]


@pytest.mark.parametrize("name", MAKES)
@pytest.mark.parametrize(
    ("batch", "own"), [((), ()), ((3,), (3,)), ((2, 5), (2, 5)), ((2, 5), (2, 1))]
)
def test_any_number_of_batch_axes(
    name: str, batch: tuple[int, ...], own: tuple[int, ...], fast: list[bool]
) -> None:
    attention = Attention(MAKES[name]())
    queries, keys, values = draw(batch, own)
    memory = attention.prepare(keys, values)
    for _ in range(3):
        found = attention.read(queries, memory)
    with kernels.using(kernels.Reference()):
        truth = attention.read(queries, memory)
    torch.testing.assert_close(found.context, truth.context, atol=1e-5, rtol=1e-4)
    assert fast == [False, True, True, False]


def test_a_state_is_passed_on(fast: list[bool]) -> None:
    attention = Attention()
    (queries, memory), state = ready(attention), None
    for step in range(3):
        reading = attention.read(queries, memory, state=state)
        state = reading.state
        assert reading.parts[0].request.view.step == step
        assert state.step == step + 1
    assert fast == [False, True, True]
    stateful = Attention(scores.Coverage(scores.Dot()))
    other = stateful.read(queries, ready(stateful)[1]).state
    with pytest.raises(StateError, match="expects the state of no part"):
        attention.read(queries, memory, state=other)


def test_changed_options_take_effect() -> None:
    select = selection.Softmax(dropout=0.5)
    attention = Attention(scores.ScaledDot(), select).eval()
    queries, memory = ready(attention)
    before = attention.read(queries, memory)
    assert torch.equal(attention.read(queries, memory).context, before.context)
    select.temperature = 1e4
    flat = attention.read(queries, memory).weights
    torch.testing.assert_close(flat, torch.full_like(flat, 1 / COUNT), atol=1e-3, rtol=1e-3)
    attention.train()
    assert not torch.equal(attention.read(queries, memory).context, before.context)
    attention.eval().score = scores.Dot()
    select.temperature = SIZE**0.5
    torch.testing.assert_close(attention.read(queries, memory).context, before.context)


def test_a_sample_is_drawn_once(fast: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    attention = Attention(select=selection.Hard()).train()
    queries, memory = ready(attention)

    def drawn() -> list[Tensor]:
        torch.manual_seed(3)
        return [attention.read(queries, memory).context for _ in range(5)]

    found = drawn()
    assert fast == [False] * 5
    monkeypatch.setattr(recipe, "cached_step", lambda *_: None)
    assert torch.equal(torch.stack(found), torch.stack(drawn()))


def test_where_the_usual_path_is_taken(fast: list[bool]) -> None:
    attention = Attention()
    queries, memory = ready(attention)
    attention.read(queries, memory)
    attention.read(queries, memory)
    assert fast.pop()
    with kernels.using(kernels.Reference()):
        attention.read(queries, memory)
    with torch.enable_grad():
        attention.read(queries.clone().requires_grad_(), memory)
    with torch.autocast("cpu", torch.bfloat16):
        attention.read(queries, memory)
    torch.func.vmap(lambda asked: attention.read(asked, memory).context)(queries[None])
    attention.read(queries.expand(3, 2, SIZE), memory)
    attention.read(torch.nn.Parameter(queries), memory)
    attention.read(queries.repeat(1, 1, 2)[..., ::2], memory)
    memory.write(torch.ones(3, 1, SIZE), torch.ones(3, 1, 5))
    attention.read(queries, memory)
    assert not any(fast)


def test_what_does_not_fit_is_still_refused() -> None:
    attention = Attention(scores.Additive(SIZE, SIZE, 45))
    queries, memory = ready(attention)
    for _ in range(2):
        attention.read(queries, memory)
    with pytest.raises(DtypeError, match="but keys and values"):
        attention.read(queries.double(), memory)
    with pytest.raises(DeviceError, match="but keys and values"):
        attention.read(queries.to("meta"), memory)


def test_fully_masked_queries_and_nonfinite_values_take_the_usual_path(fast: list[bool]) -> None:
    attention = Attention()
    queries, memory = ready(attention, masks.Lengths([0, 5, COUNT]))
    for _ in range(2):
        assert (attention.read(queries, memory).context[0] == 0).all()
    _, keys, values = draw((3,), (3,))
    values[1, 2, 0] = torch.nan
    memory = attention.prepare(keys, values)
    for _ in range(2):
        context = attention.read(queries, memory).context
        assert context[1].isnan().all()
        assert context[::2].isfinite().all()
    assert not any(fast)
