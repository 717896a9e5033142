"""`regard show`: see what a model looked at."""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli.align import Layer, Units
from regard.cli.predict import Beams, Last, Run
from regard.seq2seq.errors import ConfigError

Source = Annotated[str, typer.Argument(metavar="TEXT", help="What is read.")]
Target = Annotated[
    str | None,
    typer.Argument(metavar="[TARGET]", help="What it was read for; the model's answer if none."),
]
Out = Annotated[
    str | None,
    typer.Option(
        "-o", "--out", metavar="FILE", help="Where to draw: .png, .svg or .html; else here."
    ),
]
KINDS = (".png", ".svg", ".html")


def show(
    run: Run,
    text: Source,
    target: Target = None,
    out: Out = None,
    units: Units = "word",
    layer: Layer = "",
    beam: Beams = None,
    last: Last = False,
) -> None:
    """Draw what was read for each word of an answer, or of a given target.

    regard show runs/ende "Just drink coffee." -o coffee.png
    """
    path = None if out is None else Path(out)
    if path is not None and path.suffix not in KINDS:
        raise ConfigError(f"-o {out}: pictures are {', '.join(KINDS)}. Name the file so.")
    from regard.tasks.pictures import as_blocks, as_page, save_picture  # noqa: PLC0415  # torch
    from regard.tasks.translate import Translator  # noqa: PLC0415
    from regard.tasks.translate.looking import looked  # noqa: PLC0415

    translator = Translator.load(run, last=last)
    found = looked(translator, text, target, units=units, layer=layer, beam=beam)
    if path is None:
        typer.echo(f"{found.legend}\n\n{as_blocks(found.answer)}")
        return
    if path.suffix == ".html":
        answer = found.answer
        page = as_page(found.title, answer.source, answer.target, found.readings, found.legend)
        path.write_text(page, encoding="utf-8")
    else:
        save_picture(path, [found.answer], [found.legend])
    typer.echo(f"drew {path}", err=True)
