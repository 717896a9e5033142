"""Local attention (Luong 2015, section 3.2) against plain loops: where its window lies."""

import math

import pytest
import torch
from torch import Tensor

from regard import Attention, masks, selection
from regard.attention.selection import LocalPredictive, Selection

BATCH, QUERIES, KEYS, SIZE, HIDDEN = 2, 11, 7, 5, 3
LENGTHS = torch.tensor([3, KEYS])
EXACT = {"rtol": 1e-10, "atol": 1e-12}
CASES = {
    "all keys": None,
    "lengths": masks.Lengths(LENGTHS),
    "causal": masks.Causal(),
    "both": masks.Causal() & masks.Lengths(LENGTHS),
}
masked = pytest.mark.parametrize("case", CASES)


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(19)


def draw() -> tuple[Tensor, Tensor, Tensor]:
    """Queries and keys, and the scores that `attention` compares them by."""
    shapes = [(BATCH, QUERIES, SIZE), (BATCH, KEYS, SIZE), (BATCH, QUERIES, KEYS)]
    queries, keys, scores = (torch.randn(*shape, dtype=torch.float64) for shape in shapes)
    return queries, keys, scores


def attention(how: Selection, scores: Tensor) -> Attention:
    return Attention(lambda *_: scores, how).double()


def sees(case: str, item: int, row: int, column: int) -> bool:
    long_enough = column < LENGTHS[item] if case in ("lengths", "both") else True
    not_later = column <= row + KEYS - QUERIES if case in ("causal", "both") else True
    return bool(long_enough and not_later)


def around(
    centres: Tensor, window: int, scores: Tensor, case: str, sigma: float | None = None
) -> Tensor:
    """Softmax over the visible keys s with |s − p| ≤ D, times a Gaussian if it has a width."""
    found = torch.zeros(BATCH, QUERIES, KEYS, dtype=torch.float64)
    for item in range(BATCH):
        for row in range(QUERIES):
            centre = float(centres[item, row])
            seen = [
                k for k in range(KEYS) if sees(case, item, row, k) and abs(k - centre) <= window
            ]
            total = sum(math.exp(scores[item, row, k]) for k in seen)
            for k in seen:
                bent = 1.0 if sigma is None else math.exp(-((k - centre) ** 2) / (2 * sigma**2))
                found[item, row, k] = bent * math.exp(scores[item, row, k]) / total
    return found


@masked
@pytest.mark.parametrize("window", [0, 2, KEYS])
def test_the_monotonic_window_lies_around_t(window: int, case: str) -> None:
    queries, keys, scores = draw()
    found = attention(selection.LocalMonotonic(window), scores)(
        queries, keys, keys, mask=CASES[case]
    )
    centres = torch.arange(QUERIES).expand(BATCH, -1)
    torch.testing.assert_close(found.weights, around(centres, window, scores, case), **EXACT)


def test_past_the_end_the_monotonic_window_is_empty() -> None:
    queries, keys, scores = draw()
    context, weights = attention(selection.LocalMonotonic(2), scores)(queries, keys, keys)
    past = torch.arange(QUERIES) > KEYS - 1 + 2
    assert past.any()
    assert not context[:, past].any()
    assert not weights[:, past].any()
    torch.testing.assert_close(weights.sum(-1)[:, ~past], torch.ones(BATCH, 9).double(), **EXACT)


@pytest.mark.parametrize("stride", [1, 3])
def test_the_state_counts_the_queries(stride: int) -> None:
    queries, keys, _ = draw()
    reader = Attention(select=selection.LocalMonotonic(2))
    whole = reader(queries, keys, keys)
    memory, state, found = reader.prepare(keys, keys), None, []
    for some in queries.split(stride, 1):
        reading = reader.read(some, memory, state=state)
        state = reading.state
        found.append(reading.weights)
    torch.testing.assert_close(torch.cat(found, 1), whole.weights, **EXACT)


def shares(how: LocalPredictive, queries: Tensor) -> Tensor:
    """sigmoid(vᵀ tanh(W q)), row by row."""
    found = torch.zeros(BATCH, QUERIES, dtype=torch.float64)
    weight, v = how.weight.tolist(), how.v[0].tolist()
    for item in range(BATCH):
        for row, query in enumerate(queries[item].tolist()):
            sums = [sum(w * q for w, q in zip(line, query, strict=True)) for line in weight]
            drive = sum(out * math.tanh(total) for out, total in zip(v, sums, strict=True))
            found[item, row] = 1 / (1 + math.exp(-drive))
    return found


def visible_counts(case: str) -> Tensor:
    counts = [
        [sum(sees(case, item, row, k) for k in range(KEYS)) for row in range(QUERIES)]
        for item in range(BATCH)
    ]
    return torch.tensor(counts)


@masked
@pytest.mark.parametrize("window", [1, 2, KEYS])
@pytest.mark.parametrize("options", [{}, {"sigma": 0.7}, {"hidden_size": HIDDEN}], ids=str)
def test_the_predicted_window(options: dict[str, float], window: int, case: str) -> None:
    queries, keys, scores = draw()
    how = LocalPredictive(SIZE, window, **options).double()
    centres = visible_counts(case) * shares(how, queries)
    expected = around(centres, window, scores, case, options.get("sigma", window / 2))
    reading = attention(how, scores)(queries, keys, keys, mask=CASES[case])
    torch.testing.assert_close(reading.weights, expected, **EXACT)
    torch.testing.assert_close(reading.context, expected @ keys, **EXACT)


def test_the_predicted_window_is_not_scaled_back_to_1() -> None:
    queries, keys, scores = draw()
    weights = attention(LocalPredictive(SIZE, 2), scores)(queries, keys, keys).weights
    assert (weights.sum(-1) < 1 - 1e-3).any()
    assert (weights.sum(-1) <= 1).all()


def test_the_edge_of_the_predicted_window_is_in() -> None:
    """With v = 0 the window lies in the middle: S/2 = 2 of 4 visible keys, so D = 2 reaches 0."""
    queries, keys, scores = draw()
    how = LocalPredictive(SIZE, 2)
    torch.nn.init.zeros_(how.v)
    weights = attention(how, scores)(queries, keys, keys, mask=masks.Lengths([4, 6])).weights
    assert (weights[0, :, :4] > 0).all()
    reached = [bool(weights[1, 0, k] > 0) for k in range(KEYS)]
    assert reached == [False, True, True, True, True, True, False]  # around 3, of 6 visible keys


@pytest.mark.parametrize("name", ["weight", "v"])
def test_the_place_is_learned_by_its_slope(name: str) -> None:
    queries, keys, scores = draw()
    how = LocalPredictive(SIZE, 2, hidden_size=HIDDEN).double()
    direction = torch.randn(BATCH, QUERIES, SIZE, dtype=torch.float64)
    parameter = how.get_parameter(name)

    def reached() -> Tensor:
        reading = attention(how, scores)(queries, keys, keys, mask=masks.Lengths(LENGTHS))
        return (reading.context * direction).sum()

    (gradient,) = torch.autograd.grad(reached(), parameter)
    assert (gradient != 0).all()
    step, slopes = 1e-6, torch.zeros_like(gradient)
    with torch.no_grad():
        for position in range(parameter.numel()):
            parameter.view(-1)[position] += step
            above = reached()
            parameter.view(-1)[position] -= 2 * step
            slopes.view(-1)[position] = (above - reached()) / (2 * step)
            parameter.view(-1)[position] += step
    torch.testing.assert_close(gradient, slopes, rtol=1e-6, atol=1e-8)
