"""What there is to draw: a plain value, whatever kind of model it comes from."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from jaxtyping import Float
from torch import Tensor

from regard.seq2seq.protocols import Prediction
from regard.seq2seq.system.escaping import spelled_out


@dataclass(frozen=True, slots=True)
class AttentionMap:
    """What the words of a target read of the words of a source."""

    title: str
    """What is shown: the two texts, say."""

    legend: str
    """How the weights came about: forced or decoded."""

    source: Sequence[str]
    """As many words as the weights have columns. An empty one is the end of the text."""

    target: Sequence[str]
    """As many words as the weights have rows."""

    maps: Mapping[str, Float[Tensor, "target source"]]
    """Weights by whose they are, for people, as in "decoder.2"; what is shown first comes first."""

    @classmethod
    def of(cls, answer: Prediction, name: str = "decoder") -> "AttentionMap":
        """An answer with what was read for it."""
        assert answer.weights is not None
        legend = "for the model's own answer"
        # A model that has learned nothing says tokens that are no text, and so are not shown.
        weights = answer.weights[: len(answer.target)]
        return cls(spelled_out(answer.text), legend, answer.source, answer.target, {name: weights})

    @property
    def first(self) -> Float[Tensor, "target source"]:
        """The weights that are shown if there is room for one reading."""
        return next(iter(self.maps.values()))

    @property
    def drawn(self) -> str:
        """What the first reading is, on one line."""
        return f"Read by {next(iter(self.maps))}, {self.legend}"

    def one_by_one(self) -> Iterator["AttentionMap"]:
        """Each reading alone."""
        return (replace(self, maps={name: own}) for name, own in self.maps.items())

    def as_data(self) -> dict[str, Any]:
        """The same for programs."""
        return {
            "title": self.title,
            "legend": self.legend,
            "source": list(self.source),
            "target": list(self.target),
            "readings": [
                {"name": name, "weights": [[round(w, 4) for w in row] for row in own.tolist()]}
                for name, own in self.maps.items()
            ],
        }
