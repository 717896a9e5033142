"""Vocabularies for the two sides of a task: built together or apart, and loaded again."""

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
"""So many bytes a vocabulary's file has at most."""

KINDS = (Characters, Words, Subwords, AlignmentWords)
BUILD: Mapping[str, Callable[..., Tokenizer]] = {each.kind: each.build for each in KINDS}
REVIVE: Mapping[str, Callable[[dict[str, Any]], Tokenizer]] = {
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
    """How sources and targets become tokens; if joint, one and the same for both.

    Options are those of one kind only, as `lower` is.
    """
    if kind not in BUILD:
        raise OptionError(f"a text cannot be cut into {kind!r}. Give one of: {', '.join(BUILD)}.")
    build = BUILD[kind]
    if joint:
        both = build(chain(sources, targets), size, normal, **options)
        return both, both
    return build(sources, size, normal, **options), build(targets, size, normal, **options)


def load_tokenizer(path: str | os.PathLike[str]) -> Tokenizer:
    """What `Text.save` wrote."""
    name = require_file(os.fspath(path))
    real = Path(name).resolve()
    try:
        content = read_regular(real.parent, real.name, limit=LARGEST)
    except OSError as error:
        raise DataError(f"{name} cannot be read: {error.strerror}.") from error
    return parse_tokenizer(content, name)


def parse_tokenizer(content: bytes, name: str) -> Tokenizer:
    """What the content of a file of this name says."""
    try:
        return _from_dict(parse_json(content))
    # Whatever is wrong in there, tokenizers says it with a bare Exception.
    except Exception as error:
        told = " ".join(str(error).split())
        raise DataError(
            f"{name} holds no vocabulary that can be read ({type(error).__name__}: {told:.200}). "
            "Build it again."
        ) from error


def _from_dict(described: dict[str, Any]) -> Tokenizer:
    if described["format"] != FORMAT:
        raise DataError(f"its format is {described['format']!r}, not {FORMAT!r}")
    pieces = described["pieces"]
    if not isinstance(pieces, list) or not all(isinstance(p, str) and p for p in pieces):
        raise DataError("its pieces are not a list of texts")
    return REVIVE[described["kind"]](described)
