"""Vocabularies for the two sides of a task: built together or apart, and loaded again."""

import json
import os
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from typing import Any

from regard.attention.errors import OptionError
from regard.seq2seq.data.bare import Bare
from regard.seq2seq.data.characters import Characters
from regard.seq2seq.data.paths import existing
from regard.seq2seq.data.subwords import Subwords
from regard.seq2seq.data.text import FORMAT, Normal, Text
from regard.seq2seq.data.words import Words
from regard.seq2seq.errors import DataError

KINDS = (Characters, Words, Subwords, Bare)
BUILD: Mapping[str, Callable[..., Text]] = {each.kind: each.build for each in KINDS}
REVIVE: Mapping[str, Callable[[dict[str, Any]], Text]] = {each.kind: each.revived for each in KINDS}


def build_texts(
    sources: Iterable[str],
    targets: Iterable[str],
    *,
    kind: str,
    size: int = 8000,
    joint: bool = False,
    normal: Normal = None,
    **options: Any,
) -> tuple[Text, Text]:
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


def load_text(path: str | os.PathLike[str]) -> Text:
    """What `Text.save` wrote."""
    name = existing(os.fspath(path))
    try:
        with open(name, encoding="utf-8") as file:
            described = json.load(file)
        if described["format"] != FORMAT:
            raise DataError(f"its format is {described['format']!r}, not {FORMAT!r}")
        return REVIVE[described["kind"]](described)
    # Whatever is wrong in there, tokenizers says it with a bare Exception.
    except Exception as error:
        raise DataError(
            f"{name} holds no vocabulary that can be read: {error!r}. Build it again."
        ) from error
