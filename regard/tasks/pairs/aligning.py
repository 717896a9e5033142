"""From soft alignments of pairs to links, whatever kind of model they come from."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor

from regard.attention.core.errors import OptionError
from regard.seq2seq.alignment import (
    SYMMETRIES,
    Argmax,
    Extraction,
    Links,
    Threshold,
    UnitWeights,
    product,
    swapped,
    symmetrize,
    unit_spans,
)
from regard.seq2seq.batch import Span
from regard.seq2seq.data import Pair, PairCodec, Progress, ValidatedCorpus

ONE_WAY = ("forward", "backward")
"""Symmetrisations that are none."""

Weights = Float[Tensor, "target source"]
Soft = tuple[UnitWeights, UnitWeights | None]
"""What target units read of source units; and source units of target units, if that is known."""


@runtime_checkable
class Aligns(Protocol):
    """Whoever can be asked which words of given pairs belong together."""

    codec: PairCodec

    symmetry: str
    """How its two directions become one, unless somebody says otherwise."""

    threshold: float
    """Above which the product of both directions is a link, likewise."""

    def bounded(self, pair: Pair) -> Pair:
        """As much of the pair as may be read; an empty one if it is skipped."""

    def check(self, pairs: ValidatedCorpus[Pair]) -> None:
        """Raise if some of them cannot be aligned, before anything is computed."""

    def soft(
        self,
        pairs: Sequence[Pair],
        *,
        units: str = "word",
        layer: str = "",
        progress: Progress | None = None,
    ) -> Iterator[Soft]:
        """For each pair its soft alignments, in bounded memory however many pairs there are.

        Args:
            pairs: Sources with their targets.
            units: "word", "subword" or "char".
            layer: Whose reading it is, if there are several; the model's own choice if empty.
            progress: Hears how many pairs are done.
        """


@dataclass(frozen=True)
class Aligning:
    """How links are made.

    Args:
        units: "word", "subword" or "char".
        rule: Makes links of one direction's weights.
        symmetry: How two directions become one: a name of `SYMMETRIES`, "product", or one of them
            alone, "forward" or "backward".
        threshold: Above which the product of both is a link.
        layer: Whose reading it is; the model's own choice if empty.
    """

    units: str = "word"
    rule: Extraction = field(default_factory=Argmax)
    symmetry: str = "grow-diag-final-and"
    threshold: float = 0.3
    layer: str = ""

    def __post_init__(self) -> None:
        if self.symmetry not in (*SYMMETRIES, "product", *ONE_WAY):
            raise OptionError(
                f"symmetrisation is {self.symmetry!r}. Choose {', '.join(SYMMETRIES)}, product, "
                f"{' or '.join(ONE_WAY)}."
            )


@dataclass(frozen=True, slots=True)
class Alignment:
    """What belongs together, and how surely."""

    links: Links
    weights: Weights
    """Of one direction, or of both: the root of their product."""


def alignments(
    who: Aligns, pairs: Sequence[Pair], options: Aligning, progress: Progress | None = None
) -> Iterator[Alignment]:
    """The links of each pair, with the weights that they come from."""
    soft = who.soft(pairs, units=options.units, layer=options.layer, progress=progress)
    return (linked(each, options) for each in soft)


def linked(soft: Soft, options: Aligning) -> Alignment:
    """The links of one pair."""
    forward, backward = soft
    if backward is None or options.symmetry == "forward":
        return Alignment(options.rule(forward.weights, forward.nothing), forward.weights)
    there, back = (options.rule(each.weights, each.nothing) for each in (forward, backward))
    if options.symmetry == "backward":
        return Alignment(swapped(back), backward.weights.mT)
    both = product(forward.weights, backward.weights)
    if options.symmetry == "product":
        return Alignment(Threshold(options.threshold, null=1.0)(both), both)
    return Alignment(symmetrize(options.symmetry, there, swapped(back)), both)


def agreement(forward: Iterable[Links], backward: Iterable[Links]) -> float:
    """What share of all links two directions both have; each counts its own source first."""
    both, total = 0, 0
    for one, other in zip(forward, backward, strict=True):
        both += 2 * len(one & swapped(other))
        total += len(one) + len(other)
    return both / max(1, total)


def pair_unit_spans(codec: PairCodec, pair: Pair, units: str) -> tuple[list[Span], list[Span]]:
    """Where the units of a pair's source and target lie."""
    sides = ((codec.source_tokenizer, pair.source), (codec.target_tokenizer, pair.target or ""))
    source, target = (unit_spans(units, text, how.encode(text).spans) for how, text in sides)
    return source, target


def unit_texts(codec: PairCodec, pair: Pair, units: str) -> tuple[list[str], list[str]]:
    """What the units of a pair's source and target say."""
    source, target = pair_unit_spans(codec, pair, units)
    said = pair.target or ""
    return [pair.source[a:b] for a, b in source], [said[a:b] for a, b in target]
