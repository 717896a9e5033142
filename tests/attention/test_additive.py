"""The fused additive kernel is what plain code computes, however it is asked."""

import pytest
import torch
from torch import Tensor
from torch.autograd import gradgradcheck

from regard import Attention, MultiHead, attend, errors, kernels, scores, selection
from regard.attention.kernels import additive, additive_backends
from regard.native import loader, parallel
from regard.native.additive import reciprocal_group
from regard.native.eligibility import usable
from tests.attention.additive_cases import (
    BATCH,
    CLOSE,
    KEYS,
    MASKS,
    QUERIES,
    SIZE,
    VALUE_SIZE,
    assert_agrees,
    draw_inputs,
    make_attention,
)

ENGINES = ["AVX-512, adding apart", "AVX-512", "AVX2", "plain C", "chunks"]


@pytest.fixture(params=ENGINES)
def engine(request, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each way to compute the scores, as far as this processor has it."""
    assert usable(), "the C extension was not built: is there a compiler?"
    if request.param == "chunks":
        monkeypatch.setattr(loader, "library", lambda: None)
    else:
        name, *apart = request.param.split(", ")
        level = min(loader.LEVELS.index(name), loader.level())
        monkeypatch.setattr(loader, "is_amd", lambda: bool(apart))
        monkeypatch.setattr(loader, "level", lambda: level)
    return request.param


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.usefixtures("engine")
def test_every_engine_under_masks(mask: str) -> None:
    assert_agrees(make_attention(), draw_inputs(), mask=MASKS[mask])


@pytest.mark.parametrize("hidden", [1, 16, 32, 33, 96])
@pytest.mark.usefixtures("engine")
def test_hidden_sizes_that_are_no_whole_lanes(hidden: int) -> None:
    assert_agrees(make_attention(hidden=hidden), draw_inputs())


@pytest.mark.parametrize("scale", [1.0, 4.0, 8.0, 100.0])
@pytest.mark.usefixtures("engine")
def test_every_range(scale: float) -> None:
    """Where e^2x would leave float32, a real tanh takes over."""
    assert_agrees(make_attention(), draw_inputs(scale))


def test_the_range_chooses_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(additive_backends, "CACHED_ELEMENTS", 0)  # exponentials come first

    def chosen(max_abs: float) -> additive_backends.Backend:
        queries = torch.zeros(1, 2, 32)
        queries[0, 1, 3] = -max_abs
        which = torch.zeros(1, dtype=torch.long)
        keys, v = torch.ones(1, 3, 32), torch.ones(1, 32)
        return additive_backends.backend(additive_backends.AdditiveInputs(queries, keys, v, which))

    assert chosen(5.0).how.max_abs == 6.0
    assert chosen(30.0).how.max_abs == 31.0
    assert isinstance(chosen(43.0), additive_backends.ChunkedTorch)
    assert isinstance(chosen(torch.nan), additive_backends.ChunkedTorch)


@pytest.mark.parametrize(
    ("max_abs", "count"),
    [(0.0, 4), (10.7, 4), (10.8, 2), (21.4, 2), (21.6, 1), (42.9, 1), (43.1, 0), (torch.nan, 0)],
)
def test_as_many_share_a_reciprocal_as_their_product_allows(max_abs: float, count: int) -> None:
    assert reciprocal_group(max_abs) == count
    if count:
        assert torch.tensor(2.0 * max_abs).exp().add(1.0).pow(count).isfinite()


@pytest.mark.parametrize("hidden", [32, 64, 96])
@pytest.mark.parametrize("max_abs", [10.7, 21.4, 42.9])
@pytest.mark.usefixtures("engine")
def test_at_the_end_of_each_range(max_abs: float, hidden: int) -> None:
    """All elements as far out as they may be, on either side, and one that is not."""
    torch.manual_seed(7)
    far = 0.5 * max_abs * torch.ones(BATCH, KEYS, hidden)
    far[1], far[2, 3] = -far[1], 0.01
    queries, v = far[:, :QUERIES].clone().requires_grad_(), torch.randn(1, hidden) / hidden
    given = queries, far.clone().requires_grad_(), v.requires_grad_()
    doubles = tuple(tensor.detach().double().requires_grad_() for tensor in given)
    found = additive.scores(kernels.AdditiveComparison(*given), {})
    expected = kernels.AdditiveComparison(*doubles).scores()
    torch.testing.assert_close(found.double(), expected, rtol=0, atol=1e-6)
    sent = torch.randn(found.shape)
    ours = torch.autograd.grad(found, given, sent)
    theirs = torch.autograd.grad(expected, doubles, sent.double())
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one.double(), other, rtol=0, atol=1e-5)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.usefixtures("engine")
def test_in_blocks_of_rows(mask: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few weights at a time, none saved for backward."""
    monkeypatch.setattr(additive, "BLOCK", 2 * BATCH * KEYS)
    assert_agrees(
        make_attention(selection.Softmax(temperature=0.7)), draw_inputs(), mask=MASKS[mask]
    )


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("rows", [1, 2, 3, 4, 6, 7, 15])
@pytest.mark.parametrize("keys", [1, 2, 3, 5, 6])
def test_tails_of_every_length(
    rows: int, keys: int, apart: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loader, "is_amd", lambda: apart)
    queries, _, _ = draw_inputs()
    more = torch.cat([queries, queries.flip(1), queries], 1)
    assert_agrees(
        make_attention(), [more[:, :rows], *(tensor[:, :keys] for tensor in draw_inputs()[1:])]
    )


@pytest.mark.parametrize("hidden", [1000, 1024], ids=["made before", "made on the way"])
@pytest.mark.usefixtures("engine")
def test_more_keys_than_stay_in_the_cache(hidden: int) -> None:
    """They are gone through some at a time: 32 where vectors are so long."""
    queries, _, _ = draw_inputs()
    pairs = [torch.randn(BATCH, 61, size) for size in (SIZE, VALUE_SIZE)]
    assert_agrees(make_attention(hidden=hidden), [queries, *pairs])


@pytest.mark.parametrize("threads", [1, 2, 3, 5])
def test_any_number_of_threads(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "threads", lambda work: threads)
    assert_agrees(make_attention(), draw_inputs(), mask=MASKS["both"])


@pytest.mark.parametrize(
    "select",
    [selection.Sparsemax(), selection.TopK(3), selection.LocalPredictive(SIZE, 2)],
    ids=["sparsemax", "top-k", "local-p"],
)
def test_any_selection_gets_its_scores(select) -> None:
    assert_agrees(make_attention(select), draw_inputs(), mask=MASKS["lengths"])


def test_dropout_is_applied_to_the_context_not_to_the_weights() -> None:
    inputs = draw_inputs()
    with kernels.using(kernels.AdditiveKernel()):
        torch.manual_seed(1)
        thinned = make_attention(selection.Softmax(dropout=0.5))(*inputs)
        whole = make_attention()(*inputs)
    torch.testing.assert_close(thinned.weights, whole.weights)
    assert not torch.allclose(thinned.context, whole.context)


def test_a_bias_and_its_gradient() -> None:
    bias = torch.randn(1, QUERIES, KEYS)
    assert_agrees(make_attention(), draw_inputs(), bias=bias, mask=MASKS["lengths"])
    learned = bias.clone().requires_grad_()
    with kernels.using(kernels.AdditiveKernel()):
        make_attention()(*draw_inputs(), bias=learned).context.square().sum().backward()
    with kernels.using(kernels.Reference()):
        expected = bias.clone().requires_grad_()
        make_attention()(*draw_inputs(), bias=expected).context.square().sum().backward()
    torch.testing.assert_close(learned.grad, expected.grad, **CLOSE)


@pytest.mark.parametrize("key_heads", [4, 2])
def test_heads_and_groups(key_heads: int) -> None:
    torch.manual_seed(5)
    make = lambda: Attention(scores.Additive(3, 3, 13))
    multi = MultiHead(make, 4, SIZE, SIZE, 3, key_heads, value_size=VALUE_SIZE)
    assert_agrees(multi, draw_inputs(), mask=MASKS["lengths"])


def test_beams_share_a_memory_and_what_it_keeps() -> None:
    queries, keys, values = draw_inputs()
    beams = torch.stack([queries, queries.flip(1)], 1)
    attention = make_attention()
    memory = attention.prepare(keys[:, None], values[:, None])
    assert memory.cached["e^2k"].shape == (BATCH, 1, KEYS, 64)
    with kernels.using(kernels.AdditiveKernel()):
        together = attention.read(beams, memory)
        for beam in range(2):
            alone = attention(beams[:, beam], keys, values)
            torch.testing.assert_close(together.context[:, beam], alone.context, **CLOSE)
            torch.testing.assert_close(together.weights[:, beam], alone.weights, **CLOSE)


def test_a_memory_that_was_written_to_reaches_as_far_as_its_farthest_key() -> None:
    """What is kept of the range follows the keys, or e^2k would overflow unseen."""
    queries, keys, values = draw_inputs()
    attention = make_attention()
    memory = attention.prepare(keys, values).write(500 * keys[:, :1], values[:, :1])
    everything = [torch.cat([t, f * t[:, :1]], 1) for t, f in ((keys, 500.0), (values, 1.0))]
    with kernels.using(kernels.Reference()):
        expected = attention(queries, *everything)
    found = attention.read(queries, memory)
    torch.testing.assert_close(found.context, expected.context, **CLOSE)


def test_double_backward_is_plain_codes() -> None:
    """In float64 the plain formula answers; in float32 its gradient of a gradient is ours too."""
    queries, keys, values = draw_inputs()

    def penalty(kernel: kernels.Kernel) -> Tensor:
        leaf = queries.clone().requires_grad_()
        with kernels.using(kernel):
            context = make_attention()(leaf, keys, values).context
        (gradient,) = torch.autograd.grad(context.square().sum(), leaf, create_graph=True)
        return torch.autograd.grad(gradient.square().sum(), leaf)[0]

    ours, theirs = penalty(kernels.AdditiveKernel()), penalty(kernels.Reference())
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


def test_weights_are_differentiable_twice() -> None:
    attention = make_attention(hidden=3)
    read = lambda q, k: attention(q.float(), k.float(), k.float()).weights.double()
    inputs = [tensor[:1, :3].double().requires_grad_() for tensor in draw_inputs()[:2]]
    loose = {"eps": 1e-2, "atol": 3e-2, "rtol": 3e-2}  # differences of float32 numbers
    assert gradgradcheck(read, inputs, fast_mode=True, **loose)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_computed_in_float32(dtype: torch.dtype) -> None:
    inputs, attention = [t.to(dtype) for t in draw_inputs()], make_attention().to(dtype)
    with kernels.using(kernels.AdditiveKernel()):
        context, weights = attention(*inputs)
    with kernels.using(kernels.Reference()):
        expected = attention(*inputs)
    assert context.dtype == weights.dtype == dtype
    torch.testing.assert_close(context, expected.context)
    torch.testing.assert_close(weights, expected.weights)


def test_vmap_and_gradients_for_each_item() -> None:
    attention, inputs = make_attention(), draw_inputs()

    def loss(queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        return attention(queries, keys, values).context.square().sum()

    together = torch.vmap(torch.func.grad(loss, argnums=(0, 1, 2)))(*inputs)
    for item in range(BATCH):
        leaves = [tensor[item].clone().requires_grad_() for tensor in inputs]
        with kernels.using(kernels.Reference()):
            loss(*leaves).backward()
        for found, leaf in zip(together, leaves, strict=True):
            torch.testing.assert_close(found[item], leaf.grad, **CLOSE)


def test_what_it_refuses() -> None:
    queries, keys, values = (tensor.double() for tensor in draw_inputs())
    with kernels.using(kernels.AdditiveKernel()):
        with pytest.raises(errors.KernelError, match="float64 is left to the reference"):
            make_attention().double()(queries, keys, values)
        with pytest.raises(errors.KernelError, match="scores by DotComparison are not additive"):
            attend(queries.float(), keys.float(), values.float())
        with pytest.raises(errors.KernelError, match="inside vmap or another"):
            torch.vmap(make_attention())(queries.float(), keys.float(), values.float())
        with pytest.raises(errors.KernelError, match="a size is 0"):
            make_attention()(queries.float(), keys[:, :0].float(), values[:, :0].float())


def test_the_kernels_say_what_they_are() -> None:
    assert kernels.available()["additive"] == f"C, {loader.LEVELS[loader.level()]}"


def test_without_a_compiler_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loader, "library", lambda: None)
    assert kernels.available()["additive"].startswith("PyTorch, in chunks: the C extension was")
