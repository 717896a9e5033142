"""Optional abilities of predictors, as protocols: a verb requires one before it uses an option."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar, runtime_checkable

from regard.seq2seq.alignment import UnitWeights
from regard.seq2seq.data import MaxLength, Note, Pair, Progress
from regard.seq2seq.errors import ConfigError
from regard.seq2seq.protocols import Prediction, Search

Ability = TypeVar("Ability")


@runtime_checkable
class Searches(Protocol):
    """Decodes token by token, by a search that can be set."""

    decoding: Search
    """The current search; `search` and `sampling` build others."""

    def search(self, beam: int | None = None, best: int = 1) -> Search: ...

    def sampling(
        self, temperature: float = 1.0, top_p: float = 1.0, count: int = 1, seed: int = 1
    ) -> Search: ...


@runtime_checkable
class BoundsLength(Protocol):
    """Truncates or skips what is too long, and notes it."""

    max_length: MaxLength
    note: Note


@runtime_checkable
class JoinsEnsemble(Protocol):
    """Averages its token probabilities with those of other models."""

    def add_member(self, other: Any) -> None: ...


@runtime_checkable
class Quantizes(Protocol):
    """Has large linear layers that can be quantized to int8."""

    def quantize(self) -> None: ...


@runtime_checkable
class ReplacesUnknown(Protocol):
    """May output UNK, and can replace it by words of the source."""

    def replace_unknown(self, dictionary: Mapping[str, str]) -> None: ...


@runtime_checkable
class ScoresTargets(Protocol):
    """Computes the log-probability of a given target."""

    def score(
        self, items: Iterable[Any], *, progress: Progress | None = None
    ) -> Iterator[Prediction]: ...


@runtime_checkable
class LinksAnswers(Protocol):
    """Aligns its own answers to their sources."""

    def answer_alignments(
        self, items: Sequence[Any], answers: Sequence[Prediction], *, units: str = "word"
    ) -> list[UnitWeights]: ...


@runtime_checkable
class AlignsPairs(Protocol):
    """Aligns the words of given pairs."""

    def aligner(self, reverse: Any | None = None) -> Any:
        """An `Aligns`, with the reverse direction if there is another predictor for it."""


@runtime_checkable
class MeasuresFaithfulness(Protocol):
    """Can score the same answer without a part of its source."""

    def faithfulness(self, item: Pair, *, units: str = "", layer: str = "") -> Any: ...


PHRASES: Mapping[type, str] = {
    Searches: "search",
    BoundsLength: "bound lengths",
    JoinsEnsemble: "make ensembles",
    Quantizes: "quantize",
    ReplacesUnknown: "write unknown words",
    ScoresTargets: "score given targets",
    LinksAnswers: "align its answers",
    AlignsPairs: "align pairs",
    MeasuresFaithfulness: "measure faithfulness",
}


def require(predictor: object, ability: type[Ability], task: str, option: str) -> Ability:
    """The predictor, if it has the ability; otherwise raise an error that names the option."""
    if not isinstance(predictor, ability):
        raise ConfigError(f"{task} does not {PHRASES[ability]}, so there is no {option}.")
    return predictor
