"""The largest options that a search takes: beyond them memory would run out."""

MAX_BEAM_SIZE = 10_000
"""Hypotheses of one sentence at a time."""

MAX_TOKENS = 1_000_000
"""Tokens of one hypothesis."""

MAX_ALPHA = 10.0
"""The exponent of a length: the power stays far below the largest float."""
