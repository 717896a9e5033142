"""Word alignment as a latent variable: each target word is generated from one source word.

Which one is marginalised out: p(y) = Σ_s α_s p(y | x_s). The posterior of s given y is the soft
alignment.
"""

from regard.seq2seq.models.aligner.aligner import Aligner
from regard.seq2seq.models.aligner.char_ngrams import char_ngrams
from regard.seq2seq.models.aligner.hmm import Posterior, Transitions, posterior
from regard.seq2seq.models.aligner.lexicon import VocabularySide

__all__ = ["Aligner", "Posterior", "Transitions", "VocabularySide", "char_ngrams", "posterior"]
