"""Align: a file of pairs in, which words belong together out."""

from regard.tasks.align.aligner import WordAligner
from regard.tasks.align.training import train

__all__ = ["WordAligner", "train"]
