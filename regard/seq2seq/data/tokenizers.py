"""Tokenizers for sources and targets, joint or separate: built and loaded."""

import os
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from regard.attention.core.errors import OptionError
from regard.seq2seq.data.alignment_words import AlignmentWords
from regard.seq2seq.data.characters import Characters
from regard.seq2seq.data.paths import require_file
from regard.seq2seq.data.subwords import Subwords
from regard.seq2seq.data.tokenizer import FORMAT, Normal, Tokenizer
from regard.seq2seq.data.words import Words
from regard.seq2seq.errors import DataError
from regard.seq2seq.system.files import parse_json, read_regular

LARGEST = 1 << 28
"""Maximum bytes of a tokenizer's file."""

KINDS = (Characters, Words, Subwords, AlignmentWords)
BUILD: Mapping[str, Callable[..., Tokenizer]] = {each.kind: each.build for each in KINDS}
FROM_DICT: Mapping[str, Callable[[dict[str, Any]], Tokenizer]] = {
    each.kind: each.from_dict for each in KINDS
}


def build_tokenizers(
    sources: Iterable[str],
    targets: Iterable[str],
    *,
    kind: str,
    size: int = 8000,
    joint: bool = False,
    normal: Normal = None,
    **options: Any,
) -> tuple[Tokenizer, Tokenizer]:
    """The tokenizers of sources and of targets; if joint, the same one for both.

    Options are those of one kind only, such as `lower`.
    """
    if kind not in BUILD:
        raise OptionError(f"there is no tokenizer {kind!r}. Give one of: {', '.join(BUILD)}.")
    build = BUILD[kind]
    if joint:
        both = build(chain(sources, targets), size, normal, **options)
        return both, both
    return build(sources, size, normal, **options), build(targets, size, normal, **options)


def load_tokenizer(path: str | os.PathLike[str]) -> Tokenizer:
    """The inverse of `Tokenizer.save`."""
    name = require_file(os.fspath(path))
    real = Path(name).resolve()
    try:
        content = read_regular(real.parent, real.name, limit=LARGEST)
    except OSError as error:
        raise DataError(f"{name} cannot be read: {error.strerror}.") from error
    return parse_tokenizer(content, name)


def parse_tokenizer(content: bytes, name: str) -> Tokenizer:
    """A tokenizer from the content of its file, of this name."""
    try:
        return _from_dict(parse_json(content))
    # The tokenizers library raises a bare Exception for any fault.
    except Exception as error:
        reason = " ".join(str(error).split())
        raise DataError(
            f"{name} is not a readable tokenizer ({type(error).__name__}: {reason:.200}). "
            "Build a new one."
        ) from error


def _from_dict(fields: dict[str, Any]) -> Tokenizer:
    if fields["format"] != FORMAT:
        raise DataError(f"its format is {fields['format']!r}, not {FORMAT!r}")
    pieces = fields["pieces"]
    if not isinstance(pieces, list) or not all(isinstance(p, str) and p for p in pieces):
        raise DataError("its pieces are not a list of texts")
    return FROM_DICT[fields["kind"]](fields)
