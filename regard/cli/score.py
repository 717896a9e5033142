"""`regard score`: how likely a model finds given targets."""

import json

import typer

from regard.cli.evaluate import AsJson, Files
from regard.cli.opened import opened
from regard.cli.predict import Int8, Last, Run, With
from regard.cli.progress import counted


def score(
    run: Run,
    files: Files,
    last: Last = False,
    int8: Int8 = False,
    others: With = None,
    as_json: AsJson = False,
) -> None:
    """Write the log-probability of each pair's target, a line for a line.

    regard score runs/first pairs.tsv
    """
    translator, pairs = opened([run, *(others or ())], files, last=last, int8=int8)
    from regard.attention.kernels import kept_heap  # noqa: PLC0415  # torch: help need not wait

    given = ((pair.source, pair.target or "") for pair in pairs)
    with kept_heap(), counted(len(pairs)) as progress:
        for number, answer in enumerate(translator.score(given, progress), start=1):
            if not as_json:
                typer.echo(f"{answer.score:.6f}")
                continue
            told = {
                "line": number,
                "log_prob": round(answer.score, 6),
                "tokens": len(answer.target) + 1,  # the end is one that must be told, too
            }
            typer.echo(json.dumps(told))
