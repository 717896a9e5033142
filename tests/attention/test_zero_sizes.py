"""Any of batch, heads, queries, keys, size and value size may be 0: an answer or our own error.

What is not written by anybody is filled with NaN here, so that it cannot pass for a result.
"""

from collections.abc import Iterator
from itertools import combinations

import pytest
import torch
from torch import Tensor

from regard import Attention, MultiHead, kernels, scores
from regard.attention.core.errors import KernelError, RegardError
from tests.catalogue import NAMES, PAIRS, SIZE, Mechanism
from tests.laws.cases import MASKS, seed

AXES = ("batch", "heads", "queries", "keys", "size", "value size")
USUAL = {"batch": 2, "heads": 3, "queries": 2, "keys": 3, "size": SIZE, "value size": 7}
KERNELS = {
    "chosen": None,
    **{
        kind.__name__: kind()
        for kind in (
            kernels.SingleQuery, kernels.DeferredSingleQuery, kernels.Windowed,
            kernels.AdditiveKernel,
            kernels.DotSoftmax, kernels.DistanceSoftmax, kernels.Sdpa, kernels.Reference,
        )
    },
}  # fmt: skip


@pytest.fixture(autouse=True)
def nan_where_nothing_was_written(unchecked: None) -> Iterator[None]:
    torch.use_deterministic_algorithms(True, warn_only=True)
    assert torch.empty(3).isnan().all()
    yield
    torch.use_deterministic_algorithms(False)


def grid(number: int) -> Iterator[tuple[tuple[str, ...], dict[str, int]]]:
    """The leading axes that there are, and sizes of which so many are 0; one query, too."""
    for leading in ((), ("batch",), ("batch", "heads")):
        for zeros in combinations((*leading, *AXES[2:]), number):
            sizes = USUAL | dict.fromkeys(zeros, 0)
            yield leading, sizes
            if "queries" not in zeros:
                yield leading, sizes | {"queries": 1}


def inputs(leading: tuple[str, ...], sizes: dict[str, int], learns: bool) -> list[Tensor]:
    batch = [sizes[axis] for axis in leading]
    rows = (("queries", "size"), ("keys", "size"), ("keys", "value size"))
    seed(3)
    return [
        torch.randn(*batch, sizes[row], sizes[size], requires_grad=learns) for row, size in rows
    ]


def read(
    attention: Attention, tensors: list[Tensor], learns: bool, stepwise: bool
) -> list[Tensor] | None:
    """Context, weights and gradients; None if it says that it cannot."""
    seed(5)
    try:
        with torch.set_grad_enabled(learns), kernels.deferred_gradients():
            if stepwise:
                reading = attention.read(tensors[0], attention.prepare(*tensors[1:]))
            else:
                reading = attention(*tensors)
            found = [reading.context, reading.weights]
            if learns:
                sums = found[0].sum() + (found[1] * 2).sum()
                found += torch.autograd.grad(sums, tensors, allow_unused=True)
    except RegardError:
        return None
    return [torch.zeros(()) if t is None else t.detach() for t in found]


GRID = pytest.mark.parametrize(("score", "select"), PAIRS, ids=NAMES)
LEARNS = pytest.mark.parametrize("learns", [False, True], ids=["read", "learned"])


@LEARNS
@GRID
def test_one_size_of_zero(score, select, learns):
    give_what_the_reference_gives(score, select, learns, zeros=1)


@pytest.mark.slow
@LEARNS
@GRID
def test_two_sizes_of_zero(score, select, learns):
    give_what_the_reference_gives(score, select, learns, zeros=2)


def give_what_the_reference_gives(
    score: Mechanism, select: Mechanism, learns: bool, zeros: int
) -> None:
    seed(0)
    attention = Attention(score.make(), select.make()).train(learns)
    for leading, sizes in grid(zeros):
        for stepwise in (False, True):
            tensors = inputs(leading, sizes, learns)
            with kernels.using(kernels.Reference()):
                truth = read(attention, tensors, learns, stepwise)
            for name, kernel in KERNELS.items():
                where = f"{name}, {len(leading) + 2}-D, {sizes}"
                if kernel is None:
                    found = read(attention, tensors, learns, stepwise)
                    assert (found is None) == (truth is None), where
                else:
                    with kernels.using(kernel):
                        found = read(attention, tensors, learns, stepwise)
                if found is not None:
                    check(found, truth, sizes, where)


def check(found: list[Tensor], truth: list[Tensor], sizes: dict[str, int], where: str) -> None:
    for one, other in zip(found, truth, strict=True):
        assert one.isfinite().all(), where
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5, msg=where)
    if not sizes["keys"]:
        assert not found[0].any(), where
        assert not any(gradient.any() for gradient in found[2:]), where


def test_a_kernel_that_cannot_take_zero_sizes_says_so():
    tensors = inputs(("batch", "heads"), USUAL | {"keys": 0}, learns=True)
    for name in (
        "SingleQuery",
        "DeferredSingleQuery",
        "Windowed",
        "DotSoftmax",
        "DistanceSoftmax",
        "Sdpa",
    ):
        with kernels.using(KERNELS[name]), pytest.raises(KernelError):
            Attention()(*tensors)


@LEARNS
@pytest.mark.parametrize("name", sorted(MASKS))
@pytest.mark.parametrize("score", [scores.ScaledDot, lambda: scores.Additive(SIZE, SIZE, 7)])
def test_zero_sizes_under_a_mask(score, name, learns):
    attention = Attention(score())
    for leading, sizes in grid(1):
        queries, keys, values = tensors = inputs(leading, sizes, learns)
        mask = MASKS[name]((*queries.shape[:-1], keys.shape[-2]), torch.Generator())
        try:
            reading = attention(*tensors, mask=mask)
        except RegardError:
            assert not sizes["size"]  # Additive was built for another
            continue
        assert reading.context.shape == (*queries.shape[:-1], values.shape[-1])
        assert reading.context.isfinite().all()
        assert reading.weights.shape == (*queries.shape[:-1], keys.shape[-2])
        if learns:
            found = torch.autograd.grad(reading.context.sum(), tensors, allow_unused=True)
            assert all(gradient is None or gradient.isfinite().all() for gradient in found)


@LEARNS
@pytest.mark.parametrize("key_heads", [1, 2])
@pytest.mark.parametrize("zero", [(0, 3, 5), (2, 0, 5), (2, 3, 0)])
def test_zero_sizes_with_heads(zero, key_heads, learns):
    batch, rows, keys = zero
    multi = MultiHead(Attention, 2, 7, 7, 4, key_heads)
    queries, memory = torch.randn(batch, rows, 7), torch.randn(batch, keys, 7)
    queries.requires_grad_(learns)
    for reading in (
        multi(queries, memory, memory),
        multi.read(queries, multi.prepare(memory, memory)),
        multi.read(queries[:, :1], multi.prepare(memory, memory)),
    ):
        assert reading.context.isfinite().all()
        assert reading.weights.isfinite().all()
        if learns:
            (found,) = torch.autograd.grad(reading.context.sum(), queries, retain_graph=True)
            assert found.isfinite().all()
