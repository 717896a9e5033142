"""`regard align`: word alignments of given pairs."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.alignment_output import Units
from regard.cli.config_options import check_exist
from regard.cli.lengths import LengthOptions, MaxSourceLength, MaxTargetLength, WhatIfTooLong
from regard.cli.open_run import AsJson, Files, Latest, Run, open_run
from regard.cli.output import write_answer
from regard.cli.progress_bar import progress_bar
from regard.cli.ranges import share
from regard.seq2seq.errors import ConfigError

if TYPE_CHECKING:
    from regard.seq2seq.alignment import Gold
    from regard.seq2seq.data import Pair
    from regard.tasks.pairs.aligning import Alignment, Aligns

Reverse = Annotated[
    str | None, typer.Option("--reverse", metavar="RUN", help="A run of the reverse direction.")
]
Symmetrize = Annotated[
    str | None,
    typer.Option(
        "--symmetrize",
        metavar="RULE",
        help="How both directions are combined: intersection, union, grow-diag, grow-diag-final, "
        "grow-diag-final-and (the default with --reverse), product of the soft alignments (an "
        "aligner's default), or one of them alone: forward, backward.",
    ),
]
ThresholdOption = Annotated[
    float | None,
    typer.Option(
        "--threshold",
        callback=share("--threshold"),
        help="Link all pairs with a weight above this, not only the argmax.",
    ),
]
MutualOption = Annotated[
    bool, typer.Option("--mutual", help="Link only pairs that are the argmax of both their words.")
]
Null = Annotated[
    float,
    typer.Option(
        "--null",
        callback=share("--null"),
        help="A word with more weight than this on NULL has no link.",
    ),
]
Layer = Annotated[
    str,
    typer.Option(
        "--layer", metavar="NAME", help="Layer or head, as in decoder.2 or decoder.2/head.1."
    ),
]
GoldFile = Annotated[
    str | None, typer.Option("--gold", metavar="FILE", help="Evaluate against these links.")
]
First = Annotated[
    int, typer.Option("--first", min=0, max=1, help="Index of the first word in gold links.")
]


def align(
    run: Run,
    files: Files,
    units: Units = "word",
    reverse: Reverse = None,
    symmetrize: Symmetrize = None,
    threshold: ThresholdOption = None,
    mutual: MutualOption = False,
    null: Null = 0.5,
    layer: Layer = "",
    gold: GoldFile = None,
    first: First = 0,
    latest: Latest = False,
    max_source_length: MaxSourceLength = None,
    max_length: MaxTargetLength = None,
    too_long: WhatIfTooLong = None,
    as_json: AsJson = False,
) -> None:
    """Align the words of given pairs: a line of `source-target` links for each, counted from 0.

    regard align runs/ende pairs.tsv > links.pharaoh
    """
    if mutual and threshold is not None:
        raise ConfigError("--mutual and --threshold exclude each other. Give one of them.")
    lengths = LengthOptions(max_source_length, max_length, too_long)
    opened = open_run(run, files=files, latest=latest)
    others = [] if reverse is None else [open_run(reverse, latest=latest)]
    from regard.seq2seq.alignment import (  # noqa: PLC0415
        Argmax,
        Extraction,
        Mutual,
        Threshold,
        alignment_error,
        format_pharaoh,
    )
    from regard.seq2seq.data import BoundedPairs  # noqa: PLC0415  # torch: help need not wait
    from regard.tasks.abilities import AlignsPairs  # noqa: PLC0415
    from regard.tasks.pairs.aligning import AlignmentOptions, alignments  # noqa: PLC0415

    aligner = opened.require(AlignsPairs, "regard align").aligner(
        others[0].predictor if others else None
    )
    given = opened.gold(files)
    aligner.check(given)
    lengths.apply(opened, *others)
    pairs = BoundedPairs(given, aligner.bounded)  # truncated texts are aligned as truncated
    pairs.check()
    rule: Extraction = Mutual(null) if mutual else Argmax(null)
    rule = rule if threshold is None else Threshold(threshold, null)
    product = aligner.threshold if threshold is None else threshold
    options = AlignmentOptions(units, rule, symmetrize or aligner.symmetry, product, layer)
    truth = None if gold is None else _gold(gold, aligner, given, units, first)
    with progress_bar(len(pairs)) as progress:
        found = alignments(aligner, pairs, options, progress)
        if truth is None:
            for pair, each in zip(pairs, found, strict=True):
                write_answer(
                    _as_json(aligner, pair, units, each) if as_json else format_pharaoh(each.links)
                )
            lengths.note_rest()
            return
        scores = alignment_error([each.links for each in found], truth)
    lengths.note_rest()
    if as_json:
        write_answer(json.dumps([score.as_json() for score in scores]))
        return
    for score in scores:
        write_answer(f"{score.name:10} {score.value:.4f}  {score.signature}")


def _as_json(aligner: "Aligns", pair: "Pair", units: str, found: "Alignment") -> str:
    from regard.tasks.pairs.aligning import unit_texts  # noqa: PLC0415

    source, target = unit_texts(aligner.codec, pair, units)
    weights = [[round(weight, 4) for weight in row] for row in found.weights.tolist()]
    record = {"line": pair.line, "source": source, "target": target, "links": sorted(found.links)}
    return json.dumps({**record, "weights": weights}, ensure_ascii=False)


def _gold(
    path: str, aligner: "Aligns", pairs: "Sequence[Pair]", units: str, first: int
) -> "list[Gold]":
    """Gold links, by format: Pharaoh, NAACL with a link a line, or JSON lines."""
    check_exist("--gold", [path])
    from regard.seq2seq.alignment import (  # noqa: PLC0415
        check_range,
        read_json_links,
        read_naacl,
        read_pharaoh,
    )
    from regard.seq2seq.data import read_lines  # noqa: PLC0415
    from regard.tasks.pairs.aligning import unit_texts  # noqa: PLC0415

    lines = read_lines(path)
    texts = [lines[number] for number in range(len(lines))]
    words = texts[0].split() if texts else []
    sides = [unit_texts(aligner.codec, pair, units) for pair in pairs]
    if texts and texts[0].lstrip().startswith("{"):
        gold = read_json_links(texts, path, sides)
    elif words and words[0].isdecimal():  # no Pharaoh link is a number alone
        gold = read_naacl(texts, path, len(pairs))
    else:
        gold = read_pharaoh(texts, path, first=first)
    check_range(gold, [(len(source), len(target)) for source, target in sides], path)
    return gold
