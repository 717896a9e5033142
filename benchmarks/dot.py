"""Dot-product scores against the better of matmul and SDPA.

As many queries as keys. By hand is the same score in PyTorch twice, as `softmax(q @ k.mT) @ v` and
by `scaled_dot_product_attention`; regard is compared with the better of the two at each length.
Each has its own process, and all keep freed heap: page faults depend on what others left in a heap.
For the scaled dot product, x-transformers' `Attend` is a further peer.
"""

from collections.abc import Sequence

from benchmarks.race import (
    OURS,
    Case,
    Contestant,
    Work,
    Workers,
    duels,
    mark_better,
    race,
    working,
)
from benchmarks.results import Row
from benchmarks.settings import Outcome, Settings, median, promise
from benchmarks.steps import BOTH, FORWARD

SCORES = ("Dot", "ScaledDot", "Bilinear", "Cosine", "Location")
LENGTHS = (32, 64, 128, 256, 512, 1024)
HEADS, SIZE = 8, 64
MATMUL, SDPA = "PyTorch matmul", "PyTorch SDPA"
BY_HAND = (
    Contestant("regard", "ours:dot", warm=True),
    Contestant(MATMUL, "plain:dot_matmul", warm=True, process="matmul"),
    Contestant(SDPA, "plain:dot_sdpa", warm=True, process="sdpa"),
)
PEERS = (
    Contestant("x-transformers", "x_transformers:dot", "x-transformers", warm=True),
    Contestant("x-transformers, flash", "x_transformers:dot_flash", "x-transformers", warm=True),
)


def run(settings: Settings) -> Outcome:
    """Every score at every length, forward and with the backward."""
    rows: list[Row] = []
    batch = 2 if settings.quick else 32
    with working(settings) as workers:
        for score in SCORES:
            for length in settings.choose(LENGTHS, (32, 256)):
                for step in (FORWARD, BOTH):
                    case = {"score": score, "batch": batch, "heads": HEADS, "length": length}
                    case |= {"size": SIZE, "step": step}
                    rows += race(workers, case, BY_HAND, [_work(case)])
                    if score == "ScaledDot":
                        rows += _others(workers, case)
        versions = workers.versions
    mark_better(rows, (MATMUL, SDPA))
    return Outcome(rows, promises(rows), versions)


def _others(workers: Workers, case: Case) -> list[Row]:
    """The further peers' rows, each in turns with ours alone."""
    workers.end()  # what those by hand have left in their heaps would not fit beside theirs
    rows = duels(workers, case, (BY_HAND[0], *PEERS), [_work(case)])
    return [row for row in rows if row["who"] != OURS]


def promises(rows: Sequence[Row]) -> list[Row]:
    """What every length must show."""
    better = [row for row in rows if row.get("better")]
    return [
        promise(
            f"{score}, times the better of matmul and SDPA, at any length",
            [row for row in better if row["case"]["score"] == score],
            lambda row: median(row, "times"), at_least=0.95,
        )
        for score in SCORES
    ]  # fmt: skip


def _work(case: dict[str, int | str]) -> Work:
    """Two matmuls; with the backward four more."""
    pairs = float(case["batch"] * case["heads"] * case["length"] ** 2)  # type: ignore[operator]
    return Work("fma", 2 * SIZE * pairs * (1 if case["step"] == FORWARD else 3))
