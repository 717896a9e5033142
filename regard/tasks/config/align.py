"""The whole configuration of an aligner."""

from typing import Literal

from regard.tasks.config.data import AllData
from regard.tasks.config.options import Options, Size
from regard.tasks.config.text import Aligned, Bare
from regard.tasks.config.training import AlignerTraining


class Vectors(Options):
    """Hard attention over words, both ways at once, with the alignment summed out."""

    size: Size = 256
    """Size of a word's vector."""

    spelling: Size = 128
    """Size of the vector for how a word is spelt, which is not learned."""

    jumps: Size = 8
    """The widest jump from word to word that is told apart from wider ones."""


class Align(Options):
    """From pairs of text to a model that says which words belong together."""

    task: Literal["align"] = "align"
    """What is learned."""

    data: AllData = AllData()
    """Which files are learned from: all of their pairs, for those that are to be aligned should be
    among them."""

    text: Aligned = Bare()
    """How text becomes words."""

    model: Vectors = Vectors()
    """What finds out which words belong together."""

    training: AlignerTraining = AlignerTraining()
    """How it learns. Steps, patience, how often to save and validate, how many checkpoints to keep,
    threads and device may change when a run is resumed."""
