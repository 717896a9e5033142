"""Translate: a file of pairs in, a model that answers out."""

from regard.tasks.translate.training import train
from regard.tasks.translate.translator import Translator

__all__ = ["Translator", "train"]
