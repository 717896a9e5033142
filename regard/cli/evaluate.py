"""`regard evaluate`: the metrics of a model on unseen items."""

import json
from typing import TYPE_CHECKING

from regard.cli.lengths import LengthOptions, MaxSourceLength, MaxTargetLength, WhatIfTooLong
from regard.cli.open_run import AsJson, EnsembleOption, Files, Int8, Latest, Run, open_run
from regard.cli.output import write_answer
from regard.cli.progress_bar import progress_bar
from regard.cli.search_options import Beams, set_beam

if TYPE_CHECKING:
    from regard.seq2seq.metrics import MetricScore


def evaluate(
    run: Run,
    files: Files,
    beam: Beams = None,
    latest: Latest = False,
    int8: Int8 = False,
    ensemble: EnsembleOption = None,
    max_source_length: MaxSourceLength = None,
    max_length: MaxTargetLength = None,
    too_long: WhatIfTooLong = None,
    as_json: AsJson = False,
) -> None:
    """Evaluate a model with the metrics of its task, with signatures.

    regard evaluate runs/first test.tsv
    """
    lengths = LengthOptions(max_source_length, max_length, too_long)
    opened = open_run(run, ensemble, files=files, latest=latest, int8=int8)
    lengths.apply(opened)
    set_beam(opened, beam)
    from regard.native.process import keep_heap  # noqa: PLC0415  # torch: help need not wait

    items = opened.gold(files)
    with keep_heap(), progress_bar(len(items)) as progress:
        scores = opened.predictor.evaluate(items, progress=progress)
    lengths.note_rest()
    if as_json:
        write_answer(json.dumps([score.as_json() for score in scores], ensure_ascii=False))
        return
    for score in scores:
        write_answer(_line(score))


def _line(score: "MetricScore") -> str:
    interval = "" if score.interval is None else "[{:.2f}, {:.2f}]".format(*score.interval)
    return f"{score.name:10} {score.value:8.2f}  {interval:16}  {score.signature}"
