"""From tokens to what people count in: words or characters, by where tokens lie in the text."""

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
"""Where the units of a text lie. A space is a character that counts, but it is empty: so character
n of a text is its n-th, and nothing is linked to a space."""


@dataclass(frozen=True, slots=True)
class UnitWeights:
    """Weights between units, and how much of each row lies on none."""

    weights: Float[Tensor, "target source"]
    nothing: Float[Tensor, " target"]


def by_units(units: str, text: str, tokens: Sequence[Span]) -> list[Span]:
    """Where the units of a text lie; the units of "subword" are the tokens that say something.

    >>> by_units("word", "a  fine day", [])
    [(0, 1), (3, 7), (8, 11)]
    """
    if units == "subword":
        return [(start, end) for start, end in tokens if end > start]
    if units not in UNITS:
        raise OptionError(f'units is {units!r}. Choose "word", "subword" or "char".')
    return UNITS[units](text)


def places(text: str, pieces: Sequence[str]) -> list[Span]:
    """Where the pieces that a text was put together from lie in it.

    A space that is in a piece and not in the text, or the other way round, is passed over.

    >>> places("Ah, so", [" Ah", ",", " so"])
    [(0, 2), (2, 3), (3, 6)]
    """
    found, here = list[Span](), 0
    for piece in pieces:
        said = piece if text.startswith(piece, here) else piece.removeprefix(" ")
        here += text.startswith(f" {said}", here) and not text.startswith(said, here)
        end = here + len(said) if text.startswith(said, here) else here
        found.append((here, end))
        here = end
    return found


def joined(
    weights: Float[Tensor, "token place"],
    target_tokens: Sequence[Span],
    source_tokens: Sequence[Span],
    target_units: Sequence[Span],
    source_units: Sequence[Span],
) -> UnitWeights:
    """What units read of units: the sum over a source unit's tokens, the mean over a target's.

    A token that lies in two units is shared by how many of its characters are in each; one that
    lies in none, as the end of a sentence does, is nothing. A unit without a token reads nothing.

    >>> weights = torch.tensor([[0.5, 0.25, 0.25], [0.0, 0.5, 0.5]])
    >>> tokens, units = [(0, 2), (2, 4)], [(0, 4)]
    >>> joined(weights, tokens, [*tokens, (4, 4)], units, units).weights
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
    """What share of each token lies in each unit."""
    if not units or not tokens:
        return like.new_zeros(len(units), len(tokens))
    first, last = like.new_tensor(units)[:, None].unbind(-1)
    start, end = like.new_tensor(tokens)[None].unbind(-1)
    common = (torch.minimum(last, end) - torch.maximum(first, start)).clamp(min=0.0)
    shares = common / (end - start).clamp(min=1.0)
    total = shares.sum(0).clamp(min=torch.finfo(shares.dtype).tiny)
    # A space at a token's edge belongs to no unit, and makes it no less the unit's own.
    return shares / total
