"""`regard demo`: train a small model and plot its attention, in a few minutes."""

from typing import Annotated

import typer

from regard.cli.ranges import MOST_SEED, integer_range

MOST_STEPS = 10**9

Out = Annotated[str, typer.Option("--out", metavar="FOLDER", help="Where all files are written.")]
Steps = Annotated[
    int,
    typer.Option(
        "--steps",
        callback=integer_range("--steps", 1, MOST_STEPS),
        help="Number of updates.",
    ),
]
Seed = Annotated[
    int,
    typer.Option(
        "--seed",
        callback=integer_range("--seed", 0, MOST_SEED),
        help="Seed of data and training.",
    ),
]


def demo(out: Out = "runs/demo", steps: Steps = 900, seed: Seed = 1) -> int:
    """Learn to normalise dates in forty languages, and show the attention maps.

    regard demo
    """
    from regard.tasks.demo import show  # noqa: PLC0415  # torch: help need not wait

    return show(out, steps, seed)
