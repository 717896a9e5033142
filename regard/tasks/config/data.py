"""Training and validation data."""

from abc import ABC
from typing import Annotated, Literal

from pydantic import Field

from regard.tasks.config.options import Options, Paths, Size, Texts


class DataConfig(Options, ABC):
    """Training and validation files of any task."""

    train: Paths = ()
    """The training files."""

    valid: Paths = ()
    """The validation files."""

    longest: Size = 256
    """Maximum length of an item, in tokens."""

    on_bad_input: Literal["error", "skip"] = "error"
    """What to do with invalid items: stop, or skip and count them."""

    @property
    def held_out(self) -> float:
        """Share of `train` that is split off to validate on; 0: validate on `train` itself."""
        return 0.0


class PairFilesConfig(DataConfig, ABC):
    """Files of pairs of text."""

    train: Annotated[Paths, Field(max_length=2)] = ()
    """One file of pairs, TSV or JSONL, or two parallel files; plain or .gz."""

    valid: Annotated[Paths, Field(max_length=2)] = ()
    """Validation files; none: the pairs of `train`."""

    fields: Annotated[Texts, Field(min_length=2, max_length=2)] = ("source", "target")
    """The names of source and target in JSONL."""

    longest: Size = 256
    """Maximum length of a side, in tokens."""

    on_bad_input: Literal["error", "skip"] = "error"
    """What to do with invalid lines: stop, or skip and count them."""


class AlignDataConfig(PairFilesConfig):
    """Training data: all pairs."""


class PairDataConfig(PairFilesConfig):
    """Training and validation data."""

    valid: Annotated[Paths, Field(max_length=2)] = ()
    """Validation files; none: a share of `train` is split off."""

    valid_share: Annotated[float, Field(gt=0, lt=1)] = 0.05
    """The share that is split off. Equal sources are never split."""

    links: Annotated[Paths, Field(max_length=1)] = ()
    """Alignments for guided alignment: a file with a line of 0-0 1-2 for each pair of `train`."""

    link_units: Literal["word", "char"] = "word"
    """The units of the links: words, separated by spaces, or characters."""

    link_nulls: bool = False
    """Train words without links to attend to EOS of the source?"""

    @property
    def held_out(self) -> float:
        """Share of `train` that is split off."""
        return self.valid_share
