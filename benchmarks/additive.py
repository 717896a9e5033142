"""Additive attention, vᵀ tanh(q + k), at usual lengths.

Each shape is batch × queries × keys × hidden. "Projected": queries and keys are already projected,
as in `tanh(q[:, :, None] + k[:, None]) @ v` and in Keras, whose layer has no projections; otherwise
both sides project. "Scores alone": no softmax and no values, nothing cached. "Kernel alone": the
loop over the pairs, from exponentials that a memory has cached. Shares of the limit are relative to
the form of the element that the column names; the lowest share is the one that has a target. With
the backward, a share counts two passes over the elements: one for the scores, one to recompute
them.

Except for "as it comes", all run with a warm allocator: processes keep freed memory and are called
until no call has page faults; the JSON has the page faults that were left. "As it comes" is
projected, with Python's default allocator: contestants that hold a number for each element lose
more there. Each peer takes turns with regard alone, since all at once would not fit into memory.
JAX is compiled before, and limited to as many cores as there are threads. SpeechBrain's layer
attends with one query at a time, projects its context, too, and runs without torchaudio, which its
attention does not use.
"""

from collections.abc import Sequence

from benchmarks.race import Case, Contestant, Work, Workers, duels, working
from benchmarks.results import Row
from benchmarks.settings import Outcome, Settings, median, promise
from benchmarks.steps import BOTH, FORWARD

SHAPES = ((16, 256, 256, 256), (64, 50, 50, 512))
SMALL = ((4, 64, 64, 128),)
KERNEL = "kernel alone"
CASES = (
    ("projected", FORWARD),
    ("projected", BOTH),
    ("with projections", FORWARD),
    ("with projections", BOTH),
    ("as it comes", FORWARD),
    ("as it comes", BOTH),
    ("scores alone", FORWARD),
    (KERNEL, FORWARD),
)
TEMPORARIES = {FORWARD: 4, BOTH: 9}
"""How many numbers for each element a side has room for, once its heap has settled."""

HAND, TORCH, JAX = "PyTorch by hand", "Keras 3, torch", "Keras 3, JAX jitted"


def run(settings: Settings) -> Outcome:
    """Both shapes, forward and with the backward, projected or not; and the scores alone."""
    rows: list[Row] = []
    with working(settings) as workers:
        for shape in settings.choose(SHAPES, SMALL):
            for what, step in CASES:
                rows += one(workers, shape, step, what)
        versions = workers.versions
    return Outcome(rows, promises(rows), versions)


def one(workers: Workers, shape: Sequence[int], step: str, what: str) -> list[Row]:
    """One case, with those who can do it."""
    batch, queries, keys, hidden = shape
    case = {"batch": batch, "queries": queries, "keys": keys, "hidden": hidden}
    case |= {"what": what, "step": step}
    elements = float(batch * queries * keys * hidden)
    passes = 1 if step == FORWARD else 2
    names = ("additive_four", "additive_two") if what.endswith("alone") else ("additive_four",)
    works = [Work(name, passes * elements) for name in names]
    return duels(workers, case, contestants(case, int(4 * elements)), works)


def contestants(case: Case, size: int) -> list[Contestant]:
    """Who can do this case; `size` is the bytes of one number for each element."""
    held = TEMPORARIES[case["step"]] * size
    if case["what"] == "projected":
        return [
            Contestant("regard", "ours:additive", warm=True),
            Contestant(HAND, "plain:additive", warm=True, holds=held),
            Contestant(TORCH, "keras_torch:additive", "keras-torch", warm=True, holds=held),
            Contestant(JAX, "keras_jax:additive", "keras-jax", warm=True, holds=held),
        ]
    if case["what"] == "with projections":
        steps = Contestant(
            "SpeechBrain, step by step", "speechbrain:additive_whole", "speechbrain",
            warm=True, holds=held if case["step"] == BOTH else 0,
        )  # fmt: skip
        by_hand = Contestant(HAND, "plain:additive_whole", warm=True, holds=held)
        return [Contestant("regard", "ours:additive_whole", warm=True), by_hand, steps]
    if case["what"] == "as it comes":
        return [
            Contestant("regard", "ours:additive"),
            Contestant(HAND, "plain:additive", holds=held),
            Contestant(TORCH, "keras_torch:additive", "keras-torch", holds=held),
        ]
    target = "additive_kernel" if case["what"] == KERNEL else "additive_scores"
    return [Contestant("regard", f"ours:{target}", warm=True)]


def promises(rows: Sequence[Row]) -> list[Row]:
    """What these rows must show."""

    def of(who: str, what: str = "projected") -> list[Row]:
        # Matrix products cost both sides the same; they are in the tables, not in what is promised.
        return [row for row in rows if row["who"] == who and row["case"]["what"] == what]

    cold = of(TORCH, "as it comes")
    return [
        promise("additive, times PyTorch by hand", of(HAND), _times, at_least=10.0),
        promise("additive, times Keras 3 on torch", of(TORCH), _times, at_least=20.0),
        promise("additive, times Keras 3 on torch, as it comes", cold, _times, at_least=20.0),
        promise("additive, times Keras 3 on JAX, jitted", of(JAX), _times, at_least=7.0),
        promise(
            "additive kernel alone, share of the limit",
            of("regard", KERNEL),
            _share,
            at_least=0.65,
        ),
        promise(
            "additive, two threads over one",
            [row for row in of("regard") if row["case"]["threads"] == 2],
            lambda row: median(row, "over_one"), at_least=1.8,
        ),
    ]  # fmt: skip


def _share(row: Row) -> float | None:
    """Of the higher limit."""
    return min(share["median"] for share in row["share"].values()) if "share" in row else None


def _times(row: Row) -> float | None:
    return median(row, "times")
