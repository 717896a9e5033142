"""What is no tensor of floats, or of another precision or device, is refused before it is used.

The meta device stands in for a second one. Annotations are not checked here: what the library
says itself is what people see.
"""

import numpy as np
import pytest
import torch

from regard import Attention, MultiHead, State, attend, masks, scores, selection
from regard.attention.core.errors import DeviceError, DtypeError
from tests.attention.error_cases import (
    BATCH,
    HIDDEN,
    KEYS,
    QUERIES,
    SIZE,
    VALUE,
    Wrong,
    assert_refuses,
    keys,
    queries,
    table,
    values,
)

pytestmark = pytest.mark.usefixtures("unchecked")

HALF = torch.bfloat16
EMBED = "embed them first."


def multi() -> MultiHead:
    return MultiHead(Attention, 3, SIZE, SIZE, 2, value_size=VALUE)


def cast(dtype: torch.dtype) -> tuple[torch.Tensor, ...]:
    return queries.to(dtype), keys.to(dtype), values.to(dtype)


def nested() -> torch.Tensor:
    return torch.nested.nested_tensor([keys[0], keys[1, :3]], layout=torch.jagged)


@table(
    ("an array as queries", lambda: attend(queries.numpy(), keys, values), DtypeError,
     "queries are of type ndarray.", "torch.as_tensor(…)."),
    ("an array as keys", lambda: attend(queries, keys.numpy(), values), DtypeError,
     "keys are of type ndarray.", "torch.as_tensor(…)."),
    ("a list as values", lambda: attend(queries, keys, values.tolist()), DtypeError,
     "values are of type list.", "torch.as_tensor(…)."),
    ("a list as queries of heads", lambda: multi()(queries.tolist(), keys, values), DtypeError,
     "queries are of type list.", "torch.as_tensor(…)."),
    ("no values", lambda: attend(queries, keys, None), DtypeError,
     "values are of type NoneType.", "Pass a tensor"),
    ("tokens as keys", lambda: attend(queries, keys.long(), values), DtypeError,
     "keys are torch.int64; attention is computed on floating-point numbers.", EMBED),
    ("tokens as queries", lambda: attend(queries.long(), keys, values), DtypeError,
     "queries are torch.int64;", "Convert them, queries.float(), or embed them first."),
    ("tokens prepared", lambda: Attention().prepare(keys.int(), values), DtypeError,
     "keys are torch.int32;", EMBED),
    ("booleans as values", lambda: attend(queries, keys, values > 0), DtypeError,
     "values are torch.bool;", "values.float()"),
    ("a spectrum", lambda: attend(queries, keys.to(torch.complex64), values), DtypeError,
     "keys are torch.complex64;", "torch.view_as_real(keys).flatten(-2)"),
    ("floats that torch only stores", lambda: attend(*cast(torch.float8_e4m3fn)), DtypeError,
     "keys are torch.float8_e4m3fn;", "keys.float()"),
    ("sparse keys", lambda: attend(queries, keys.to_sparse(), values), DtypeError,
     "keys are torch.sparse_coo;", "keys.to_dense()."),
    ("nested keys", lambda: attend(queries, nested(), values), DtypeError, "keys are nested;",
     "torch.nested.to_padded_tensor(keys, 0.0), and mask that: masks.Lengths(lengths)."),
)  # fmt: skip
def test_no_tensors_of_floats(wrong: Wrong) -> None:
    assert_refuses(wrong)


@table(
    ("double queries", lambda: attend(queries.double(), keys, values), DtypeError,
     "queries are torch.float64 but keys and values torch.float32.", ".to(torch.float32)"),
    ("half queries", lambda: attend(queries.to(HALF), keys, values), DtypeError,
     "queries are torch.bfloat16 but keys and values torch.float32.", "torch.autocast for both."),
    ("double values", lambda: attend(queries, keys, values.double()), DtypeError,
     "keys are torch.float32 but values torch.float64.", ".to(torch.float64)"),
    ("half into an additive score",
     lambda: attend(*cast(HALF), score=scores.Additive(SIZE, SIZE, HIDDEN)), DtypeError,
     "the input is torch.bfloat16 but the parameters are torch.float32.",
     "module.to(torch.bfloat16) or input.to(torch.float32)."),
    ("double into several heads", lambda: multi()(*cast(torch.float64)), DtypeError,
     "the input is torch.float64 but the parameters are torch.float32.",
     "module.to(torch.float64) or input.to(torch.float32)."),
    ("a double bias", lambda: attend(queries, keys, values, bias=(queries @ keys.mT).double()),
     DtypeError, "biases are torch.float64 but queries torch.float32.", ".to(torch.float32)"),
    ("double scores of a callable",
     lambda: attend(queries, keys, values, score=lambda q, k: (q @ k.mT).double()), DtypeError,
     "the score returned torch.float64 for queries in torch.float32.", "scores.to(torch.float32)."),
)  # fmt: skip
def test_several_precisions(wrong: Wrong) -> None:
    assert_refuses(wrong)


@table(
    ("a mask", lambda: attend(queries, keys, values, bias=masks.Causal()), DtypeError,
     "bias is Causal(); it is added to the scores.", "what may be read as mask=…"),
    ("a mask, of several heads", lambda: multi()(queries, keys, values, bias=masks.Causal()),
     DtypeError, "bias is Causal();", "what may be read as mask=…"),
    ("booleans", lambda: attend(queries, keys, values, bias=torch.ones(1, 1, KEYS).bool()),
     DtypeError, "bias is torch.bool;", "what may be read as mask=…, a mask or booleans."),
    ("whole numbers", lambda: attend(queries, keys, values, bias=torch.ones(1, 1, KEYS).long()),
     DtypeError, "bias is torch.int64;", "Pass a tensor of floats"),
    ("a number", lambda: attend(queries, keys, values, bias=1.0), DtypeError,
     "bias is 1.0;", "Pass a tensor of floats"),
    ("an array", lambda: attend(queries, keys, values, bias=np.zeros((1, 1, KEYS))), DtypeError,
     "bias is a ndarray of shape (1, 1, 5);", "Pass a tensor of floats"),
)  # fmt: skip
def test_biases(wrong: Wrong) -> None:
    assert_refuses(wrong)


@table(
    ("nothing", lambda: attend(queries, keys, values, score=lambda *_: None), DtypeError,
     "the score returned None.", "It must return a tensor of floats."),
    ("whole numbers", lambda: attend(queries, keys, values, score=lambda q, k: (q @ k.mT).long()),
     DtypeError, "the score returned torch.int64.", "It must return a tensor of floats."),
    ("another device", lambda: attend(queries, keys, values, score=lambda q, k: away(q @ k.mT)),
     DeviceError, "the score returned scores on meta for queries on cpu.",
     "Compute them where the queries are."),
)  # fmt: skip
def test_what_a_callable_makes(wrong: Wrong) -> None:
    assert_refuses(wrong)


def away(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to("meta")


@table(
    ("keys", lambda: attend(queries, away(keys), values), DeviceError,
     "keys are on meta but values on cpu.", "Move one: .to('cpu')."),
    ("queries", lambda: attend(away(queries), keys, values), DeviceError,
     "queries are on meta but keys and values on cpu.", "Move one: .to('cpu')."),
    ("a bare query", lambda: attend(away(queries[0, 0]), keys[0], values[0]), DeviceError,
     "queries are on meta but keys and values on cpu.", "Move one"),
    ("queries of several heads", lambda: multi()(away(queries), keys, values), DeviceError,
     "queries are on meta but keys and values on cpu.", "Move one"),
    ("a bias", lambda: attend(queries, keys, values, bias=away(queries @ keys.mT)), DeviceError,
     "biases are on meta but queries on cpu.", "Move one: .to('cpu')."),
    ("a bias of several heads",
     lambda: multi()(queries, keys, values, bias=away(queries @ keys.mT)), DeviceError,
     "biases are on meta but queries on cpu.", "Move one: .to('cpu')."),
    ("a mask",
     lambda: attend(queries, keys, values, mask=away(queries @ keys.mT) > 0), DeviceError,
     "the mask Dense is on meta but the queries are on cpu.", "mask.to('cpu')."),
    ("lengths", lambda: attend(queries, keys, values, mask=masks.Lengths([3, 5]).to("meta")),
     DeviceError, "the mask Lengths is on meta but the queries are on cpu.", "mask.to('cpu')."),
    ("blocks", lambda: attend(queries, keys, values, mask=masks.Blocks([[0] * KEYS]).to("meta")),
     DeviceError, "the mask Blocks is on meta but the queries are on cpu.", "mask.to('cpu')."),
    ("the queries' blocks", lambda: attend(queries, keys, values, mask=masks.Blocks(
        torch.zeros(1, KEYS).long(), away(torch.zeros(1, QUERIES).long()))), DeviceError,
     "the mask Blocks is on meta but the queries are on cpu.", "mask.to('cpu')."),
    ("a reward", lambda: selection.reinforce(attend(queries, keys, values, select=selection.Hard()),
                                             away(torch.ones(BATCH))), DeviceError,
     "reward is on meta but the reading on cpu.", "reward.to('cpu')."),
    ("a state", lambda: attend(queries, keys, values, select=selection.Monotonic(), state=State(
        {}, {"last": away(torch.ones(BATCH, 1, KEYS))}, owners=("Monotonic",))), DeviceError,
     "the state is on meta but queries on cpu.", "Read on one device."),
    ("new pairs", lambda: Attention().prepare(keys, values).write(away(keys), away(values)),
     DeviceError, "the new pairs are on meta but the memory on cpu.", "Move one: .to('cpu')."),
    ("an index of beams",
     lambda: Attention().prepare(keys, values).reorder(away(torch.tensor([1, 0]))), DeviceError,
     "the index of beams is on meta but they are on cpu.", "index.to('cpu')."),
)  # fmt: skip
def test_two_devices(wrong: Wrong) -> None:
    assert_refuses(wrong)


@pytest.mark.parametrize(
    "attention",
    [
        Attention(scores.Additive(SIZE, SIZE, HIDDEN)),
        Attention(scores.Bilinear(SIZE, SIZE)),
        Attention(scores.Cosine(learned=True)),
        Attention(scores.Coverage(scores.Dot())),
        Attention(scores.Gaussian(learned=True)),
        Attention(scores.Location(SIZE, KEYS)),
        Attention(scores.LocationAware(SIZE, SIZE, HIDDEN)),
        Attention(scores.ScaledDot(learned=True)),
        Attention(select=selection.Entmax(learned=True)),
        Attention(select=selection.LocalPredictive(SIZE, window=2)),
        Attention(select=selection.Monotonic()),
        multi(),
    ],
    ids=lambda attention: " ".join(type(module).__name__ for module in attention.children()),
)
def test_parameters_on_another_device(attention: Attention | MultiHead) -> None:
    assert_refuses(Wrong(
        "parameters", lambda: attention.to("meta")(queries, keys, values), DeviceError,
        "the input is on cpu but the parameters are on meta.",
        "module.to('cpu') or input.to('meta').",
    ))  # fmt: skip


@table(
    ("a score", lambda: selection.reinforce(attend(queries, keys, values), 1.0), DtypeError,
     "reward is 1.0.", "Pass a tensor of floats, one for each item"),
    ("hits counted", lambda: selection.reinforce(
        attend(queries, keys, values), torch.ones(BATCH).long()), DtypeError,
     "reward is torch.int64.", "reward.float()."),
    ("weights for a reading", lambda: selection.reinforce(queries, torch.ones(BATCH)), DtypeError,
     "a Tensor of shape (2, 3, 7) is not a reading.", "reading = attention(queries, keys, values)"),
)  # fmt: skip
def test_rewards(wrong: Wrong) -> None:
    assert_refuses(wrong)


def test_half_precision_biases_are_accepted() -> None:
    bias = (queries @ keys.mT).to(HALF)
    assert attend(queries, keys, values, bias=bias).context.dtype == torch.float32
    assert attend(*cast(torch.float64), bias=bias).context.dtype == torch.float64
