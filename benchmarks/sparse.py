"""Sparsemax and entmax, scores to weights, against the entmax package.

Normal scores times a spread, in rows of so many keys. α = 2 is sparsemax; 1.5 has an exact
algorithm in the package; any other α is found by bisection there. The package can sort only the k
largest, as it advises where few weights are not zero. The limit is memory bandwidth: scores read
once and weights written once, and as much again with the backward.
"""

from benchmarks.race import Contestant, Work, mark_better, race, working
from benchmarks.results import Row
from benchmarks.settings import Outcome, Settings, median, promise
from benchmarks.steps import BOTH, FORWARD

WHOLE, PARTLY = "entmax package", "entmax package, k = 64"
OURS = Contestant("regard", "ours:sparse")
PACKAGE = Contestant(WHOLE, "entmax:sparse", "entmax")
SORTS_PARTLY = Contestant(PARTLY, "entmax:sparse_partly", "entmax")


def run(settings: Settings) -> Outcome:
    """The grid of α, length, spread, forward and with the backward."""
    rows: list[Row] = []
    total = (1 << 16) if settings.quick else (1 << 20)
    grid = [
        (alpha, keys, spread, step)
        for alpha in (2.0, 1.5, 1.3)
        for keys in settings.choose((16, 64, 256, 1024, 4096), (64, 1024))
        for spread in settings.choose((1.0, 5.0), (1.0,))
        for step in (FORWARD, BOTH)
    ]
    with working(settings) as workers:
        for alpha, keys, spread, step in grid:
            case = {"alpha": alpha, "rows": total // keys, "keys": keys, "spread": spread}
            sorts = [SORTS_PARTLY] if alpha in (2.0, 1.5) and keys > 64 else []
            work = Work("triad", 8.0 * total * (1 if step == FORWARD else 2))
            rows += race(workers, {**case, "step": step}, [OURS, PACKAGE, *sorts], [work])
        versions = workers.versions
    mark_better(rows, (WHOLE, PARTLY))
    better = [row for row in rows if row.get("better")]
    what = "sparsemax and entmax, times the entmax package, anywhere on the grid"
    held = promise(what, better, lambda row: median(row, "times"), at_least=1.0)
    return Outcome(rows, [held], versions)
