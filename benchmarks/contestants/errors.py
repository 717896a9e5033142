"""How far regard and plain code are from the truth, which is plain code in float64."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from regard import attend, scores

SIZE = 64
ROUNDING = 2.0**-24
SIGMA = 8.0

MAKERS: dict[str, Callable[[int], scores.Score]] = {
    "Additive": lambda _: scores.Additive(SIZE, SIZE, SIZE),
    "Dot": lambda _: scores.Dot(),
    "ScaledDot": lambda _: scores.ScaledDot(),
    "Bilinear": lambda _: scores.Bilinear(SIZE, SIZE),
    "Cosine": lambda _: scores.Cosine(),
    "Location": lambda keys: scores.Location(SIZE, keys),
    "Gaussian": lambda _: scores.Gaussian(SIGMA),
    "InverseDistance": lambda _: scores.InverseDistance(),
}


def errors(case: dict[str, Any]) -> list[dict[str, Any]]:
    """Of one score at one scale: where the context and the gradients are worst, by comparison."""
    draws = [_draw(case, seed) for seed in range(case["draws"])]
    found = []
    for what in ("context", "gradients"):
        tensors = list(zip(*(draw[what] for draw in draws), strict=True))
        pairs = [tuple(max(side) for side in zip(*tensor, strict=True)) for tensor in tensors]
        ours, plain = max(pairs, key=lambda pair: pair[0] / max(pair[1], ROUNDING))
        times = float(f"{ours / max(plain, ROUNDING):.4g}")
        found.append({"of": what, "ours": ours, "plain": plain, "times_as_wrong": times})
    return found


def _draw(case: dict[str, Any], seed: int) -> dict[str, list[tuple[float, float]]]:
    """The errors of ours and of plain code for one draw, tensor by tensor."""
    torch.manual_seed(seed)
    queries, keys = case["queries"], case["keys"]
    score = MAKERS[case["score"]](keys)
    shapes = (1, queries, SIZE), (1, keys, SIZE), (1, keys, SIZE)
    scales = case["scale"], case["scale"], 1.0
    inputs = [scale * torch.randn(shape) for scale, shape in zip(scales, shapes, strict=True)]
    sent = torch.randn(shapes[0])

    def plainly(dtype: torch.dtype) -> list[Tensor]:
        given = [*inputs, *score.parameters()]
        leaves = [tensor.detach().to(dtype).requires_grad_() for tensor in given]
        context = plain_scores(case["score"], leaves).softmax(-1) @ leaves[2]
        return _with_gradients(context, leaves, sent)

    truth, plain = plainly(torch.float64), plainly(torch.float32)
    leaves = [tensor.clone().requires_grad_() for tensor in inputs]
    context = attend(*leaves, score=score).context
    ours = _with_gradients(context, [*leaves, *score.parameters()], sent)
    with torch.no_grad():  # which may be another kernel
        alone = attend(*inputs, score=score).context
    triples = zip([alone, *ours], [plain[0], *plain], [truth[0], *truth], strict=True)
    pairs = [(_error(our, exact), _error(their, exact)) for our, their, exact in triples]
    return {"context": pairs[:2], "gradients": pairs[2:]}


def _with_gradients(context: Tensor, leaves: list[Tensor], sent: Tensor) -> list[Tensor]:
    """The context, and the gradient of every leaf that it depends on."""
    given = torch.autograd.grad(context, leaves, sent.to(context.dtype), allow_unused=True)
    return [context.detach(), *(gradient for gradient in given if gradient is not None)]


def _error(found: Tensor, truth: Tensor) -> float:
    size = float(truth.norm())
    return float(f"{float((found.double() - truth).norm()) / max(size, 1e-30):.4g}")


def plain_scores(name: str, leaves: list[Tensor]) -> Tensor:
    """Each formula as it stands in the README."""
    queries, keys, _, *parameters = leaves
    unit = functional.normalize

    def squares() -> Tensor:
        return (queries[:, :, None] - keys[:, None]).square().sum(-1)

    formulas: dict[str, Callable[[], Tensor]] = {
        "Additive": lambda: _tanh(queries, keys, *parameters),
        "Dot": lambda: queries @ keys.mT,
        "ScaledDot": lambda: queries @ keys.mT / math.sqrt(SIZE),
        "Bilinear": lambda: queries @ (keys @ parameters[0].mT).mT,
        "Cosine": lambda: unit(queries, dim=-1) @ unit(keys, dim=-1).mT,
        "Location": lambda: queries @ parameters[0].mT,
        "Gaussian": lambda: -squares() / (2 * SIGMA**2),
        "InverseDistance": lambda: 1 / squares().sqrt(),
    }
    return formulas[name]()


def _tanh(queries: Tensor, keys: Tensor, of_queries: Tensor, of_keys: Tensor, v: Tensor) -> Tensor:
    hidden = (queries @ of_queries.mT)[:, :, None] + (keys @ of_keys.mT)[:, None]
    return torch.tanh(hidden) @ v[0]
