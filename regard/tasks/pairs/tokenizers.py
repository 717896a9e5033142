"""The tokenizers of a run's two sides: the artifacts of every task on pairs."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from regard.seq2seq.data import Pair, Tokenizer, build_tokenizers, parse_tokenizer
from regard.tasks.artifacts import Artifacts
from regard.tasks.config.tokenizer import (
    AlignmentWordsConfig,
    BpeConfig,
    CharactersConfig,
    WordsConfig,
)
from regard.tasks.examples import Examples

AnyTokenizerConfig = CharactersConfig | WordsConfig | BpeConfig | AlignmentWordsConfig


@dataclass(frozen=True, slots=True)
class PairTokenizers(Artifacts):
    """`Artifacts` of a task on pairs; source and target may be one and the same object."""

    source: Tokenizer
    target: Tokenizer

    FILES: ClassVar[tuple[str, str]] = ("source.json", "target.json")

    def to_files(self) -> dict[str, bytes]:
        sides = (self.source, self.target)
        return {name: side.to_json() for name, side in zip(self.FILES, sides, strict=True)}

    @classmethod
    def from_files(cls, contents: Mapping[str, bytes], directory: Path) -> "PairTokenizers":
        source, target = (
            parse_tokenizer(contents[name], str(directory / name)) for name in cls.FILES
        )
        return cls(source, source if source.fingerprint() == target.fingerprint() else target)


def fit_tokenizers(config: AnyTokenizerConfig, examples: Examples[Pair]) -> PairTokenizers:
    """Fit the tokenizers to the training pairs."""
    pairs = list(examples.items())
    sources, targets = [pair.source for pair in pairs], [pair.target or "" for pair in pairs]
    match config:
        case CharactersConfig():
            found = build_tokenizers(sources, targets, kind="characters")
        case WordsConfig():
            found = build_tokenizers(sources, targets, kind="words", size=config.size)
        case BpeConfig():
            found = build_tokenizers(
                sources, targets, kind="subwords", size=config.size, joint=config.joint
            )
        case AlignmentWordsConfig():
            found = build_tokenizers(
                sources, targets,
                kind="bare", size=config.size, cut=config.cut, lower=config.lower,
            )  # fmt: skip
    return PairTokenizers(*found)


def shown_units(kind: str) -> str:
    """The units of an attention map unless others are chosen, by the kind of tokenizer."""
    return "char" if kind == "characters" else "word"
