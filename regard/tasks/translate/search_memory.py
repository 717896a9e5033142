"""Memory of a search: large beams get smaller batches, and too large ones an error."""

from typing import TypedDict

from regard.attention.core.errors import OptionError
from regard.seq2seq.data import MaxLength
from regard.seq2seq.decoding import Beam, Sampling
from regard.seq2seq.protocols import Search

NUMBERS = 2**30
"""Maximum size of one tensor of a search for one sentence: 4 GiB in float32."""

MAX_LOG_PROBS = 2**26
"""Maximum number of log-probabilities in a step of a batch of several sentences."""

SENTENCES, TOKENS, NARROW = 64, 4096, 32
"""The largest batch, and up to which beam size it is used."""


class Batches(TypedDict):
    """Maximum size of a batch of sources."""

    sentences: int
    tokens: int


def batches(search: Search, vocabulary: int) -> Batches:
    """The largest batch for usual beam sizes; smaller for large beams, so that they fit.

    >>> batches(Beam(5), 32_000), batches(Beam(1000), 32_000)
    ({'sentences': 64, 'tokens': 4096}, {'sentences': 2, 'tokens': 131})
    """
    width = _width(search)
    fitting = max(1, MAX_LOG_PROBS // (width * vocabulary))
    tokens = TOKENS * NARROW // max(NARROW, width)
    return {"sentences": min(SENTENCES, fitting), "tokens": max(1, tokens)}


def check_memory(width: int, vocabulary: int, most: MaxLength) -> None:
    """Raise if one sentence alone could exceed `NUMBERS`."""
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
