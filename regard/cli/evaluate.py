"""`regard evaluate`: how good a model is on pairs that it has not seen."""

import json
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.opened import opened
from regard.cli.predict import Beams, Int8, Last, Run, With
from regard.cli.progress import counted

if TYPE_CHECKING:
    from regard.seq2seq.metrics import Score

Files = Annotated[
    list[str], typer.Argument(metavar="FILE…", help="Pairs: TSV or JSONL, or two files.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Tell it as JSON.")]


def evaluate(
    run: Run,
    files: Files,
    beam: Beams = None,
    last: Last = False,
    int8: Int8 = False,
    others: With = None,
    as_json: AsJson = False,
) -> None:
    """Score a model's answers: BLEU, chrF, exact matches, perplexity, with signatures.

    regard evaluate runs/first test.tsv
    """
    translator, pairs = opened([run, *(others or ())], files, last=last, int8=int8)
    from regard.attention.kernels import kept_heap  # noqa: PLC0415  # torch: help need not wait
    from regard.tasks.translate.scoring import scored  # noqa: PLC0415

    with kept_heap(), counted(len(pairs)) as progress:
        scores = scored(translator, pairs, beam=beam, progress=progress)
    if as_json:
        typer.echo(json.dumps([score.as_json() for score in scores], ensure_ascii=False))
        return
    for score in scores:
        typer.echo(_line(score))


def _line(score: "Score") -> str:
    between = "" if score.interval is None else "[{:.2f}, {:.2f}]".format(*score.interval)
    return f"{score.name:10} {score.value:8.2f}  {between:16}  {score.signature}"
