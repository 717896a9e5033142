"""Builds the library's modules from a configuration. Its keys are their arguments' names."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from regard.attention import scores, selection
from regard.attention.attend import Attention
from regard.tasks.config.options import Options
from regard.tasks.config.score import CoverageConfig, ScoreConfig
from regard.tasks.config.selection import SelectionConfig

Built = TypeVar("Built")

SCORES: Mapping[str, Callable[..., scores.Score]] = {
    "dot": scores.Dot,
    "scaled_dot": scores.ScaledDot,
    "bilinear": scores.Bilinear,
    "additive": scores.Additive,
    "cosine": scores.Cosine,
    "gaussian": scores.Gaussian,
    "inverse_distance": scores.InverseDistance,
    "location": scores.Location,
    "location_aware": scores.LocationAware,
}

SELECTIONS: Mapping[str, Callable[..., selection.Selection]] = {
    "softmax": selection.Softmax,
    "sparsemax": selection.Sparsemax,
    "entmax": selection.Entmax,
    "hard": selection.Hard,
    "local_monotonic": selection.LocalMonotonic,
    "local_predictive": selection.LocalPredictive,
    "monotonic": selection.Monotonic,
    "top_k": selection.TopK,
}


def build_score(config: ScoreConfig, query_size: int, key_size: int) -> scores.Score:
    """The score, for queries and keys of these sizes."""
    if isinstance(config, CoverageConfig):
        return scores.Coverage(
            build_score(config.inner, query_size, key_size),
            config.weight,
            fertility=config.fertility,
            key_size=None if config.fertility is None else key_size,
        )
    return _built(SCORES[config.kind], config, query_size=query_size, key_size=key_size)


def build_selection(config: SelectionConfig, query_size: int) -> selection.Selection:
    """The selection, for queries of this size."""
    return _built(SELECTIONS[config.kind], config, query_size=query_size)


def build_attention(
    score: ScoreConfig, select: SelectionConfig, query_size: int, key_size: int
) -> Attention:
    """Both, as one module."""
    return Attention(build_score(score, query_size, key_size), build_selection(select, query_size))


def _built(make: Callable[..., Built], config: Options, **sizes: int) -> Built:
    """Give it its options, and those of the sizes that it asks for."""
    accepted = inspect.signature(make).parameters
    options: dict[str, Any] = config.model_dump(exclude={"kind"})
    return make(**options, **{name: size for name, size in sizes.items() if name in accepted})
