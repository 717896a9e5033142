"""`regard score`: how likely a model finds given targets."""

import json
import math

from regard.cli.evaluate import AsJson, Files
from regard.cli.lengths import LengthOptions, MaxSourceLength, MaxTargetLength, WhatIfTooLong
from regard.cli.open_run import open_run
from regard.cli.output import say
from regard.cli.predict import Int8, Last, Run, With
from regard.cli.progress_bar import progress_bar


def score(
    run: Run,
    files: Files,
    last: Last = False,
    int8: Int8 = False,
    others: With = None,
    max_source_length: MaxSourceLength = None,
    max_length: MaxTargetLength = None,
    too_long: WhatIfTooLong = None,
    as_json: AsJson = False,
) -> None:
    """Write the log-probability of each pair's target, a line for a line.

    regard score runs/first pairs.tsv
    """
    lengths = LengthOptions(max_source_length, max_length, too_long)
    translator, pairs = open_run([run, *(others or ())], files, last=last, int8=int8)
    lengths.apply(translator)
    from regard.native.process import keep_heap  # noqa: PLC0415  # torch: help need not wait

    given = ((pair.source, pair.target or "") for pair in pairs)
    with keep_heap(), progress_bar(len(pairs)) as progress:
        for number, answer in enumerate(translator.score(given, progress), start=1):
            if not as_json:
                say(f"{answer.score:.6f}")
                continue
            told = {
                "line": number,
                "log_prob": None if math.isnan(answer.score) else round(answer.score, 6),
                "tokens": len(answer.target) + 1,  # the end is one that must be told, too
            }
            say(json.dumps(told))
    lengths.sum_up()
