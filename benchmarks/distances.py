"""Cosine, Gaussian and inverse distance against code that materialises all scores.

As many queries as keys, forward. By hand is `normalize` and matmul, or `torch.cdist`, then softmax
and a matmul. Code that materialises the difference vector of each pair takes many times as long,
and gigabytes; it is left out. The Gaussian is measured with σ as large as the vectors are long,
where kernel regression is useful in so many dimensions, and with a small σ, where nearly all weight
is on one key.
"""

from collections.abc import Sequence

from benchmarks.race import Contestant, Work, race, working
from benchmarks.results import Row
from benchmarks.settings import Outcome, Settings, median, promise
from benchmarks.steps import FORWARD

HAND = "PyTorch by hand"
CONTESTANTS = (Contestant("regard", "ours:dot"), Contestant(HAND, "plain:by_pairs"))
SCORES = (("Cosine", None), ("Gaussian", 8.0), ("Gaussian", 1.0), ("InverseDistance", None))
NEEDED = {"Cosine": 3.0, "Gaussian": 3.0, "InverseDistance": 1.5}


def run(settings: Settings) -> Outcome:
    """Each of them, forward."""
    rows: list[Row] = []
    batch, length = (1, 256) if settings.quick else (4, 1024)
    with working(settings) as workers:
        for score, sigma in SCORES:
            case = {"score": score, "batch": batch, "heads": 8, "length": length, "size": 64}
            case |= {"step": FORWARD} | ({} if sigma is None else {"sigma": sigma})
            work = Work("fma", 2.0 * 64 * batch * 8 * length**2)
            rows += race(workers, case, CONTESTANTS, [work])
        versions = workers.versions
    return Outcome(rows, promises(rows), versions)


def promises(rows: Sequence[Row]) -> list[Row]:
    """What each must show."""
    theirs = [row for row in rows if row["who"] == HAND]
    return [
        promise(
            f"{score}, forward, times materialised code",
            [row for row in theirs if row["case"]["score"] == score],
            lambda row: median(row, "times"), at_least=needed,
        )
        for score, needed in NEEDED.items()
    ]  # fmt: skip
