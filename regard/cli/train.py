"""`regard train`: train in a folder; the same command again resumes."""

import sys
from typing import Annotated

import typer

from regard.cli.config_options import (
    Config,
    Data,
    GivenLinks,
    Recipe,
    Settings,
    TaskArgument,
    Valid,
    config_options,
)
from regard.cli.output import note

Out = Annotated[str, typer.Option("--out", metavar="FOLDER", help="The folder of the run.")]
OnBadInput = Annotated[
    str | None,
    typer.Option("--on-bad-input", metavar="error|skip", help="What to do with invalid lines."),
]
Device = Annotated[
    str | None, typer.Option("--device", metavar="NAME", help="auto, cpu, cuda, cuda:1, mps.")
]
Threads = Annotated[
    int | None, typer.Option("--threads", metavar="NUMBER", help="Number of threads.")
]


def train(
    task: TaskArgument,
    out: Out,
    data: Data = None,
    valid: Valid = None,
    links: GivenLinks = None,
    recipe: Recipe = None,
    config: Config = None,
    settings: Settings = None,
    on_bad_input: OnBadInput = None,
    device: Device = None,
    threads: Threads = None,
) -> int:
    """Train a model in a folder. The same command again resumes there.

    regard train translate --data pairs.tsv --out runs/first
    """
    short = (("data.on_bad_input", on_bad_input), ("training.device", device))
    overrides = [f'{key}="{value}"' for key, value in short if value is not None]
    overrides += [] if threads is None else [f"training.threads={threads}"]
    given = config_options(
        task,
        recipe=recipe,
        path=config,
        data=data,
        valid=valid,
        links=links,
        settings=[*(settings or ()), *overrides],
    )
    from regard.seq2seq.training import reporter  # noqa: PLC0415  # torch: help need not wait
    from regard.tasks import run  # noqa: PLC0415
    from regard.tasks.registry import task_of  # noqa: PLC0415

    outcome = run.train(out, given, reporter(sys.stderr))
    if outcome.code == 0:
        note(f"Next: {task_of(task).usage.format(out)}")
    return outcome.code
