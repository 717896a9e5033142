"""The command `regard`: its verbs, and what stands before them."""

import sys
import traceback
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated

import typer

from regard.cli.align import align
from regard.cli.check import check
from regard.cli.demo import demo
from regard.cli.evaluate import evaluate
from regard.cli.init import init
from regard.cli.output import say
from regard.cli.predict import predict
from regard.cli.run_command import run_command, speak_utf8
from regard.cli.score import score
from regard.cli.show import show
from regard.cli.train import train
from regard.seq2seq.system.escaping import escaped

FIRST, BEFORE, AFTER = "To begin with", "Before training", "After it"

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Each verb has its own help: regard init --help",
)
app.command(rich_help_panel=FIRST)(demo)
app.command(rich_help_panel=BEFORE)(check)
app.command(rich_help_panel=BEFORE)(init)
app.command(rich_help_panel="Training")(train)
app.command(rich_help_panel=AFTER)(predict)
app.command(rich_help_panel=AFTER)(evaluate)
app.command(rich_help_panel=AFTER)(score)
app.command(rich_help_panel=AFTER)(align)
app.command(rich_help_panel=AFTER)(show)


def _version(asked: bool) -> bool:
    if asked:
        try:
            number = version("regard")
        except PackageNotFoundError:
            number = "(not installed)"
        say(f"regard {number}")
        raise typer.Exit
    return asked


@app.callback()
def regard(
    _debug: Annotated[
        bool, typer.Option("--debug", help="Show where an error comes from; anywhere.")
    ] = False,
    _asked: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Attention: from pairs of text to a model that translates."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says; the code to leave with."""
    speak_utf8()
    given = list(sys.argv[1:] if arguments is None else arguments)
    # Taken out here, so that it may stand behind the verb that failed.
    told = [argument for argument in given if argument != "--debug"] or ["--help"]
    try:
        return run_command(
            lambda: app(told, prog_name="regard", standalone_mode=False), debug="--debug" in given
        )
    except Exception:  # a mistake of ours: the traceback may quote what others made
        sys.stderr.write(escaped(traceback.format_exc()))
        return 1
