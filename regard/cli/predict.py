"""`regard predict`: the model's answer to each input."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli.alignment_output import Alignments, AlignmentWriter, Units, atomic_output
from regard.cli.config_options import check_exist
from regard.cli.lengths import LengthOptions, MaxSourceLength, MaxTargetLength, WhatIfTooLong
from regard.cli.open_run import EnsembleOption, Int8, Latest, OpenRun, Run, open_inputs, open_run
from regard.cli.output import write_answer
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
    str,
    typer.Argument(metavar="[FILE]", help="Inputs, for texts one per line; - is standard input."),
]
FormatName = Annotated[
    str | None,
    typer.Option("--format", metavar="NAME", help="Output format, if the task has several."),
]
Unknown = Annotated[
    bool,
    typer.Option(
        "--replace-unknown", help="Replace UNK by the source word with the most attention."
    ),
]
Dictionary = Annotated[
    str | None,
    typer.Option(
        "--dictionary",
        metavar="FILE",
        help="Replace UNK by that word's translation: TSV of source and target words.",
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
    """Predict an answer to each line of a file or of standard input.

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
        _alignment_writer(opened, alignments, units) as writer,
    ):
        answers = opened.predictor.stream(stream, progress=progress)
        for number, found in enumerate(answers, start=1):
            item = items[number - 1]
            write_answer(render(item, found[0]) if best == 1 else _as_json(number, found))
            if writer is not None:
                writer.add(number, item, found)
    lengths.note_rest()


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
def _alignment_writer(
    opened: OpenRun, path: str | None, units: str
) -> Iterator[AlignmentWriter | None]:
    """The writer of `--alignments`, if given."""
    if path is None:
        yield None
        return
    from regard.tasks.abilities import LinksAnswers  # noqa: PLC0415

    predictor = opened.require(LinksAnswers, "--alignments")
    with atomic_output(path) as file:
        writer = AlignmentWriter(predictor, file, units)
        yield writer
        writer.flush()


def _replace_unknown(opened: OpenRun, dictionary: str | None) -> None:
    from regard.seq2seq.data import open_pairs  # noqa: PLC0415
    from regard.tasks.abilities import ReplacesUnknown  # noqa: PLC0415

    replacing = opened.require(ReplacesUnknown, "--replace-unknown")
    words = {}
    if dictionary is not None:
        check_exist("--dictionary", [dictionary])
        corpus = open_pairs([dictionary])
        pairs = (corpus[number] for number in range(len(corpus)))
        words = {pair.source: pair.target or "" for pair in pairs}
    replacing.replace_unknown(words)


def _as_json(number: int, answers: "list[Prediction]") -> str:
    found = [{"text": answer.text, "score": round(answer.score, 6)} for answer in answers]
    return json.dumps({"line": number, "answers": found}, ensure_ascii=False)
