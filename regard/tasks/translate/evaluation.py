"""How good a translator is on pairs that it has not seen."""

from collections.abc import Callable, Sequence

import torch

from regard.seq2seq.data import Pair
from regard.seq2seq.metrics import Bootstrap, MetricScore, bleu, chrf, exact_match, perplexity
from regard.tasks.translate.translator import Translator
from regard.tasks.translate.validation import terms


def evaluate(
    translator: Translator,
    pairs: Sequence[Pair],
    *,
    beam: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> list[MetricScore]:
    """BLEU, chrF and exact matches, each with an interval by bootstrap; and the perplexity.

    The perplexity is of the first model alone if several vote. A line that is skipped for its
    length has an empty answer, and no part in the perplexity.
    """
    sources = (pair.source for pair in pairs)
    answers = translator.stream(sources, translator.search(beam), progress)
    said, meant = [each[0].text for each in answers], [pair.target or "" for pair in pairs]
    found = [judge(said, meant, Bootstrap()) for judge in (bleu, chrf, exact_match)]
    kept = [each for pair in pairs if (each := translator.bounded(pair)) is not None]
    with torch.inference_mode():
        return [*found, perplexity(terms(translator.model, translator.codec, kept))]
