"""`MultiHead` reads as Keras's multi-head and grouped-query layers do, with their weights loaded.

In float32, for Keras on torch computes in no higher precision.
"""

import keras
import pytest
import torch
from torch import Tensor

from regard import Attention, MultiHead, masks
from tests.parity.close import assert_same, with_gradients
from tests.parity.keras_weights import with_drawn_weights

Options = dict[str, object]
Layer = keras.layers.Layer

KEY_HEADS, MEMBERS, QUERIES, KEYS, SIZE = 2, 3, 5, 7, 11
VALUE_SIZE, KEY_SIZE, HEAD_SIZE, BATCH = 13, 17, 19, 23
SEEN = torch.arange(KEYS) < torch.arange(BATCH)[:, None] % KEYS + 1
NOBODY = torch.arange(BATCH)[:, None].expand(BATCH, KEYS) != 1
"""The second item is all padding."""

LENGTHS = {
    "plain": QUERIES,
    "value_mask": QUERIES,
    "attention_mask": QUERIES,
    "both masks": QUERIES,
    "causal": KEYS,
    "causal and both masks": KEYS,
}
"""How many queries a case has."""


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(1)


@pytest.fixture(params=[1, MEMBERS], ids=["multi head", "grouped"])
def pair(request: pytest.FixtureRequest) -> tuple[MultiHead, Layer]:
    heads = KEY_HEADS * request.param
    if request.param == 1:
        layer = keras.layers.MultiHeadAttention(num_heads=heads, key_dim=HEAD_SIZE)
    else:
        layer = keras.layers.GroupQueryAttention(HEAD_SIZE, heads, KEY_HEADS)
    shapes = [(BATCH, QUERIES, SIZE), (BATCH, KEYS, VALUE_SIZE), (BATCH, KEYS, KEY_SIZE)]
    return load(with_drawn_weights(layer, *shapes), heads), layer


def load(layer: Layer, heads: int) -> MultiHead:
    multi = MultiHead(Attention, heads, SIZE, KEY_SIZE, HEAD_SIZE, KEY_HEADS, value_size=VALUE_SIZE)
    found = {weight.path.split("/", 1)[1]: weight.value.detach() for weight in layer.weights}
    state = {"out.bias": found["attention_output/bias"]}
    state["out.weight"] = found["attention_output/kernel"].flatten(0, 1).mT
    for name in ("query", "key", "value"):
        state[f"{name}.weight"] = found[f"{name}/kernel"].flatten(1).mT
        state[f"{name}.bias"] = found[f"{name}/bias"].flatten()
    multi.load_state_dict(state)
    return multi


def draw(queries: int = QUERIES) -> list[Tensor]:
    """Queries, keys and values. Keras takes them in another order: queries, values, keys."""
    shapes = [(queries, SIZE), (KEYS, KEY_SIZE), (KEYS, VALUE_SIZE)]
    return [torch.randn(BATCH, *shape) for shape in shapes]


def draw_case(name: str) -> tuple[Options, Options]:
    """One condition in our words and in Keras's."""
    allowed = torch.rand(BATCH, LENGTHS[name], KEYS) > 0.3
    allowed[..., 0] = True
    both, seen = allowed & SEEN[:, None, :], SEEN[:, None, :]
    words: dict[str, tuple[Options, Options]] = {
        "plain": ({}, {}),
        "value_mask": ({"mask": seen}, {"value_mask": SEEN}),
        "attention_mask": ({"mask": allowed}, {"attention_mask": allowed}),
        "both masks": ({"mask": both}, {"attention_mask": allowed, "value_mask": SEEN}),
        "causal": ({"mask": masks.Causal()}, {"use_causal_mask": True}),
        "causal and both masks": (
            {"mask": masks.Causal() & masks.Dense(both)},
            {"use_causal_mask": True, "attention_mask": allowed, "value_mask": SEEN},
        ),
    }
    return words[name]


@pytest.mark.parametrize("name", LENGTHS)
def test_context_and_gradients(pair: tuple[MultiHead, Layer], name: str) -> None:
    (multi, layer), (ours, theirs) = pair, draw_case(name)
    inputs, direction = draw(LENGTHS[name]), torch.randn(BATCH, LENGTHS[name], SIZE)
    found = with_gradients(lambda *inputs: multi(*inputs, **ours).context, inputs, direction)
    expected = with_gradients(
        lambda queries, keys, values: layer(queries, values, keys, **theirs), inputs, direction
    )
    assert_same(found, expected)


@pytest.mark.parametrize("name", LENGTHS)
def test_weights(pair: tuple[MultiHead, Layer], name: str) -> None:
    (multi, layer), (ours, theirs) = pair, draw_case(name)
    queries, keys, values = draw(LENGTHS[name])
    context, weights = layer(queries, values, keys, return_attention_scores=True, **theirs)
    reading = multi(queries, keys, values, **ours)
    assert_same([reading.context, reading.weights], [context, weights])


def test_a_fully_masked_query_reads_the_padding_in_keras(pair: tuple[MultiHead, Layer]) -> None:
    """Unless the weights are asked for: then it reads nothing, and answers with a constant."""
    multi, layer = pair
    queries, keys, values = draw()
    with_weights, weights = layer(
        queries, values, keys, value_mask=NOBODY, return_attention_scores=True
    )
    without_weights = layer(queries, values, keys, value_mask=NOBODY)
    assert torch.equal(weights[1], torch.zeros(multi.heads, QUERIES, KEYS))
    assert_same([with_weights[1]], [multi.out.bias.expand(QUERIES, SIZE)])
    assert not torch.allclose(without_weights[1], with_weights[1])

    reading = multi(queries, keys, values, mask=NOBODY[:, None, :])
    assert torch.equal(reading.weights[1], torch.zeros(multi.heads, QUERIES, KEYS))
    assert torch.equal(reading.context[1], torch.zeros(QUERIES, SIZE))
    assert_same([reading.context[0]], [without_weights[0]])
