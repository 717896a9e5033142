"""What some predictors can do and others cannot: a verb asks before it offers an option."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar, runtime_checkable

from regard.seq2seq.alignment import UnitWeights
from regard.seq2seq.data import MaxLength, Note, Pair, Progress
from regard.seq2seq.errors import ConfigError
from regard.seq2seq.protocols import Prediction, Search

Ability = TypeVar("Ability")


@runtime_checkable
class Searches(Protocol):
    """Decodes token by token, so that there is a search to choose."""

    decoding: Search
    """How answers are found; `search` and `sampling` make others."""

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
    """Averages its probabilities with those of other models."""

    def add_member(self, other: Any) -> None: ...


@runtime_checkable
class Quantizes(Protocol):
    """Has large linear layers that can be in int8."""

    def quantize(self) -> None: ...


@runtime_checkable
class ReplacesUnknown(Protocol):
    """Writes words that it may not know, and can take them from the source."""

    def replace_unknown(self, dictionary: Mapping[str, str]) -> None: ...


@runtime_checkable
class ScoresTargets(Protocol):
    """Has a probability for a given target."""

    def score(
        self, items: Iterable[Any], *, progress: Progress | None = None
    ) -> Iterator[Prediction]: ...


@runtime_checkable
class LinksAnswers(Protocol):
    """Says what each word of its own answer was read from."""

    def answer_alignments(
        self, items: Sequence[Any], answers: Sequence[Prediction], *, units: str = "word"
    ) -> list[UnitWeights]: ...


@runtime_checkable
class AlignsPairs(Protocol):
    """Says which words of given pairs belong together."""

    def aligner(self, reverse: Any | None = None) -> Any:
        """An `Aligns`, with the other direction if there is another predictor for it."""


@runtime_checkable
class MeasuresFaithfulness(Protocol):
    """Can score the same answer without a part of its source."""

    def faithfulness(self, item: Pair, *, units: str = "word", layer: str = "") -> Any: ...


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
    """The predictor, which has the ability; raise if its task has not, naming the option."""
    if not isinstance(predictor, ability):
        raise ConfigError(f"{task} does not {PHRASES[ability]}, so there is no {option}.")
    return predictor
