"""`regard predict`: an item in, an answer out."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli.alignment_output import Alignments, Linker, Units, written
from regard.cli.config_options import existing
from regard.cli.lengths import LengthOptions, MaxSourceLength, MaxTargetLength, WhatIfTooLong
from regard.cli.open_run import EnsembleOption, Int8, Latest, OpenRun, Run, open_inputs, open_run
from regard.cli.output import say
from regard.cli.progress_bar import progress_bar
from regard.cli.search_options import (
    Beams,
    Best,
    Sample,
    Seed,
    Temperature,
    TopP,
    check_one_way,
    set_beam,
    set_sampling,
)
from regard.seq2seq.errors import ConfigError
from regard.tasks.config.wording import listed

if TYPE_CHECKING:
    from regard.seq2seq.protocols import Prediction

Input = Annotated[
    str, typer.Argument(metavar="[FILE]", help="Inputs, of texts one a line; - is the input.")
]
FormatName = Annotated[
    str | None,
    typer.Option("--format", metavar="NAME", help="How answers are written, if there is a choice."),
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
    format_name: FormatName = None,
    latest: Latest = False,
    int8: Int8 = False,
    ensemble: EnsembleOption = None,
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
    check_one_way(sample, beam)
    lengths = LengthOptions(max_source_length, max_length, too_long)
    items = open_inputs(run, file)
    opened = open_run(run, ensemble, latest=latest, int8=int8)
    lengths.apply(opened)
    if sample:
        set_sampling(opened, temperature, top_p, best, seed)
    else:
        set_beam(opened, beam, best)
    if replace_unknown or dictionary is not None:
        _replace_unknown(opened, dictionary)
    render = _format(opened, format_name)
    from regard.native.process import keep_heap  # noqa: PLC0415  # torch: help need not wait

    stream = (items[number] for number in range(len(items)))
    with (
        keep_heap(),
        progress_bar(len(items)) as progress,
        _linker(opened, alignments, units) as linker,
    ):
        answers = opened.predictor.stream(stream, progress=progress)
        for number, found in enumerate(answers, start=1):
            item = items[number - 1]
            say(render(item, found[0]) if best == 1 else _as_json(number, found))
            if linker is not None:
                linker.add(number, item, found)
    lengths.sum_up()


def _format(opened: OpenRun, name: str | None) -> Any:
    formats = opened.task.formats
    if name is None:
        return next(iter(formats.values()))
    if name not in formats:
        raise ConfigError(
            f"--format {name}: {opened.task.name} writes {listed(list(formats), 'or')}."
        )
    return formats[name]


@contextmanager
def _linker(opened: OpenRun, path: str | None, units: str) -> Iterator[Linker | None]:
    """Who writes alignments to a file, if one is named."""
    if path is None:
        yield None
        return
    from regard.tasks.abilities import LinksAnswers  # noqa: PLC0415

    linking = opened.require(LinksAnswers, "--alignments")
    with written(path) as file:
        linker = Linker(linking, file, units)
        yield linker
        linker.flush()


def _replace_unknown(opened: OpenRun, dictionary: str | None) -> None:
    from regard.seq2seq.data import open_pairs  # noqa: PLC0415
    from regard.tasks.abilities import ReplacesUnknown  # noqa: PLC0415

    replacing = opened.require(ReplacesUnknown, "--replace-unknown")
    words = {}
    if dictionary is not None:
        existing("--dictionary", [dictionary])
        corpus = open_pairs([dictionary])
        pairs = (corpus[number] for number in range(len(corpus)))
        words = {pair.source: pair.target or "" for pair in pairs}
    replacing.replace_unknown(words)


def _as_json(number: int, answers: "list[Prediction]") -> str:
    found = [{"text": answer.text, "score": round(answer.score, 6)} for answer in answers]
    return json.dumps({"line": number, "answers": found}, ensure_ascii=False)
