"""Local attention around a predicted position, against a mask over all keys.

local-p reads as many positions to each side of the predicted one as its window has: regard's
`LocalPredictive` against the usual PyTorch code, which scores every key and masks. Self-attention
over a long sequence, a decoder's queries, and one step of it.
"""

from benchmarks.race import Contestant, Work, race, working
from benchmarks.results import Row
from benchmarks.settings import Outcome, Settings, median, promise
from benchmarks.steps import BOTH, FORWARD

KEYS, WINDOW, SIZE = 8192, 64, 64
GLOBAL = "masked global"
CONTESTANTS = (Contestant("regard", "ours:local"), Contestant(GLOBAL, "plain:local"))
SHAPES = ((1, KEYS, KEYS), (8, 256, KEYS), (16, 1, KEYS))
"""Batch, queries, keys."""


def run(settings: Settings) -> Outcome:
    """Each shape, forward and with the backward."""
    rows: list[Row] = []
    with working(settings) as workers:
        for batch, queries, keys in settings.choose(SHAPES, ((2, 256, 1024), (2, 1, 1024))):
            for step in (FORWARD, BOTH):
                case = {"batch": batch, "queries": queries, "keys": keys, "size": SIZE}
                case |= {"window": WINDOW, "step": step}
                reads = float(batch * queries * (2 * WINDOW + 1))
                work = Work("fma", 2 * SIZE * reads * (1 if step == FORWARD else 3))
                rows += race(workers, case, CONTESTANTS, [work])
        versions = workers.versions
    several = [r for r in rows if r["who"] == GLOBAL and r["case"]["queries"] > 1]
    what = f"local-p over {KEYS} keys, window {WINDOW}, times masked global"
    held = promise(what, several, lambda row: median(row, "times"), at_least=20.0)
    return Outcome(rows, [held], versions)
