"""`regard evaluate`: how good a model is on pairs that it has not seen."""

import json
from typing import Annotated

import typer

from regard.cli.configured import found
from regard.cli.predict import Beams, Last, Run

Files = Annotated[
    list[str], typer.Argument(metavar="FILE…", help="Pairs: TSV or JSONL, or two files.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Tell it as JSON.")]


def evaluate(
    run: Run, files: Files, beam: Beams = None, last: Last = False, as_json: AsJson = False
) -> None:
    """Score a model's answers: BLEU, chrF, exact matches, with signatures.

    regard evaluate runs/first test.tsv
    """
    found("the pairs", files)
    from regard.tasks.translate import Translator  # noqa: PLC0415  # torch: help need not wait
    from regard.tasks.translate.scoring import scored  # noqa: PLC0415

    translator = Translator.load(run, last=last)
    typer.echo(f"{run}: {translator.about}", err=True)
    scores = scored(translator, files, beam=beam)
    if as_json:
        typer.echo(json.dumps([score.as_json() for score in scores], ensure_ascii=False))
        return
    for score in scores:
        low, high = score.interval or (score.value, score.value)
        typer.echo(f"{score.name:6} {score.value:7.2f}  [{low:.2f}, {high:.2f}]  {score.signature}")
