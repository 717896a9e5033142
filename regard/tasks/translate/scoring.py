"""How good a translator is on pairs that it has not seen."""

from collections.abc import Sequence

from regard.seq2seq.data import clean
from regard.seq2seq.metrics import Bootstrap, Score, bleu, chrf, exact_match
from regard.tasks.translate.examples import open_files
from regard.tasks.translate.translator import Translator


def scored(translator: Translator, paths: Sequence[str], *, beam: int | None = None) -> list[Score]:
    """BLEU, chrF and exact matches, each with an interval by bootstrap."""
    corpus = open_files(paths, translator.config.data)
    pairs = [corpus[number] for number in clean(corpus).numbers]
    answers = translator.predict((pair.source for pair in pairs), beam=beam)
    said, meant = [answer.text for answer in answers], [pair.target or "" for pair in pairs]
    return [judge(said, meant, Bootstrap()) for judge in (bleu, chrf, exact_match)]
