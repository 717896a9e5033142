"""A run's artifacts: fitted once, a file each, bound to its weights by their hashes."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from regard.seq2seq.errors import RunError
from regard.seq2seq.system.files import read_regular, sha256, write_atomic

LARGEST = 1 << 28
"""Maximum size of an artifact in bytes."""


class Artifacts(ABC):
    """Fitted once on the training data and saved in the run's folder, bound to its weights.

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
        """Parse them; `directory` is for error messages."""


@dataclass(frozen=True, slots=True)
class ArtifactFiles:
    """The content of each file, not parsed before its hash is checked."""

    directory: Path
    contents: Mapping[str, bytes]

    @property
    def hashes(self) -> dict[str, str]:
        """The SHA-256 of each file, by its name."""
        return {name: sha256(content) for name, content in self.contents.items()}

    def check(self, expected: Mapping[str, str], weights: Path) -> None:
        """Raise if the weights were trained with other artifacts."""
        for name, found in self.hashes.items():
            if expected.get(name) != found:
                raise RunError(
                    f"{self.directory / name} is not the file that {weights} was trained with. "
                    "Put the run's own file back, or train again in another folder."
                )

    def save(self) -> None:
        """Write them to their folder, each atomically."""
        for name, content in self.contents.items():
            write_atomic(self.directory, name, content)


def read_artifacts(directory: Path, names: Sequence[str]) -> ArtifactFiles:
    """The artifacts of a run's folder."""
    return ArtifactFiles(directory, {name: _content(directory, name) for name in names})


def _content(directory: Path, name: str) -> bytes:
    try:
        return read_regular(directory, name, limit=LARGEST)
    except FileNotFoundError:
        raise RunError(
            f"{directory} has no {name}, so it is not a run. Give the folder of a run."
        ) from None
    except OSError as error:
        raise RunError(f"{directory / name}: {error.strerror}. Put the run's own back.") from error
