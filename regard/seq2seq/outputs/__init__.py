"""Output layers: from a decoder's features to log-probabilities of tokens."""
