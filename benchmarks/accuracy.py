"""The error of regard in float32, relative to plain code in the same precision.

The error is the distance from the same formula in float64, over all elements, relative to their
size; of several draws the largest counts. Queries and keys are normal numbers times a scale. The
context is computed without and with a gradient; gradients are those of queries, keys, values and
parameters; each row has the worst. Where plain code is exact by chance, it is granted half a
rounding error.
"""

from itertools import product

from benchmarks.race import Contestant, working
from benchmarks.results import Row
from benchmarks.settings import Outcome, Settings, promise

SCORES = (
    *("Additive", "Dot", "ScaledDot", "Bilinear", "Cosine", "Location"),
    *("Gaussian", "InverseDistance"),
)
SIZES = ((131, 257), (523, 541))
"""Queries and keys: few, and enough for kernels that want many."""

SCALES = (0.1, 1.0, 10.0, 100.0)
OURS = Contestant("regard", "")


def run(settings: Settings) -> Outcome:
    """Every score at every scale: the context, and the gradients."""
    rows: list[Row] = []
    sizes = settings.choose(SIZES, SIZES[:1])
    with working(settings) as workers:
        worker = workers.of(OURS)
        for score, scale, (queries, keys) in product(SCORES, SCALES, sizes):
            case = {"score": score, "queries": queries, "keys": keys, "scale": scale}
            asked = {**case, "draws": 1 if settings.quick else 3}
            found = worker.order("ask", target="errors:errors", case=asked, threads=1)
            rows += [{"case": case, **row} for row in found]
        versions = workers.versions
    return Outcome(
        rows,
        [
            promise(
                f"{what}: times as wrong as plain code, at any scale",
                [row for row in rows if row["of"] == what],
                lambda row: row["times_as_wrong"], at_most=2.0,
            )
            for what in ("context", "gradients")
        ],
        versions,
    )  # fmt: skip
