"""`regard score`: the log-probability of given targets."""

import json
import math

from regard.cli.lengths import LengthOptions, MaxSourceLength, MaxTargetLength, WhatIfTooLong
from regard.cli.open_run import AsJson, EnsembleOption, Files, Int8, Latest, Run, open_run
from regard.cli.output import write_answer
from regard.cli.progress_bar import progress_bar


def score(
    run: Run,
    files: Files,
    latest: Latest = False,
    int8: Int8 = False,
    ensemble: EnsembleOption = None,
    max_source_length: MaxSourceLength = None,
    max_length: MaxTargetLength = None,
    too_long: WhatIfTooLong = None,
    as_json: AsJson = False,
) -> None:
    """Write the log-probability of each pair's target, a line each.

    regard score runs/first pairs.tsv
    """
    lengths = LengthOptions(max_source_length, max_length, too_long)
    opened = open_run(run, ensemble, files=files, latest=latest, int8=int8)
    from regard.native.process import keep_heap  # noqa: PLC0415  # torch: help need not wait
    from regard.tasks.abilities import ScoresTargets  # noqa: PLC0415

    scoring = opened.require(ScoresTargets, "regard score")
    lengths.apply(opened)
    items = opened.gold(files)
    with keep_heap(), progress_bar(len(items)) as progress:
        for number, answer in enumerate(scoring.score(items, progress=progress), start=1):
            if not as_json:
                write_answer(f"{answer.score:.6f}")
                continue
            record = {
                "line": number,
                "log_prob": None if math.isnan(answer.score) else round(answer.score, 6),
                "tokens": len(answer.target) + 1,  # EOS is one of them
            }
            write_answer(json.dumps(record))
    lengths.note_rest()
