"""On every kernel `attend` reads as torch's SDPA does, but for what is hidden: that stays out."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import pytest
import torch
from torch import Tensor
from torch.nn.attention.bias import causal_lower_right
from torch.nn.functional import scaled_dot_product_attention

from regard import attend, kernels, masks, scores, selection
from tests.parity.close import assert_as_exact, assert_same, with_gradients

Batch = tuple[int, ...]
Options = dict[str, object]
Using = Callable[[], AbstractContextManager[None]]

SIZE, VALUE_SIZE = 7, 11
SHORT, LONG = (3, 5), (3, 389)
"""Queries and keys; for so many keys the default choice is torch's kernel."""

BATCHES = [(), (2,), (2, 13), (2, 13, 17)]
PRECISIONS = [torch.float64, torch.float32, torch.bfloat16]
KERNELS: dict[str, Using] = {
    "reference": lambda: kernels.using(kernels.Reference()),
    "sdpa": lambda: kernels.using(kernels.Sdpa()),
    "default": nullcontext,
}
CASES = ["plain", "mask", "bias", "mask and bias"]


@pytest.fixture(params=KERNELS)
def using(request: pytest.FixtureRequest) -> Using:
    return KERNELS[request.param]


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(1)


def draw(
    batch: Batch,
    lengths: tuple[int, int],
    dtype: torch.dtype = torch.float64,
    value_size: int = VALUE_SIZE,
) -> list[Tensor]:
    queries, keys = lengths
    shapes = [(queries, SIZE), (keys, SIZE), (keys, value_size)]
    return [torch.randn(*batch, *shape).to(dtype) for shape in shapes]


def draw_case(
    name: str, batch: Batch, lengths: tuple[int, int], dtype: torch.dtype
) -> tuple[Options, Options]:
    """One condition in our words and in torch's; the second query may read nothing."""
    allowed = torch.rand(*batch, *lengths) > 0.3
    allowed[..., 0] = True
    allowed[..., 1, :] = False
    bias = torch.randn(*batch, *lengths).to(dtype)
    both = bias.masked_fill(~allowed, -torch.inf)
    words: dict[str, tuple[Options, Options]] = {
        "plain": ({}, {}),
        "mask": ({"mask": allowed}, {"attn_mask": allowed}),
        "bias": ({"bias": bias}, {"attn_mask": bias}),
        "mask and bias": ({"mask": allowed, "bias": bias}, {"attn_mask": both}),
        "causal": ({"mask": masks.Causal()}, {"is_causal": True}),
    }
    return words[name]


def reader(using: Using, **options: object) -> Callable[..., Tensor]:
    def read(queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        with using():
            return attend(queries, keys, values, **options).context

    return read


def torch_reader(**options: object) -> Callable[..., Tensor]:
    return lambda *inputs: scaled_dot_product_attention(*inputs, **options)


def in_float64(options: Options) -> Options:
    return {
        name: value.double() if isinstance(value, Tensor) and value.is_floating_point() else value
        for name, value in options.items()
    }


def compare(using: Using, inputs: list[Tensor], ours: Options, theirs: Options) -> None:
    """Context and gradients: equal in float64; in less, as near to float64 as torch comes."""
    queries, _, values = inputs
    direction = torch.randn(*queries.shape[:-1], values.shape[-1], dtype=torch.float64)
    found = with_gradients(reader(using, **ours), inputs, direction)
    expected = with_gradients(torch_reader(**theirs), inputs, direction)
    if queries.dtype == torch.float64:
        assert_same(found, expected)
    else:
        doubles = [tensor.double() for tensor in inputs]
        truth = with_gradients(torch_reader(**in_float64(theirs)), doubles, direction)
        assert_as_exact(found, expected, truth)


@pytest.mark.parametrize("dtype", PRECISIONS, ids=str)
@pytest.mark.parametrize("batch", BATCHES, ids=len)
@pytest.mark.parametrize("name", CASES)
def test_context_and_gradients(using: Using, name: str, batch: Batch, dtype: torch.dtype) -> None:
    compare(using, draw(batch, SHORT, dtype), *draw_case(name, batch, SHORT, dtype))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("name", CASES)
def test_many_keys(using: Using, name: str, dtype: torch.dtype) -> None:
    compare(using, draw((2,), LONG, dtype), *draw_case(name, (2,), LONG, dtype))


@pytest.mark.parametrize("dtype", PRECISIONS, ids=str)
@pytest.mark.parametrize("batch", BATCHES, ids=len)
def test_causal_of_one_length(using: Using, batch: Batch, dtype: torch.dtype) -> None:
    compare(using, draw(batch, (5, 5), dtype), *draw_case("causal", batch, (5, 5), dtype))


@pytest.mark.parametrize("dtype", PRECISIONS, ids=str)
@pytest.mark.parametrize("name", [*CASES, "causal"])
def test_values_of_the_keys_size(using: Using, name: str, dtype: torch.dtype) -> None:
    """The one form in which torch too takes its fused kernel."""
    inputs = draw((2, 3), (5, 5), dtype, value_size=SIZE)
    compare(using, inputs, *draw_case(name, (2, 3), (5, 5), dtype))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("name", CASES)
def test_many_queries_without_a_gradient(using: Using, name: str, dtype: torch.dtype) -> None:
    """For so many queries the default choice is torch's kernel."""
    lengths = (67, 13)
    inputs = draw((2,), lengths, dtype)
    ours, theirs = draw_case(name, (2,), lengths, dtype)
    truth = torch_reader(**in_float64(theirs))(*[tensor.double() for tensor in inputs])
    found, expected = reader(using, **ours)(*inputs), torch_reader(**theirs)(*inputs)
    assert_as_exact([found], [expected], [truth])


@pytest.mark.filterwarnings(
    "ignore:Lower right causal bias:UserWarning"  # torch warns of NaN; its plain kernel reads 0
)
@pytest.mark.parametrize("lengths", [(3, 5), (5, 3)], ids=["more keys", "more queries"])
def test_causal_ends_at_the_last_key(using: Using, lengths: tuple[int, int]) -> None:
    theirs: Options = {"attn_mask": causal_lower_right(*lengths)}
    compare(using, draw((2, 13), lengths), {"mask": masks.Causal()}, theirs)


@pytest.mark.parametrize("lengths", [(3, 5), (5, 3)], ids=["more keys", "more queries"])
def test_causal_of_torch_starts_at_the_first_key(using: Using, lengths: tuple[int, int]) -> None:
    inputs = draw((2,), lengths)
    from_the_first = torch.ones(1, *lengths, dtype=torch.bool).tril()
    compare(using, inputs, {"mask": from_the_first}, {"is_causal": True})
    ours, theirs = reader(using, mask=masks.Causal()), torch_reader(is_causal=True)
    assert not torch.allclose(ours(*inputs), theirs(*inputs))


def test_scale(using: Using) -> None:
    compare(using, draw((2,), SHORT), {"score": scores.ScaledDot(0.3)}, {"scale": 0.3})


def test_temperature_divides_the_scale(using: Using) -> None:
    ours: Options = {"score": scores.Dot(), "select": selection.Softmax(temperature=0.7)}
    compare(using, draw((2,), SHORT), ours, {"scale": 1 / 0.7})


def test_temperature_divides_the_bias(using: Using) -> None:
    bias = torch.randn(2, *SHORT, dtype=torch.float64)
    ours: Options = {
        "score": scores.Dot(),
        "select": selection.Softmax(temperature=0.7),
        "bias": bias,
    }
    compare(using, draw((2,), SHORT), ours, {"scale": 1 / 0.7, "attn_mask": bias / 0.7})


@pytest.mark.parametrize("name", [*CASES, "causal"])
def test_weights_are_what_torch_reads_from_ones(using: Using, name: str) -> None:
    """Torch gives no weights, but from values that are the unit vectors it reads them."""
    lengths = (5, 5)
    queries, keys, values = draw((2,), lengths)
    ours, theirs = draw_case(name, (2,), lengths, torch.float64)
    units = torch.eye(5, dtype=torch.float64).expand(2, 5, 5)
    with using():
        weights = attend(queries, keys, values, **ours).weights
    assert_same([weights], [torch_reader(**theirs)(queries, keys, units)])


@pytest.mark.parametrize("shared", [(2, 1), (1, 13), (1, 1)], ids=str)
def test_shared_keys(using: Using, shared: Batch) -> None:
    queries, _, _ = draw((2, 13), SHORT)
    _, keys, values = draw(shared, SHORT)
    compare(using, [queries, keys, values], {}, {})


def test_keys_for_groups_of_heads(using: Using) -> None:
    groups, members = 3, 5
    queries, _, _ = draw((2, groups, members), SHORT)
    _, keys, values = draw((2, groups), SHORT)
    direction = torch.randn(2, groups * members, SHORT[0], VALUE_SIZE)

    def ours(queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        read = reader(using)
        return read(queries, keys.unsqueeze(-3), values.unsqueeze(-3)).flatten(1, 2)

    def theirs(queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        return torch_reader(enable_gqa=True)(queries.flatten(1, 2), keys, values)

    inputs = [queries, keys, values]
    found, expected = (with_gradients(read, inputs, direction) for read in (ours, theirs))
    assert_same(found, expected)


@pytest.mark.parametrize("name", ["reference", "default"])
def test_gradient_of_the_bias(name: str) -> None:
    inputs = [*draw((2,), LONG), torch.randn(2, *LONG, dtype=torch.float64)]
    direction = torch.randn(2, LONG[0], VALUE_SIZE)
    found = with_gradients(
        lambda *inputs: reader(KERNELS[name], bias=inputs[3])(*inputs[:3]), inputs, direction
    )
    expected = with_gradients(
        lambda *inputs: torch_reader(attn_mask=inputs[3])(*inputs[:3]), inputs, direction
    )
    assert_same(found, expected)


@pytest.mark.parametrize("fault", [torch.nan, torch.inf])
@pytest.mark.parametrize("position", [1, 2], ids=["key", "value"])
@pytest.mark.parametrize("dtype", PRECISIONS, ids=str)
def test_a_masked_nan_reaches_the_context_in_torch_only(
    using: Using, dtype: torch.dtype, position: int, fault: float
) -> None:
    """What stands in the padding is multiplied by 0 in torch, and 0 · NaN is NaN."""
    inputs = draw((2,), SHORT, dtype)
    direction = torch.randn(2, SHORT[0], VALUE_SIZE)
    visible = masks.Lengths(torch.tensor([5, 3]))
    clean = with_gradients(reader(using, mask=visible), inputs, direction)
    inputs[position][1, 4] = fault
    theirs = torch_reader(attn_mask=visible.dense(*SHORT))(*inputs)
    assert theirs[1].isnan().any()
    found = with_gradients(reader(using, mask=visible), inputs, direction)
    for ours, untouched in zip(found, clean, strict=True):
        assert ours.isfinite().all()
        assert torch.equal(ours, untouched)
