"""Align: a file of pairs in, which words belong together out."""

from regard.tasks.align.aligner import WordAligner
from regard.tasks.align.task import TASK

__all__ = ["TASK", "WordAligner"]
