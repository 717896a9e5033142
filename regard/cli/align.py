"""`regard align`: which words belong together."""

import json
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.configured import found
from regard.cli.evaluate import AsJson, Files
from regard.cli.opened import opened
from regard.cli.predict import Last, Run
from regard.cli.progress import counted

if TYPE_CHECKING:
    from regard.seq2seq.data import Pair
    from regard.seq2seq.reading import Gold, Links
    from regard.tasks.translate import Translator

Units = Annotated[
    str, typer.Option("--units", metavar="word|subword|char", help="What is linked to what.")
]
Reverse = Annotated[
    str | None, typer.Option("--reverse", metavar="RUN", help="A run of the other direction.")
]
Symmetrize = Annotated[
    str,
    typer.Option(
        "--symmetrize",
        metavar="RULE",
        help="With --reverse: intersection, union, grow-diag, grow-diag-final, "
        "grow-diag-final-and, or product, of the soft alignments.",
    ),
]
Threshold = Annotated[
    float | None,
    typer.Option("--threshold", help="Link what is read more than this, not only the most."),
]
Null = Annotated[
    float, typer.Option("--null", help="A word with more than this on no word has no link.")
]
Layer = Annotated[
    str, typer.Option("--layer", metavar="NAME", help="Whose reading, as in decoder.2.")
]
GoldFile = Annotated[
    str | None, typer.Option("--gold", metavar="FILE", help="Score against these links.")
]
First = Annotated[
    int, typer.Option("--first", min=0, max=1, help="By what gold links count the first word.")
]


def align(
    run: Run,
    files: Files,
    units: Units = "word",
    reverse: Reverse = None,
    symmetrize: Symmetrize = "grow-diag-final-and",
    threshold: Threshold = None,
    null: Null = 0.5,
    layer: Layer = "",
    gold: GoldFile = None,
    first: First = 0,
    last: Last = False,
    as_json: AsJson = False,
) -> None:
    """Link the words of given pairs: a line of `source-target` for each, counted from 0.

    regard align runs/ende pairs.tsv > links.pharaoh
    """
    one, pairs = opened([run], files, last=last)
    from regard.seq2seq.reading import (  # noqa: PLC0415  # torch: help need not wait
        Above,
        Best,
        alignment_error,
        as_pharaoh,
    )
    from regard.tasks.translate import together  # noqa: PLC0415
    from regard.tasks.translate.aligning import Aligning, aligned  # noqa: PLC0415

    rule = Best(null) if threshold is None else Above(threshold, null)
    product = 0.3 if threshold is None else threshold
    options = Aligning(units, rule, symmetrize, product, layer)
    other = None if reverse is None else together([reverse], last=last)
    truth = None if gold is None else _gold(gold, one, pairs, units, first)
    with counted(len(pairs)) as progress:
        links = aligned(one, other, pairs, options, progress)
        if truth is None:
            for number, each in enumerate(links, start=1):
                typer.echo(_as_json(number, each) if as_json else as_pharaoh(each))
            return
        scores = alignment_error(list(links), truth)
    if as_json:
        typer.echo(json.dumps([score.as_json() for score in scores]))
        return
    for score in scores:
        typer.echo(f"{score.name:10} {score.value:.4f}  {score.signature}")


def _as_json(number: int, links: "Links") -> str:
    return json.dumps({"line": number, "links": sorted(links)})


def _gold(
    path: str, translator: "Translator", pairs: "Sequence[Pair]", units: str, first: int
) -> "list[Gold]":
    """Gold links by their form: Pharaoh's, or NAACL's with a link a line."""
    found("--gold", [path])
    from regard.seq2seq.data import read_lines  # noqa: PLC0415
    from regard.seq2seq.reading import check_range, read_naacl, read_pharaoh  # noqa: PLC0415
    from regard.tasks.translate.aligning import unit_counts  # noqa: PLC0415

    lines = read_lines(path)
    texts = [lines[number] for number in range(len(lines))]
    words = texts[0].split() if texts else []
    naacl = bool(words) and words[0].isdecimal()  # no link of Pharaoh's is a number alone
    read = partial(read_naacl, count=len(pairs)) if naacl else partial(read_pharaoh, first=first)
    gold = read(texts, path)
    check_range(gold, [unit_counts(translator, pair, units) for pair in pairs], path)
    return gold
