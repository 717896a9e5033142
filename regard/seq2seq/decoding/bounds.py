"""The largest numbers that a search takes: beyond them memory would run out, not time alone."""

MOST_HYPOTHESES = 10_000
"""Hypotheses of one sentence that are followed at once."""

MOST_TOKENS = 1_000_000
"""Tokens of one hypothesis."""

MOST_ALPHA = 10.0
"""The greatest exponent of a length: its power stays far below the largest float."""
