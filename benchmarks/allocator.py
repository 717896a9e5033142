"""A training step on a CPU, with the default allocator and with freed memory kept.

Two layers of a Transformer, or a GRU with additive attention by hand: forward, backward and
optimiser, nothing of regard in the model. Freed memory is returned to the system, kept under
`kernels.keep_heap()`, or kept by a hand-written call of `mallopt`. Each has its own process; the
JSON has the page faults of a step.
"""

from benchmarks.race import Contestant, race, working
from benchmarks.results import Row
from benchmarks.settings import Outcome, Settings, median, promise

USUAL, BY_HAND = "as it is", "mallopt by hand"
CONTESTANTS = (
    Contestant("regard", "ours:training_step", process="kept", settles=True),
    Contestant(USUAL, "plain:training_step"),
    Contestant(BY_HAND, "plain:training_step", warm=True),
)
SIZES = ({"batch": 32, "length": 64, "size": 256},)
SMALL = ({"batch": 4, "length": 32, "size": 64},)


def run(settings: Settings) -> Outcome:
    """Both models, each in three processes."""
    rows: list[Row] = []
    with working(settings) as workers:
        for model in ("Transformer", "GRU"):
            for sizes in settings.choose(SIZES, SMALL):
                rows += race(workers, {"model": model, **sizes}, CONTESTANTS)
        versions = workers.versions
    usual = [row for row in rows if row["who"] == USUAL and row["case"]["model"] == "Transformer"]
    what = "a Transformer's step of training, times the allocator as it is"
    held = promise(what, usual, lambda row: median(row, "times"), at_least=1.0)
    return Outcome(rows, [held], versions)
