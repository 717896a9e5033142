"""Options of verbs that decode: beam search and sampling."""

from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.ranges import MOST_SEED, integer_range, number_where
from regard.seq2seq.errors import ConfigError
from regard.tasks.config.decoding import MAX_BEAM

if TYPE_CHECKING:
    from regard.cli.open_run import OpenRun

Beams = Annotated[
    int | None,
    typer.Option(
        "--beam",
        callback=integer_range("--beam", 1, MAX_BEAM),
        help=f"Beam size, {MAX_BEAM} at most.",
    ),
]
Best = Annotated[
    int,
    typer.Option(
        "--best",
        callback=integer_range("--best", 1, MAX_BEAM),
        help="Size of the n-best list for each line, as JSON lines.",
    ),
]
Sample = Annotated[bool, typer.Option("--sample", help="Sample answers instead of beam search.")]
Temperature = Annotated[
    float,
    typer.Option(
        "--temperature",
        callback=number_where(
            "--temperature", "a finite number greater than 0", lambda value: value > 0
        ),
        help="Sampling temperature: below 1 sharper, above 1 more varied.",
    ),
]
TopP = Annotated[
    float,
    typer.Option(
        "--top-p",
        callback=number_where(
            "--top-p", "a number above 0, and 1 at most", lambda value: 0 < value <= 1
        ),
        help="Nucleus sampling: the likeliest tokens with this total probability.",
    ),
]
Seed = Annotated[
    int,
    typer.Option(
        "--seed",
        callback=integer_range("--seed", 0, MOST_SEED),
        help="Seed of sampling.",
    ),
]


def set_beam(opened: "OpenRun", beam: int | None, best: int = 1) -> None:
    """Set the run's beam search, if an option was given."""
    from regard.tasks.abilities import Searches  # noqa: PLC0415  # torch: help need not wait

    if beam is not None or best != 1:
        searching = opened.require(Searches, "--best" if beam is None else "--beam")
        searching.decoding = searching.search(beam, best)


def set_sampling(
    opened: "OpenRun", temperature: float, top_p: float, count: int, seed: int
) -> None:
    """Set the run to sample."""
    from regard.tasks.abilities import Searches  # noqa: PLC0415

    searching = opened.require(Searches, "--sample")
    searching.decoding = searching.sampling(temperature, top_p, count, seed)


def check_one_way(sample: bool, beam: int | None) -> None:
    """Raise before anything is loaded."""
    if sample and beam is not None:
        raise ConfigError("--sample and --beam exclude each other. Give one of them.")
