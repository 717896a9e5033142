"""Scores: queries × keys → how relevant is each key?

Any of them goes with any selection and any mask; so does any callable `(queries, keys) → scores`.
"""

from regard.attention.scores.additive import Additive
from regard.attention.scores.base import Score
from regard.attention.scores.bilinear import Bilinear
from regard.attention.scores.cosine import Cosine
from regard.attention.scores.coverage import Coverage
from regard.attention.scores.distance import Gaussian, InverseDistance
from regard.attention.scores.dot import Dot, ScaledDot
from regard.attention.scores.function import FromFunction, as_score
from regard.attention.scores.location import Location
from regard.attention.scores.location_aware import LocationAware

__all__ = [
    "Additive",
    "Bilinear",
    "Cosine",
    "Coverage",
    "Dot",
    "FromFunction",
    "Gaussian",
    "InverseDistance",
    "Location",
    "LocationAware",
    "ScaledDot",
    "Score",
    "as_score",
]
