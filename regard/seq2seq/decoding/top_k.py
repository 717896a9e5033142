"""The best continuations, without a sort of the vocabulary."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.native import log_softmax as vocabulary
from regard.native.eligibility import usable

BLOCK = 64
"""Words looked at together; of 32 to 128 about equal on a CPU."""

TopK = tuple[Float[Tensor, "sentence candidate"], Int[Tensor, "sentence candidate"]]


def top(
    log_probs: Float[Tensor, "sentence beam vocabulary"],
    scores: Float[Tensor, "sentence beam"],
    count: int,
) -> TopK:
    """The `count` best sums of a beam's score and a word's, and each as beam · vocabulary + word.

    The n best words lie in the n blocks with the greatest maxima: only those are searched. Maxima
    take one pass at the speed of memory, where a top-k of the whole takes four times as long.
    """
    _, beams, words = log_probs.shape
    count = min(count, beams * words)
    blocks = words // BLOCK
    if beams * blocks <= count:
        return _whole(log_probs, scores, count)
    edge = blocks * BLOCK
    values, numbers = _in_blocks(log_probs[..., :edge], scores, count, words)
    if edge < words:
        rest = (log_probs[..., edge:] + scores[..., None]).flatten(1)
        places = torch.arange(edge, words, device=scores.device)
        places = places + words * torch.arange(beams, device=scores.device)[:, None]
        values = torch.cat([values, rest], -1)
        numbers = torch.cat([numbers, places.flatten().expand(len(rest), -1)], -1)
    best = values.topk(count)
    return best.values, numbers.gather(-1, best.indices)


def argmax(log_probs: Float[Tensor, "sentence beam vocabulary"]) -> Int[Tensor, "sentence beam"]:
    """The best word of each beam: argmax, in C, or by the best block, which is quicker, too."""
    words = log_probs.shape[-1]
    if words and usable(log_probs, contiguous=True):
        return vocabulary.argmax(log_probs)
    blocks = words // BLOCK
    if blocks < 2:
        return log_probs.argmax(-1)
    edge = blocks * BLOCK
    cut = log_probs[..., :edge].unflatten(-1, (blocks, BLOCK))
    block = cut.amax(-1).argmax(-1, keepdim=True)
    inside = cut.take_along_dim(block[..., None], 2)[..., 0, :]
    word = block * BLOCK + inside.argmax(-1, keepdim=True)
    if edge < words:
        last = edge + log_probs[..., edge:].argmax(-1, keepdim=True)
        both = torch.cat([word, last], -1)
        word = both.gather(-1, log_probs.gather(-1, both).argmax(-1, keepdim=True))
    return word[..., 0]


def _whole(log_probs: Tensor, scores: Tensor, count: int) -> TopK:
    best = (log_probs + scores[..., None]).flatten(1).topk(count)
    return best.values, best.indices


def _in_blocks(log_probs: Tensor, scores: Tensor, count: int, words: int) -> TopK:
    """Everything in the blocks that may hold one of the best."""
    sentences, _, edge = log_probs.shape
    blocks = edge // BLOCK
    cut = log_probs.unflatten(-1, (blocks, BLOCK))
    heads = (cut.amax(-1) + scores[..., None]).flatten(1)
    chosen = heads.topk(count).indices
    beam, block = chosen // blocks, chosen % blocks
    rows = torch.arange(sentences, device=chosen.device)[:, None]
    values = cut[rows, beam, block] + scores.gather(-1, beam)[..., None]
    numbers = (beam * words + block * BLOCK)[..., None]
    numbers = numbers + torch.arange(BLOCK, device=chosen.device)
    return values.flatten(1), numbers.flatten(1)
