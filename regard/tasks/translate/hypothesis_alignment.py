"""Alignments of a translator's own answers, by the attention of each hypothesis's own tokens."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from regard.seq2seq.alignment import UnitWeights, piece_spans
from regard.seq2seq.data import Pair, plan_batches
from regard.seq2seq.data.windows import TOKENS
from regard.seq2seq.protocols import Prediction
from regard.tasks.translate.aligning import by_pair, check_has_attention

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
    """For each answer, the attention of its units to those of its source.

    Each hypothesis is forced with its own tokens. The weights of the search steps would not do: a
    Transformer's step has its last layer only, and the last token of a truncated hypothesis has no
    step after it.

    Args:
        translator: The translator; for an ensemble, the mean of its members with attention.
        sources: The source of each answer.
        answers: As `translator.stream` gives them.
        units: "word", "subword" or "char".
        layer: As in `soft_alignments`.
    """
    check_has_attention(translator)
    pairs = [
        _bounded(translator, Pair(source, answer.text, line))
        for line, (source, answer) in enumerate(zip(sources, answers, strict=True))
    ]
    sizes = [len(answer.source) + len(answer.tokens) + 2 for answer in answers]
    found: dict[int, UnitWeights] = {}
    for numbers in plan_batches(sizes, seed=0, epoch=0, tokens=TOKENS):
        some = [pairs[number] for number in numbers]
        chosen = [answers[number] for number in numbers]
        spans = [piece_spans(answer.text, answer.target) for answer in chosen]
        tokens = [answer.tokens for answer in chosen]
        batch = translator.codec.collate_hypotheses(some, tokens, spans)
        found.update(zip(numbers, by_pair(translator, batch, some, units, layer), strict=True))
    return [found[number] for number in range(len(answers))]


def _bounded(translator: "Translator", pair: Pair) -> Pair:
    """The source truncated as it was for the answer, which was noted then."""
    source = translator.max_length(translator.codec, Pair(pair.source, None, pair.line), _ignore)
    return Pair(source.source if source else "", pair.target, pair.line)


def _ignore(_: str) -> None:
    """A note that was given before."""
