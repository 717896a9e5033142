"""Which files are learned from."""

from abc import ABC
from typing import Annotated, Literal

from pydantic import Field

from regard.tasks.config.options import Options, Size, Texts


class FilesConfig(Options, ABC):
    """Files of pairs."""

    train: Annotated[Texts, Field(max_length=2)] = ()
    """One file of pairs, TSV or JSONL, or two files whose lines belong together; plain or .gz."""

    valid: Annotated[Texts, Field(max_length=2)] = ()
    """The same to validate on; none: what `train` has."""

    fields: Annotated[Texts, Field(min_length=2, max_length=2)] = ("source", "target")
    """The names of source and target in JSONL."""

    longest: Size = 256
    """The most tokens that a side may have."""

    on_bad_input: Literal["error", "skip"] = "error"
    """What to do with lines that cannot be used: stop, or skip and count them."""


class AlignDataConfig(FilesConfig):
    """Which files are learned from, all of their pairs."""


class PairDataConfig(FilesConfig):
    """Which files are learned from."""

    valid: Annotated[Texts, Field(max_length=2)] = ()
    """The same to validate on; none: a share of `train` is split off."""

    valid_share: Annotated[float, Field(gt=0, lt=1)] = 0.05
    """What share is split off. Equal sources stay together."""

    links: Annotated[Texts, Field(max_length=1)] = ()
    """Given alignments that guide attention: a file with a line of 0-0 1-2 for each of `train`."""

    link_units: Literal["word", "char"] = "word"
    """What the links count: words, with spaces between, or characters."""

    link_nulls: bool = False
    """Shall a word without links learn to read nothing, which is the end of the source?"""
