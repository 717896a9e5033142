"""`regard predict`: a line in, a line out."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.alignment_output import Alignments, Linker, Units, written
from regard.cli.config_options import found
from regard.cli.lengths import LengthOptions, MaxSourceLength, MaxTargetLength, WhatIfTooLong
from regard.cli.output import note, say
from regard.cli.progress_bar import progress_bar
from regard.cli.ranges import MOST_SEED, integer_range, number_where
from regard.seq2seq.errors import ConfigError
from regard.tasks.config.decoding import MAX_BEAM

if TYPE_CHECKING:
    from regard.seq2seq.data import PairCorpus
    from regard.seq2seq.decoding import UnkReplacement
    from regard.seq2seq.protocols import Prediction, Search
    from regard.tasks.translate import Translator

Run = Annotated[str, typer.Argument(metavar="RUN", help="The folder that regard train wrote.")]
Input = Annotated[str, typer.Argument(metavar="[FILE]", help="Texts, one a line; - is the input.")]
Beams = Annotated[
    int | None,
    typer.Option(
        "--beam",
        callback=integer_range("--beam", 1, MAX_BEAM),
        help=f"Beam size, {MAX_BEAM} at most.",
    ),
]
Best = Annotated[
    int,
    typer.Option(
        "--best",
        callback=integer_range("--best", 1, MAX_BEAM),
        help="So many answers to each line, as JSON lines.",
    ),
]
Last = Annotated[bool, typer.Option("--last", help="The last weights instead of the best.")]
Int8 = Annotated[
    bool, typer.Option("--int8", help="Round large layers to 8 bits: quicker on a CPU.")
]
With = Annotated[
    list[str] | None,
    typer.Option("--with", metavar="RUN", help="Another run that votes on each token; repeatable."),
]
Sample = Annotated[bool, typer.Option("--sample", help="Draw answers instead of searching.")]
Temperature = Annotated[
    float,
    typer.Option(
        "--temperature",
        callback=number_where(
            "--temperature", "a finite number greater than 0", lambda value: value > 0
        ),
        help="Of drawing: below 1 is bolder, above 1 more varied.",
    ),
]
TopP = Annotated[
    float,
    typer.Option(
        "--top-p",
        callback=number_where(
            "--top-p", "a number above 0, and 1 at most", lambda value: 0 < value <= 1
        ),
        help="Draw among the likeliest tokens of this share in all.",
    ),
]
Seed = Annotated[
    int,
    typer.Option(
        "--seed",
        callback=integer_range("--seed", 0, MOST_SEED),
        help="Other seeds draw other answers.",
    ),
]
Unknown = Annotated[
    bool,
    typer.Option("--replace-unknown", help="For an unknown word put the source's that was read."),
]
Dictionary = Annotated[
    str | None,
    typer.Option(
        "--dictionary", metavar="FILE", help="The same, translated: TSV of a word and another."
    ),
]


def predict(
    run: Run,
    file: Input = "-",
    beam: Beams = None,
    best: Best = 1,
    last: Last = False,
    int8: Int8 = False,
    others: With = None,
    sample: Sample = False,
    temperature: Temperature = 1.0,
    top_p: TopP = 1.0,
    seed: Seed = 1,
    replace_unknown: Unknown = False,
    dictionary: Dictionary = None,
    alignments: Alignments = None,
    units: Units = "word",
    max_source_length: MaxSourceLength = None,
    max_length: MaxTargetLength = None,
    too_long: WhatIfTooLong = None,
) -> None:
    """Answer each line of a file or of the standard input.

    regard predict runs/first input.txt --beam 5
    """
    if sample and beam is not None:
        raise ConfigError("--sample draws and --beam searches. Give one of them.")
    lengths = LengthOptions(max_source_length, max_length, too_long)
    texts = _open_translator(file)
    from regard.native.process import keep_heap  # noqa: PLC0415  # torch: help need not wait
    from regard.tasks.translate import load_ensemble  # noqa: PLC0415

    translator = load_ensemble([run, *(others or ())], last=last, int8=int8)
    lengths.apply(translator)
    if replace_unknown or dictionary is not None:
        translator.unknown = _replacement(translator, dictionary)
    note(f"{run}: {translator.about}")
    search: Search = translator.search(beam, best)
    if sample:
        search = translator.sampling(temperature, top_p, best, seed)
    lines = (texts[number].source for number in range(len(texts)))
    with (
        keep_heap(),
        progress_bar(len(texts)) as progress,
        _linking(translator, alignments, units) as to,
    ):
        for number, answers in enumerate(translator.stream(lines, search, progress), start=1):
            say(answers[0].text if best == 1 else _as_json(number, answers))
            if to is not None:
                to.add(number, texts[number - 1].source, answers)
    lengths.sum_up()


@contextmanager
def _linking(translator: "Translator", path: str | None, units: str) -> "Iterator[Linker | None]":
    """Who writes links to a file, if one is named."""
    if path is None:
        yield None
        return
    with written(path) as file:
        linker = Linker(translator, file, units)
        yield linker
        linker.flush()


def _open_translator(file: str) -> "PairCorpus":
    if file != "-":
        found("the input", [file])
    from regard.seq2seq.data import open_sources  # noqa: PLC0415

    corpus = open_sources(file)
    for fault in corpus.faults():
        if fault.severe and fault.line is not None:
            corpus[fault.line - 1]  # raises: told before the first answer
    return corpus


def _replacement(translator: "Translator", dictionary: str | None) -> "UnkReplacement":
    from regard.seq2seq.data import open_pairs  # noqa: PLC0415
    from regard.seq2seq.decoding import UnkReplacement  # noqa: PLC0415

    words = {}
    if dictionary is not None:
        found("--dictionary", [dictionary])
        corpus = open_pairs([dictionary])
        pairs = (corpus[number] for number in range(len(corpus)))
        words = {pair.source: pair.target or "" for pair in pairs}
    return UnkReplacement(words, "" if translator.config.text.kind == "characters" else " ")


def _as_json(number: int, answers: "list[Prediction]") -> str:
    told = [{"text": answer.text, "score": round(answer.score, 6)} for answer in answers]
    return json.dumps({"line": number, "answers": told}, ensure_ascii=False)
