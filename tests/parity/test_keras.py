"""With their weights loaded, ours read as the attention layers of Keras 3 do, in float32.

Keras on torch computes in float32 whatever it is given, so that is where the two meet. Its masks
are a billion taken off the scores: where nothing is left to read, it reads everything.
"""

from collections.abc import Callable

import keras
import pytest
import torch
from torch import Tensor, nn

from regard import Attention, masks, scores
from tests.parity.close import assert_same, assert_sums_to, with_gradients
from tests.parity.keras_weights import with_drawn_weights

Options = dict[str, object]
Layer = keras.layers.Layer

BATCH, QUERIES, KEYS, SIZE, VALUE_SIZE = 2, 3, 5, 7, 11
SEEN = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
ASKING = torch.tensor([[True, True, True], [True, False, True]])
NOBODY = torch.tensor([[True] * 5, [False] * 5])


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(1)


def draw(queries: int = QUERIES) -> list[Tensor]:
    """Queries, keys and values. Keras takes them in another order: queries, values, keys."""
    shapes = [(queries, SIZE), (KEYS, SIZE), (KEYS, VALUE_SIZE)]
    return [torch.randn(BATCH, *shape) for shape in shapes]


def as_dot(layer: Layer) -> scores.Score:
    if layer.scale is None:
        return scores.Dot()
    score = scores.ScaledDot(1.0, learned=True)
    nn.init.constant_(score.factor, layer.scale.value.item())
    return score


def as_additive(layer: Layer) -> scores.Score:
    """Keras has no projections: they are the identity, times a number for "concat"."""
    score = scores.Additive(SIZE, SIZE, SIZE)
    scale = layer.scale.value.detach() if layer.use_scale else torch.tensor(1.0)
    factor, v = torch.tensor(1.0), scale
    if layer.score_mode == "concat":
        factor, v = scale, layer.concat_score_weight.value.detach()
    for weight in (score.query_weight, score.key_weight):
        weight.data = factor * torch.eye(SIZE)
    score.v.data = v.expand(1, SIZE).clone()
    return score


LAYERS: dict[str, tuple[Callable[[], Layer], Callable[[Layer], scores.Score]]] = {
    "dot": (keras.layers.Attention, as_dot),
    "dot with a scale": (lambda: keras.layers.Attention(use_scale=True), as_dot),
    "concat": (lambda: keras.layers.Attention(score_mode="concat"), as_additive),
    "concat with a scale": (
        lambda: keras.layers.Attention(use_scale=True, score_mode="concat"),
        as_additive,
    ),
    "additive": (keras.layers.AdditiveAttention, as_additive),
    "additive without a scale": (
        lambda: keras.layers.AdditiveAttention(use_scale=False),
        as_additive,
    ),
}


LEARNED = ["dot with a scale", "concat", "concat with a scale", "additive"]


def build(name: str) -> tuple[Attention, Layer]:
    make, as_score = LAYERS[name]
    shapes = [(BATCH, QUERIES, SIZE), (BATCH, KEYS, VALUE_SIZE), (BATCH, KEYS, SIZE)]
    layer = with_drawn_weights(make(), shapes)
    return Attention(as_score(layer)), layer


@pytest.fixture(params=LAYERS)
def pair(request: pytest.FixtureRequest) -> tuple[Attention, Layer]:
    return build(request.param)


MASKS: dict[str, tuple[Options, Options]] = {
    "plain": ({}, {}),
    "values": ({"mask": SEEN[:, None, :]}, {"mask": [None, SEEN]}),
    "queries": ({"mask": ASKING[:, :, None]}, {"mask": [ASKING, None]}),
    "both": ({"mask": ASKING[:, :, None] & SEEN[:, None, :]}, {"mask": [ASKING, SEEN]}),
}
CAUSAL: dict[str, tuple[Options, Options]] = {
    "causal": ({"mask": masks.Causal()}, {"use_causal_mask": True}),
    "causal and values": (
        {"mask": masks.Causal() & masks.Dense(SEEN[:, None, :])},
        {"use_causal_mask": True, "mask": [None, SEEN]},
    ),
}


def reader(attention: nn.Module, **options: object) -> Callable[..., Tensor]:
    return lambda queries, keys, values: attention(queries, keys, values, **options).context


def keras_reader(layer: Layer, **options: object) -> Callable[..., Tensor]:
    return lambda queries, keys, values: layer([queries, values, keys], **options)


@pytest.mark.parametrize("name", MASKS)
def test_context_and_gradients(pair: tuple[Attention, Layer], name: str) -> None:
    (attention, layer), (ours, theirs), inputs = pair, MASKS[name], draw()
    direction = torch.randn(BATCH, QUERIES, VALUE_SIZE)
    found = with_gradients(reader(attention, **ours), inputs, direction)
    assert_same(found, with_gradients(keras_reader(layer, **theirs), inputs, direction))


@pytest.mark.parametrize("name", CAUSAL)
def test_causal(pair: tuple[Attention, Layer], name: str) -> None:
    """Of one length: where they differ, Keras starts at the first key and we end at the last."""
    (attention, layer), (ours, theirs), inputs = pair, CAUSAL[name], draw(queries=KEYS)
    direction = torch.randn(BATCH, KEYS, VALUE_SIZE)
    found = with_gradients(reader(attention, **ours), inputs, direction)
    assert_same(found, with_gradients(keras_reader(layer, **theirs), inputs, direction))


@pytest.mark.parametrize("name", MASKS)
def test_weights(pair: tuple[Attention, Layer], name: str) -> None:
    (attention, layer), (ours, theirs), inputs = pair, MASKS[name], draw()
    queries, keys, values = inputs
    _, expected = layer([queries, values, keys], return_attention_scores=True, **theirs)
    found = attention(*inputs, **ours).weights
    if name in ("queries", "both"):  # Keras drops what they read, and still tells of it
        assert torch.equal(found[~ASKING], torch.zeros(1, KEYS))
        found, expected = found[ASKING], expected[ASKING]
    assert_same([found], [expected])


@pytest.mark.parametrize("name", LEARNED)
def test_gradients_of_the_parameters(name: str) -> None:
    (attention, layer), (queries, keys, values) = build(name), draw()
    direction = torch.randn(BATCH, QUERIES, VALUE_SIZE)
    attention(queries, keys, values).context.backward(direction)
    layer([queries, values, keys]).backward(direction)
    found = in_their_terms(attention.score, layer)
    assert found.keys() == {weight.name for weight in layer.weights}
    for weight in layer.weights:
        if weight.shape == ():
            assert_sums_to(found[weight.name], weight.value.grad)
        else:
            assert_same([found[weight.name]], [weight.value.grad])


def in_their_terms(score: scores.Score, layer: Layer) -> dict[str, Tensor]:
    """Our gradients for each of Keras's weights; one number there stands in several of ours."""
    if isinstance(score, scores.ScaledDot):
        return {"scale": score.factor.grad}
    if layer.score_mode == "dot":
        return {"scale": score.v.grad[0]}
    diagonals = [weight.grad.diagonal() for weight in (score.query_weight, score.key_weight)]
    scale = {"scale": torch.cat(diagonals)} if layer.use_scale else {}
    return {**scale, "concat_score_weight": score.v.grad}


def test_a_fully_masked_query_reads_the_padding_in_keras(pair: tuple[Attention, Layer]) -> None:
    (attention, layer), inputs = pair, draw()
    queries, keys, values = inputs
    context, weights = layer(
        [queries, values, keys], mask=[None, NOBODY], return_attention_scores=True
    )
    assert_same([weights[1].sum(-1)], [torch.ones(QUERIES)])
    assert context[1].abs().min() > 0
    reading = attention(*inputs, mask=NOBODY[:, None, :])
    assert torch.equal(reading.weights[1], torch.zeros(QUERIES, KEYS))
    assert torch.equal(reading.context[1], torch.zeros(QUERIES, VALUE_SIZE))
    assert_same([reading.context[0]], [context[0]])


@pytest.mark.parametrize("position", [1, 2], ids=["key", "value"])
def test_a_masked_nan_reaches_the_context_in_keras_only(
    pair: tuple[Attention, Layer], position: int
) -> None:
    (attention, layer), inputs = pair, draw()
    direction = torch.randn(BATCH, QUERIES, VALUE_SIZE)
    read = reader(attention, mask=SEEN[:, None, :])
    clean = with_gradients(read, inputs, direction)
    inputs[position][1, 4] = torch.nan
    assert keras_reader(layer, mask=[None, SEEN])(*inputs)[1].isnan().any()
    for ours, untouched in zip(with_gradients(read, inputs, direction), clean, strict=True):
        assert torch.equal(ours, untouched)
