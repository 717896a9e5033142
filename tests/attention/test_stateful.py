"""Stateful scores: LocationAware against torch.nn layers, Coverage against a hand loop."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from regard import Attention, masks, scores
from regard.attention.scores import Score

BATCH, STEPS, KEYS = 2, 5, 7
SIZE, KEY_SIZE, HIDDEN, FILTERS = 3, 11, 13, 17
EXACT = {"rtol": 1e-10, "atol": 1e-12}
LENGTHS = torch.tensor([4, KEYS])
CASES = {"all keys": None, "padded": masks.Lengths(LENGTHS)}

Inner = Callable[[int, Tensor], Tensor]
"""Scores `(batch, key)` of one step, given the step and the weights of the last one."""

masked = pytest.mark.parametrize("mask", CASES.values(), ids=CASES)


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(7)


def normal(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64)


def draw(size: int = SIZE, key_size: int = KEY_SIZE) -> tuple[Tensor, Tensor]:
    return normal(BATCH, STEPS, size), normal(BATCH, KEYS, key_size)


def hidden(mask: masks.Lengths | None) -> Tensor:
    lengths = torch.tensor([KEYS, KEYS]) if mask is None else LENGTHS
    return torch.arange(KEYS) >= lengths[:, None]


def rollout(inner: Inner, mask: masks.Lengths | None) -> Tensor:
    """Softmax at each step, each given the weights of the one before: `(batch, step, key)`."""
    last = torch.zeros(BATCH, KEYS, dtype=torch.float64)
    found = []
    for step in range(STEPS):
        last = inner(step, last).masked_fill(hidden(mask), -torch.inf).softmax(-1)
        found.append(last)
    return torch.stack(found, 1)


def covered(inner: Inner, weight: float, room: Tensor | float = 1.0) -> Inner:
    """The scores with `weight` times the share of its room that each key has been read."""
    past = torch.zeros(BATCH, KEYS, dtype=torch.float64)

    def scored(step: int, last: Tensor) -> Tensor:
        nonlocal past
        past = past + last / room
        return inner(step, last) + weight * past

    return scored


class Chorowski(nn.Module):
    """Eq. 8 and 9 of Chorowski 2015 in torch's own layers."""

    def __init__(self, kernel_size: int) -> None:
        super().__init__()
        self.w_s = nn.Linear(SIZE, HIDDEN, bias=False)
        self.v_h = nn.Linear(KEY_SIZE, HIDDEN)
        self.u_f = nn.Linear(FILTERS, HIDDEN, bias=False)
        self.convolution = nn.Conv1d(1, FILTERS, kernel_size, padding=kernel_size // 2, bias=False)
        self.w = nn.Linear(HIDDEN, 1, bias=False)
        self.double()

    def scorer(self, queries: Tensor, keys: Tensor) -> Inner:
        def scored(step: int, last: Tensor) -> Tensor:
            features = self.convolution(last[:, None]).mT
            together = self.w_s(queries[:, step, None]) + self.v_h(keys) + self.u_f(features)
            return self.w(torch.tanh(together)).squeeze(-1)

        return scored

    def named(self) -> dict[str, Tensor]:
        """Our names of its parameters."""
        return {
            "query_weight": self.w_s.weight,
            "key_weight": self.v_h.weight,
            "offset": self.v_h.bias,
            "filter_weight": self.u_f.weight,
            "filters": self.convolution.weight,
            "v": self.w.weight,
        }


def location_aware(peer: Chorowski) -> Score:
    kernel_size = peer.convolution.kernel_size[0]
    score = scores.LocationAware(SIZE, KEY_SIZE, HIDDEN, FILTERS, kernel_size).double()
    score.load_state_dict(
        {
            name: value.reshape(score.get_parameter(name).shape)
            for name, value in peer.named().items()
        }
    )
    return score


def stepwise(score: Score, queries: Tensor, keys: Tensor, mask: masks.Lengths | None) -> Tensor:
    attention = Attention(score)
    memory = attention.prepare(keys, keys, mask)
    state, found = None, []
    for step in range(STEPS):
        reading = attention.read(queries[:, step, None], memory, state=state)
        state = reading.state
        found.append(reading.weights)
    return torch.cat(found, 1)


def assert_reads(
    score: Score, queries: Tensor, keys: Tensor, mask: masks.Lengths | None, expected: Tensor
) -> None:
    whole = Attention(score)(queries, keys, keys, mask=mask)
    torch.testing.assert_close(whole.weights, expected, **EXACT)
    torch.testing.assert_close(whole.context, expected @ keys, **EXACT)
    torch.testing.assert_close(stepwise(score, queries, keys, mask), expected, **EXACT)


@masked
@pytest.mark.parametrize("kernel_size", [1, 3, 19])
def test_location_aware(kernel_size: int, mask: masks.Lengths | None) -> None:
    queries, keys = draw()
    peer = Chorowski(kernel_size)
    expected = rollout(peer.scorer(queries, keys), mask)
    assert_reads(location_aware(peer), queries, keys, mask, expected)


def test_location_aware_learns_like_the_layers() -> None:
    queries, keys = draw()
    peer = Chorowski(3)
    score = location_aware(peer)
    direction = normal(BATCH, STEPS, KEYS)
    (rollout(peer.scorer(queries, keys), None) * direction).sum().backward()
    (Attention(score)(queries, keys, keys).weights * direction).sum().backward()
    for name, theirs in peer.named().items():
        ours = score.get_parameter(name).grad
        torch.testing.assert_close(ours, theirs.grad.reshape(ours.shape), **EXACT)


def dots(queries: Tensor, keys: Tensor) -> Inner:
    return lambda step, _: (queries[:, step, None] * keys).sum(-1)


def room_of(keys: Tensor, u: Tensor, most: float) -> Tensor:
    return most * torch.sigmoid((keys * u).sum(-1))


@masked
@pytest.mark.parametrize("weight", [-1.0, 0.7])
def test_coverage(weight: float, mask: masks.Lengths | None) -> None:
    queries, keys = draw(SIZE, SIZE)
    score = scores.Coverage(scores.Dot(), weight).double()
    exact_weight = score.weight.item()  # it starts as a float32
    expected = rollout(covered(dots(queries, keys), exact_weight), mask)
    assert_reads(score, queries, keys, mask, expected)


@masked
@pytest.mark.parametrize("most", [0.5, 2.0])
def test_coverage_with_fertility(most: float, mask: masks.Lengths | None) -> None:
    queries, keys = draw(SIZE, SIZE)
    score = scores.Coverage(scores.Dot(), fertility=most, key_size=SIZE).double()
    room = room_of(keys, score.fertility_weight, most)
    expected = rollout(covered(dots(queries, keys), -1.0, room), mask)
    assert_reads(score, queries, keys, mask, expected)


@masked
@pytest.mark.parametrize("most", [None, 2.0])
def test_coverage_around_location_aware(most: float | None, mask: masks.Lengths | None) -> None:
    queries, keys = draw()
    peer = Chorowski(3)
    options = {} if most is None else {"fertility": most, "key_size": KEY_SIZE}
    score = scores.Coverage(location_aware(peer), **options).double()
    room = 1.0 if most is None else room_of(keys, score.fertility_weight, most)
    expected = rollout(covered(peer.scorer(queries, keys), -1.0, room), mask)
    assert_reads(score, queries, keys, mask, expected)


def test_coverage_around_coverage() -> None:
    queries, keys = draw(SIZE, SIZE)
    inner = scores.Coverage(scores.Dot(), fertility=2.0, key_size=SIZE)
    score = scores.Coverage(inner, 0.5).double()
    once = covered(dots(queries, keys), -1.0, room_of(keys, inner.fertility_weight, 2.0))
    assert_reads(score, queries, keys, None, rollout(covered(once, 0.5), None))


def test_coverage_avoids_what_was_read() -> None:
    queries, keys = draw(SIZE, SIZE)
    queries = queries[:, :1].expand(-1, STEPS, -1)  # the same question again and again
    found = Attention(scores.Coverage(scores.Dot(), -5.0)).double()(queries, keys, keys).weights
    best = found[:, 0].argmax(-1)
    assert (found[:, 1].gather(-1, best[:, None]) < found[:, 0].gather(-1, best[:, None])).all()
    total = found.sum(1)
    assert (total.amax(-1) < STEPS * found[:, 0].amax(-1)).all()
