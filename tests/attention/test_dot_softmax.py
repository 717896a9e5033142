"""Dot products in C, forward and backward, agree with the reference: any size, span and level."""

import itertools

import pytest
import torch
from torch import Tensor

from regard import attend, errors, kernels, masks, scores, selection
from regard.attention.kernels import dot_softmax
from regard.native import loader, parallel
from regard.native.eligibility import usable

pytestmark = pytest.mark.skipif(not usable(), reason="the C extension was not built")

SCORES = {
    "dot": scores.Dot(),
    "scaled": scores.ScaledDot(0.3),
    "learned": scores.ScaledDot(learned=True),
    "cosine": scores.Cosine(5.0),
}
MASKS = {
    "none": None,
    "lengths": masks.Lengths([0, 11, 19]),
    "causal": masks.Causal(),
    "window": masks.Window(3, 20),
    "both": masks.Lengths([1, 9, 17]) & masks.Causal(),
}
family = pytest.mark.parametrize("score", SCORES.values(), ids=SCORES)
hidden = pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
DOTS, REFERENCE = kernels.DotSoftmax(), kernels.Reference()


@pytest.fixture(params=range(loader.level() + 1), autouse=True)
def _level(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loader, "level", lambda: request.param)


def drawn(*shapes: tuple[int, ...]) -> list[Tensor]:
    torch.manual_seed(3)
    return [torch.randn(shape) for shape in shapes]


def context_and_gradients(kernel: kernels.Kernel, given: list[Tensor], **more) -> list[Tensor]:
    """The context, and what an arbitrary gradient of it sends to each tensor."""
    leaves = [each.detach().requires_grad_() for each in given]
    with kernels.using(kernel):
        context = attend(*leaves, **more).context
    generator = torch.Generator().manual_seed(1)
    sent = torch.randn(context.shape, generator=generator).to(context.dtype)
    return [context.detach(), *torch.autograd.grad(context, leaves, sent)]


def assert_agrees(given: list[Tensor], **more) -> None:
    """At most twice as wrong as plain code in the same precision, gradients included.

    That is said of the largest error; on the whole it is hardly more wrong.
    """
    truth = context_and_gradients(REFERENCE, [each.double() for each in given], **more)
    plain, found = (context_and_gradients(kernel, given, **more) for kernel in (REFERENCE, DOTS))
    for true, usual, own in zip(truth, plain, found, strict=True):
        assert own.shape == true.shape
        assert (own - true).norm() <= 1.5 * (usual - true).norm() + 1e-7 * true.norm()
        assert (own - true).abs().max() <= 2 * (usual - true).abs().max() + 1e-6
    with torch.no_grad(), kernels.using(DOTS):
        torch.testing.assert_close(attend(*given, **more).context, found[0])


@family
@pytest.mark.parametrize("keys", [1, 15, 64, 65, 131])
@pytest.mark.parametrize("rows", [1, 5, 67])
def test_it_is_the_reference(score: scores.Score, rows: int, keys: int) -> None:
    # Many items: of few, the largest error would be a matter of luck.
    assert_agrees(drawn((16, 3, rows, 7), (16, 3, keys, 7), (16, 3, keys, 11)), score=score)


@pytest.mark.parametrize("mask", [None, masks.Causal()], ids=["all", "causal"])
def test_many_keys(mask: masks.Mask | None) -> None:
    """As many as torch would otherwise be asked about, and more rows than a block has."""
    assert_agrees(drawn((2, 2, 131, 16), (2, 2, 2051, 16), (2, 2, 2051, 16)), mask=mask)


@pytest.mark.parametrize(
    ("keys", "level", "amd", "learns", "here"),
    [
        (512, 2, False, True, True),
        (513, 2, False, True, False),
        (4096, 2, True, True, True),
        (4097, 2, True, True, False),
        (513, 2, True, False, False),
        (513, 1, True, True, False),
    ],
)
def test_where_it_is_the_quickest(
    keys: int, level: int, amd: bool, learns: bool, here: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loader, "level", lambda: level)
    monkeypatch.setattr(loader, "is_amd", lambda: amd)
    pairs = torch.empty(keys, 64), torch.empty(keys, 64)
    assert dot_softmax.is_faster(*pairs, items=64, learns=learns) is here


@pytest.mark.parametrize(
    ("rows", "keys", "mask", "learns", "here"),
    [
        (512, 513, None, False, True),
        (510, 513, None, False, False),
        (512, 513, masks.Causal(), False, False),
        (512, 513, None, True, False),
    ],
)
def test_many_keys_are_read_here_if_there_are_many_pairs(
    rows: int, keys: int, mask: masks.Mask | None, learns: bool, here: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    calls, inner, library = [], dot_softmax.read, loader.library()
    monkeypatch.setattr(loader, "library", lambda: library)
    monkeypatch.setattr(loader, "level", lambda: 2)
    monkeypatch.setattr(loader, "is_amd", lambda: False)
    monkeypatch.setattr(dot_softmax, "read", lambda *given: (calls.append(given), inner(*given))[1])
    queries, keys_and_values = drawn((1, rows, 8), (1, keys, 8))
    attend(queries.requires_grad_(learns), keys_and_values, keys_and_values, mask=mask)
    assert bool(calls) is here


def test_several_batch_axes() -> None:
    assert_agrees(drawn((2, 3, 2, 5, 8), (2, 3, 2, 7, 8), (2, 3, 2, 7, 4)))


@pytest.mark.parametrize("keys", [64, 131])
def test_as_many_heads_as_rows(keys: int) -> None:
    assert_agrees(drawn((2, 3, 3, 8), (2, 3, keys, 8), (2, 3, keys, 8)))


@pytest.mark.parametrize("sizes", [(16, 16), (16, 48), (33, 16), (33, 48)], ids=str)
def test_vectors_that_fill_tiles_and_that_do_not(sizes: tuple[int, int]) -> None:
    size, wide = sizes
    assert_agrees(drawn((2, 130, size), (2, 160, size), (2, 160, wide)))


@pytest.mark.parametrize("mask", [None, masks.Causal()], ids=["all", "causal"])
@pytest.mark.parametrize("keys", [16, 128, 144, 24])
@pytest.mark.parametrize("rows", [8, 64, 72, 12])
def test_sums_are_made_where_they_belong_or_brought_there(
    rows: int, keys: int, mask: masks.Mask | None
) -> None:
    """Those of one block of rows, of whole tiles; heads lie side by side, so rows are far apart."""
    given = drawn((2, rows, 3, 16), (2, keys, 3, 16), (2, keys, 3, 32))
    assert_agrees([each.transpose(1, 2) for each in given], mask=mask)


@family
def test_without_a_batch(score: scores.Score) -> None:
    assert_agrees(drawn((13, 7), (19, 7), (19, 5)), score=score)


@hidden
@pytest.mark.parametrize("rows", [2, 19, 70])
def test_masks_that_show_a_span(mask: masks.Mask | None, rows: int) -> None:
    assert_agrees(drawn((3, rows, 8), (3, 19, 8), (3, 19, 5)), mask=mask)


@hidden
def test_what_is_hidden_does_not_matter(mask: masks.Mask | None) -> None:
    q, k, v = drawn((3, 19, 8), (3, 19, 8), (3, 19, 5))
    before = context_and_gradients(DOTS, [q, k, v], mask=mask)
    shown = torch.ones(3, 19, 19).bool() if mask is None else mask.dense(19, 19).expand(3, 19, 19)
    unseen = ~shown.any(-2)
    k[unseen], v[unseen] = torch.nan, torch.inf
    for was, now in zip(before, context_and_gradients(DOTS, [q, k, v], mask=mask), strict=True):
        assert torch.equal(was, now)


def test_a_mask_of_heads_and_items() -> None:
    given = drawn((2, 3, 9, 8), (2, 3, 21, 8), (2, 3, 21, 5))
    assert_agrees(given, mask=masks.Lengths([[1, 2, 3], [0, 21, 20]]))


def test_more_axes_than_it_takes_are_left_to_others() -> None:
    given = drawn((2, 1, 3, 9, 8), (2, 1, 3, 21, 8), (2, 1, 3, 21, 5))
    mask = masks.Lengths(torch.tensor([0, 21, 20, 1, 2, 3]).view(2, 1, 3))
    with kernels.using(REFERENCE):
        expected = attend(*given, mask=mask).context
    torch.testing.assert_close(attend(*given, mask=mask).context, expected)
    with kernels.using(DOTS), pytest.raises(errors.KernelError, match="at most two batch axes"):
        attend(*given, mask=mask)


@family
@pytest.mark.parametrize("shapes", [((2, 1), (1, 3)), ((1, 1), (2, 3)), ((2, 3), (1, 1))], ids=str)
def test_items_may_share_keys_and_values(score: scores.Score, shapes: tuple) -> None:
    keys, values = shapes
    assert_agrees(drawn((2, 3, 13, 8), (*keys, 19, 8), (*values, 19, 5)), score=score)


def test_items_may_share_queries() -> None:
    assert_agrees(drawn((1, 3, 13, 8), (2, 3, 19, 8), (2, 3, 19, 5)))


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("threads", [2, 3, 50])
def test_any_number_of_threads(threads: int, shared: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    given = drawn((3, 53, 8), (1 if shared else 3, 21, 8), (3, 21, 4))
    alone = context_and_gradients(DOTS, given)
    monkeypatch.setattr(parallel, "threads", lambda _: threads)
    for one, more in zip(alone, context_and_gradients(DOTS, given), strict=True):
        torch.testing.assert_close(more, one, rtol=1e-6, atol=1e-6 if shared else 0)


def test_a_temperature_and_heads_that_lie_apart() -> None:
    q, k, v = drawn((2, 13, 3, 8), (2, 19, 3, 8), (2, 19, 3, 8))
    apart = [each.transpose(1, 2) for each in (q, k, v)]
    assert_agrees(apart, select=selection.Softmax(temperature=0.5))
    assert_agrees([each.mT.contiguous().mT for each in apart])


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e2, 1e4])
def test_scores_of_any_size(size: float) -> None:
    q, k, v = drawn((1, 13, 8), (1, 19, 8), (1, 19, 5))
    assert_agrees([q * size, k, v], score=scores.Dot())


def test_a_gradient_that_some_do_not_want() -> None:
    given = drawn((2, 13, 8), (2, 19, 8), (2, 19, 5))
    whole = context_and_gradients(DOTS, given)[1:]
    for wanted in itertools.product([False, True], repeat=3):
        if any(wanted):
            leaves = [t.clone().requires_grad_(w) for t, w in zip(given, wanted, strict=True)]
            with kernels.using(DOTS):
                context = attend(*leaves).context
            generator = torch.Generator().manual_seed(1)
            context.backward(torch.randn(context.shape, generator=generator))
            for leaf, full, needed in zip(leaves, whole, wanted, strict=True):
                assert torch.equal(leaf.grad, full) if needed else leaf.grad is None


@hidden
def test_it_can_be_differentiated_twice(mask: masks.Mask | None) -> None:
    found = []
    for kernel in (REFERENCE, DOTS):
        leaves = [t.requires_grad_() for t in drawn((3, 5, 4), (3, 19, 4), (3, 19, 3))]
        with kernels.using(kernel):
            context = attend(*leaves, mask=mask).context
        first = torch.autograd.grad(context.square().sum(), leaves, create_graph=True)
        found.append(torch.autograd.grad(sum(g.square().sum() for g in first), leaves))
    for usual, own in zip(*found, strict=True):
        torch.testing.assert_close(own, usual, rtol=1e-4, atol=1e-4)


def test_a_nonfinite_query_affects_its_row_alone() -> None:
    q, k, v = drawn((1, 9, 8), (1, 21, 8), (1, 21, 5))
    q[0, 4, 2] = torch.nan
    with kernels.using(DOTS):
        found = attend(q, k, v).context
    assert found[0, 4].isnan().all()
    assert found[0, [*range(4), *range(5, 9)]].isfinite().all()


def test_it_says_what_it_cannot() -> None:
    given = drawn((1, 3, 4), (1, 5, 4), (1, 5, 2))
    for reason, more in (
        ("let each query read a span", {"mask": masks.Dense(torch.ones(1, 3, 5).bool())}),
        ("no bias", {"bias": torch.zeros(1, 3, 5)}),
        ("not dot products", {"score": scores.Gaussian()}),
        ("by softmax, without dropout", {"select": selection.Sparsemax()}),
    ):
        with kernels.using(DOTS), pytest.raises(errors.KernelError, match=reason):
            attend(*given, **more)
    with kernels.using(DOTS), pytest.raises(errors.KernelError, match="float32 on a CPU"):
        attend(*(each.double() for each in given))
