"""Which files are learned from."""

from typing import Annotated, Literal

from pydantic import Field

from regard.tasks.config.options import Options, Size, Texts


class Data(Options):
    """Which files are learned from."""

    train: Annotated[Texts, Field(max_length=2)] = ()
    """One file of pairs, TSV or JSONL, or two files whose lines belong together; plain or .gz."""

    valid: Annotated[Texts, Field(max_length=2)] = ()
    """The same to validate on; none: a share of `train` is split off."""

    valid_share: Annotated[float, Field(gt=0, lt=1)] = 0.05
    """What share is split off. Equal sources stay together."""

    fields: Annotated[Texts, Field(min_length=2, max_length=2)] = ("source", "target")
    """The names of source and target in JSONL."""

    longest: Size = 256
    """The most tokens that a side may have."""

    on_bad_input: Literal["error", "skip"] = "error"
    """What to do with lines that cannot be used: stop, or skip and count them."""
