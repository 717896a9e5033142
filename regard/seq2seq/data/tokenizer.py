"""How text becomes tokens and tokens become text: what every way of doing it has."""

import hashlib
import json
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from regard.attention.core.errors import OptionError, shown
from regard.seq2seq.batch import BOS, EOS, PAD, UNK, Span
from regard.seq2seq.data.unicode import CONTROL, nfc_with_offsets, spaced
from regard.seq2seq.errors import DataError
from regard.seq2seq.system.files import write_whole

FORMAT = "regard text 1"
SPECIAL = ("<no token>", "<the beginning>", "<the end>", "<not known>")
"""Names of `PAD`, `BEGIN`, `END` and `UNKNOWN`. No text gives a token with a space inside, so
nothing that a user writes can be taken for one of them."""

HALF = re.compile("[\ud800-\udfff]")
"""Half a character, which no file of UTF-8 can hold."""

Normal = Literal["NFC"] | None
"""What is done to Unicode beforehand: nothing unless asked."""


@dataclass(slots=True)
class Encoding:
    """A text as tokens."""

    ids: list[int]
    spans: list[Span]
    """Where each lies in the text as it was given."""

    pieces: list[str]
    """What each says, also where its id is `UNKNOWN`."""


class Tokenizer(ABC):
    """A vocabulary, with how a text is cut into its tokens and put together again.

    Without normalisation the spans of a text's tokens tile it, from its first character to its
    last. With it, tokens made from the same characters share their place. A control character, a
    line break for one, is read as a space, so that no token holds any.
    """

    kind: ClassVar[str]
    unknown: ClassVar[str] = "⁇"
    """How `UNKNOWN` is written."""

    def __init__(self, pieces: Sequence[str], normal: Normal = None) -> None:
        if normal not in ("NFC", None):
            raise OptionError(f"normal is {shown(normal)}. Give 'NFC', or None for text as it is.")
        if len(set(pieces)) != len(pieces):
            raise DataError("a vocabulary has the same token twice. Build it again.")
        whole = "".join(pieces)
        if CONTROL.search(whole) or HALF.search(whole) or not set(pieces).isdisjoint(SPECIAL):
            raise DataError(
                "a vocabulary has a token with a control character, such as a line break, or half "
                "a character, or the name of a special token. Build it again."
            )
        self.pieces = (*SPECIAL, *pieces)
        """By id, what each token says."""
        self.normal: Normal = normal
        self._numbers = {piece: number for number, piece in enumerate(pieces, len(SPECIAL))}
        self._characters = frozenset(whole)

    def __len__(self) -> int:
        return len(self.pieces)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} tokens, {self.fingerprint()[:8]})"

    @abstractmethod
    def tokenize(self, text: str) -> Encoding:
        """Tokens of a text that is already normal and has no control characters."""

    @abstractmethod
    def detokenize(self, pieces: Iterable[str]) -> str:
        """A text again."""

    def encode(self, text: str) -> Encoding:
        """Tokens without `BEGIN` and `END`, with their places in the text as it is given."""
        places = None
        text = spaced(text)  # a space each, so that places stay
        if self.normal == "NFC":
            text, places = nfc_with_offsets(text)
        found = self.tokenize(text)
        if places is not None:
            found.spans = [_original(span, places) for span in found.spans]
        return found

    def decode(self, ids: Iterable[int]) -> str:
        """The text up to the first `END`."""
        return self.detokenize(self.to_pieces(ids))

    def to_pieces(self, ids: Iterable[int], own: Sequence[str] = ()) -> list[str]:
        """What each token up to `END` says; ids past the vocabulary are taken from `own`.

        A model that has learned little may say `PAD` or `BEGIN`, which are nothing.
        """
        pieces: list[str] = []
        for number in ids:
            if number == EOS:
                break
            if number == UNK:
                pieces.append(self.unknown)
            elif number in (PAD, BOS):
                pieces.append("")
            else:
                past = number - len(self)
                pieces.append(self.pieces[number] if past < 0 else own[past])
        return pieces

    @staticmethod
    def prepare(line: str, normal: Normal) -> str:
        """A line as it is cut: control characters as spaces, and composed if asked."""
        return nfc_with_offsets(spaced(line))[0] if normal else spaced(line)

    def number(self, piece: str) -> int | None:
        """The id of a token, if the vocabulary has it."""
        return self._numbers.get(piece)

    def unknown_characters(self, text: str) -> list[str]:
        """Those that no token of the vocabulary has, each once, in their order."""
        text = self.prepare(text, self.normal)
        return [each for each in dict.fromkeys(text) if each not in self._characters]

    def to_dict(self) -> dict[str, Any]:
        """All that it is, for JSON."""
        return {
            "format": FORMAT, "kind": self.kind, "normal": self.normal,
            "pieces": list(self.pieces[len(SPECIAL) :]),
        }  # fmt: skip

    def fingerprint(self) -> str:
        """SHA-256 of all that it is."""
        whole = json.dumps(self.to_dict(), ensure_ascii=True, sort_keys=True)
        return hashlib.sha256(whole.encode()).hexdigest()

    def to_json(self) -> bytes:
        """All that it is, as the content of a file."""
        return (json.dumps(self.to_dict(), ensure_ascii=False, indent=0) + "\n").encode()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it as JSON: a file is whole or not there."""
        path = Path(path)
        try:
            write_whole(path.parent, path.name, self.to_json())
        except OSError as error:
            raise DataError(f"{path} cannot be written: {error.strerror or error}.") from error


def _original(span: Span, places: Sequence[Span]) -> Span:
    """A place in the normal text as one in the text that was given."""
    start, end = span
    if start == end:  # the space that words get before the first of them
        return (0, 0)
    return places[start][0], places[end - 1][1]
