"""Pooling token weights to words or characters, by the tokens' spans in the text."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.core.errors import OptionError
from regard.seq2seq.batch import Span

UNITS: dict[str, Callable[[str], list[Span]]] = {
    "word": lambda text: [found.span() for found in re.finditer(r"\S+", text)],
    "char": lambda text: [(n, n + bool(each.strip())) for n, each in enumerate(text)],
}
"""The spans of a text's units. A space counts as a character with an empty span: character n of a
text is its n-th, and no link goes to a space."""


@dataclass(frozen=True, slots=True)
class UnitWeights:
    """Weights between units; `nothing` is how much of each row lies on no unit."""

    weights: Float[Tensor, "target source"]
    nothing: Float[Tensor, " target"]


def unit_spans(units: str, text: str, tokens: Sequence[Span]) -> list[Span]:
    """The spans of a text's units; those of "subword" are the tokens with a span that is not empty.

    >>> unit_spans("word", "a  fine day", [])
    [(0, 1), (3, 7), (8, 11)]
    """
    if units == "subword":
        return [(start, end) for start, end in tokens if end > start]
    if units not in UNITS:
        raise OptionError(f'units is {units!r}. Choose "word", "subword" or "char".')
    return UNITS[units](text)


def piece_spans(text: str, pieces: Sequence[str]) -> list[Span]:
    """The spans of the pieces that a text was detokenized from.

    A space that is in a piece and not in the text, or the other way round, is skipped.

    >>> piece_spans("Ah, so", [" Ah", ",", " so"])
    [(0, 2), (2, 3), (3, 6)]
    """
    found, here = list[Span](), 0
    for piece in pieces:
        word = piece if text.startswith(piece, here) else piece.removeprefix(" ")
        here += text.startswith(f" {word}", here) and not text.startswith(word, here)
        end = here + len(word) if text.startswith(word, here) else here
        found.append((here, end))
        here = end
    return found


def pool_to_units(
    weights: Float[Tensor, "token position"],
    target_tokens: Sequence[Span],
    source_tokens: Sequence[Span],
    target_units: Sequence[Span],
    source_units: Sequence[Span],
) -> UnitWeights:
    """Weights between units: the sum over a source unit's tokens, the mean over a target's.

    A token in two units is split by how many of its characters are in each; one in no unit, such
    as EOS, goes to `nothing`. A unit without a token has weights 0 and `nothing` 1.

    >>> weights = torch.tensor([[0.5, 0.25, 0.25], [0.0, 0.5, 0.5]])
    >>> tokens, units = [(0, 2), (2, 4)], [(0, 4)]
    >>> pool_to_units(weights, tokens, [*tokens, (4, 4)], units, units).weights
    tensor([[0.6250]])
    """
    rows = _shares(target_tokens, target_units, weights)
    columns = _shares(source_tokens, source_units, weights)
    per_unit = rows / rows.sum(-1, keepdim=True).clamp(min=torch.finfo(rows.dtype).tiny)
    found = per_unit @ weights @ columns.mT
    nothing = per_unit @ weights @ (1 - columns.sum(0)).clamp(min=0.0)
    return UnitWeights(found, nothing.masked_fill(rows.sum(-1) == 0, 1.0))


def _shares(
    tokens: Sequence[Span], units: Sequence[Span], like: Tensor
) -> Float[Tensor, "unit token"]:
    """The share of each token that lies in each unit."""
    if not units or not tokens:
        return like.new_zeros(len(units), len(tokens))
    first, last = like.new_tensor(units)[:, None].unbind(-1)
    start, end = like.new_tensor(tokens)[None].unbind(-1)
    common = (torch.minimum(last, end) - torch.maximum(first, start)).clamp(min=0.0)
    shares = common / (end - start).clamp(min=1.0)
    total = shares.sum(0).clamp(min=torch.finfo(shares.dtype).tiny)
    # A space at a token's edge belongs to no unit: normalise, so that the token still counts 1.
    return shares / total
