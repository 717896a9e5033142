"""The whole configuration of an aligner."""

from typing import Literal

from regard.tasks.config.data import AlignDataConfig
from regard.tasks.config.options import Options, Width
from regard.tasks.config.task import TaskConfig
from regard.tasks.config.tokenizer import AlignmentTokenizerConfig, AlignmentWordsConfig
from regard.tasks.config.training import AlignerTrainingConfig


class AlignerConfig(Options):
    """Hard attention over words, both ways at once, with the alignment summed out."""

    size: Width = 256
    """Size of a word's vector."""

    spelling: Width = 128
    """Size of the vector for how a word is spelt, which is not learned."""

    jumps: Width = 8
    """The widest jump from word to word that is told apart from wider ones."""


class AlignConfig(TaskConfig):
    """From pairs of text to a model that says which words belong together."""

    task: Literal["align"] = "align"
    """What is learned."""

    data: AlignDataConfig = AlignDataConfig()
    """Which files are learned from: all of their pairs, for those that are to be aligned should be
    among them."""

    text: AlignmentTokenizerConfig = AlignmentWordsConfig()
    """How text becomes words."""

    model: AlignerConfig = AlignerConfig()
    """What finds out which words belong together."""

    training: AlignerTrainingConfig = AlignerTrainingConfig()
    """How it learns. Steps, patience, how often to save and validate, how many checkpoints to keep,
    threads and device may change when a run is resumed."""
