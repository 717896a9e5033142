"""Learning from a draw: `reinforce` follows the exact gradient of the expected reward."""

import itertools
import math

import pytest
import torch
from torch import Tensor

from regard import Attention, attend, scores, selection
from regard.attention.reading import Reading

DRAWS, QUERIES, KEYS = 20011, 2, 3
SURE = 4.9
"""Standard deviations that a normal mean exceeds with a probability below 1e-6."""
EXACT = {"rtol": 1e-10, "atol": 1e-12}
MEAN = 3.0
"""Of the rewards, and what a good baseline is."""

baselines = pytest.mark.parametrize(
    "baseline", [None, torch.tensor(MEAN, dtype=torch.float64)], ids=["none", "given"]
)


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(29)


def read(given: Tensor, how: selection.Hard | None = None) -> Reading:
    """A draw by scores that are given."""
    nothing = given.new_zeros(*given.shape[:-2], given.shape[-1], 1)
    queries = given.new_zeros(*given.shape[:-1], 1)
    select = selection.Hard() if how is None else how
    return attend(queries, nothing, nothing, score=lambda *_: given, select=select)


def normal(*shape: int) -> Tensor:
    return torch.randn(shape, dtype=torch.float64)


def exact_gradient(given: Tensor, rewards: dict[tuple[int, ...], Tensor]) -> Tensor:
    """Of the expected reward: every choice of keys, with its probability."""
    given = given.clone().requires_grad_()
    probabilities = given.softmax(-1)
    total = torch.zeros((), dtype=torch.float64)
    for keys, reward in rewards.items():
        probability = torch.stack([probabilities[row, key] for row, key in enumerate(keys)]).prod()
        total = total + probability * reward.sum()
    return torch.autograd.grad(total, given)[0]


def gradients(
    given: Tensor, rewards: dict[tuple[int, ...], Tensor], baseline: Tensor | None
) -> Tensor:
    """What each draw alone says: `(draw, query, key)`, uphill."""
    leaves = given.expand(DRAWS, QUERIES, KEYS).clone().requires_grad_()
    reading = read(leaves)
    chosen = reading.weights.argmax(-1).tolist()
    reward = torch.stack([rewards[tuple(keys)] for keys in chosen])
    loss, _ = selection.reinforce(reading, reward, baseline)
    return -DRAWS * torch.autograd.grad(loss, leaves)[0]


def rewards_of_items() -> dict[tuple[int, ...], Tensor]:
    """One reward for all the queries of an item: it depends on how they go together."""
    return {keys: normal() + MEAN for keys in itertools.product(range(KEYS), repeat=QUERIES)}


def rewards_of_queries() -> dict[tuple[int, ...], Tensor]:
    """A reward for each query, by its own key."""
    own = normal(QUERIES, KEYS) + MEAN
    choices = itertools.product(range(KEYS), repeat=QUERIES)
    return {keys: torch.stack([own[row, key] for row, key in enumerate(keys)]) for keys in choices}


@baselines
@pytest.mark.parametrize("make", [rewards_of_items, rewards_of_queries])
def test_the_gradient_is_unbiased(make, baseline: Tensor | None) -> None:
    given, rewards = normal(QUERIES, KEYS), make()
    found = gradients(given, rewards, baseline)
    deviation = found.std(0) / math.sqrt(DRAWS)
    stray = (found.mean(0) - exact_gradient(given, rewards)).abs() / deviation
    assert (stray < SURE).all()


@pytest.mark.parametrize("make", [rewards_of_items, rewards_of_queries])
def test_a_baseline_lowers_the_variance(make) -> None:
    given, rewards = normal(QUERIES, KEYS), make()
    without, with_one = (
        gradients(given, rewards, baseline).var(0).sum()
        for baseline in (None, torch.tensor(MEAN, dtype=torch.float64))
    )
    assert with_one < without / 2


@pytest.mark.parametrize("shape", [(), (7,), (7, 5)], ids=str)
@baselines
@pytest.mark.parametrize("per_query", [False, True])
def test_the_loss_by_hand(shape: tuple[int, ...], baseline: Tensor | None, per_query: bool) -> None:
    reading = read(normal(*shape, QUERIES, KEYS))
    reward = normal(*shape, QUERIES) if per_query else normal(*shape)
    loss, _ = selection.reinforce(reading, reward, baseline)
    each = reward if per_query else reward[..., None].expand(*shape, QUERIES)
    below = 0.0 if baseline is None else MEAN
    pairs = zip(each.flatten().tolist(), reading.log_probs.flatten().tolist(), strict=True)
    total = sum((r - below) * log for r, log in pairs)
    assert loss.item() == pytest.approx(-total / math.prod(shape), rel=1e-9)


def test_a_bare_query_is_rewarded() -> None:
    given = normal(1, KEYS)
    reading = attend(given[0], given.mT, given.mT, score=lambda *_: given, select=selection.Hard())
    loss, _ = selection.reinforce(reading, torch.tensor(2.0).double())
    assert loss.item() == pytest.approx(-2 * reading.log_probs.item())


@pytest.mark.parametrize("decay", [0.9, 0.5])
def test_the_baseline_is_a_moving_mean_of_the_rewards(decay: float) -> None:
    baseline, expected = None, None
    for _ in range(5):
        reward = normal(7)
        _, baseline = selection.reinforce(
            read(normal(7, QUERIES, KEYS)), reward, baseline, decay=decay
        )
        mean = sum(reward.tolist()) / 7
        expected = mean if expected is None else decay * expected + (1 - decay) * mean
        assert baseline.item() == pytest.approx(expected, rel=1e-9)
        assert not baseline.requires_grad


def test_the_reward_is_a_number_not_a_path_for_gradients() -> None:
    reward = normal(7).requires_grad_()
    given = normal(7, QUERIES, KEYS).requires_grad_()
    loss, _ = selection.reinforce(read(given), reward)
    assert torch.autograd.grad(loss, reward, allow_unused=True)[0] is None


@pytest.mark.parametrize("worth", [0.1, 2.0])
def test_the_gradient_of_the_entropy_is_exact(worth: float) -> None:
    given = normal(7, QUERIES, KEYS).requires_grad_()
    loss, _ = selection.reinforce(read(given), torch.zeros(7).double(), entropy=worth)
    probabilities = given.softmax(-1)
    bonus = worth * -(probabilities * probabilities.log()).sum((-1, -2)).mean()
    assert loss.item() == pytest.approx(-bonus.item(), rel=1e-12)
    found, expected = (torch.autograd.grad(total, given)[0] for total in (loss, -bonus))
    torch.testing.assert_close(found, expected, **EXACT)


def test_it_learns_to_look_at_the_right_key() -> None:
    """Five keys; each query has one that is right, and only a reward says which."""
    size, positions, items = 7, 5, 31
    queries, keys = torch.randn(positions, size), torch.randn(positions, size)
    score = scores.Bilinear(size, size)
    torch.nn.init.zeros_(score.weight)  # undecided: all keys have the same probability
    hard, soft = Attention(score, selection.Hard()), Attention(score, selection.Softmax())
    optimiser = torch.optim.Adam(score.parameters(), lr=0.1)
    right = torch.eye(positions).roll(
        1, -1
    )  # the n-th query should read the one after the n-th key
    baseline = None
    for _ in range(100):
        reading = hard(
            queries.expand(items, -1, -1),
            keys.expand(items, -1, -1),
            torch.eye(positions).expand(items, -1, -1),
        )
        reward = (reading.context * right).sum(-1)
        loss, baseline = selection.reinforce(reading, reward, baseline, entropy=0.01)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert (soft(queries, keys, keys).weights * right).sum(-1).min() > 0.9
    assert torch.equal(hard.eval()(queries, keys, torch.eye(positions)).context, right)
