"""`regard evaluate`: how good a model is on pairs that it has not seen."""

import json
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.lengths import LengthOptions, MaxSourceLength, MaxTargetLength, WhatIfTooLong
from regard.cli.open_run import open_run
from regard.cli.output import say
from regard.cli.predict import Beams, Int8, Last, Run, With
from regard.cli.progress_bar import progress_bar

if TYPE_CHECKING:
    from regard.seq2seq.metrics import MetricScore

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
    max_source_length: MaxSourceLength = None,
    max_length: MaxTargetLength = None,
    too_long: WhatIfTooLong = None,
    as_json: AsJson = False,
) -> None:
    """Score a model's answers: BLEU, chrF, exact matches, perplexity, with signatures.

    regard evaluate runs/first test.tsv
    """
    lengths = LengthOptions(max_source_length, max_length, too_long)
    translator, pairs = open_run([run, *(others or ())], files, last=last, int8=int8)
    lengths.apply(translator)
    from regard.native.process import keep_heap  # noqa: PLC0415  # torch: help need not wait
    from regard.tasks.translate.evaluation import evaluate  # noqa: PLC0415

    with keep_heap(), progress_bar(len(pairs)) as progress:
        scores = evaluate(translator, pairs, beam=beam, progress=progress)
    lengths.sum_up()
    if as_json:
        say(json.dumps([score.as_json() for score in scores], ensure_ascii=False))
        return
    for score in scores:
        say(_line(score))


def _line(score: "MetricScore") -> str:
    between = "" if score.interval is None else "[{:.2f}, {:.2f}]".format(*score.interval)
    return f"{score.name:10} {score.value:8.2f}  {between:16}  {score.signature}"
