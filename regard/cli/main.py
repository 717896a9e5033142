"""The command `regard`: its verbs and global options."""

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
from regard.cli.output import write_answer
from regard.cli.predict import predict
from regard.cli.recipes import recipes
from regard.cli.run_command import run_command, use_utf8
from regard.cli.score import score
from regard.cli.show import show
from regard.cli.train import train
from regard.seq2seq.system.escaping import escaped

HELP = ["-h", "--help"]
FIRST, BEFORE, AFTER = "Getting started", "Before training", "After training"

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": HELP},
    epilog="Each verb has its own help: regard init --help",
)
app.command(rich_help_panel=FIRST)(demo)
app.command(rich_help_panel=BEFORE)(check)
app.command(rich_help_panel=BEFORE)(init)
app.command(rich_help_panel=BEFORE)(recipes)
app.command(rich_help_panel="Training")(train)
app.command(rich_help_panel=AFTER)(predict)
app.command(rich_help_panel=AFTER)(evaluate)
app.command(rich_help_panel=AFTER)(score)
app.command(rich_help_panel=AFTER)(align)
app.command(rich_help_panel=AFTER)(show)


def _version(requested: bool) -> bool:
    if requested:
        try:
            number = version("regard")
        except PackageNotFoundError:
            number = "(not installed)"
        write_answer(f"regard {number}")
        raise typer.Exit
    return requested


@app.callback()
def regard(
    _debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error.")
    ] = False,
    _requested: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Attention: from pairs of text to a model that translates."""


def _command() -> typer.core.TyperGroup:
    """The command with its verbs; in help, flags show no type."""
    group = typer.main.get_command(app)
    assert isinstance(group, typer.core.TyperGroup)
    for each in (group, *group.commands.values()):
        for param in each.get_params(typer.Context(each, help_option_names=HELP)):
            if isinstance(param, typer.core.TyperOption) and param.is_flag:
                param.metavar = ""
    return group


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line; returns the exit code."""
    use_utf8()
    given = list(sys.argv[1:] if arguments is None else arguments)
    # Removed here, so that it may also follow the verb.
    rest = [argument for argument in given if argument != "--debug"] or ["--help"]
    try:
        return run_command(
            lambda: _command()(rest, prog_name="regard", standalone_mode=False),
            debug="--debug" in given,
        )
    except Exception:  # a bug: the traceback may quote untrusted text
        sys.stderr.write(escaped(traceback.format_exc()))
        return 1
