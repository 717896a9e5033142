"""Word alignment as attention taken at its word: each target word comes of one source word.

Which one is not known, so it is summed out: p(y) = Σ_s α_s p(y | x_s). What is left, once y is
seen, is how probable each s was: a soft alignment that is a probability.
"""

from regard.seq2seq.aligner.chain import Chain, Posterior, posterior
from regard.seq2seq.aligner.lexicon import Side
from regard.seq2seq.aligner.model import Aligner
from regard.seq2seq.aligner.spelling import spelling

__all__ = ["Aligner", "Chain", "Posterior", "Side", "posterior", "spelling"]
