"""Translate: a file of pairs in, a model that answers out."""

from regard.tasks.translate.training import train
from regard.tasks.translate.translator import Translator, together

__all__ = ["Translator", "together", "train"]
