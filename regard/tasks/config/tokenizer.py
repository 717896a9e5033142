"""How text becomes tokens."""

from typing import Annotated, Literal

from pydantic import Field

from regard.tasks.config.options import Options, at_most


class CharactersConfig(Options):
    """Each character is a token."""

    kind: Literal["characters"] = "characters"


class WordsConfig(Options):
    """What stands between spaces is a token."""

    kind: Literal["words"] = "words"

    size: Annotated[int, Field(ge=5), at_most(10**7)] = 30000
    """How many words each vocabulary holds at most; the most frequent ones stay."""


class BpeConfig(Options):
    """Frequent pieces of words are tokens, learned from the data by byte-pair encoding."""

    kind: Literal["bpe"] = "bpe"

    size: Annotated[int, Field(ge=5), at_most(10**7)] = 8000
    """How many pieces the vocabulary holds."""

    joint: bool = True
    """One vocabulary for source and target?"""


TokenizerConfig = Annotated[CharactersConfig | WordsConfig | BpeConfig, Field(discriminator="kind")]


class AlignmentWordsConfig(Options):
    """Words without the spaces between them: what is aligned, not what is written."""

    kind: Literal["bare"] = "bare"

    cut: Literal["punctuation", "spaces"] = "punctuation"
    """Where a word ends: also before and after a sign, or, for text that is cut already, at spaces
    only."""

    lower: bool = True
    """Are "The" and "the" one word?"""

    size: Annotated[int, Field(ge=5), at_most(10**7)] = 100000
    """How many words each vocabulary holds at most; the most frequent ones stay."""


AlignmentTokenizerConfig = Annotated[
    AlignmentWordsConfig | CharactersConfig | BpeConfig, Field(discriminator="kind")
]
