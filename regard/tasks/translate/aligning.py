"""Soft word alignments of given pairs, by what a translator reads for them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from jaxtyping import Float
from torch import Tensor

from regard.attention.errors import OptionError
from regard.seq2seq.data import Pair, plan
from regard.seq2seq.examples import Pairs, Span
from regard.seq2seq.reading import (
    SYMMETRIES,
    Above,
    Best,
    Extraction,
    Joined,
    Links,
    by_units,
    joined,
    product,
    symmetrised,
    turned,
)
from regard.tasks.translate.readings import readers, token_weights
from regard.tasks.translate.translator import Translator

WINDOW, TOKENS = 4096, 4096
"""How many pairs are held at once, and how many tokens are in a batch."""

TRIED = 200
"""By how many pairs two directions agree on their layers."""

Progress = Callable[[int], None]
Weights = Float[Tensor, "target source"]


@dataclass(frozen=True)
class Aligning:
    """How links are made.

    Args:
        units: "word", "subword" or "char".
        rule: Makes links of one direction's weights.
        symmetry: How two directions become one: a name of `SYMMETRIES`, or "product".
        threshold: Above which the product of both is a link.
        layer: Whose reading it is; the model's own choice if empty.
    """

    units: str = "word"
    rule: Extraction = field(default_factory=Best)
    symmetry: str = "grow-diag-final-and"
    threshold: float = 0.3
    layer: str = ""

    def __post_init__(self) -> None:
        if self.symmetry not in (*SYMMETRIES, "product"):
            raise OptionError(
                f"symmetrisation is {self.symmetry!r}. Choose {', '.join(SYMMETRIES)} or product."
            )


@dataclass(frozen=True, slots=True)
class Alignment:
    """What belongs together, and how surely."""

    links: Links
    weights: Weights
    """Of both directions: the root of their product."""


def aligned(
    one: Translator,
    other: Translator | None,
    pairs: Sequence[Pair],
    options: Aligning,
    progress: Progress | None = None,
) -> Iterator[Links]:
    """The links of each pair, by one direction or by both."""
    return (each.links for each in alignments(one, other, pairs, options, progress))


def alignments(
    one: Translator,
    other: Translator | None,
    pairs: Sequence[Pair],
    options: Aligning,
    progress: Progress | None = None,
) -> Iterator[Alignment]:
    """The same with the weights that they come from."""
    if other is None:
        soft = soft_alignments(
            one, pairs, units=options.units, layer=options.layer, progress=progress
        )
        for each in soft:
            yield Alignment(options.rule(each.weights, each.nothing), each.weights)
        return
    layers = agreeing_layers(one, other, pairs, options.units, options.layer)
    swapped = (Pair(pair.target or "", pair.source, pair.line) for pair in pairs)
    there = soft_alignments(one, pairs, units=options.units, layer=layers[0], progress=progress)
    back = soft_alignments(other, swapped, units=options.units, layer=layers[1])
    for forward, backward in zip(there, back, strict=True):
        yield _both(forward, backward, options)


def _both(forward: Joined, backward: Joined, options: Aligning) -> Alignment:
    soft = product(forward.weights, backward.weights)
    if options.symmetry == "product":
        return Alignment(Above(options.threshold, null=1.0)(soft), soft)
    links = [options.rule(each.weights, each.nothing) for each in (forward, backward)]
    return Alignment(symmetrised(options.symmetry, links[0], turned(links[1])), soft)


def soft_alignments(
    translator: Translator,
    pairs: Iterable[Pair],
    *,
    units: str = "word",
    layer: str = "",
    progress: Progress | None = None,
) -> Iterator[Joined]:
    """For each pair what the units of its target read of those of its source.

    Args:
        translator: Whose attention it is.
        pairs: Sources with their targets, in bounded memory however many there are.
        units: "word", "subword" or "char".
        layer: Whose reading: "decoder.2", or "decoder.2/head.1"; the model's own choice if empty.
        progress: Hears how many pairs are done.
    """
    readers(translator)  # told before anything is computed
    stream, done = iter(pairs), 0
    while window := list(islice(stream, WINDOW)):
        found: dict[int, Joined] = {}
        for numbers in plan(
            [translator.codec.size(pair) for pair in window], seed=0, epoch=0, tokens=TOKENS
        ):
            some = [window[number] for number in numbers]
            found.update(zip(numbers, _batch(translator, some, units, layer), strict=True))
            if progress is not None:
                progress(done + len(found))
        done += len(window)
        yield from (found[number] for number in range(len(window)))


def agreeing_layers(
    forward: Translator,
    backward: Translator,
    pairs: Sequence[Pair],
    units: str = "word",
    layer: str = "",
) -> tuple[str, str]:
    """The layers of two directions whose links agree best on some pairs; no gold is looked at.

    If a layer of the first direction is named, only the other's is chosen.
    """
    some = [pair for pair in pairs[:TRIED] if pair.target]
    sides = forward, backward
    swapped = [Pair(pair.target or "", pair.source, pair.line) for pair in some]
    links = []
    for translator, given in zip(sides, (some, swapped), strict=True):
        own = {}
        for name in [layer] if layer and translator is forward else layers(translator):
            soft = soft_alignments(translator, given, units=units, layer=name)
            own[name] = [Best()(each.weights, each.nothing) for each in soft]
        links.append(own)
    return max(
        ((one, other) for one in links[0] for other in links[1]),
        key=lambda chosen: _agreement(links[0][chosen[0]], links[1][chosen[1]]),
    )


def layers(translator: Translator) -> list[str]:
    """The names of a model's layers that read the source; one empty name if there is but one."""
    config = translator.config.model
    if config.kind != "transformer":
        return [""]
    return [f"decoder.{number}" for number in range(config.layers)]


def usual_layer(translator: Translator) -> str:
    """The layer before the last, where words look for their like (Garg 2019)."""
    known = layers(translator)
    return known[max(0, len(known) - 2)]


def unit_spans(translator: Translator, pair: Pair, units: str) -> tuple[list[Span], list[Span]]:
    """Where the units of a pair's source and target lie."""
    codec, target = translator.codec, pair.target or ""
    sides = ((codec.source_text, pair.source), (codec.target_text, target))
    source, own = (by_units(units, text, how.encode(text).spans) for how, text in sides)
    return source, own


def unit_texts(translator: Translator, pair: Pair, units: str) -> tuple[list[str], list[str]]:
    """What the units of a pair's source and target say."""
    source, target = unit_spans(translator, pair, units)
    said = pair.target or ""
    return [pair.source[a:b] for a, b in source], [said[a:b] for a, b in target]


def _agreement(forward: Sequence[Links], backward: Sequence[Links]) -> float:
    """What share of all links both directions have."""
    both, total = 0, 0
    for one, other in zip(forward, backward, strict=True):
        both += 2 * len(one & turned(other))
        total += len(one) + len(other)
    return both / max(1, total)


def _batch(translator: Translator, pairs: Sequence[Pair], units: str, layer: str) -> list[Joined]:
    batch = translator.codec.collate(range(len(pairs)), pairs)
    return by_pair(translator, batch, pairs, units, layer)


def by_pair(
    translator: Translator, batch: Pairs, pairs: Sequence[Pair], units: str, layer: str
) -> list[Joined]:
    """For each row of a batch what the units of its target read of those of its source."""
    assert batch.target is not None
    weights = token_weights(readers(translator), batch, layer)
    found = []
    for row, pair in enumerate(pairs):
        source_spans, target_spans = batch.source.spans[row], batch.target.spans[row][1:-1]
        own = weights[row, : len(target_spans), : len(source_spans)]
        target_units = by_units(units, pair.target or "", target_spans)
        source_units = by_units(units, pair.source, source_spans)
        found.append(joined(own, target_spans, source_spans, target_units, source_units))
    return found
