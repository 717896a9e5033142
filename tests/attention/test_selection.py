"""Softmax, dropout, sparse selections and the k best: against brute force in plain Python."""

import itertools
import math
from collections.abc import Callable, Sequence

import pytest
import torch
from torch import Tensor

from regard import Attention, attend, masks, selection
from regard.attention.selection import Selection

QUERIES, KEYS, SIZE = 11, 7, 5
EXACT = {"rtol": 1e-10, "atol": 1e-12}
Row = Sequence[float]


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(11)


def select(how: Selection, scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """The weights that a selection makes of scores that are given."""
    *batch, queries, keys = scores.shape
    nothing = scores.new_zeros(*batch, keys, 1)
    attention = Attention(lambda *_: scores, how)
    return attention(scores.new_zeros(*batch, queries, 1), nothing, nothing, mask=mask).weights


def draw(spread: float = 1.0) -> Tensor:
    return spread * torch.randn(QUERIES, KEYS, dtype=torch.float64)


def by_rows(make: Callable[[Row], Row], scores: Tensor, allowed: Tensor | None = None) -> Tensor:
    """`make` weights of each row's visible scores alone."""
    found = torch.zeros_like(scores)
    for row, numbers in enumerate(scores.tolist()):
        seen = [k for k in range(KEYS) if allowed is None or allowed[row, k]]
        if seen:
            found[row, seen] = found.new_tensor(make([numbers[k] for k in seen]))
    return found


def softmax(scores: Row, temperature: float = 1.0) -> Row:
    powers = [math.exp(score / temperature) for score in scores]
    return [power / sum(powers) for power in powers]


def sparsemax(scores: Row) -> Row:
    """The nearest point of the simplex: of every face, the nearest point of its plane."""
    nearest, least = [], math.inf
    positions = range(len(scores))
    for size in range(1, len(scores) + 1):
        for face in itertools.combinations(positions, size):
            shift = (1 - sum(scores[k] for k in face)) / size
            point = [scores[k] + shift if k in face else 0.0 for k in positions]
            far = sum((p - z) ** 2 for p, z in zip(point, scores, strict=True))
            if min(point) >= 0 and far < least:
                nearest, least = point, far
    return nearest


def entmax(scores: Row, alpha: float) -> Row:
    """max(0, (α − 1) z − τ)^(1/(α − 1)), with τ found by bisection to the last bit."""
    scaled = [(alpha - 1) * score for score in scores]

    def powers(threshold: float) -> Row:
        return [max(0.0, score - threshold) ** (1 / (alpha - 1)) for score in scaled]

    low, high = max(scaled) - 1, max(scaled)
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if sum(powers(middle)) >= 1 else (low, middle)
    return powers(low)


def best(scores: Row, k: int) -> Row:
    order = sorted(range(len(scores)), key=lambda position: -scores[position])[:k]
    weights = dict(zip(order, softmax([scores[position] for position in order]), strict=True))
    return [weights.get(position, 0.0) for position in range(len(scores))]


BY_HAND: dict[str, tuple[Selection, Callable[[Row], Row]]] = {
    "softmax": (selection.Softmax(), softmax),
    "sharp": (selection.Softmax(0.3), lambda row: softmax(row, 0.3)),
    "flat": (selection.Softmax(5.0), lambda row: softmax(row, 5.0)),
    "sparsemax": (selection.Sparsemax(), sparsemax),
    "1-entmax": (selection.Entmax(1.0), softmax),
    "2-entmax": (selection.Entmax(2.0), sparsemax),
    **{
        f"{alpha}-entmax": (selection.Entmax(alpha), lambda row, a=alpha: entmax(row, a))
        for alpha in (1.05, 1.2, 1.5, 1.75)
    },
    **{
        f"top {k}": (selection.TopK(k), lambda row, k=k: best(row, k))
        for k in (1, 3, KEYS, QUERIES)
    },
}
by_hand = pytest.mark.parametrize(("how", "make"), BY_HAND.values(), ids=BY_HAND)


@by_hand
@pytest.mark.parametrize("spread", [0.1, 1.0, 5.0])
def test_weights(how: Selection, make: Callable[[Row], Row], spread: float) -> None:
    scores = draw(spread)
    torch.testing.assert_close(select(how, scores), by_rows(make, scores), **EXACT)


@by_hand
def test_hidden_keys_are_not_there(how: Selection, make: Callable[[Row], Row]) -> None:
    scores, allowed = draw(), torch.rand(QUERIES, KEYS) < 0.6
    assert not allowed.all(-1).all()
    found = select(how, scores, allowed)
    torch.testing.assert_close(found, by_rows(make, scores, allowed), **EXACT)


@pytest.mark.parametrize("queries", [3, 67])
@pytest.mark.parametrize("temperature", [0.3, 5.0])
def test_the_temperature_bends_the_context_too(temperature: float, queries: int) -> None:
    inputs = [torch.randn(n, SIZE, dtype=torch.float64) for n in (queries, KEYS, KEYS)]
    expected = (inputs[0] @ inputs[1].mT / math.sqrt(SIZE) / temperature).softmax(-1) @ inputs[2]
    found = attend(*inputs, select=selection.Softmax(temperature)).context
    torch.testing.assert_close(found, expected, **EXACT)


def tsallis(point: Tensor, alpha: float) -> Tensor:
    if alpha == 1:
        return -torch.special.xlogy(point, point).sum(-1)
    return (point - point**alpha).sum(-1) / (alpha * (alpha - 1))


@pytest.mark.parametrize("alpha", [1.0, 1.2, 1.5, 2.0, 3.0, 5.0])
def test_entmax_is_the_best_point_of_the_simplex(alpha: float) -> None:
    """Peters 2019: no point p has a larger p·z + H(p); tried on thousands, near and far."""
    scores = draw()
    found = select(selection.Entmax(alpha), scores)
    reached = (found * scores).sum(-1) + tsallis(found, alpha)
    points = torch.distributions.Dirichlet(torch.full((KEYS,), 0.5).double()).sample((2003, 1))
    for nearness in (0.0, 0.9, 0.999):
        others = nearness * found + (1 - nearness) * points
        assert ((others * scores).sum(-1) + tsallis(others, alpha) <= reached + 1e-12).all()


SPARSE = {
    "sparsemax": selection.Sparsemax(),
    "1.5-entmax": selection.Entmax(1.5),
    "3-entmax": selection.Entmax(3.0),
}
sparse = pytest.mark.parametrize("how", SPARSE.values(), ids=SPARSE)


@sparse
def test_equal_scores_share_and_a_clear_winner_takes_all(how: Selection) -> None:
    tied = torch.full((1, KEYS), 3.0, dtype=torch.float64)
    torch.testing.assert_close(select(how, tied), torch.full_like(tied, 1 / KEYS), **EXACT)
    won = torch.tensor([[0.0, 100.0, 1.0, -1e6]], dtype=torch.float64)
    assert select(how, won).tolist() == [[0.0, 1.0, 0.0, 0.0]]


def assert_roots(found: Tensor, expected: Tensor, alpha: float) -> None:
    """The same weights, seen before the root is taken that α > 2 takes: it is steep at 0."""
    power = max(1.0, alpha - 1)
    torch.testing.assert_close(found**power, expected**power, **EXACT)


@pytest.mark.parametrize("alpha", [2.5, 3.0, 5.0, 11.0])
@pytest.mark.parametrize("spread", [0.1, 1.0, 5.0])
def test_entmax_above_sparsemax(spread: float, alpha: float) -> None:
    scores, allowed = draw(spread), torch.rand(QUERIES, KEYS) < 0.6
    for mask in (None, allowed):
        expected = by_rows(lambda row: entmax(row, alpha), scores, mask)
        assert_roots(select(selection.Entmax(alpha), scores, mask), expected, alpha)


@pytest.mark.parametrize("alpha", [1.2, 1.5, 2.5, 3.0, 5.0])
@pytest.mark.parametrize("past", [-1e-6, 1e-6, 1e-3])
def test_entmax_with_a_key_at_the_edge_of_those_read(past: float, alpha: float) -> None:
    inside = [share ** (alpha - 1) for share in (0.6, 0.3, 0.1)]  # what τ = 0 gives these shares
    row = [score / (alpha - 1) for score in (*inside, past)]
    scores = torch.tensor([row], dtype=torch.float64)
    found = select(selection.Entmax(alpha), scores)
    assert_roots(found, scores.new_tensor([entmax(row, alpha)]), alpha)


@pytest.mark.parametrize("alpha", [1.02, 1.3, 1.5, 1.9])
def test_a_learned_alpha_starts_at_the_value_given(alpha: float) -> None:
    scores = draw()
    how = selection.Entmax(alpha, learned=True).double()
    expected = by_rows(lambda row: entmax(row, alpha), scores)
    torch.testing.assert_close(select(how, scores), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("alpha", [1.3, 1.5, 1.9])
def test_a_learned_alpha_learns_by_its_slope(alpha: float) -> None:
    scores, direction = draw(), draw()
    how = selection.Entmax(alpha, learned=True).double()
    (raw,) = how.parameters()

    def reached(shift: float) -> Tensor:
        with torch.no_grad():
            raw.add_(shift)
        total = (select(how, scores) * direction).sum()
        with torch.no_grad():
            raw.sub_(shift)
        return total

    (gradient,) = torch.autograd.grad(reached(0.0), raw)
    step = 1e-6
    slope = (reached(step) - reached(-step)).item() / (2 * step)
    assert gradient.item() == pytest.approx(slope, rel=1e-5)
    assert gradient.item() != 0


@pytest.mark.parametrize("k", [1, 3])
def test_only_the_k_best_learn(k: int) -> None:
    scores, direction = draw().requires_grad_(), draw()
    found = select(selection.TopK(k), scores)
    assert ((found > 0).sum(-1) == k).all()
    (gradient,) = torch.autograd.grad((found * direction).sum(), scores)
    assert ((gradient != 0) <= (found > 0)).all()
    expected = by_rows(lambda row: best(row, k), scores.detach())
    slope = expected * (direction - (expected * direction).sum(-1, keepdim=True))
    torch.testing.assert_close(gradient, slope, **EXACT)


RATE, DRAWS, DOUBT = 0.3, 4001, 1e-6
DROPPING: dict[str, Callable[[float], Selection]] = {
    "Softmax": lambda rate: selection.Softmax(dropout=rate),
    "Sparsemax": lambda rate: selection.Sparsemax(dropout=rate),
    "Entmax": lambda rate: selection.Entmax(dropout=rate),
    "TopK": lambda rate: selection.TopK(3, dropout=rate),
    "LocalMonotonic": lambda rate: selection.LocalMonotonic(3, dropout=rate),
    "LocalPredictive": lambda rate: selection.LocalPredictive(SIZE, 3, dropout=rate),
}
dropping = pytest.mark.parametrize("make", DROPPING.values(), ids=DROPPING)


def read_units(how: Selection, **options) -> tuple[Tensor, Tensor]:
    """What `DRAWS` equal items read: the context shows with what weights the values were summed."""
    torch.manual_seed(13)
    queries, keys = (torch.randn(1, n, SIZE, dtype=torch.float64) for n in (1, KEYS))
    units = torch.eye(KEYS, dtype=torch.float64).expand(DRAWS, KEYS, KEYS)
    context, weights = Attention(select=how).double()(
        queries.expand(DRAWS, -1, -1), keys.expand(DRAWS, -1, -1), units, **options
    )
    return context, weights


def hoeffding(draws: int) -> float:
    """How far a mean of so many numbers in [0, 1] strays with a probability of at most `DOUBT`."""
    return math.sqrt(math.log(2 / DOUBT) / (2 * draws))


@dropping
def test_weights_are_before_dropout_and_the_context_after(
    make: Callable[[float], Selection],
) -> None:
    torch.manual_seed(17)
    how = make(RATE)
    used, weights = read_units(how.train())
    _, whole = read_units(how.eval())
    torch.testing.assert_close(weights, whole, **EXACT)
    kept = used != 0
    torch.testing.assert_close(used, torch.where(kept, weights / (1 - RATE), 0.0), **EXACT)
    seen = weights > 0
    dropped = 1 - kept[seen].double().mean()
    assert abs(dropped - RATE) < hoeffding(int(seen.sum()))
    # Each lies between 0 and w / (1 − rate), so their mean is that near to w.
    stray = (used.mean(0) - weights[0]).abs() / (weights[0] / (1 - RATE)).clamp(min=1e-300)
    assert (stray < hoeffding(DRAWS)).all()


@dropping
@pytest.mark.parametrize("training", [False, True])
def test_without_training_or_without_a_rate_nothing_is_dropped(
    make: Callable[[float], Selection], training: bool
) -> None:
    how = make(0.0 if training else RATE).train(training)
    used, weights = read_units(how)
    torch.testing.assert_close(used, weights, **EXACT)


def test_dropout_leaves_hidden_keys_hidden() -> None:
    used, weights = read_units(selection.Softmax(dropout=RATE), mask=masks.Lengths([3] * DRAWS))
    assert not used[..., 3:].any()
    assert not weights[..., 3:].any()
