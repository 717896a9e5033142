"""Alignments of a translator's own answers: each hypothesis with what its very tokens read."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from regard.seq2seq.alignment import UnitWeights, piece_spans
from regard.seq2seq.data import Pair, plan_batches
from regard.seq2seq.data.windows import TOKENS
from regard.seq2seq.protocols import Prediction
from regard.tasks.translate.aligning import by_pair, check_reads

if TYPE_CHECKING:
    from regard.tasks.translate.translator import Translator


def hypothesis_alignments(
    translator: "Translator",
    sources: Sequence[str],
    answers: Sequence[Prediction],
    *,
    units: str = "word",
    layer: str = "",
) -> list[UnitWeights]:
    """For each answer what its units read of those of its source.

    A hypothesis is read again with its own tokens, however it was found. What a step of the search
    showed would be too little: a Transformer's step shows its last layer only, and its last token
    has read nothing yet when a hypothesis is cut off.

    Args:
        translator: Who answered; of several models that read, the mean is taken.
        sources: For each answer the text that it answers.
        answers: As `translator.stream` gives them.
        units: "word", "subword" or "char".
        layer: As in `soft_alignments`.
    """
    check_reads(translator)
    pairs = [
        _read(translator, Pair(source, answer.text, line))
        for line, (source, answer) in enumerate(zip(sources, answers, strict=True))
    ]
    sizes = [len(answer.source) + len(answer.tokens) + 2 for answer in answers]
    found: dict[int, UnitWeights] = {}
    for numbers in plan_batches(sizes, seed=0, epoch=0, tokens=TOKENS):
        some = [pairs[number] for number in numbers]
        own = [answers[number] for number in numbers]
        spans = [piece_spans(answer.text, answer.target) for answer in own]
        batch = translator.codec.collate_hypotheses(some, [answer.tokens for answer in own], spans)
        found.update(zip(numbers, by_pair(translator, batch, some, units, layer), strict=True))
    return [found[number] for number in range(len(answers))]


def _read(translator: "Translator", pair: Pair) -> Pair:
    """What was read of the source when it was answered; that it was less was noted then."""
    source = translator.max_length(translator.codec, Pair(pair.source, None, pair.line), _heard)
    return Pair(source.source if source else "", pair.target, pair.line)


def _heard(_: str) -> None:
    """Nothing new."""
