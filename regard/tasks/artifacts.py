"""A run's artifacts: fitted once, a file each, bound to its weights by their hashes."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from regard.seq2seq.errors import RunError
from regard.seq2seq.system.files import read_regular, sha256, write_atomic

LARGEST = 1 << 28
"""Bytes that such a file may have."""


class Artifacts(ABC):
    """What is fitted once on the training data and kept in the run's folder, bound to its weights.

    Tokenizers, label sets, feature statistics: a file each.
    """

    FILES: ClassVar[Sequence[str]]
    """Their names."""

    @abstractmethod
    def to_files(self) -> Mapping[str, bytes]:
        """The content of each."""

    @classmethod
    @abstractmethod
    def from_files(cls, contents: Mapping[str, bytes], directory: Path) -> Any:
        """The same again; `directory` is for errors."""


@dataclass(frozen=True, slots=True)
class ArtifactFiles:
    """The content of each file, which is parsed once it is known to be the run's own."""

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
                    f"{self.directory / name} is not the file that {weights} was trained with. "
                    "Put the run's own file back, or train again in another folder."
                )

    def save(self) -> None:
        """Write them to their folder, each whole or not at all."""
        for name, content in self.contents.items():
            write_atomic(self.directory, name, content)


def read_artifacts(directory: Path, names: Sequence[str]) -> ArtifactFiles:
    """Those of a run's folder."""
    return ArtifactFiles(directory, {name: _content(directory, name) for name in names})


def _content(directory: Path, name: str) -> bytes:
    try:
        return read_regular(directory, name, limit=LARGEST)
    except FileNotFoundError:
        raise RunError(
            f"{directory} has no {name}, so it is no run. Give the folder of one."
        ) from None
    except OSError as error:
        raise RunError(f"{directory / name}: {error.strerror}. Put the run's own back.") from error
