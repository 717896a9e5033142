"""Align: word alignments of a file of pairs."""

from regard.tasks.align.aligner import WordAligner
from regard.tasks.align.task import TASK

__all__ = ["TASK", "WordAligner"]
