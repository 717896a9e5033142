"""Translate: a file of pairs in, a model that answers out."""

from regard.tasks.translate.training import train
from regard.tasks.translate.translator import Translator, load_ensemble

__all__ = ["Translator", "load_ensemble", "train"]
