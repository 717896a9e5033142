"""`regard predict`: a line in, a line out."""

import json
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli.configured import found

if TYPE_CHECKING:
    from regard.seq2seq.seams import Answer

Run = Annotated[str, typer.Argument(metavar="RUN", help="The folder that regard train wrote.")]
Input = Annotated[str, typer.Argument(metavar="[FILE]", help="Texts, one a line; - is the input.")]
Beams = Annotated[
    int | None, typer.Option("--beam", min=1, help="How many beginnings to follow at once.")
]
Best = Annotated[
    int, typer.Option("--best", min=1, help="So many answers to each line, as JSON lines.")
]
Last = Annotated[bool, typer.Option("--last", help="The last weights instead of the best.")]


def predict(
    run: Run, file: Input = "-", beam: Beams = None, best: Best = 1, last: Last = False
) -> None:
    """Answer each line of a file or of the standard input.

    regard predict runs/first input.txt --beam 5
    """
    texts = _lines(file)
    from regard.tasks.translate import Translator  # noqa: PLC0415  # torch: help need not wait

    translator = Translator.load(run, last=last)
    typer.echo(f"{run}: {translator.about}", err=True)
    for number, answers in enumerate(
        translator.stream(texts, translator.search(beam, best), _progress(file)), start=1
    ):
        typer.echo(answers[0].text if best == 1 else _as_json(number, answers))


def _lines(file: str) -> Iterator[str]:
    if file != "-":
        found("the input", [file])
    from regard.seq2seq.data import open_sources  # noqa: PLC0415

    corpus = open_sources(file)
    for fault in corpus.faults():
        if fault.severe and fault.line is not None:
            corpus[fault.line - 1]  # raises: told before the first answer
    return (corpus[number].source for number in range(len(corpus)))


def _progress(file: str) -> Any:
    """How far it is, on a terminal that shows nothing else."""
    if file == "-" or not sys.stderr.isatty() or sys.stdout.isatty():
        return None
    return lambda done: print(f"\r{done} lines", end="", file=sys.stderr, flush=True)  # noqa: T201


def _as_json(number: int, answers: "list[Answer]") -> str:
    told = [{"text": answer.text, "score": round(answer.score, 6)} for answer in answers]
    return json.dumps({"line": number, "answers": told}, ensure_ascii=False)
