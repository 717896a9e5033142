"""A vocabulary of whole words, characters or labels: strings by id, for text that is split."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import final

from regard.seq2seq.batch import UNK
from regard.seq2seq.errors import DataError
from regard.seq2seq.system.files import parse_json

SPECIAL_IDS = UNK + 1
"""PAD, BOS, EOS and UNK come first."""


@final
class Vocabulary:
    """Strings by id, counted from 4; before them PAD, BOS, EOS and UNK."""

    def __init__(self, pieces: Sequence[str]) -> None:
        self.pieces = tuple(pieces)
        self._ids = {piece: SPECIAL_IDS + number for number, piece in enumerate(self.pieces)}
        if len(self._ids) != len(self.pieces):
            raise DataError("a vocabulary has the same entry twice. Build it again.")

    @classmethod
    def build(cls, pieces: Iterable[str], min_count: int = 1) -> "Vocabulary":
        """Those that occur at least so often, the most frequent first."""
        counts = Counter(pieces)
        frequent = (piece for piece, count in counts.items() if count >= min_count)
        return cls(sorted(frequent, key=lambda piece: (-counts[piece], piece)))

    def __len__(self) -> int:
        return SPECIAL_IDS + len(self.pieces)

    def __contains__(self, piece: str) -> bool:
        return piece in self._ids

    def id(self, piece: str) -> int:
        """Its id; UNK if there is none."""
        return self._ids.get(piece, UNK)

    def piece(self, number: int) -> str:
        """The string of an id that is no special one."""
        return self.pieces[number - SPECIAL_IDS]

    def to_json(self) -> bytes:
        """The content of a file."""
        return (json.dumps(list(self.pieces), ensure_ascii=False, indent=0) + "\n").encode()

    @classmethod
    def from_json(cls, content: bytes, where: str) -> "Vocabulary":
        """The vocabulary of such a file."""
        try:
            found = parse_json(content)
        except ValueError:
            found = None
        if not (isinstance(found, list) and all(isinstance(each, str) for each in found)):
            raise DataError(f"{where} is no vocabulary: a list of texts. Put the run's own back.")
        return cls(found)
