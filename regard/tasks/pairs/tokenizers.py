"""The tokenizers of a run's two sides: built once, kept in its folder, bound to its weights."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from regard.seq2seq.data import Tokenizer, build_tokenizers, parse_tokenizer
from regard.seq2seq.data.tokenizers import LARGEST
from regard.seq2seq.errors import RunError
from regard.seq2seq.system.files import read_regular, sha256, write_atomic
from regard.tasks.config.tokenizer import (
    AlignmentWordsConfig,
    BpeConfig,
    CharactersConfig,
    WordsConfig,
)
from regard.tasks.pairs.examples import Examples

SOURCE, TARGET = "source.json", "target.json"


@dataclass(frozen=True, slots=True)
class Tokenizers:
    """The content of both files, which is parsed when it is known to be right."""

    directory: Path
    contents: Mapping[str, bytes]

    @property
    def hashes(self) -> dict[str, str]:
        """The SHA-256 of each file, by its name."""
        return {name: sha256(content) for name, content in self.contents.items()}

    def check(self, expected: Mapping[str, str], weights: Path) -> None:
        """Raise if weights were trained with others."""
        for name, found in self.hashes.items():
            if expected.get(name) != found:
                raise RunError(
                    f"{self.directory / name} is not the tokenizer that {weights} was trained "
                    "with. Put the run's own file back, or train again in another folder."
                )

    def parse(self) -> tuple[Tokenizer, Tokenizer]:
        """Both of them; one object if they are the same."""
        source, target = (
            parse_tokenizer(self.contents[name], str(self.directory / name))
            for name in (SOURCE, TARGET)
        )
        return source, source if source.fingerprint() == target.fingerprint() else target

    def save(self) -> None:
        """Write them to their folder, each whole or not at all."""
        for name, content in self.contents.items():
            write_atomic(self.directory, name, content)


def tokenizers_of(directory: Path, texts: tuple[Tokenizer, Tokenizer]) -> Tokenizers:
    """These texts as the files of a folder."""
    contents = {SOURCE: texts[0].to_json(), TARGET: texts[1].to_json()}
    return Tokenizers(directory, contents)


def load_tokenizers(directory: Path) -> Tokenizers:
    """Those of a run's folder."""
    return Tokenizers(directory, {name: _content(directory, name) for name in (SOURCE, TARGET)})


def _content(directory: Path, name: str) -> bytes:
    try:
        return read_regular(directory, name, limit=LARGEST)
    except FileNotFoundError:
        raise RunError(
            f"{directory} has no {name}, so it is no run. Give the folder of one."
        ) from None
    except OSError as error:
        raise RunError(f"{directory / name}: {error.strerror}. Put the run's own back.") from error


def fit_tokenizers(
    config: CharactersConfig | WordsConfig | BpeConfig | AlignmentWordsConfig, examples: Examples
) -> tuple[Tokenizer, Tokenizer]:
    """Those that the examples need."""
    sources, targets = examples.sources(), examples.targets()
    match config:
        case CharactersConfig():
            return build_tokenizers(sources, targets, kind="characters")
        case WordsConfig():
            return build_tokenizers(sources, targets, kind="words", size=config.size)
        case BpeConfig():
            return build_tokenizers(
                sources, targets, kind="subwords", size=config.size, joint=config.joint
            )
        case AlignmentWordsConfig():
            return build_tokenizers(
                sources, targets,
                kind="bare", size=config.size, cut=config.cut, lower=config.lower,
            )  # fmt: skip
