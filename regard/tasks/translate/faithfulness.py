"""Faithfulness of a translator's attention, by erasure (Li 2016).

A weight says what was attended to, not what was needed. So each source word is left out in turn and
the same target is scored again: by how much does the log-probability of each target word drop?
"""

import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float
from torch import Tensor

from regard.seq2seq.batch import BOS, SourceTarget, Span
from regard.seq2seq.data import Pair
from regard.seq2seq.protocols import Stepper
from regard.tasks.faithfulness import Faithfulness
from regard.tasks.pairs.aligning import pair_unit_spans
from regard.tasks.translate.alignment_layer import default_alignment_layer
from regard.tasks.translate.forced_attention import bounded_pair, forced_attention

if TYPE_CHECKING:
    from regard.tasks.translate.translator import Translator

MAX_ERASED = 64
"""Maximum number of erased source words: those with the most attention."""

TOKENS = 4096
"""Maximum tokens in a batch of sources with a word left out."""


def measure_faithfulness(
    translator: "Translator", pair: Pair, *, units: str = "word", layer: str = ""
) -> Faithfulness:
    """Attention weights, and the drops by erasure."""
    layer, pair = (
        layer or default_alignment_layer(translator.config),
        bounded_pair(translator, pair),
    )
    soft = forced_attention(translator, pair, units, [layer])[layer]
    spans = pair_unit_spans(translator.codec, pair, units)
    source, target = (
        [text[start:end] for start, end in side]
        for text, side in zip((pair.source, pair.target or ""), spans, strict=True)
    )
    erased = sorted(soft.weights.sum(0).argsort(descending=True)[:MAX_ERASED].tolist())
    drops = erasure(translator, pair, [spans[0][place] for place in erased], spans[1])
    punctuation, end = _shares(translator, pair, layer)
    everything = torch.cat([soft.weights, soft.nothing[:, None]], 1)
    return Faithfulness(
        source, target, entropies(everything), erased,
        soft.weights[:, erased], drops, punctuation, end,
    )  # fmt: skip


@torch.inference_mode()
def erasure(
    translator: "Translator", pair: Pair, erased: Sequence[Span], units: Sequence[Span]
) -> Float[Tensor, "unit erased"]:
    """The drop in each target unit's log-probability without each of some source spans.

    Args:
        translator: The translator.
        pair: The source, and the target that is forced.
        erased: Spans of the source, each left out alone.
        units: Spans of the target's units.
    """
    variants = [
        pair,
        *(Pair(without(pair.source, span), pair.target, pair.line) for span in erased),
    ]
    size = max(1, TOKENS // max(translator.codec.sizes(pair)))
    rows = []
    for first in range(0, len(variants), size):
        some = variants[first : first + size]
        batch = translator.codec.collate(range(len(some)), some)
        device = next(translator.model.parameters()).device
        rows.append(token_log_probs(translator.model, batch.to(device)).cpu())
    log_probs = torch.cat(rows)
    tokens = translator.codec.target_tokenizer.encode(pair.target or "").spans
    by_unit = log_probs[:, : len(tokens)] @ _belonging(tokens, units)
    return (by_unit[:1] - by_unit[1:]).mT


def without(text: str, span: Span) -> str:
    """The text without a span; a space next to a removed word is removed, too.

    >>> without("we drink coffee", (3, 8)), without("we drink", (3, 8)), without("abc", (1, 2))
    ('we coffee', 'we', 'ac')
    """
    before, after = text[: span[0]], text[span[1] :]
    if not before or before[-1].isspace():
        after = after.lstrip()
    return before + after if after else before.rstrip()


def token_log_probs(model: Stepper, batch: SourceTarget) -> Float[Tensor, "batch token"]:
    """The log-probability of each target token, EOS included; all targets have one length."""
    assert batch.target is not None
    state, found = model.start(batch, 1), []
    ids = batch.target.ids
    assert bool((ids[:, 0] == BOS).all())
    for place in range(ids.shape[1] - 1):
        step = model.step(ids[:, place : place + 1], state)
        found.append(step.log_probs[:, 0].gather(1, ids[:, place + 1 : place + 2]))
        state = step.state
    return torch.cat(found, 1)


def entropies(weights: Float[Tensor, "target source"]) -> list[float]:
    """The entropy of each row, in bits: 0 for one word, log₂ n if uniform over n."""
    shares = weights / weights.sum(-1, keepdim=True).clamp(min=torch.finfo(weights.dtype).tiny)
    return (torch.special.entr(shares).sum(-1) / torch.log(torch.tensor(2.0))).tolist()


def _belonging(tokens: Sequence[Span], units: Sequence[Span]) -> Float[Tensor, "token unit"]:
    """1 where a token belongs to a unit: the one with the largest overlap."""
    found = torch.zeros(len(tokens), len(units))
    for row, (start, end) in enumerate(tokens):
        common = [min(end, last) - max(start, first) for first, last in units]
        if common and max(common) > 0:
            found[row, common.index(max(common))] = 1.0
    return found


def _shares(translator: "Translator", pair: Pair, layer: str) -> tuple[float, float]:
    """Shares of all tokens' attention on punctuation and on EOS."""
    soft = forced_attention(translator, pair, "subword", [layer])[layer]
    spans = pair_unit_spans(translator.codec, pair, "subword")[0]
    punctuation = [_is_punctuation(pair.source[start:end]) for start, end in spans]
    total = (soft.weights.sum() + soft.nothing.sum()).clamp(min=1e-9)
    return float(soft.weights[:, punctuation].sum() / total), float(soft.nothing.sum() / total)


def _is_punctuation(text: str) -> bool:
    characters = text.strip()
    return bool(characters) and all(unicodedata.category(each)[0] in "PS" for each in characters)
