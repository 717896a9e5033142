"""Attention maps with their labels: a plain value, whatever model they come from."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from jaxtyping import Float
from torch import Tensor

from regard.seq2seq.protocols import Prediction
from regard.seq2seq.system.escaping import spelled_out


@dataclass(frozen=True, slots=True)
class AttentionMap:
    """Attention weights from the words of a target to the words of a source."""

    title: str
    """What is shown: the two texts, say."""

    legend: str
    """How the weights were computed: for a given target, or for the model's own."""

    source: Sequence[str]
    """As many words as the weights have columns. An empty one is EOS."""

    target: Sequence[str]
    """As many words as the weights have rows."""

    maps: Mapping[str, Float[Tensor, "target source"]]
    """Weights by layer or head, as in "decoder.2"; what is shown first comes first."""

    @classmethod
    def of(cls, prediction: Prediction, name: str = "decoder") -> "AttentionMap":
        """A prediction with its weights."""
        assert prediction.weights is not None
        legend = "for the model's own answer"
        # An untrained model predicts tokens that are no text, and so are not shown.
        weights = prediction.weights[: len(prediction.target)]
        title, source, target = prediction.text, prediction.source, prediction.target
        return cls(spelled_out(title), legend, source, target, {name: weights})

    @property
    def first(self) -> Float[Tensor, "target source"]:
        """The weights that are shown if there is room for one map."""
        return next(iter(self.maps.values()))

    @property
    def caption(self) -> str:
        """What the first map is, on one line."""
        return f"Attention of {next(iter(self.maps))}, {self.legend}"

    def split(self) -> Iterator["AttentionMap"]:
        """Each map alone."""
        return (replace(self, maps={name: weights}) for name, weights in self.maps.items())

    def to_dict(self) -> dict[str, Any]:
        """As JSON takes it."""
        return {
            "title": self.title,
            "legend": self.legend,
            "source": list(self.source),
            "target": list(self.target),
            "maps": [
                {"name": name, "weights": [[round(w, 4) for w in row] for row in weights.tolist()]}
                for name, weights in self.maps.items()
            ],
        }
