"""How text becomes tokens and tokens become text: what every way of doing it has."""

import hashlib
import json
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from regard.attention.errors import OptionError, shown
from regard.seq2seq.data.normal import composed
from regard.seq2seq.errors import DataError
from regard.seq2seq.examples import BEGIN, END, PAD, UNKNOWN, Span

FORMAT = "regard text 1"
SPECIAL = ("<no token>", "<the beginning>", "<the end>", "<not known>")
"""Names of `PAD`, `BEGIN`, `END` and `UNKNOWN`. No text gives a token with a space inside, so
nothing that a user writes can be taken for one of them."""

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


class Text(ABC):
    """A vocabulary, with how a text is cut into its tokens and put together again.

    Without normalisation the spans of a text's tokens tile it, from its first character to its
    last. With it, tokens made from the same characters share their place.
    """

    kind: ClassVar[str]
    unknown: ClassVar[str] = "⁇"
    """How `UNKNOWN` is written."""

    def __init__(self, pieces: Sequence[str], normal: Normal = None) -> None:
        if normal not in ("NFC", None):
            raise OptionError(f"normal is {shown(normal)}. Give 'NFC', or None for text as it is.")
        if len(set(pieces)) != len(pieces):
            raise DataError("a vocabulary has the same token twice. Build it again.")
        self.pieces = (*SPECIAL, *pieces)
        """By id, what each token says."""
        self.normal: Normal = normal
        self._numbers = {piece: number for number, piece in enumerate(pieces, len(SPECIAL))}
        self._characters = frozenset("".join(pieces))

    def __len__(self) -> int:
        return len(self.pieces)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} tokens, {self.fingerprint()[:8]})"

    @abstractmethod
    def cut(self, text: str) -> Encoding:
        """Tokens of a text that is already normal."""

    @abstractmethod
    def join(self, pieces: Iterable[str]) -> str:
        """A text again."""

    def encode(self, text: str) -> Encoding:
        """Tokens without `BEGIN` and `END`, with their places in the text as it is given."""
        places = None
        if self.normal == "NFC":
            text, places = composed(text)
        found = self.cut(text)
        if places is not None:
            found.spans = [_original(span, places) for span in found.spans]
        return found

    def decode(self, ids: Iterable[int]) -> str:
        """The text up to the first `END`."""
        return self.join(self.said(ids))

    def said(self, ids: Iterable[int], own: Sequence[str] = ()) -> list[str]:
        """What each token up to `END` says; ids past the vocabulary are taken from `own`.

        A model that has learned little may say `PAD` or `BEGIN`, which are nothing.
        """
        pieces: list[str] = []
        for number in ids:
            if number == END:
                break
            if number == UNKNOWN:
                pieces.append(self.unknown)
            elif number in (PAD, BEGIN):
                pieces.append("")
            else:
                past = number - len(self)
                pieces.append(self.pieces[number] if past < 0 else own[past])
        return pieces

    def number(self, piece: str) -> int | None:
        """The id of a token, if the vocabulary has it."""
        return self._numbers.get(piece)

    def unknown_characters(self, text: str) -> list[str]:
        """Those that no token of the vocabulary has, each once, in their order."""
        if self.normal == "NFC":
            text, _ = composed(text)
        return [each for each in dict.fromkeys(text) if each not in self._characters]

    def described(self) -> dict[str, Any]:
        """All that it is, for JSON."""
        return {
            "format": FORMAT, "kind": self.kind, "normal": self.normal,
            "pieces": list(self.pieces[len(SPECIAL) :]),
        }  # fmt: skip

    def fingerprint(self) -> str:
        """SHA-256 of all that it is."""
        whole = json.dumps(self.described(), ensure_ascii=True, sort_keys=True)
        return hashlib.sha256(whole.encode()).hexdigest()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it as JSON beside the path, then move it there: a file is whole or not there."""
        path = Path(path)
        beside = path.with_name(f".{path.name}.{os.getpid()}.part")
        try:
            beside.write_text(
                json.dumps(self.described(), ensure_ascii=False, indent=0) + "\n", "utf-8"
            )
            os.replace(beside, path)
        except OSError as error:
            raise DataError(f"{path} cannot be written: {error.strerror or error}.") from error
        finally:
            beside.unlink(missing_ok=True)


def _original(span: Span, places: Sequence[Span]) -> Span:
    """A place in the normal text as one in the text that was given."""
    start, end = span
    if start == end:  # the space that words get before the first of them
        return (0, 0)
    return places[start][0], places[end - 1][1]
