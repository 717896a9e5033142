"""The catalogue of the family: every score and every selection, and what each claims.

A new mechanism joins here and inherits every law in `tests/laws`.
"""

from collections.abc import Callable
from dataclasses import dataclass

from regard import scores, selection
from regard.attention.state import Stateful

SIZE = 5
"""Of queries and keys alike, so that all scores can compare them."""

MOST_KEYS = 11


@dataclass(frozen=True)
class Mechanism:
    """How to make it, and which laws it claims."""

    name: str
    make: Callable[[], object]
    order_free: bool = True
    """The order of the pairs does not matter."""
    sums_to_one: bool = True
    """Where there is something to read, the weights sum to 1."""
    draws: bool = False
    """In training it draws."""
    smooth: bool = True
    """It has a gradient, to be checked by differences."""

    @property
    def is_stateful(self) -> bool:
        """What it reads depends on what it read before."""
        return isinstance(self.make(), Stateful)

    def __str__(self) -> str:
        return self.name


def _by_difference(queries, keys):
    """A callable score that is none of the library's own."""
    return -(queries[..., :, None, :] - keys[..., None, :, :]).abs().sum(-1)


SCORES = [
    Mechanism("Dot", scores.Dot),
    Mechanism("ScaledDot", scores.ScaledDot),
    Mechanism("ScaledDot-given", lambda: scores.ScaledDot(0.7)),
    Mechanism("ScaledDot-learned", lambda: scores.ScaledDot(learned=True)),
    Mechanism("Bilinear", lambda: scores.Bilinear(SIZE, SIZE)),
    Mechanism("Additive", lambda: scores.Additive(SIZE, SIZE, 7)),
    Mechanism("Cosine", lambda: scores.Cosine(3.0)),
    Mechanism("Cosine-learned", lambda: scores.Cosine(3.0, learned=True)),
    Mechanism("Location", lambda: scores.Location(SIZE, MOST_KEYS), order_free=False),
    Mechanism("InverseDistance", scores.InverseDistance),
    Mechanism("Gaussian", lambda: scores.Gaussian(1.3)),
    Mechanism("Gaussian-learned", lambda: scores.Gaussian(1.3, learned=True)),
    Mechanism("callable", lambda: _by_difference, smooth=False),
    Mechanism("LocationAware", lambda: scores.LocationAware(SIZE, SIZE, 7, 3, 5), order_free=False),
    Mechanism("Coverage", lambda: scores.Coverage(scores.ScaledDot())),
    Mechanism(
        "Coverage-fertility",
        lambda: scores.Coverage(scores.Additive(SIZE, SIZE, 7), fertility=2.0, key_size=SIZE),
    ),
    Mechanism(
        "Coverage-LocationAware",
        lambda: scores.Coverage(scores.LocationAware(SIZE, SIZE, 7, 3, 5)),
        order_free=False,
    ),
]

SELECTIONS = [
    Mechanism("Softmax", lambda: selection.Softmax(temperature=0.8)),
    Mechanism("Sparsemax", selection.Sparsemax),
    Mechanism("Entmax", selection.Entmax),
    Mechanism("Entmax-learned", lambda: selection.Entmax(1.3, learned=True)),
    Mechanism("Hard", selection.Hard, draws=True, smooth=False),
    Mechanism(
        "Hard-gumbel", lambda: selection.Hard("gumbel", temperature=0.9), draws=True, smooth=False
    ),
    # A window may lie where nothing may be read, so these do not claim to sum to 1.
    Mechanism(
        "LocalMonotonic", lambda: selection.LocalMonotonic(2), order_free=False, sums_to_one=False
    ),
    Mechanism(
        "LocalPredictive",
        lambda: selection.LocalPredictive(SIZE, 2),
        order_free=False,
        sums_to_one=False,
    ),
    Mechanism("Monotonic", selection.Monotonic, order_free=False, sums_to_one=False, draws=True),
    Mechanism("TopK", lambda: selection.TopK(3)),
]

PAIRS = [(score, select) for score in SCORES for select in SELECTIONS]
NAMES = [f"{score}-{select}" for score, select in PAIRS]
