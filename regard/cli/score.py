"""`regard score`: how likely a model finds given targets."""

import json

import typer

from regard.cli.configured import found
from regard.cli.evaluate import AsJson, Files
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
    found("the pairs", files)
    from regard.attention.kernels import kept_heap  # noqa: PLC0415  # torch: help need not wait
    from regard.tasks.translate import together  # noqa: PLC0415
    from regard.tasks.translate.scoring import open_given  # noqa: PLC0415

    translator = together([run, *(others or ())], last=last, int8=int8)
    pairs = open_given(translator, files)
    typer.echo(f"{run}: {translator.about}", err=True)
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
