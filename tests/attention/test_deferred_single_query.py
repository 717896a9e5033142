"""Steps of a loop whose gradients are asked for once: those of plain code, all of them."""

from collections.abc import Callable
from contextlib import nullcontext

import pytest
import torch
from torch import Tensor

from regard import Attention, kernels, masks, scores, selection
from regard.attention.core.errors import KernelError
from regard.native import loader, single_query
from regard.native.eligibility import usable

pytestmark = pytest.mark.skipif(not usable(), reason="the C extension was not built")
ITEMS, COUNT, SIZE, WIDE, STEPS, HIDDEN = 3, 11, 37, 5, 4, 41
MAKES: dict[str, Callable[[], scores.Score]] = {
    "dot": scores.Dot,
    "scaled": scores.ScaledDot,
    "cosine": scores.Cosine,
    "bilinear": lambda: scores.Bilinear(SIZE, SIZE),
    "additive": lambda: scores.Additive(SIZE, SIZE, HIDDEN),
}


def _learned(attention: Attention, kernel: kernels.Kernel, *, looping: bool) -> list[Tensor]:
    """Contexts of steps that each need the last, and the gradients of all that they came from."""
    torch.manual_seed(1)
    query = torch.randn(ITEMS, 1, SIZE, requires_grad=True)
    keys = torch.randn(ITEMS, COUNT, SIZE, requires_grad=True)
    values = torch.randn(ITEMS, COUNT, WIDE, requires_grad=True)
    mix = torch.randn(WIDE, SIZE)
    memory = attention.prepare(keys, values, masks.Lengths(torch.tensor([COUNT, 4, 0])))
    asked, contexts, shown = query, [], torch.zeros(())
    with kernels.deferred_gradients() if looping else nullcontext(), kernels.using(kernel):
        for _ in range(STEPS):
            reading = attention.read(asked, memory)
            contexts.append(reading.context)
            asked = torch.tanh(asked + reading.context @ mix)
    # Others use the values, too, and ask for weights: both send gradients of their own.
    with kernels.using(kernels.Reference()):
        shown = reading.weights.square().sum() + values.square().sum() / 100
    loss = torch.stack(contexts).square().sum() + shown
    given = [query, keys, values, *attention.parameters()]
    return [*contexts, *torch.autograd.grad(loss, given)]


@pytest.mark.parametrize("level", range(loader.level() + 1))
@pytest.mark.parametrize("name", MAKES)
def test_contexts_and_gradients_are_those_of_the_reference(
    name: str, level: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loader, "level", lambda: level)
    torch.manual_seed(2)
    attention = Attention(MAKES[name](), selection.Softmax(temperature=0.7))
    found = _learned(attention, kernels.DeferredSingleQuery(), looping=True)
    truth = _learned(attention, kernels.Reference(), looping=False)
    for ours, theirs in zip(found, truth, strict=True):
        torch.testing.assert_close(ours, theirs, atol=2e-5, rtol=2e-4)


def test_keys_that_are_hidden_between_others_send_nothing() -> None:
    torch.manual_seed(3)
    attention = Attention(scores.Additive(SIZE, SIZE, HIDDEN))
    query, keys = torch.randn(ITEMS, 1, SIZE), torch.randn(ITEMS, COUNT, SIZE, requires_grad=True)
    seen = torch.rand(ITEMS, 1, COUNT) < 0.5
    found = []
    for kernel, looping in (
        (kernels.DeferredSingleQuery(), kernels.deferred_gradients()),
        (kernels.Reference(), nullcontext()),
    ):
        memory = attention.prepare(keys, keys.detach(), seen)
        with looping, kernels.using(kernel):
            context = attention.read(query, memory).context
        found.append(torch.autograd.grad(context.square().sum(), keys)[0])
    torch.testing.assert_close(*found, atol=2e-5, rtol=2e-4)
    assert not found[0][~seen[:, 0]].any()


def test_beyond_its_range_additive_scores_are_those_of_the_reference() -> None:
    torch.manual_seed(4)
    attention = Attention(scores.Additive(SIZE, SIZE, HIDDEN))
    with torch.no_grad():
        attention.score.query_weight *= 30  # type: ignore[operator]
    found = _learned(attention, kernels.DeferredSingleQuery(), looping=True)
    truth = _learned(attention, kernels.Reference(), looping=False)
    for ours, theirs in zip(found, truth, strict=True):
        torch.testing.assert_close(ours, theirs, atol=2e-4, rtol=2e-3)


def test_outside_a_loop_it_refuses() -> None:
    with pytest.raises(KernelError, match=r"within kernels\.deferred_gradients"):
        _learned(Attention(scores.Dot()), kernels.DeferredSingleQuery(), looping=False)


def test_in_a_loop_it_is_taken_and_after_it_not(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    real = single_query.step
    monkeypatch.setattr(single_query, "step", lambda *given: (calls.append(1), real(*given))[1])
    attention, one = Attention(scores.Dot()), torch.randn(ITEMS, 1, SIZE, requires_grad=True)
    memory = attention.prepare(torch.randn(ITEMS, COUNT, SIZE), torch.randn(ITEMS, COUNT, WIDE))
    with kernels.deferred_gradients():
        attention.read(one, memory).context.sum().backward()
    assert calls == [1]
    attention.read(one, memory).context.sum().backward()
    assert calls == [1]


def test_what_it_cannot_do_goes_the_usual_way() -> None:
    attention = Attention(scores.Dot(), selection.Sparsemax())
    one = torch.randn(ITEMS, 1, SIZE, requires_grad=True)
    memory = attention.prepare(torch.randn(ITEMS, COUNT, SIZE), torch.randn(ITEMS, COUNT, WIDE))
    with kernels.deferred_gradients():
        inside = attention.read(one, memory).context
    assert torch.equal(inside, attention.read(one, memory).context)


@pytest.mark.parametrize("name", MAKES)
def test_two_backwards_of_a_loop_add_up(name: str) -> None:
    attention = Attention(MAKES[name]())
    keys = torch.randn(ITEMS, COUNT, SIZE, requires_grad=True)
    memory = attention.prepare(keys, keys)
    with kernels.deferred_gradients():
        context = attention.read(torch.randn(ITEMS, 1, SIZE), memory).context
    once, *_ = torch.autograd.grad(context.sum(), keys, retain_graph=True)
    again, *_ = torch.autograd.grad(context.sum(), keys)
    assert torch.equal(once, again)
