"""Which files are learned from."""

from abc import ABC
from typing import Annotated, Literal

from pydantic import Field

from regard.tasks.config.options import Options, Paths, Size, Texts


class DataConfig(Options, ABC):
    """Files to train and validate on, whatever is in them."""

    train: Paths = ()
    """The training files."""

    valid: Paths = ()
    """The validation files."""

    longest: Size = 256
    """Maximum length of an item, in tokens."""

    on_bad_input: Literal["error", "skip"] = "error"
    """What to do with items that cannot be used: stop, or skip and count them."""

    @property
    def held_out(self) -> float:
        """Share of `train` that is split off to validate on; 0: validate on `train` itself."""
        return 0.0


class PairFilesConfig(DataConfig, ABC):
    """Files of pairs of text."""

    train: Annotated[Paths, Field(max_length=2)] = ()
    """One file of pairs, TSV or JSONL, or two files whose lines belong together; plain or .gz."""

    valid: Annotated[Paths, Field(max_length=2)] = ()
    """The same to validate on; none: what `train` has."""

    fields: Annotated[Texts, Field(min_length=2, max_length=2)] = ("source", "target")
    """The names of source and target in JSONL."""

    longest: Size = 256
    """Maximum length of a side, in tokens."""

    on_bad_input: Literal["error", "skip"] = "error"
    """What to do with lines that cannot be used: stop, or skip and count them."""


class AlignDataConfig(PairFilesConfig):
    """Which files are learned from, all of their pairs."""


class PairDataConfig(PairFilesConfig):
    """Which files are learned from."""

    valid: Annotated[Paths, Field(max_length=2)] = ()
    """The same to validate on; none: a share of `train` is split off."""

    valid_share: Annotated[float, Field(gt=0, lt=1)] = 0.05
    """What share is split off. Equal sources stay together."""

    links: Annotated[Paths, Field(max_length=1)] = ()
    """Given alignments that guide attention: a file with a line of 0-0 1-2 for each of `train`."""

    link_units: Literal["word", "char"] = "word"
    """What the links count: words, with spaces between, or characters."""

    link_nulls: bool = False
    """Shall a word without links learn to attend to the EOS of the source?"""

    @property
    def held_out(self) -> float:
        """Share of `train` that is split off."""
        return self.valid_share
