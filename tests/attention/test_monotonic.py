"""Monotonic attention (Raffel 2017): the expectation over all paths, and the walk that decodes."""

import itertools
import math

import pytest
import torch
from torch import Tensor

from regard import Attention, masks
from regard.attention.reading import Reading
from regard.attention.scores import Dot
from regard.attention.selection import Monotonic

STEPS, KEYS = 3, 5
EXACT = {"rtol": 1e-10, "atol": 1e-12}
seeds = pytest.mark.parametrize("seed", [2, 3, 5, 7, 11])
masked = pytest.mark.parametrize("hides", [False, True], ids=["all keys", "some hidden"])


def draw(seed: int, hides: bool) -> tuple[Tensor, Tensor | None]:
    torch.manual_seed(seed)
    scores = torch.randn(STEPS, KEYS, dtype=torch.float64)
    return scores, torch.rand(STEPS, KEYS) < 0.7 if hides else None


def read(how: Monotonic, scores: Tensor, mask: Tensor | masks.Lengths | None = None) -> Reading:
    """Read with the scores given: queries against unit vectors."""
    units = torch.eye(scores.shape[-1], dtype=scores.dtype).expand(*scores.shape[:-2], -1, -1)
    return Attention(Dot(), how)(scores, units, units, mask=mask)


def walk(probabilities: Tensor, start: int, stop: int) -> Tensor:
    """The probability of going from `start` to stop at `stop`, which may be past the last key."""
    probability = torch.ones((), dtype=torch.float64)
    for position in range(start, stop):
        if position < KEYS:
            probability = probability * (1 - probabilities[position])
    return probability * probabilities[stop] if stop < KEYS else probability


def expectation(scores: Tensor, mask: Tensor | None) -> Tensor:
    """How often each step stops at each key: every path there is, with its probability."""
    probabilities = scores.sigmoid() if mask is None else torch.where(mask, scores.sigmoid(), 0.0)
    rows = [[torch.zeros((), dtype=torch.float64)] * KEYS for _ in range(STEPS)]
    for path in itertools.product(range(KEYS + 1), repeat=STEPS):
        if list(path) != sorted(path):
            continue
        probability, last = torch.ones((), dtype=torch.float64), 0
        for step, stop in enumerate(path):
            probability = probability * walk(probabilities[step], last, stop)
            last = stop
        for step, stop in enumerate(path):
            if stop < KEYS:
                rows[step][stop] = rows[step][stop] + probability
    return torch.stack([torch.stack(row) for row in rows])


def decoded(scores: Tensor, mask: Tensor | None) -> Tensor:
    """The first key from the last position on with a probability above ½; past the end, none."""
    found = torch.zeros_like(scores)
    at = 0
    for step in range(len(scores)):
        while at < KEYS:
            seen = mask is None or bool(mask[step, at])
            if seen and 1 / (1 + math.exp(-scores[step, at])) > 0.5:
                found[step, at] = 1.0
                break
            at += 1
    return found


@seeds
@masked
def test_training_is_the_expectation_over_all_paths(seed: int, hides: bool) -> None:
    scores, mask = draw(seed, hides)
    scores.requires_grad_()
    found = read(Monotonic(noise=0.0), scores, mask).weights
    expected = expectation(scores, mask)
    torch.testing.assert_close(found, expected, **EXACT)
    direction = torch.randn(STEPS, KEYS, dtype=torch.float64)
    gradients = [
        torch.autograd.grad((weights * direction).sum(), scores)[0] for weights in (found, expected)
    ]
    torch.testing.assert_close(*gradients, **EXACT)


@seeds
@masked
def test_decoding_is_the_walk(seed: int, hides: bool) -> None:
    scores, mask = draw(seed, hides)
    assert torch.equal(read(Monotonic().eval(), scores, mask).weights, decoded(scores, mask))


@seeds
@masked
def test_sure_chances_train_as_they_decode(seed: int, hides: bool) -> None:
    scores, mask = draw(seed, hides)
    scores = 100 * scores.sign()
    found = read(Monotonic(noise=0.0), scores, mask).weights
    torch.testing.assert_close(found, decoded(scores, mask), **EXACT)


def test_whoever_found_nothing_reads_nothing_from_then_on() -> None:
    scores = torch.tensor([[-1.0, -1, 1, -1, -1], [1, 1, -1, -1, -1], [1, 1, 1, 1, 1]])
    context, weights = read(Monotonic().eval(), scores)
    assert weights.tolist() == [[0, 0, 1, 0, 0], [0] * KEYS, [0] * KEYS]
    assert not context[1:].any()


def test_it_may_stay_where_it_is() -> None:
    weights = read(Monotonic().eval(), torch.ones(STEPS, KEYS)).weights
    assert weights.argmax(-1).tolist() == [0] * STEPS


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("offset", [-1.5, 0.5])
def test_the_offset_is_added_to_the_scores(offset: float, training: bool) -> None:
    scores, _ = draw(3, False)
    how = Monotonic(offset, noise=0.0).train(training)
    make = expectation if training else decoded
    torch.testing.assert_close(read(how, scores).weights, make(scores + offset, None), **EXACT)


def test_the_offset_learns() -> None:
    scores, _ = draw(3, False)
    how = Monotonic(noise=0.0).double()
    offset = torch.zeros((), dtype=torch.float64, requires_grad=True)
    direction = torch.randn(STEPS, KEYS, dtype=torch.float64)
    expected = (expectation(scores + offset, None) * direction).sum()
    (theirs,) = torch.autograd.grad(expected, offset)
    (ours,) = torch.autograd.grad((read(how, scores).weights * direction).sum(), how.offset)
    assert ours.item() == pytest.approx(theirs.item(), rel=1e-10)


@pytest.mark.parametrize("training", [False, True])
def test_the_state_carries_the_position(training: bool) -> None:
    torch.manual_seed(13)
    queries, keys = (torch.randn(n, 2, dtype=torch.float64) for n in (STEPS, KEYS))
    reader = Attention(select=Monotonic(noise=0.0)).double().train(training)
    memory, state, found = reader.prepare(keys, keys), None, []
    for query in queries:
        reading = reader.read(query, memory, state=state)
        state = reading.state
        found.append(reading.weights)
    scores = queries @ keys.mT / math.sqrt(2)
    make = expectation if training else decoded
    torch.testing.assert_close(torch.stack(found), make(scores, None), **EXACT)


def test_items_have_lengths_of_their_own() -> None:
    torch.manual_seed(17)
    lengths = [2, 0, KEYS]
    scores = torch.randn(len(lengths), STEPS, KEYS, dtype=torch.float64)
    found = read(Monotonic(noise=0.0), scores, masks.Lengths(lengths)).weights
    for item, length in enumerate(lengths):
        seen = (torch.arange(KEYS) < length).expand(STEPS, KEYS)
        torch.testing.assert_close(found[item], expectation(scores[item], seen), **EXACT)


def test_noise_is_of_training_alone() -> None:
    scores, _ = draw(5, False)
    how = Monotonic(noise=2.0)
    first, second = (read(how.train(), scores).weights for _ in range(2))
    assert not torch.equal(first, second)
    assert torch.equal(read(how.eval(), scores).weights, decoded(scores, None))


@pytest.mark.parametrize("noise", [0.5, 2.0])
def test_noise_has_the_deviation_given(noise: float) -> None:
    """With one key the weight is sigmoid(e + noise); bounds hold with a probability of 1 − 1e-6."""
    draws, score = 10007, 0.3
    torch.manual_seed(19)
    scores = torch.full((draws, 1, 1), score, dtype=torch.float64)
    added = torch.logit(read(Monotonic(noise=noise), scores).weights) - score
    standard = added / noise
    assert abs(standard.mean()) < 4.9 / math.sqrt(draws)
    assert abs(standard.square().mean() - 1) < 4.9 * math.sqrt(2 / draws)
