"""One decoding step over a prepared memory, against hand-written operations.

Without a gradient. By hand is the operations alone: query times keys, softmax, times values, with
`masked_fill` where there is padding; for the scaled dot product also
`scaled_dot_product_attention`, and the better of the two counts. Keys are projected beforehand on
both sides. All of these run in one process. SpeechBrain's layer projects its context, too.
"""

from collections.abc import Sequence

from benchmarks.race import Contestant, Work, mark_better, race, working
from benchmarks.results import Row
from benchmarks.settings import Outcome, Settings, median, promise

KEYS, SIZE = 50, 512
OPERATIONS, SDPA = "operations by hand", "PyTorch SDPA"
OURS = Contestant("regard", "ours:step")
BY_OPERATIONS = Contestant(OPERATIONS, "plain:step_by_ops")
CONTESTANTS = {
    "ScaledDot": (OURS, BY_OPERATIONS, Contestant(SDPA, "plain:step_by_sdpa")),
    "Additive": (OURS, BY_OPERATIONS, Contestant("SpeechBrain", "speechbrain:step", "speechbrain")),
}


def run(settings: Settings) -> Outcome:
    """Both scores, three batches, with padding and without."""
    rows: list[Row] = []
    with working(settings) as workers:
        for score, contestants in CONTESTANTS.items():
            for batch in (1, 16, 64):
                for padding in (False, True):
                    case = {"score": score, "batch": batch, "keys": KEYS, "size": SIZE}
                    elements = float(batch * KEYS * SIZE)
                    work = Work("fma", 2 * elements)
                    if score == "Additive":
                        work = Work("additive_four", elements)
                    rows += race(workers, {**case, "padding": padding}, contestants, [work])
        versions = workers.versions
    mark_better(rows, (OPERATIONS, SDPA))
    return Outcome(rows, promises(rows), versions)


def promises(rows: Sequence[Row]) -> list[Row]:
    """What a step may cost: 1.2 times as much for one item, 1.05 times for many."""
    better = [row for row in rows if row.get("better")]

    def cost(row: Row) -> float | None:
        times = median(row, "times")
        return None if times is None else round(1 / times, 4)

    one = [row for row in better if row["case"]["batch"] == 1]
    many = [row for row in better if row["case"]["batch"] > 1]
    what = "a step of decoding, cost against hand-written operations"
    return [
        promise(f"{what}, batch 1", one, cost, at_most=1.2),
        promise(f"{what}, batch 16 and 64", many, cost, at_most=1.05),
    ]
