"""Each score is what its paper says: pair by pair, against torch.nn layers and plain loops."""

import math

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from regard import Attention, attend, masks, scores, selection
from regard.attention.scores import Score
from tests import catalogue

BATCH, QUERIES, KEYS = 2, 3, 7
SIZE, KEY_SIZE, HIDDEN = 5, 11, 13
EXACT = {"rtol": 1e-10, "atol": 1e-12}
"""Sums of a few float64 numbers in another order."""

LEARNERS = [m for m in catalogue.SCORES if list(Attention(m.make()).parameters())]

every_score = pytest.mark.parametrize("mechanism", catalogue.SCORES, ids=str)
every_learner = pytest.mark.parametrize("mechanism", LEARNERS, ids=str)


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(3)


def normal(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64)


def draw(key_size: int = SIZE) -> tuple[Tensor, Tensor]:
    return normal(BATCH, QUERIES, SIZE), normal(BATCH, KEYS, key_size)


def weights(score: Score, queries: Tensor, keys: Tensor) -> Tensor:
    return Attention(score).double()(queries, keys, keys).weights


def probabilities(score: Score, queries: Tensor, keys: Tensor) -> Tensor:
    """sigmoid(e) of each pair: the probability that monotonic attention stops at its one key.

    Softmax cannot see a constant; this can.
    """
    reader = Attention(score, selection.Monotonic(noise=0.0)).double().train()
    queries, keys = queries[..., :, None, None, :], keys[..., None, :, None, :]
    return reader(queries, keys, torch.ones_like(keys)).weights[..., 0, 0]


def assert_scores(score: Score, queries: Tensor, keys: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(weights(score, queries, keys), expected.softmax(-1), **EXACT)
    torch.testing.assert_close(probabilities(score, queries, keys), expected.sigmoid(), **EXACT)


def pairs(queries: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
    """Each query beside each key, `(batch, query, key, size)`."""
    shape = (BATCH, QUERIES, KEYS, -1)
    return queries[:, :, None].expand(shape), keys[:, None].expand(shape)


def products(queries: Tensor, keys: Tensor) -> Tensor:
    found = normal(BATCH, QUERIES, KEYS)
    for item in range(BATCH):
        for row in range(QUERIES):
            for column in range(KEYS):
                terms = zip(queries[item, row], keys[item, column], strict=True)
                found[item, row, column] = sum(float(q) * float(k) for q, k in terms)
    return found


def test_dot() -> None:
    queries, keys = draw()
    assert_scores(scores.Dot(), queries, keys, products(queries, keys))


@pytest.mark.parametrize(
    ("score", "factor"),
    [
        (scores.ScaledDot(), 1 / math.sqrt(SIZE)),
        (scores.ScaledDot(0.3), 0.3),
        (scores.ScaledDot(learned=True), 1 / math.sqrt(SIZE)),
        (scores.ScaledDot(-2.0, learned=True), -2.0),
    ],
    ids=["1/√n", "given", "learned", "given and learned"],
)
def test_scaled_dot(score: Score, factor: float) -> None:
    queries, keys = draw()
    assert_scores(score, queries, keys, products(queries, keys) * factor)


def test_the_learned_factor_multiplies_the_scale() -> None:
    queries, keys = draw()
    score = scores.ScaledDot(0.3, learned=True)
    (factor,) = score.parameters()
    nn.init.constant_(factor, 1.7)
    assert_scores(score.double(), queries, keys, products(queries, keys) * 0.3 * factor.item())


def test_bilinear() -> None:
    queries, keys = draw(KEY_SIZE)
    peer = nn.Bilinear(SIZE, KEY_SIZE, 1, bias=False).double()
    score = scores.Bilinear(SIZE, KEY_SIZE).double()
    score.load_state_dict({"weight": peer.weight[0]})
    assert_scores(score, queries, keys, peer(*pairs(queries, keys)).squeeze(-1))


def additive(query_weight: Tensor, key_weight: Tensor, v: Tensor) -> Score:
    score = scores.Additive(SIZE, KEY_SIZE, HIDDEN).double()
    score.load_state_dict({"query_weight": query_weight, "key_weight": key_weight, "v": v})
    return score


def test_additive() -> None:
    queries, keys = draw(KEY_SIZE)
    query_layer = nn.Linear(SIZE, HIDDEN, bias=False).double()
    key_layer = nn.Linear(KEY_SIZE, HIDDEN, bias=False).double()
    last = nn.Linear(HIDDEN, 1, bias=False).double()
    hidden = torch.tanh(query_layer(queries)[:, :, None] + key_layer(keys)[:, None])
    score = additive(query_layer.weight, key_layer.weight, last.weight)
    assert_scores(score, queries, keys, last(hidden).squeeze(-1))


def test_additive_is_the_concat_form() -> None:
    queries, keys = draw(KEY_SIZE)
    joint = nn.Linear(SIZE + KEY_SIZE, HIDDEN, bias=False).double()
    last = nn.Linear(HIDDEN, 1, bias=False).double()
    together = torch.cat(pairs(queries, keys), -1)
    score = additive(*joint.weight.split([SIZE, KEY_SIZE], 1), last.weight)
    assert_scores(score, queries, keys, last(torch.tanh(joint(together))).squeeze(-1))


@pytest.mark.parametrize("sharpness", [0.3, 1.0, 7.0])
@pytest.mark.parametrize("learned", [False, True])
def test_cosine(sharpness: float, learned: bool) -> None:
    queries, keys = draw()
    score = scores.Cosine(sharpness, learned=learned)
    expected = sharpness * functional.cosine_similarity(*pairs(queries, keys), dim=-1)
    # A learned sharpness starts as a float32.
    exact = {"rtol": 1e-6, "atol": 1e-7} if learned else EXACT
    torch.testing.assert_close(weights(score, queries, keys), expected.softmax(-1), **exact)
    torch.testing.assert_close(probabilities(score, queries, keys), expected.sigmoid(), **exact)


@pytest.mark.parametrize("sharpness", [1.0, 7.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_cosine_with_a_zero_vector_is_0_and_its_gradient_is_bounded(
    sharpness: float, dtype: torch.dtype
) -> None:
    queries, keys = (tensor.to(dtype) for tensor in draw())
    queries[:, 0], keys[:, 1] = 0.0, 0.0
    queries, keys = queries.requires_grad_(), keys.requires_grad_()
    score = scores.Cosine(sharpness)
    read = Attention(score, selection.Monotonic(noise=0.0)).to(dtype)
    alone = (queries[..., :, None, None, :], keys[..., None, :, None, :])
    found = read(*alone, torch.ones_like(alone[1])).weights[..., 0, 0]
    assert (found[:, 0] == 0.5).all()  # sigmoid(0), exactly
    assert (found[:, :, 1] == 0.5).all()
    for row in range(QUERIES):
        for column in range(KEYS):
            gradients = torch.autograd.grad(
                found[:, row, column].sum(), [queries, keys], retain_graph=True
            )
            for gradient in gradients:
                steepest = 4 * gradient.norm(dim=-1).max()  # sigmoid's slope is 1/4 at most
                assert steepest <= 1.0001e4 * sharpness


def location(known: int) -> tuple[Attention, Tensor]:
    attention = Attention(scores.Location(SIZE, known)).double()
    (table,) = attention.parameters()
    return attention, table


@pytest.mark.parametrize("known", [KEYS, KEY_SIZE])
def test_location(known: int) -> None:
    attention, table = location(known)
    queries, keys = draw()
    expected = functional.linear(queries, table)[..., :KEYS].softmax(-1)
    torch.testing.assert_close(attention(queries, keys, keys).weights, expected, **EXACT)


def test_location_does_not_look_at_the_keys() -> None:
    attention, _ = location(KEY_SIZE)
    queries, keys = draw()
    other = normal(BATCH, KEYS, HIDDEN)  # even of another size
    found = attention(queries, keys, keys).weights
    assert torch.equal(found, attention(queries, other, keys).weights)
    keys.requires_grad_()
    context = attention(queries, keys, keys.detach()).context
    (gradient,) = torch.autograd.grad(context.sum(), keys, allow_unused=True)
    assert gradient is None or not gradient.any()


@pytest.mark.parametrize("way", ["whole", "masked", "prepared"])
def test_location_does_not_look_at_the_keys_though_they_are_not_finite(way: str) -> None:
    attention, _ = location(KEYS)
    queries, values = draw()
    keys = torch.full_like(values, torch.nan)
    expected = attention(queries, values, values).context
    if way == "prepared":
        found = attention.read(queries, attention.prepare(keys, values)).context
    else:
        everything = masks.Lengths([KEYS] * BATCH) if way == "masked" else None
        found = attention(queries, keys, values, mask=everything).context
    torch.testing.assert_close(found, expected, **EXACT)


def squared_difference(queries: Tensor, keys: Tensor) -> Tensor:
    return -(queries[..., :, None, :] - keys[..., None, :, :]).square().sum(-1)


class Metric(nn.Module):
    """A score with a parameter that is none of the library's."""

    def __init__(self) -> None:
        super().__init__()
        self.stretch = nn.Linear(SIZE, SIZE, bias=False).double()

    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        return squared_difference(self.stretch(queries), self.stretch(keys))


@pytest.mark.parametrize("score", [squared_difference, Metric()], ids=["function", "module"])
def test_any_callable_is_a_score(score) -> None:
    queries, keys = draw()
    expected = score(queries, keys)
    found = attend(queries, keys, keys, score=score).weights
    torch.testing.assert_close(found, expected.softmax(-1), **EXACT)
    assert torch.equal(Attention(score)(queries, keys, keys).weights, found)


def test_parameters_of_a_callable_are_found_once_and_learn() -> None:
    metric = Metric()
    attention = Attention(metric)
    assert [id(p) for p in attention.parameters()] == [id(metric.stretch.weight)]
    queries, keys = draw()
    attention(queries, keys, keys).context.square().sum().backward()
    assert metric.stretch.weight.grad.any()


def test_parameters_of_a_callable_are_saved_and_loaded() -> None:
    queries, keys = draw()
    first, second = Attention(Metric()), Attention(Metric())
    context = first(queries, keys, keys).context
    assert not torch.equal(context, second(queries, keys, keys).context)
    second.load_state_dict(first.state_dict())
    assert torch.equal(context, second(queries, keys, keys).context)


def small(mechanism: catalogue.Mechanism) -> tuple[Attention, Tensor, Tensor, Tensor]:
    attention = Attention(mechanism.make()).double()
    queries, keys = normal(BATCH, QUERIES, catalogue.SIZE), normal(BATCH, KEYS, catalogue.SIZE)
    return attention, queries, keys, normal(BATCH, KEYS, KEY_SIZE)


@every_score
def test_a_bias_is_added_to_the_scores(mechanism: catalogue.Mechanism) -> None:
    attention, queries, keys, values = small(mechanism)
    queries = queries[:, :1]  # later ones may are stateful at weights that the bias has changed
    bias = normal(BATCH, 1, KEYS)
    without = attention(queries, keys, values).weights
    context, found = attention(queries, keys, values, bias=bias)
    expected = (without.log() + bias).softmax(-1)
    torch.testing.assert_close(found, expected, **EXACT)
    torch.testing.assert_close(context, expected @ values, **EXACT)


@every_learner
def test_gradients_reach_every_parameter(mechanism: catalogue.Mechanism) -> None:
    attention, queries, keys, values = small(mechanism)
    context = attention(queries, keys, values).context
    (context * normal(*context.shape)).sum().backward()
    for name, parameter in attention.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.any(), name


@every_learner
def test_weights_seen_without_a_gradient_still_have_one_later(
    mechanism: catalogue.Mechanism,
) -> None:
    """Only the parameters learn here, and there are queries enough for a fused kernel."""
    attention, _, keys, values = small(mechanism)
    reading = attention(normal(BATCH, 67, catalogue.SIZE), keys, values)
    with torch.no_grad():
        seen = reading.weights
    assert reading.weights.requires_grad
    assert torch.equal(reading.weights, seen)
