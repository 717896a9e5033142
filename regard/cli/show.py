"""`regard show`: plot the attention of a model."""

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli.align import Layer
from regard.cli.lengths import LengthOptions, MaxSourceLength, MaxTargetLength, WhatIfTooLong
from regard.cli.open_run import AsJson, Latest, OpenRun, Run, open_run
from regard.cli.output import note, write_answer
from regard.cli.ranges import share
from regard.cli.search_options import Beams, set_beam
from regard.seq2seq.errors import ConfigError

if TYPE_CHECKING:
    from regard.tasks.plots import AttentionMap

SourceText = Annotated[str, typer.Argument(metavar="TEXT", help="The source.")]
Target = Annotated[
    str | None,
    typer.Argument(metavar="[TARGET]", help="The target; by default the model's own answer."),
]
Out = Annotated[
    str | None,
    typer.Option(
        "-o", "--out", metavar="FILE", help="A .png, .svg, .pdf or .html; by default the terminal."
    ),
]
ViewOption = Annotated[
    str,
    typer.Option(
        "--view",
        metavar="heat|arcs|heads",
        help="A heat map, arcs between both texts, or small heat maps: of each head of --layer, "
        "else of each layer. A page (.html) has them all.",
    ),
]
ArcThreshold = Annotated[
    float,
    typer.Option(
        "--threshold", callback=share("--threshold"), help="Draw arcs for weights above this."
    ),
]
Check = Annotated[
    bool,
    typer.Option(
        "--check", help="Measure faithfulness: leave out each source word and score again."
    ),
]
ShownUnits = Annotated[
    str,
    typer.Option(
        "--units",
        metavar="word|subword|char",
        help="Units of rows and columns; by default words, of a character model characters.",
    ),
]
KINDS = (".png", ".svg", ".pdf", ".html")
VIEWS = ("heat", "arcs", "heads")


def show(
    run: Run,
    text: SourceText,
    target: Target = None,
    out: Out = None,
    view: ViewOption = "heat",
    threshold: ArcThreshold = 0.2,
    units: ShownUnits = "",
    layer: Layer = "",
    check: Check = False,
    beam: Beams = None,
    latest: Latest = False,
    max_source_length: MaxSourceLength = None,
    max_length: MaxTargetLength = None,
    too_long: WhatIfTooLong = None,
    as_json: AsJson = False,
) -> None:
    """Plot the attention for each word of an answer, or of a given target.

    regard show runs/ende "Just drink coffee." -o coffee.png
    """
    path = None if out is None else Path(out)
    _check_view(path, view)
    lengths = LengthOptions(max_source_length, max_length, too_long)
    opened = open_run(run, latest=latest, announce=False)
    lengths.apply(opened)
    set_beam(opened, beam)
    page = path is not None and path.suffix == ".html"
    maps = "all" if page else "several" if view == "heads" else "one"
    item = opened.task.given(opened.config, text, target)
    report = _faithfulness(opened, item, units, layer, as_json) if check else ""
    found = opened.predictor.attention(item, units=units, layer=layer, maps=maps)
    note(f"{run}: {opened.predictor.about}")
    if view == "heads" and len(found.maps) == 1:
        note("note: there is only one layer or head to draw, so --view heads draws one map")
    if path is not None:
        _draw(path, found, view, threshold)
    if check:
        write_answer(report)
    elif path is None:
        text = json.dumps(found.to_dict(), ensure_ascii=False) if as_json else _terminal(found)
        write_answer(text)


def _faithfulness(opened: OpenRun, item: Any, units: str, layer: str, as_json: bool) -> str:
    from regard.cli.faithfulness_report import faithfulness_report  # noqa: PLC0415  # torch
    from regard.tasks.abilities import MeasuresFaithfulness  # noqa: PLC0415

    measuring = opened.require(MeasuresFaithfulness, "--check")
    found = measuring.faithfulness(item, units=units, layer=layer)
    measured = opened.predictor.attention(item, units=units, layer=layer)
    return faithfulness_report(found, measured.caption, as_json)


def _check_view(path: Path | None, view: str) -> None:
    """Raise if the view cannot be drawn there."""
    if path is not None and path.suffix not in KINDS:
        raise ConfigError(f"-o {path}: pictures are {', '.join(KINDS)}. Name the file so.")
    if view not in VIEWS:
        raise ConfigError(f"--view {view}: views are {', '.join(VIEWS)}. Choose one of them.")
    if path is None and view == "arcs":
        raise ConfigError("--view arcs: a terminal has no arcs. Give a file: -o attention.png")


def _draw(path: Path, found: "AttentionMap", view: str, threshold: float) -> None:
    from regard.tasks.plots import html_page, save_figure  # noqa: PLC0415  # torch

    if path.suffix == ".html":
        path.write_text(html_page(found, threshold), encoding="utf-8")
    elif missing := save_figure(path, found, view, threshold):
        note(f"note: {missing} Or write a page, which needs none: -o attention.html")
    note(f"drew {path}")


def _terminal(found: "AttentionMap") -> str:
    """Each attention map as text, as wide as the terminal."""
    from regard.tasks.plots import SHADE_LEGEND, terminal_heatmap  # noqa: PLC0415  # torch

    width = shutil.get_terminal_size().columns
    parts = [f"{each.caption}\n\n{terminal_heatmap(each, width)}" for each in found.split()]
    return "\n\n".join([*parts, SHADE_LEGEND])
