"""Train/validation overlap and unknown characters."""

import hashlib
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator

from regard.seq2seq.batch import Fault
from regard.seq2seq.data.fault_text import excerpt
from regard.seq2seq.data.tokenizer import Tokenizer


def overlap(train: Iterable[tuple[str, str]], valid: Iterable[tuple[str, str]]) -> Iterator[Fault]:
    """Groups of the validation set that are in the training set, too.

    Args:
        train: The group of each item, its source say, and where it stands.
        valid: The same of the validation set.
    """
    seen: dict[bytes, str] = {}
    for group, where in train:
        seen.setdefault(_key(group), where)
    for group, where in valid:
        if same := seen.get(_key(group)):
            what = f"is in the training set, too, at {same}: {excerpt(group)}"
            yield Fault("overlap", what, where, severe=False)


def unknown_characters(
    tokenizer: Tokenizer, lines: Iterable[tuple[int, str]], path: str
) -> Iterator[Fault]:
    """Characters that a vocabulary lacks: each once, with its first line and its count.

    Args:
        tokenizer: has the vocabulary.
        lines: texts with their line numbers.
        path: the file they come from.
    """
    first: dict[str, int] = {}
    times: Counter[str] = Counter()
    for line, text in lines:
        for character in tokenizer.unknown_characters(text):
            first.setdefault(character, line)
            times[character] += 1
    for character, line in first.items():
        name = unicodedata.name(character, "without a name")
        what = (
            f"U+{ord(character):04X} {name} {character!r} is not in the vocabulary; "
            f"lines with it: {times[character]}"
        )
        yield Fault("unknown character", what, path, line, severe=False)


def _key(group: str) -> bytes:
    return hashlib.blake2b(group.encode("utf-8", "surrogatepass"), digest_size=12).digest()
