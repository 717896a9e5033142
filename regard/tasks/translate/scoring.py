"""How good a translator is on pairs that it has not seen."""

from collections.abc import Sequence

from regard.seq2seq.data import clean, open_pairs
from regard.seq2seq.metrics import Bootstrap, Score, bleu, chrf, exact_match
from regard.tasks.translate.translator import Translator


def scored(translator: Translator, paths: Sequence[str], *, beam: int | None = None) -> list[Score]:
    """BLEU, chrF and exact matches, each with an interval by bootstrap."""
    data = translator.config.data
    corpus = open_pairs(paths, fields=(data.fields[0], data.fields[1]))
    pairs = [corpus[number] for number in clean(corpus).numbers]
    answers = translator.predict((pair.source for pair in pairs), beam=beam)
    said, meant = [answer.text for answer in answers], [pair.target or "" for pair in pairs]
    return [judge(said, meant, Bootstrap()) for judge in (bleu, chrf, exact_match)]
