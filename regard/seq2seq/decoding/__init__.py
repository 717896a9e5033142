"""Decoding over one step protocol: searches, and steppers around steppers.

Searches (frozen values; `search(model, batch)` gives hypotheses with their own weights):
`Greedy`, `Beam`, `Sampling`, and `Forced` for a given target. Steppers around steppers: `Ensemble`,
`Constrained`. `BatchedPredictor` decodes any number of inputs, in order and in bounded memory.
"""

from regard.seq2seq.decoding.beam import Beam
from regard.seq2seq.decoding.constrained import Constrained
from regard.seq2seq.decoding.ensemble import Ensemble
from regard.seq2seq.decoding.errors import DecodingError
from regard.seq2seq.decoding.forced import Forced
from regard.seq2seq.decoding.grammars import (
    AllowedTokens,
    AtLeast,
    Exact,
    Forbidden,
    Grammar,
    StartsWith,
)
from regard.seq2seq.decoding.greedy import Greedy
from regard.seq2seq.decoding.inference import WithoutGradients
from regard.seq2seq.decoding.int8 import quantized
from regard.seq2seq.decoding.output_limit import OutputLimit
from regard.seq2seq.decoding.penalty import Penalty, PowerPenalty, WuPenalty
from regard.seq2seq.decoding.predict import BatchedPredictor, TokenTexts
from regard.seq2seq.decoding.sampling import Sampling
from regard.seq2seq.decoding.unk_replacement import UnkReplacement

__all__ = [
    "AllowedTokens",
    "AtLeast",
    "BatchedPredictor",
    "Beam",
    "Constrained",
    "DecodingError",
    "Ensemble",
    "Exact",
    "Forbidden",
    "Forced",
    "Grammar",
    "Greedy",
    "OutputLimit",
    "Penalty",
    "PowerPenalty",
    "Sampling",
    "StartsWith",
    "TokenTexts",
    "UnkReplacement",
    "WithoutGradients",
    "WuPenalty",
    "quantized",
]
