"""Translate: an encoder–decoder trained on a file of pairs."""

from regard.tasks.translate.task import TASK
from regard.tasks.translate.translator import Translator

__all__ = ["TASK", "Translator"]
