"""The weather map of a lecture: six stations, read by their scores.

The slide says that the weights are near 0.52, 0.37, 0.07, 0.03, 0.013 and 0.005, and that about
(31.0 °C, 48.0 %) is read. These weights sum to 1.008, so they are not quite the softmax of its
scores, which begins 0.531, 0.356. So "near" is 0.015 here; on paper the softmax itself is held to.
"""

import math

import pytest
import torch

from regard import attend, scores

SCORES = (6.5, 6.1, 4.45, 3.5, 2.8, 1.9)
MEASURED = ((30, 48), (31, 49), (37, 44), (33, 45), (34, 50), (32, 45))
SLIDE_WEIGHTS = (0.52, 0.37, 0.07, 0.03, 0.013, 0.005)
SLIDE_CONTEXT = (31.0, 48.0)

near = {"abs": 0.015}
about = {"abs": 0.05}


def on_paper() -> tuple[list[float], list[float]]:
    """Weights and context by hand: nothing of torch, nothing of the library."""
    powers = [math.exp(score) for score in SCORES]
    weights = [power / sum(powers) for power in powers]
    columns = zip(*MEASURED, strict=True)
    return weights, [sum(w * v for w, v in zip(weights, column, strict=True)) for column in columns]


def by_the_slide(queries: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
    """A score that knows the answer: the keys are the scores."""
    return keys.mT.expand(queries.shape[-2], -1)


def test_on_paper_the_slide_is_right() -> None:
    weights, context = on_paper()
    assert weights == pytest.approx(SLIDE_WEIGHTS, **near)
    assert context == pytest.approx(SLIDE_CONTEXT, **about)


def test_a_callable_score_reads_the_slide() -> None:
    values = torch.tensor(MEASURED, dtype=torch.float32)
    keys = torch.tensor(SCORES)[:, None]
    context, weights = attend(torch.zeros(1), keys, values, score=by_the_slide)
    assert weights.tolist() == pytest.approx(SLIDE_WEIGHTS, **near)
    assert context.tolist() == pytest.approx(SLIDE_CONTEXT, **about)
    paper_weights, paper_context = on_paper()
    assert weights.tolist() == pytest.approx(paper_weights, rel=1e-5)
    assert context.tolist() == pytest.approx(paper_context, rel=1e-5)


def test_stations_at_these_inverse_distances_read_the_slide() -> None:
    angles = torch.arange(6.0)
    around = torch.stack([angles.cos(), angles.sin()], -1)
    here = torch.tensor([0.3, -0.2])
    stations = here + around / torch.tensor(SCORES)[:, None]
    values = torch.tensor(MEASURED, dtype=torch.float32)
    context, weights = attend(here, stations, values, score=scores.InverseDistance())
    paper_weights, paper_context = on_paper()
    assert weights.tolist() == pytest.approx(paper_weights, rel=1e-4)
    assert context.tolist() == pytest.approx(paper_context, rel=1e-4)
