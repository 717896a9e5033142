"""How text becomes tokens."""

from typing import Annotated, Literal

from pydantic import Field

from regard.tasks.config.options import Options


class Characters(Options):
    """Each character is a token."""

    kind: Literal["characters"] = "characters"


class Words(Options):
    """What stands between spaces is a token."""

    kind: Literal["words"] = "words"

    size: Annotated[int, Field(ge=5)] = 30000
    """How many words each vocabulary holds at most; the most frequent ones stay."""


class Bpe(Options):
    """Frequent pieces of words are tokens, learned from the data by byte-pair encoding."""

    kind: Literal["bpe"] = "bpe"

    size: Annotated[int, Field(ge=5)] = 8000
    """How many pieces the vocabulary holds."""

    joint: bool = True
    """One vocabulary for source and target?"""


Text = Annotated[Characters | Words | Bpe, Field(discriminator="kind")]


class Bare(Options):
    """Words without the spaces between them: what is aligned, not what is written."""

    kind: Literal["bare"] = "bare"

    cut: Literal["punctuation", "spaces"] = "punctuation"
    """Where a word ends: also before and after a sign, or, for text that is cut already, at spaces
    only."""

    lower: bool = True
    """Are "The" and "the" one word?"""

    size: Annotated[int, Field(ge=5)] = 100000
    """How many words each vocabulary holds at most; the most frequent ones stay."""


Aligned = Annotated[Bare | Characters | Bpe, Field(discriminator="kind")]
