"""From soft alignments of pairs to links, for any model."""

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
"""One direction alone, without symmetrisation."""

Weights = Float[Tensor, "target source"]
Soft = tuple[UnitWeights, UnitWeights | None]
"""Target-to-source weights; and source-to-target weights, if there are any."""


@runtime_checkable
class Aligns(Protocol):
    """Computes soft alignments of given pairs."""

    codec: PairCodec

    symmetry: str
    """Its default symmetrisation."""

    threshold: float
    """Its default threshold for links by the product of both directions."""

    def bounded(self, pair: Pair) -> Pair:
        """The pair truncated to the maximum length; empty if it is skipped."""

    def check(self, pairs: ValidatedCorpus[Pair]) -> None:
        """Raise before computing if some of them cannot be aligned."""

    def soft(
        self,
        pairs: Sequence[Pair],
        *,
        units: str = "word",
        layer: str = "",
        progress: Progress | None = None,
    ) -> Iterator[Soft]:
        """The soft alignments of each pair, streamed in bounded memory.

        Args:
            pairs: Sources with their targets.
            units: "word", "subword" or "char".
            layer: Layer or head, if there are several; the model's default if empty.
            progress: Called with the number of pairs done.
        """


@dataclass(frozen=True)
class AlignmentOptions:
    """How links are extracted from soft alignments.

    Args:
        units: "word", "subword" or "char".
        rule: Extracts links from one direction's weights.
        symmetry: How both directions are combined: a name of `SYMMETRIES`, "product", or one of
            them alone, "forward" or "backward".
        threshold: For links by the product of both.
        layer: Layer or head; the model's default if empty.
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
    """The links of a pair, and their weights."""

    links: Links
    weights: Weights
    """Of one direction, or the geometric mean of both."""


def alignments(
    aligner: Aligns,
    pairs: Sequence[Pair],
    options: AlignmentOptions,
    progress: Progress | None = None,
) -> Iterator[Alignment]:
    """The links of each pair, with their weights."""
    soft = aligner.soft(pairs, units=options.units, layer=options.layer, progress=progress)
    return (linked(each, options) for each in soft)


def linked(soft: Soft, options: AlignmentOptions) -> Alignment:
    """The links of one pair."""
    forward, backward = soft
    if backward is None or options.symmetry == "forward":
        return Alignment(options.rule(forward.weights, forward.nothing), forward.weights)
    links, reverse = (options.rule(each.weights, each.nothing) for each in (forward, backward))
    if options.symmetry == "backward":
        return Alignment(swapped(reverse), backward.weights.mT)
    both = product(forward.weights, backward.weights)
    if options.symmetry == "product":
        return Alignment(Threshold(options.threshold, null=1.0)(both), both)
    return Alignment(symmetrize(options.symmetry, links, swapped(reverse)), both)


def agreement(forward: Iterable[Links], backward: Iterable[Links]) -> float:
    """Share of links that both directions have; each has its own source first."""
    both, total = 0, 0
    for one, other in zip(forward, backward, strict=True):
        both += 2 * len(one & swapped(other))
        total += len(one) + len(other)
    return both / max(1, total)


def pair_unit_spans(codec: PairCodec, pair: Pair, units: str) -> tuple[list[Span], list[Span]]:
    """The spans of the units of a pair's source and target."""
    sides = ((codec.source_tokenizer, pair.source), (codec.target_tokenizer, pair.target or ""))
    source, target = (unit_spans(units, text, how.encode(text).spans) for how, text in sides)
    return source, target


def unit_texts(codec: PairCodec, pair: Pair, units: str) -> tuple[list[str], list[str]]:
    """The texts of the units of a pair's source and target."""
    source, target = pair_unit_spans(codec, pair, units)
    text = pair.target or ""
    return [pair.source[a:b] for a, b in source], [text[a:b] for a, b in target]
