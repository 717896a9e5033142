"""`regard predict`: a line in, a line out."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.configured import found
from regard.cli.linking import Alignments, Linker, Units, written
from regard.cli.progress import counted
from regard.seq2seq.errors import ConfigError

if TYPE_CHECKING:
    from regard.seq2seq.data import PairCorpus
    from regard.seq2seq.decoding import Replacement
    from regard.seq2seq.seams import Answer, Search
    from regard.tasks.translate import Translator

Run = Annotated[str, typer.Argument(metavar="RUN", help="The folder that regard train wrote.")]
Input = Annotated[str, typer.Argument(metavar="[FILE]", help="Texts, one a line; - is the input.")]
Beams = Annotated[
    int | None, typer.Option("--beam", min=1, help="How many beginnings to follow at once.")
]
Best = Annotated[
    int, typer.Option("--best", min=1, help="So many answers to each line, as JSON lines.")
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
    float, typer.Option("--temperature", help="Of drawing: below 1 is bolder, above 1 more varied.")
]
TopP = Annotated[
    float, typer.Option("--top-p", help="Draw among the likeliest tokens of this share in all.")
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Other seeds draw other answers.")]
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
) -> None:
    """Answer each line of a file or of the standard input.

    regard predict runs/first input.txt --beam 5
    """
    if sample and beam is not None:
        raise ConfigError("--sample draws and --beam searches. Give one of them.")
    texts = _opened(file)
    from regard.attention.kernels import kept_heap  # noqa: PLC0415  # torch: help need not wait
    from regard.tasks.translate import together  # noqa: PLC0415

    translator = together([run, *(others or ())], last=last, int8=int8)
    if replace_unknown or dictionary is not None:
        translator.unknown = _replacement(translator, dictionary)
    typer.echo(f"{run}: {translator.about}", err=True)
    search: Search = translator.search(beam, best)
    if sample:
        search = translator.sampling(temperature, top_p, best, seed)
    lines = (texts[number].source for number in range(len(texts)))
    with (
        kept_heap(),
        counted(len(texts)) as progress,
        _linking(translator, alignments, units) as to,
    ):
        for number, answers in enumerate(translator.stream(lines, search, progress), start=1):
            typer.echo(answers[0].text if best == 1 else _as_json(number, answers))
            if to is not None:
                to.add(number, texts[number - 1].source, answers)


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


def _opened(file: str) -> "PairCorpus":
    if file != "-":
        found("the input", [file])
    from regard.seq2seq.data import open_sources  # noqa: PLC0415

    corpus = open_sources(file)
    for fault in corpus.faults():
        if fault.severe and fault.line is not None:
            corpus[fault.line - 1]  # raises: told before the first answer
    return corpus


def _replacement(translator: "Translator", dictionary: str | None) -> "Replacement":
    from regard.seq2seq.data import open_pairs  # noqa: PLC0415
    from regard.seq2seq.decoding import Replacement  # noqa: PLC0415

    words = {}
    if dictionary is not None:
        found("--dictionary", [dictionary])
        corpus = open_pairs([dictionary])
        pairs = (corpus[number] for number in range(len(corpus)))
        words = {pair.source: pair.target or "" for pair in pairs}
    return Replacement(words, "" if translator.config.text.kind == "characters" else " ")


def _as_json(number: int, answers: "list[Answer]") -> str:
    told = [{"text": answer.text, "score": round(answer.score, 6)} for answer in answers]
    return json.dumps({"line": number, "answers": told}, ensure_ascii=False)
