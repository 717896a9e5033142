"""NaN, ±inf and huge numbers where they are masked reach no output, no weight and no gradient."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from regard import Attention, MultiHead, kernels, masks, scores
from tests.catalogue import SCORES, SELECTIONS, SIZE

QUERIES = KEYS = 5
BATCH, VALUE_SIZE = 3, 2
HUGE = 3e38
"""Finite in float32, and inf as soon as it is doubled."""

PLANTS = [torch.nan, torch.inf, -torch.inf, HUGE, -HUGE, 1e20]
ROWS = {
    **{f"{score}-Softmax": lambda s=score: Attention(s.make()) for score in SCORES},
    **{
        f"Additive-{select}": lambda s=select: Attention(scores.Additive(SIZE, SIZE, 7), s.make())
        for select in SELECTIONS
    },
    "heads": lambda: MultiHead(
        lambda: Attention(scores.Additive(2, 2, 3)), 4, SIZE, SIZE, 2, value_size=VALUE_SIZE
    ),
    "groups": lambda: MultiHead(Attention, 4, SIZE, SIZE, 2, 2, value_size=VALUE_SIZE),
}
family = pytest.mark.parametrize("name", ROWS)
plants = pytest.mark.parametrize("plant", PLANTS, ids=str)


def _module(name: str) -> nn.Module:
    torch.manual_seed(2)
    return ROWS[name]().eval()


def _inputs(dtype: torch.dtype = torch.float32) -> list[Tensor]:
    torch.manual_seed(3)
    sizes = (QUERIES, SIZE), (KEYS, SIZE), (KEYS, VALUE_SIZE)
    return [torch.randn(BATCH, *size).to(dtype) for size in sizes]


def _results(
    module: nn.Module, inputs: list[Tensor], mask: masks.Mask, part: Callable[[Tensor], Tensor]
) -> list[Tensor]:
    """Context and weights of some queries, and the gradients of these."""
    module.zero_grad()
    inputs = [tensor.detach().clone().requires_grad_() for tensor in inputs]
    reading = module(*inputs, mask=mask)
    context, weights = part(reading.context), part(reading.weights)
    (context.square().sum() + weights.square().sum()).backward()
    learned = [*inputs, *module.parameters()]
    gradients = [torch.zeros_like(t) if t.grad is None else t.grad for t in learned]
    return [context.detach(), weights.detach(), *gradients]


def _agree(planted: list[Tensor], clean: list[Tensor]) -> None:
    for found, expected in zip(planted, clean, strict=True):
        assert found.isfinite().all()
        torch.testing.assert_close(found, expected)


@family
@plants
def test_by_padding(name: str, plant: float) -> None:
    module, mask = _module(name), masks.Lengths([5, 3, 0])
    inputs = _inputs()
    clean = _results(module, inputs, mask, lambda t: t)
    for position, length in ((1, 3), (2, 0)):
        for tensor in inputs[1:]:
            tensor[position, length:] = plant
    _agree(_results(module, inputs, mask, lambda t: t), clean)


@family
@plants
@pytest.mark.parametrize("where", [1, 2], ids=["key", "value"])
def test_pair_by_pair(name: str, plant: float, where: int) -> None:
    """Under a causal mask only the last query may read the last key: it alone comes out NaN."""
    module, inputs = _module(name), _inputs()
    earlier = lambda t: t[..., :-1, :]
    clean = _results(module, inputs, masks.Causal(), earlier)
    inputs[where][0, -1] = plant
    planted = _results(module, inputs, masks.Causal(), earlier)
    reading = module(*inputs, mask=masks.Causal())
    assert reading.context[1:].isfinite().all()
    if abs(plant) <= HUGE:
        # The last query computes with a huge number, as it may; the others must not notice.
        outputs = slice(0, 2)
        _agree([*planted[outputs], earlier(planted[2])], [*clean[outputs], earlier(clean[2])])
        return
    _agree(planted, clean)
    ignores_keys = name == "Location-Softmax" and where == 1  # it does not look at keys
    assert reading.context[0, -1].isnan().all() != ignores_keys


@family
@plants
def test_a_query_that_may_read_nothing(name: str, plant: float) -> None:
    module, inputs = _module(name), _inputs()
    mask = masks.Lengths([5, 0, 3])
    clean = _results(module, inputs, mask, lambda t: t)
    inputs[0][1] = plant
    _agree(_results(module, inputs, mask, lambda t: t), clean)


@family
def test_a_visible_nan_propagates(name: str) -> None:
    module, inputs = _module(name), _inputs()
    inputs[2][0, 1, 0] = torch.nan
    assert module(*inputs).context[0].isnan().any()
    assert module(*inputs, mask=masks.Lengths([5, 5, 5])).context[0].isnan().all()


DTYPES = [torch.float64, torch.float32, torch.bfloat16, torch.float16]
PATHS = {"reference": (kernels.Reference(),), "sdpa": (kernels.Sdpa(),), "chosen": kernels.KERNELS}


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "mask", [masks.Lengths([5, 0, 2]), masks.Causal() & masks.Lengths([5, 0, 2])]
)
def test_on_every_path_in_every_dtype(dtype: torch.dtype, path: str, mask: masks.Mask) -> None:
    inputs = _inputs(dtype)
    inputs[1][2, 2:] = torch.nan
    inputs[2][2, 2:] = -torch.inf
    inputs[0][1] = torch.inf
    with kernels.using(*PATHS[path]):
        context, weights, *gradients = _results(Attention(), inputs, mask, lambda t: t)
    assert (context[1] == 0).all()
    assert (weights[1] == 0).all()
    assert all((gradient[1] == 0).all() for gradient in gradients)
    assert all(found.isfinite().all() for found in (context, weights, *gradients))


@plants
def test_a_prepared_memory(plant: float) -> None:
    """The mask may come with the read: what is non-finite was zeroed when it was prepared."""
    module, (queries, keys, values) = _module("Additive-Softmax"), _inputs()
    keys[1, 3:], values[1, 3:] = plant, plant
    memory = module.prepare(keys, values)
    module.read(queries, memory, mask=masks.Lengths([5, 3, 5])).context.sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in module.parameters())
    assert not module.read(queries, memory).context[1].abs().max() < 1e19


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", ["Additive-Softmax", "Bilinear-Softmax", "heads", "groups"])
def test_a_key_that_overflows_as_it_is_projected(name: str, dtype: torch.dtype) -> None:
    module, inputs, mask = _module(name).to(dtype), _inputs(dtype), masks.Lengths([5, 3, 0])
    clean = _results(module, inputs, mask, lambda t: t)
    for tensor in inputs[1:]:
        tensor[1, 3:] = torch.finfo(dtype).max
    # Summed row by row, so rounded in another order; a sum that is 0 as rounded as its terms.
    rounding = 4 * torch.finfo(dtype).eps * max(float(each.abs().max()) for each in clean)
    for found, expected in zip(_results(module, inputs, mask, lambda t: t), clean, strict=True):
        assert found.isfinite().all()
        torch.testing.assert_close(found, expected, rtol=0, atol=rounding)


def test_a_huge_number_that_is_seen_is_read_as_it_is() -> None:
    queries, keys, values = _inputs()
    values[0, 1, 0] = HUGE
    truth = Attention()(*(tensor.double() for tensor in (queries, keys, values))).context
    for mask in (None, masks.Lengths([5, 5, 5]), masks.Causal() | masks.Prefix(5)):
        context = Attention()(queries, keys, values, mask=mask).context
        torch.testing.assert_close(context.double(), truth, rtol=1e-5, atol=1e-5)
