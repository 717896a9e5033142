"""Hard attention looks at one key: how often at which, what it reads, and what it says of it."""

import math

import pytest
import torch
from torch import Tensor

from regard import Attention, attend, masks, selection
from regard.attention.reading import Reading
from regard.attention.selection import Hard
from tests import catalogue

DRAWS, QUERIES, KEYS, VALUE_SIZE = 20011, 3, 5, 7
DOUBT = 1e-6
"""Each statistical test fails by chance at most so often; the seeds are fixed besides."""
EXACT = {"rtol": 1e-10, "atol": 1e-12}

both = pytest.mark.parametrize("gradient", ["reinforce", "gumbel"])


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(23)


def read(how: Hard, scores: Tensor, mask: Tensor | None = None) -> tuple[Reading, Tensor]:
    """What is read by scores that are given, and the values."""
    *batch, _, keys = scores.shape
    values = torch.randn(*batch, keys, VALUE_SIZE, dtype=scores.dtype)
    queries = scores.new_zeros(*scores.shape[:-1], 1)
    return attend(
        queries, values[..., :1], values, score=lambda *_: scores, select=how, mask=mask
    ), values


def frequencies(how: Hard, scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """How often each key of one row was drawn."""
    scores = scores.expand(DRAWS, 1, -1)
    return read(how, scores, mask)[0].weights.detach().sum((0, 1))


def assert_drawn_from(counts: Tensor, probabilities: Tensor) -> None:
    """Pearson's chi-square test, with a doubt of `DOUBT`."""
    assert counts.sum() == DRAWS
    assert not counts[probabilities == 0].any()
    seen = probabilities > 0
    expected = DRAWS * probabilities[seen].double()
    distance = ((counts[seen].double() - expected).square() / expected).sum()
    freedom = torch.tensor((int(seen.sum()) - 1) / 2, dtype=torch.float64)
    assert torch.special.gammaincc(freedom, distance / 2) > DOUBT


@both
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_keys_are_drawn_as_often_as_softmax_says(gradient: str, dtype: torch.dtype) -> None:
    scores = torch.randn(KEYS, dtype=dtype)
    assert_drawn_from(frequencies(Hard(gradient), scores), scores.softmax(-1))


@both
@pytest.mark.parametrize("temperature", [0.1, 3.0, 1e9])
def test_the_temperature_does_not_change_the_draw(gradient: str, temperature: float) -> None:
    scores = torch.randn(KEYS)
    assert_drawn_from(frequencies(Hard(gradient, temperature), scores), scores.softmax(-1))


@both
@pytest.mark.parametrize("hidden", [[0], [KEYS - 1], [0, 2, 3]], ids=str)
def test_a_hidden_key_is_never_drawn(gradient: str, hidden: list[int]) -> None:
    scores = torch.randn(KEYS)
    scores[hidden[0]] = 50.0  # the best by far, were it there
    allowed = torch.ones(KEYS, dtype=torch.bool).index_fill(0, torch.tensor(hidden), False)
    counts = frequencies(Hard(gradient), scores, allowed.expand(DRAWS, 1, -1))
    assert_drawn_from(counts, scores.masked_fill(~allowed, -torch.inf).softmax(-1))


@both
def test_draws_of_queries_are_independent(gradient: str) -> None:
    scores = torch.randn(2, 3)
    weights = read(Hard(gradient), scores.expand(DRAWS, 2, 3))[0].weights.detach()
    joint = torch.einsum("ni,nj->ij", weights[:, 0], weights[:, 1])
    expected = torch.outer(*scores.softmax(-1))
    assert_drawn_from(joint.flatten(), expected.flatten())


@both
def test_outside_training_it_looks_at_the_best(gradient: str) -> None:
    scores = torch.randn(11, QUERIES, KEYS)
    allowed = torch.rand(11, QUERIES, KEYS) < 0.6
    reading, values = read(Hard(gradient).eval(), scores, allowed)
    for item, row in torch.cartesian_prod(torch.arange(11), torch.arange(QUERIES)).tolist():
        seen = [k for k in range(KEYS) if allowed[item, row, k]]
        expected = torch.zeros(KEYS)
        context = torch.zeros(VALUE_SIZE)
        if seen:
            best = max(seen, key=lambda k: scores[item, row, k].item())
            expected[best], context = 1.0, values[item, best]
        assert torch.equal(reading.weights[item, row], expected)
        assert torch.equal(reading.context[item, row], context)


def test_the_best_is_the_best_however_close_the_second() -> None:
    scores = torch.tensor([[0.0, 1e-8, -1e-8]])  # three float32s; their powers are all 1
    assert read(Hard().eval(), scores)[0].weights.tolist() == [[0, 1, 0]]


@both
@pytest.mark.parametrize("training", [False, True])
def test_the_weights_are_one_key_and_the_context_its_value(gradient: str, training: bool) -> None:
    scores = torch.randn(101, QUERIES, KEYS)
    reading, values = read(Hard(gradient).train(training), scores)
    weights = reading.weights
    assert torch.equal(weights.sort(-1).values, torch.eye(KEYS)[-1].expand_as(weights))
    index = weights.argmax(-1)
    assert torch.equal(reading.context, values[torch.arange(101)[:, None], index])
    assert torch.equal(reading.weights, weights)  # asked again, the same draw
    assert torch.equal(reading.rows([2, 0]), weights[:, [2, 0]])


@both
def test_log_probs_are_those_of_the_sample(gradient: str) -> None:
    scores = torch.randn(101, QUERIES, KEYS, dtype=torch.float64, requires_grad=True)
    allowed = torch.rand(101, QUERIES, KEYS) < 0.7
    allowed[..., 0] = True
    reading, _ = read(Hard(gradient, 0.7), scores, allowed)
    index = reading.weights.argmax(-1, keepdim=True)
    logs = scores.masked_fill(~allowed, -torch.inf).log_softmax(-1)
    expected = logs.gather(-1, index).squeeze(-1)
    torch.testing.assert_close(reading.log_probs, expected, **EXACT)
    found, theirs = (
        torch.autograd.grad(total.sum(), scores, retain_graph=True)[0]
        for total in (reading.log_probs, expected)
    )
    torch.testing.assert_close(found, theirs, **EXACT)


@both
def test_entropy_is_that_of_the_softmax(gradient: str) -> None:
    scores = torch.randn(QUERIES, KEYS, dtype=torch.float64)
    allowed = torch.tensor([[True] * 5, [False, True, False, True, True], [False] * 4 + [True]])
    found = read(Hard(gradient, 0.7), scores, allowed)[0].entropy
    for row in range(QUERIES):
        powers = [math.exp(scores[row, k]) for k in range(KEYS) if allowed[row, k]]
        probabilities = [power / sum(powers) for power in powers]
        expected = -sum(p * math.log(p) for p in probabilities)
        assert found[row].item() == pytest.approx(expected, abs=1e-12)


@both
def test_with_nothing_to_read_nothing_is_drawn(gradient: str) -> None:
    allowed = torch.zeros(QUERIES, KEYS, dtype=torch.bool)
    reading, _ = read(Hard(gradient), torch.randn(QUERIES, KEYS), allowed)
    for found in (reading.weights, reading.context, reading.log_probs, reading.entropy):
        assert not found.any()


CERTAIN = [m for m in catalogue.SELECTIONS if not m.name.startswith("Hard")]


@pytest.mark.parametrize("mechanism", CERTAIN, ids=str)
def test_where_nothing_is_drawn_log_probs_and_entropy_are_0(
    mechanism: catalogue.Mechanism,
) -> None:
    queries, keys = torch.randn(2, QUERIES, catalogue.SIZE), torch.randn(2, 7, catalogue.SIZE)
    reading = Attention(select=mechanism.make())(queries, keys, keys, mask=masks.Causal())
    for found in (reading.log_probs, reading.entropy):
        assert torch.equal(found, torch.zeros(2, QUERIES))


def slopes(weights: Tensor, scores: Tensor) -> Tensor:
    """The Jacobian of each draw: `(draw, out, in)`."""
    rows = [
        torch.autograd.grad(weights[..., position].sum(), scores, retain_graph=True)[0]
        for position in range(weights.shape[-1])
    ]
    return torch.stack(rows, -2).squeeze(1)


def softmax_with(jacobian: Tensor, temperature: float) -> Tensor:
    """The p whose softmax Jacobian (diag(p) − p pᵀ) / temperature this is, for three keys."""
    off = -temperature * jacobian
    products = [
        off[:, 0, 1] * off[:, 0, 2] / off[:, 1, 2],
        off[:, 0, 1] * off[:, 1, 2] / off[:, 0, 2],
    ]
    products.append(off[:, 0, 2] * off[:, 1, 2] / off[:, 0, 1])
    return torch.stack(products, -1).sqrt()


@pytest.mark.parametrize("temperature", [0.7, 2.0])
def test_gumbel_learns_like_the_softmax_of_what_was_drawn(temperature: float) -> None:
    """From the gradient alone: there is a p = softmax((e + noise) / temperature) behind it."""
    one = torch.randn(3, dtype=torch.float64)
    scores = one.expand(DRAWS, 1, 3).clone().requires_grad_()
    weights = read(Hard("gumbel", temperature), scores)[0].weights
    jacobian = slopes(weights, scores)
    p = softmax_with(jacobian, temperature)
    torch.testing.assert_close(p.sum(-1), torch.ones(DRAWS).double(), rtol=1e-6, atol=1e-6)
    expected = (torch.diag_embed(p) - p[:, :, None] * p[:, None, :]) / temperature
    torch.testing.assert_close(jacobian, expected, rtol=1e-6, atol=1e-9)
    assert torch.equal(p.argmax(-1), weights.squeeze(1).argmax(-1))
    # The difference of two Gumbel draws is logistic: below x with a probability of sigmoid(x).
    noise = temperature * p.log() - one
    for left, right in ((0, 1), (0, 2), (1, 2)):
        for x in (-2.0, 0.0, 1.0):
            below = (noise[:, left] - noise[:, right] < x).double().mean()
            probability = 1 / (1 + math.exp(-x))
            assert abs(below - probability) < math.sqrt(math.log(2 / DOUBT) / (2 * DRAWS))


def test_reinforce_gives_the_scores_no_gradient_of_its_own() -> None:
    scores = torch.randn(2, QUERIES, KEYS, requires_grad=True)
    reading, _ = read(selection.Hard(), scores)
    assert not reading.weights.requires_grad
