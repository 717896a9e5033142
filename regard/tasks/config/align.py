"""The configuration of an aligner."""

from typing import Literal

from regard.tasks.config.data import AlignDataConfig
from regard.tasks.config.options import Options, Width
from regard.tasks.config.task import TaskConfig
from regard.tasks.config.tokenizer import AlignmentTokenizerConfig, AlignmentWordsConfig
from regard.tasks.config.training import AlignerTrainingConfig


class AlignerConfig(Options):
    """An HMM aligner in both directions, with the alignment marginalised out."""

    size: Width = 256
    """Size of the word embeddings."""

    spelling: Width = 128
    """Size of the hashed character n-gram vectors, which are not learned."""

    jumps: Width = 8
    """The widest jump with a parameter of its own."""


class AlignConfig(TaskConfig):
    """Word alignment of pairs of text."""

    task: Literal["align"] = "align"
    """The task."""

    data: AlignDataConfig = AlignDataConfig()
    """Training data: all pairs, for those that are to be aligned should be among them."""

    text: AlignmentTokenizerConfig = AlignmentWordsConfig()
    """Tokenizer."""

    model: AlignerConfig = AlignerConfig()
    """Model."""

    training: AlignerTrainingConfig = AlignerTrainingConfig()
    """Training. Steps, patience, how often to save and validate, how many checkpoints to keep,
    threads and device may change on resume."""
