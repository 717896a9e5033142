"""The Triton kernels are what plain code computes; here Triton's interpreter runs them on a CPU."""

import pytest
import torch
from torch import Tensor

from regard import Attention, MultiHead, kernels, masks, scores, selection
from regard.attention.kernels import additive, additive_backends, additive_op, triton_loader
from tests.attention.additive_cases import (
    BATCH,
    CLOSE,
    KEYS,
    MASKS,
    QUERIES,
    SIZE,
    VALUE_SIZE,
    assert_agrees,
    assert_at_most_twice_as_wrong,
    draw_inputs,
    make_attention,
)

pytestmark = pytest.mark.skipif(not triton_loader.FOUND, reason="Triton is for Linux")

HIDDEN = 19
"""Two tiles of hidden units, the second not whole; each operation takes the interpreter 0.1 ms."""


@pytest.fixture(autouse=True)
def _interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a tensor on a GPU would get, for those on the CPU."""
    monkeypatch.setattr(triton_loader, "serves", lambda tensor: True)


@pytest.fixture(params=["whole", "in blocks"])
def held(request, monkeypatch: pytest.MonkeyPatch) -> str:
    """All weights in one block; or a few rows at a time, and the read fused."""
    if request.param == "in blocks":
        monkeypatch.setattr(additive, "BLOCK", 4 * BATCH * KEYS)
    return request.param


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.usefixtures("held")
def test_under_masks(mask: str) -> None:
    attention = make_attention(selection.Softmax(temperature=0.7), HIDDEN)
    assert_agrees(attention, draw_inputs(), mask=MASKS[mask])


@pytest.mark.parametrize("hidden", [1, 16, 33])
def test_hidden_sizes_that_are_no_whole_tiles(hidden: int) -> None:
    assert_agrees(make_attention(hidden=hidden), draw_inputs())


@pytest.mark.parametrize("scale", [8.0, 100.0])
def test_every_range(scale: float) -> None:
    assert_agrees(make_attention(hidden=HIDDEN), draw_inputs(scale))


@pytest.mark.parametrize(("rows", "keys"), [(1, 1), (1, 37), (17, 3), (33, 16)])
def test_lengths_that_are_no_whole_tiles(rows: int, keys: int) -> None:
    sizes = (rows, SIZE), (keys, SIZE), (keys, VALUE_SIZE)
    assert_agrees(make_attention(hidden=5), [torch.randn(2, *size) for size in sizes])


@pytest.mark.parametrize(
    "shape", [(1, QUERIES, KEYS), (BATCH, 1, KEYS), (1, QUERIES, 1)], ids=["pair", "key", "query"]
)
@pytest.mark.usefixtures("held")
def test_a_bias_and_its_gradient(shape: tuple[int, ...]) -> None:
    torch.manual_seed(7)
    drawn = torch.randn(shape)
    found = []
    for kernel in (kernels.AdditiveKernel(), kernels.Reference()):
        bias = drawn.clone().requires_grad_()
        with kernels.using(kernel):
            context = make_attention(hidden=HIDDEN)(
                *draw_inputs(), bias=bias, mask=MASKS["both"]
            ).context
        context.square().sum().backward()
        found.append((context.detach(), bias.grad))
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, **CLOSE)


def test_heads_that_share_keys() -> None:
    torch.manual_seed(5)
    make = lambda: Attention(scores.Additive(3, 3, 13))
    multi = MultiHead(make, 4, SIZE, SIZE, 3, 2, value_size=VALUE_SIZE)
    assert_agrees(multi, draw_inputs(), mask=MASKS["lengths"])


@pytest.mark.usefixtures("held")
def test_beams_that_share_a_memory() -> None:
    queries, keys, values = draw_inputs()
    beams = torch.stack([queries, queries.flip(1)], 1)
    attention = make_attention(hidden=HIDDEN)
    memory = attention.prepare(keys[:, None], values[:, None])
    with kernels.using(kernels.AdditiveKernel()):
        together = attention.read(beams, memory).context
    with kernels.using(kernels.Reference()):
        for beam in range(2):
            alone = attention(beams[:, beam], keys, values).context
            torch.testing.assert_close(together[:, beam], alone, **CLOSE)


@pytest.mark.parametrize("axes", [(), (2, 1, 3)], ids=["none", "three"])
def test_any_batch_axes(axes: tuple[int, ...]) -> None:
    torch.manual_seed(13)
    sizes = (QUERIES, SIZE), (KEYS, SIZE), (KEYS, VALUE_SIZE)
    assert_agrees(
        make_attention(hidden=7), [torch.randn(*axes, *s) for s in sizes], mask=masks.Causal()
    )


def test_another_selection_gets_its_scores() -> None:
    assert_agrees(
        make_attention(selection.Sparsemax(), HIDDEN), draw_inputs(), mask=MASKS["lengths"]
    )


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_computed_in_float32(dtype: torch.dtype) -> None:
    inputs, attention = (
        [t.to(dtype) for t in draw_inputs()],
        make_attention(hidden=HIDDEN).to(dtype),
    )
    with kernels.using(kernels.AdditiveKernel()):
        context = attention(*inputs).context
    with kernels.using(kernels.Reference()):
        expected = attention(*inputs).context
    assert context.dtype == dtype
    torch.testing.assert_close(context, expected)


@pytest.mark.parametrize(
    ("scale", "mask"), [(0.1, None), (1.0, masks.Causal()), (3.0, None), (100.0, masks.Causal())]
)
def test_at_most_twice_as_wrong_as_plain_code(
    scale: float, mask: masks.Mask | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In blocks, so that the fused read is held to it too."""
    monkeypatch.setattr(additive, "BLOCK", 2 * 16 * 41)
    assert_at_most_twice_as_wrong(torch.float32, scale, mask, (23, 41, 13, 31))


@pytest.mark.usefixtures("held")
def test_nothing_to_read_is_exactly_nothing() -> None:
    leaves = [tensor.requires_grad_() for tensor in draw_inputs()]
    with kernels.using(kernels.AdditiveKernel()):
        reading = make_attention(hidden=HIDDEN)(*leaves, mask=MASKS["lengths"])
    assert reading.context[2].count_nonzero() == reading.weights[2].count_nonzero() == 0
    reading.context.square().sum().backward()
    assert all(leaf.grad[2].count_nonzero() == 0 for leaf in leaves)


@pytest.mark.usefixtures("held")
def test_a_hidden_nan_never_matters_and_a_visible_one_does() -> None:
    attention, (queries, keys, values) = make_attention(hidden=HIDDEN), draw_inputs()
    dirty = keys.clone(), values.clone()
    dirty[0][1, 4:], dirty[1][1, 4:] = torch.nan, torch.inf
    with kernels.using(kernels.AdditiveKernel()):
        clean = attention(queries, keys, values, mask=MASKS["both"]).context
        hidden = attention(queries, *dirty, mask=MASKS["both"]).context
        seen = attention(queries, *dirty, mask=masks.Causal()).context
    torch.testing.assert_close(hidden, clean, rtol=0, atol=0)
    # The last query sees the last key, so the first that sees the fifth is the first of all.
    assert not seen[1].isfinite().any()
    assert seen[[0, 2]].isfinite().all()


# NumPy, which the interpreter runs on, says so when it meets a NaN.
@pytest.mark.filterwarnings("ignore:(All-NaN|invalid value):RuntimeWarning")
@pytest.mark.usefixtures("held")
def test_without_a_mask_a_nan_spoils_who_reads_it() -> None:
    queries, keys, values = draw_inputs()
    keys[1, 3] = torch.nan
    queries[2, 5] = torch.nan
    with kernels.using(kernels.AdditiveKernel()):
        context = make_attention(hidden=HIDDEN)(queries, keys, values).context
    spoilt = torch.zeros(BATCH, QUERIES, dtype=torch.bool)
    spoilt[1], spoilt[2, 5] = True, True
    assert torch.equal(~context.isfinite().all(-1), spoilt)


def test_values_too_wide_for_registers_are_summed_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(additive, "BLOCK", 4 * BATCH * KEYS)
    monkeypatch.setattr(triton_loader.library(), "MAX_VALUE_SIZE", VALUE_SIZE - 1)
    monkeypatch.setattr(additive_backends.Triton, "read", None)
    assert_agrees(make_attention(hidden=HIDDEN), draw_inputs(), mask=MASKS["both"])


def test_a_fused_read_holds_no_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(additive, "BLOCK", 4 * BATCH * KEYS)
    monkeypatch.setattr(additive_backends.Triton, "scores", lambda *_: pytest.fail("weights"))
    with kernels.using(kernels.AdditiveKernel()):
        assert make_attention(hidden=HIDDEN)(*draw_inputs()).context.isfinite().all()


def test_the_operator_of_a_compiled_graph() -> None:
    torch.manual_seed(17)
    given = [torch.randn(*size) for size in ((2, 5, 19), (2, 7, 19), (2, 19))]

    def gradients(score) -> list[Tensor]:
        leaves = [tensor.clone().requires_grad_() for tensor in given]
        found = score(*leaves)
        found.square().sum().backward()
        return [found.detach(), *(leaf.grad for leaf in leaves)]

    plain = lambda q, k, v: kernels.AdditiveComparison(q, k, v[:, None]).scores()
    pairs = zip(gradients(additive_op.additive_scores), gradients(plain), strict=True)
    for ours, theirs in pairs:
        torch.testing.assert_close(ours, theirs, **CLOSE)
