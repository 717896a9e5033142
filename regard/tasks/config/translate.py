"""The whole configuration of a translator."""

from typing import Literal

from regard.tasks.config.data import Data
from regard.tasks.config.decoding import Decoding
from regard.tasks.config.model import Bahdanau, Model
from regard.tasks.config.options import Options
from regard.tasks.config.text import Bpe, Text
from regard.tasks.config.training import Training


class Translate(Options):
    """From pairs of text to a model that translates."""

    task: Literal["translate"] = "translate"
    """What is learned."""

    data: Data = Data()
    """Which files are learned from."""

    text: Text = Bpe()
    """How text becomes tokens."""

    model: Model = Bahdanau()
    """What reads the source and writes the target."""

    training: Training = Training()
    """How it learns. Steps, patience, how often to save and validate, how many checkpoints to keep,
    threads and device may change when a run is resumed."""

    decoding: Decoding = Decoding()
    """How it is asked for its answer; may change when a run is resumed."""
