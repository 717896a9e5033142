"""Word alignment as attention taken at its word: each target word comes of one source word.

Which one is not known, so it is summed out: p(y) = Σ_s α_s p(y | x_s). What is left, once y is
seen, is how probable each s was: a soft alignment that is a probability.
"""

from regard.seq2seq.models.aligner.aligner import Aligner
from regard.seq2seq.models.aligner.char_ngrams import char_ngrams
from regard.seq2seq.models.aligner.hmm import Posterior, Transitions, posterior
from regard.seq2seq.models.aligner.lexicon import VocabularySide

__all__ = ["Aligner", "Posterior", "Transitions", "VocabularySide", "char_ngrams", "posterior"]
