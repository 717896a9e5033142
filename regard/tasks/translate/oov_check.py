"""Out-of-vocabulary characters of targets, reported before anything is computed."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from regard.seq2seq.data import Pair, ValidatedCorpus, format_fault, unknown_characters
from regard.seq2seq.errors import DataError

if TYPE_CHECKING:
    from regard.tasks.translate.translator import Translator


def check_oov(
    translator: "Translator", pairs: ValidatedCorpus[Pair], *, swapped: bool = False
) -> None:
    """Raise if a target has a character that no token of the vocabulary has.

    A vocabulary of words is not checked: it maps any unknown word to UNK.

    Args:
        translator: The translator that is forced to the targets.
        pairs: The pairs.
        swapped: Are their sources its targets?
    """
    tokenizer = translator.codec.target_tokenizer
    if tokenizer.kind == "words":
        return

    def lines() -> Iterable[tuple[int, str]]:
        for pair in pairs:
            source, target = pair.source, pair.target or ""
            if swapped:
                source, target = target, source
            if translator.codec.copying:  # what the source has can be copied
                target = "".join(each for each in target if each not in source)
            yield pair.line, target

    side = pairs.corpus.paths[0 if swapped else -1]
    for fault in unknown_characters(tokenizer, lines(), side):
        raise DataError(
            f"{format_fault(fault)}. The model cannot be forced to such a target: correct it, or "
            "align by a run that was trained on such text."
        )
