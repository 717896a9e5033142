"""How much a search holds at once: a wider beam gets smaller batches, and the widest an error."""

from typing import TypedDict

from regard.attention.core.errors import OptionError
from regard.seq2seq.data import MaxLength
from regard.seq2seq.decoding import Beam, Sampling
from regard.seq2seq.protocols import Search

NUMBERS = 2**30
"""How many numbers of one kind a search may hold for one sentence: 4 GiB in float32."""

TOGETHER = 2**26
"""How many log-probabilities a batch of several sentences may have in a step."""

SENTENCES, TOKENS, NARROW = 64, 4096, 32
"""The largest batch, for beams that are no wider than the last."""


class Batches(TypedDict):
    """How full a batch of sources may be."""

    sentences: int
    tokens: int


def batches(search: Search, vocabulary: int) -> Batches:
    """As large as ever for the usual beams; for others so that all beams together fit.

    >>> batches(Beam(5), 32_000), batches(Beam(1000), 32_000)
    ({'sentences': 64, 'tokens': 4096}, {'sentences': 2, 'tokens': 131})
    """
    width = _width(search)
    fitting = max(1, TOGETHER // (width * vocabulary))
    tokens = TOKENS * NARROW // max(NARROW, width)
    return {"sentences": min(SENTENCES, fitting), "tokens": max(1, tokens)}


def check_memory(width: int, vocabulary: int, most: MaxLength) -> None:
    """Raise if one sentence alone could need more than any machine is likely to have."""
    if width * vocabulary > NUMBERS:
        raise OptionError(
            f"beam is {width} and the vocabulary has {vocabulary} tokens. Give a beam of "
            f"{max(1, NUMBERS // vocabulary)} at most."
        )
    if width * most.source * most.target > NUMBERS:
        raise OptionError(
            f"beam is {width}, max_source_length is {most.source} and max_length is {most.target}: "
            f"their product may be {NUMBERS} at most, for the weights of all steps are held. "
            "Lower one of them."
        )


def _width(search: Search) -> int:
    if isinstance(search, Beam):
        return search.beam_size
    return search.count if isinstance(search, Sampling) else 1
