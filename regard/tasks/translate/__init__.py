"""Translate: a file of pairs in, a model out that writes a target for each source."""

from regard.tasks.translate.task import TASK
from regard.tasks.translate.translator import Translator

__all__ = ["TASK", "Translator"]
