"""Reads as a caller asks for them: any score, mask, dtype, layout and kernel, with gradients."""

import copy
from collections.abc import Callable
from contextlib import nullcontext

import torch
from torch import Tensor, nn

from regard import Attention, kernels, masks, scores, selection
from tests.fuzz.compare import assert_close
from tests.fuzz.draw import Draw

SCORES: dict[str, Callable[[int], object]] = {
    "dot": lambda size: scores.Dot(),
    "scaled dot": lambda size: scores.ScaledDot(0.4),
    "learned scale": lambda size: scores.ScaledDot(0.4, learned=True),
    "cosine": lambda size: scores.Cosine(3.0),
    "additive": lambda size: scores.Additive(size, size, 7),
    "additive, whole lanes": lambda size: scores.Additive(size, size, 64),
    "Gaussian": lambda size: scores.Gaussian(1.3),
    "inverse distance": lambda size: scores.InverseDistance(),
}
KERNELS = (
    (), (kernels.DotSoftmax(),), (kernels.DistanceSoftmax(),), (kernels.AdditiveKernel(),),
    (kernels.Sdpa(),),
    (kernels.SingleQuery(),),
)  # fmt: skip
REFERENCE = kernels.Reference()


def mask(draw: Draw, batch: tuple[int, ...], rows: int, keys: int) -> masks.Mask | None:
    """Any mask that fits."""
    kind = draw.random.choice(("none", "none", "lengths", "causal", "window", "dense", "both"))
    lengths = masks.Lengths(draw.index(keys + 1, *batch))
    return {
        "none": None,
        "lengths": lengths,
        "causal": masks.Causal(),
        "window": masks.Window(draw.size(9), draw.size(9)),
        "dense": masks.Dense(draw.allowed(*batch, rows, keys)),
        "both": lengths & masks.Causal(),
    }[kind]


def read(
    attention: nn.Module, given: list[Tensor], shown: masks.Mask | None, learns: bool
) -> list[Tensor]:
    """The context, and what an arbitrary gradient of it sends to all inputs and parameters."""
    leaves = [each.detach().requires_grad_(learns) for each in given]
    context = attention(*leaves, mask=shown).context
    if not learns:
        return [context]
    generator = torch.Generator().manual_seed(1)
    sent = torch.randn(context.shape, generator=generator).to(context.dtype)
    inputs = [*leaves, *attention.parameters()]
    found = torch.autograd.grad(context, inputs, sent, allow_unused=True)
    return [context.detach(), *(
        torch.zeros_like(each) if one is None else one
        for each, one in zip(inputs, found, strict=True)
    )]  # fmt: skip


def any_read(draw: Draw) -> None:
    """One read, of drawn shapes and layouts, by a kernel that takes it or by the reference."""
    axes = draw.random.choice((0, 1, 2))
    *batch, rows, keys, size, wide = draw.some(axes + 4)
    if draw.chance(0.25):
        rows = 1
    # A batch axis may be 1 for keys and values, which serve all.
    own = [1 if draw.chance(0.2) else each for each in batch]
    name = draw.random.choice(list(SCORES))
    dtype = draw.random.choice((torch.float32, torch.float32, torch.float32, torch.bfloat16))
    if name.startswith("additive"):  # its weights are refused without a size
        size = max(1, size)
    given = [
        draw.strided(*batch, rows, size).to(dtype),
        draw.strided(*own, keys, size).to(dtype),
        draw.strided(*own, keys, wide).to(dtype),
    ]
    torch.manual_seed(draw.random.randrange(1 << 30))
    select = selection.Softmax(temperature=draw.random.choice((1.0, 0.7)))
    attention = Attention(SCORES[name](size), select).to(dtype)
    shown, learns = mask(draw, tuple(batch), rows, keys), draw.chance(0.7)
    forced = draw.random.choice(KERNELS)
    context = kernels.using(*forced, REFERENCE) if forced else nullcontext()
    with context:
        found = read(attention, given, shown, learns)
    with kernels.using(REFERENCE):
        plain = read(attention, given, shown, learns)
        exact = copy.deepcopy(attention).double()
        truth = read(exact, [each.double() for each in given], shown, learns)
    by = type(forced[0]).__name__ if forced else "any kernel"
    terms = _terms(name, by, given)
    label = f"{name} by {by}, {[list(each.shape) for each in given]}"
    assert_close(label, found[:4], plain[:4], truth[:4], terms)
    # What reaches a parameter is a sum over all pairs, and may be a single number.
    terms *= max(1, torch.Size([*batch, rows, keys]).numel()) ** 0.5
    assert_close(f"{label}, parameters", found[4:], plain[4:], truth[4:], terms)


def _terms(name: str, by: str, given: list[Tensor]) -> float:
    """How large what is added up is, where that is not seen from the sums."""
    queries, keys, values = given
    if by == "Sdpa":  # torch's own, by differences of all that reaches a row's weights
        return max(1.0, values.shape[-1] * float(values.abs().sum()))
    if name == "cosine":  # a gradient is divided by a vector's length
        lengths = torch.cat([each.float().norm(dim=-1).flatten() for each in (queries, keys)])
        return max(1.0, float(1 / lengths.min())) if lengths.any() else 1.0
    return 1.0
