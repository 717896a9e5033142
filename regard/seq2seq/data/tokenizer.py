"""The base of all tokenizers: a vocabulary, encoding with spans, decoding, JSON."""

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
from regard.seq2seq.system.files import write_atomic

FORMAT = "regard text 1"
SPECIAL = ("<no token>", "<the beginning>", "<the end>", "<not known>")
"""Names of PAD, BOS, EOS and UNK. No tokenizer makes a token with a space inside, so no user's text
can be taken for one of them."""

SURROGATE = re.compile("[\ud800-\udfff]")
"""A lone surrogate, which UTF-8 cannot encode."""

Normal = Literal["NFC"] | None
"""Unicode normalisation before tokenizing; None for none."""


@dataclass(slots=True)
class Encoding:
    """A text as tokens."""

    ids: list[int]
    spans: list[Span]
    """In the original text."""

    pieces: list[str]
    """The text of each token, also where its id is UNK."""


class Tokenizer(ABC):
    """A vocabulary, with tokenizing and detokenizing.

    Without normalisation the spans of a text's tokens tile the text. With it, tokens made from the
    same characters share a span. A control character, such as a line break, is read as a space, so
    that no token holds one.
    """

    kind: ClassVar[str]
    unknown: ClassVar[str] = "⁇"
    """The text of UNK."""

    def __init__(self, pieces: Sequence[str], normal: Normal = None) -> None:
        if normal not in ("NFC", None):
            raise OptionError(
                f"normal is {shown(normal)}. Give 'NFC', or None for no normalisation."
            )
        if len(set(pieces)) != len(pieces):
            raise DataError("a vocabulary has the same token twice. Build a new one.")
        joined = "".join(pieces)
        if (
            CONTROL.search(joined)
            or SURROGATE.search(joined)
            or not set(pieces).isdisjoint(SPECIAL)
        ):
            raise DataError(
                "a vocabulary has a token with a control character, such as a line break, or a "
                "lone surrogate, or the name of a special token. Build a new one."
            )
        self.pieces = (*SPECIAL, *pieces)
        """The text of each token, by id."""
        self.normal: Normal = normal
        self._numbers = {piece: number for number, piece in enumerate(pieces, len(SPECIAL))}
        self._characters = frozenset(joined)

    def __len__(self) -> int:
        return len(self.pieces)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} tokens, {self.fingerprint()[:8]})"

    @abstractmethod
    def tokenize(self, text: str) -> Encoding:
        """Tokens of a normalised text without control characters."""

    @abstractmethod
    def detokenize(self, pieces: Iterable[str]) -> str:
        """The text of these pieces."""

    def encode(self, text: str) -> Encoding:
        """Tokens without BOS and EOS, with their spans in the original text."""
        offsets = None
        text = spaced(text)  # one for one, so that offsets stay
        if self.normal == "NFC":
            text, offsets = nfc_with_offsets(text)
        found = self.tokenize(text)
        if offsets is not None:
            found.spans = [_original(span, offsets) for span in found.spans]
        return found

    def decode(self, ids: Iterable[int]) -> str:
        """The text up to the first EOS."""
        return self.detokenize(self.to_pieces(ids))

    def to_pieces(self, ids: Iterable[int], own: Sequence[str] = ()) -> list[str]:
        """The text of each token up to EOS; ids past the vocabulary index `own`.

        An untrained model may give PAD or BOS, which are empty.
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
        """A line before tokenizing: control characters as spaces, and NFC if asked."""
        return nfc_with_offsets(spaced(line))[0] if normal else spaced(line)

    def number(self, piece: str) -> int | None:
        """The id of a token, if the vocabulary has it."""
        return self._numbers.get(piece)

    def unknown_characters(self, text: str) -> list[str]:
        """Characters that no token of the vocabulary has, each once, in order."""
        text = self.prepare(text, self.normal)
        return [each for each in dict.fromkeys(text) if each not in self._characters]

    def to_dict(self) -> dict[str, Any]:
        """All fields, for JSON."""
        return {
            "format": FORMAT, "kind": self.kind, "normal": self.normal,
            "pieces": list(self.pieces[len(SPECIAL) :]),
        }  # fmt: skip

    def fingerprint(self) -> str:
        """SHA-256 of all fields."""
        text = json.dumps(self.to_dict(), ensure_ascii=True, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def to_json(self) -> bytes:
        """The content of its file."""
        return (json.dumps(self.to_dict(), ensure_ascii=False, indent=0) + "\n").encode()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it as JSON, atomically."""
        path = Path(path)
        try:
            write_atomic(path.parent, path.name, self.to_json())
        except OSError as error:
            raise DataError(f"{path} cannot be written: {error.strerror or error}.") from error


def _original(span: Span, offsets: Sequence[Span]) -> Span:
    """A span of the normalised text as one of the original text."""
    start, end = span
    if start == end:  # the space added before the first word
        return (0, 0)
    return offsets[start][0], offsets[end - 1][1]
