"""`regard demo`: see attention work, in a few minutes and from nothing."""

from typing import Annotated

import typer

from regard.cli.ranges import MOST_SEED, integer_range

MOST_STEPS = 10**9

Out = Annotated[str, typer.Option("--out", metavar="FOLDER", help="Where everything is kept.")]
Steps = Annotated[
    int,
    typer.Option(
        "--steps",
        callback=integer_range("--steps", 1, MOST_STEPS),
        help="How many updates to learn for.",
    ),
]
Seed = Annotated[
    int,
    typer.Option(
        "--seed",
        callback=integer_range("--seed", 0, MOST_SEED),
        help="Everything random follows from it.",
    ),
]


def demo(out: Out = "runs/demo", steps: Steps = 900, seed: Seed = 1) -> int:
    """Learn to read dates in forty languages, and show what was looked at.

    regard demo
    """
    from regard.tasks.demo import show  # noqa: PLC0415  # torch: help need not wait

    return show(out, steps, seed)
