"""What every engine for additive scores is asked, and how its answers are held to the reference."""

import torch
from torch import Tensor
from torch.func import functional_call

from regard import Attention, kernels, masks, scores

BATCH, QUERIES, KEYS, SIZE, HIDDEN, VALUE_SIZE = 3, 7, 11, 5, 37, 2
CLOSE = {"rtol": 2e-5, "atol": 2e-6}
"""Some tens of roundings in float32; `test_precision` holds them to plain code's error."""


def draw_inputs(scale: float = 1.0) -> list[Tensor]:
    torch.manual_seed(3)
    sizes = (QUERIES, SIZE), (KEYS, SIZE), (KEYS, VALUE_SIZE)
    return [scale * torch.randn(BATCH, *size) for size in sizes]


def make_attention(select=None, hidden: int = HIDDEN) -> Attention:
    torch.manual_seed(2)
    return Attention(scores.Additive(SIZE, SIZE, hidden), select)


def _results(module, inputs: list[Tensor], kernel: kernels.Kernel, **options) -> list[Tensor]:
    module.zero_grad()
    leaves = [tensor.detach().clone().requires_grad_() for tensor in inputs]
    with kernels.using(kernel):
        reading = module(*leaves, **options)
        (reading.context.square().sum() + reading.weights.square().sum()).backward()
    gradients = [t.grad.clone() for t in (*leaves, *module.parameters())]
    return [reading.context.detach(), reading.weights.detach(), *gradients]


def assert_agrees(module, inputs: list[Tensor], **options) -> None:
    """With the reference in float64, gradients of everything included."""
    found = _results(module, inputs, kernels.AdditiveKernel(), **options)
    double = {name: t.double() if torch.is_tensor(t) and t.is_floating_point() else t
              for name, t in options.items()}  # fmt: skip
    wide = [tensor.double() for tensor in inputs]
    expected = _results(module.double(), wide, kernels.Reference(), **double)
    module.float()
    for ours, theirs in zip(found, expected, strict=True):
        # Of the largest number in it: small ones come from sums of large ones.
        allowed = 3e-5 * float(theirs.abs().max()) + 1e-9
        torch.testing.assert_close(ours.double(), theirs, rtol=0, atol=allowed)


MASKS = {
    "open": None,
    "lengths": masks.Lengths([11, 4, 0]),
    "causal": masks.Causal(),
    "both": masks.Causal() & masks.Lengths([11, 4, 0]),
}


def assert_at_most_twice_as_wrong(
    dtype: torch.dtype, scale: float, mask: masks.Mask | None, sizes: tuple[int, int, int, int]
) -> None:
    """As plain code in the same precision, both against float64; gradients of parameters too."""
    torch.manual_seed(11)
    queries, keys, size, hidden = sizes
    attention = Attention(scores.Additive(size, size, hidden)).to(dtype)
    names, learned = zip(*attention.named_parameters(), strict=True)
    lengths = queries, keys, keys
    inputs = [(scale * torch.randn(2, length, size)).to(dtype) for length in lengths]
    inputs += [parameter.detach() for parameter in learned]
    sent = torch.randn(2, queries, size).to(dtype)
    allowed = None if mask is None else mask.dense(queries, keys)

    def ours(*given: Tensor) -> Tensor:
        parameters = dict(zip(names, given[3:], strict=True))
        with kernels.using(kernels.AdditiveKernel()):
            return functional_call(attention, parameters, given[:3], {"mask": mask}).context

    def plainly(*given: Tensor) -> Tensor:
        return _plain(allowed, *given)

    truth = _gradients(plainly, [t.double() for t in inputs], sent.double())
    plain, fast = (_gradients(read, inputs, sent) for read in (plainly, ours))
    for found, expected, right in zip(fast, plain, truth, strict=True):
        assert (found - right).norm() <= 2 * (expected - right).norm()


def _plain(allowed: Tensor | None, queries: Tensor, keys: Tensor, values: Tensor, *weights: Tensor):
    first, second, v = weights
    hidden = (queries @ first.mT)[..., :, None, :] + (keys @ second.mT)[..., None, :, :]
    found = (torch.tanh(hidden) @ v.mT).squeeze(-1)
    found = found if allowed is None else found.masked_fill(~allowed, -torch.inf)
    return found.softmax(-1) @ values


def _gradients(read, inputs: list[Tensor], sent: Tensor) -> list[Tensor]:
    """The context and the gradient of each input, in float64 to be compared."""
    leaves = [tensor.detach().clone().requires_grad_() for tensor in inputs]
    context = read(*leaves)
    context.backward(sent.to(context.dtype))
    return [context.detach().double(), *(leaf.grad.double() for leaf in leaves)]
