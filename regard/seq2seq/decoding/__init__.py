"""Decoding over one step protocol: searches, and steppers around steppers.

Searches (frozen values; `search(model, batch)` gives hypotheses with their own weights):
`Greedy`, `Beam`, `Sampling`, and `Forced` for a given target. Steppers around steppers: `Ensemble`,
`Constrained`. `Streaming` answers any number of inputs in their order.
"""

from regard.seq2seq.decoding.beam import Beam
from regard.seq2seq.decoding.constrain import Constrained
from regard.seq2seq.decoding.ensemble import Ensemble
from regard.seq2seq.decoding.errors import DecodingError
from regard.seq2seq.decoding.forced import Forced
from regard.seq2seq.decoding.grammars import Allowed, AtLeast, Exact, Forbidden, Grammar, Prefix
from regard.seq2seq.decoding.greedy import Greedy
from regard.seq2seq.decoding.int8 import quantised
from regard.seq2seq.decoding.limits import Longest
from regard.seq2seq.decoding.penalty import Penalty, Power, Wu
from regard.seq2seq.decoding.predict import Spelling, Streaming
from regard.seq2seq.decoding.sampling import Sampling
from regard.seq2seq.decoding.unknown import Replacement

__all__ = [
    "Allowed",
    "AtLeast",
    "Beam",
    "Constrained",
    "DecodingError",
    "Ensemble",
    "Exact",
    "Forbidden",
    "Forced",
    "Grammar",
    "Greedy",
    "Longest",
    "Penalty",
    "Power",
    "Prefix",
    "Replacement",
    "Sampling",
    "Spelling",
    "Streaming",
    "Wu",
    "quantised",
]
