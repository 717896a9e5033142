"""Tokenizers."""

from typing import Annotated, Literal

from pydantic import Field

from regard.tasks.config.options import Options, at_most


class CharactersConfig(Options):
    """Each character is a token."""

    kind: Literal["characters"] = "characters"


class WordsConfig(Options):
    """Each word between spaces is a token."""

    kind: Literal["words"] = "words"

    size: Annotated[int, Field(ge=5), at_most(10**7)] = 30000
    """Maximum size of each vocabulary; the most frequent words are kept."""


class BpeConfig(Options):
    """Subwords by byte-pair encoding, learned from the data."""

    kind: Literal["bpe"] = "bpe"

    size: Annotated[int, Field(ge=5), at_most(10**7)] = 8000
    """Size of the vocabulary."""

    joint: bool = True
    """One joint vocabulary for source and target?"""


TokenizerConfig = Annotated[CharactersConfig | WordsConfig | BpeConfig, Field(discriminator="kind")]


class AlignmentWordsConfig(Options):
    """Words without spaces, for alignment: not reversible to text."""

    kind: Literal["bare"] = "bare"

    cut: Literal["punctuation", "spaces"] = "punctuation"
    """Where words are split: at spaces and punctuation, or, for tokenized text, at spaces only."""

    lower: bool = True
    """Lowercase?"""

    size: Annotated[int, Field(ge=5), at_most(10**7)] = 100000
    """Maximum size of each vocabulary; the most frequent words are kept."""


AlignmentTokenizerConfig = Annotated[
    AlignmentWordsConfig | CharactersConfig | BpeConfig, Field(discriminator="kind")
]
