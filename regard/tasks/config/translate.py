"""The whole configuration of a translator."""

from typing import Literal

from regard.tasks.config.data import PairDataConfig
from regard.tasks.config.decoding import DecodingConfig
from regard.tasks.config.model import BahdanauConfig, ModelConfig
from regard.tasks.config.task import TaskConfig
from regard.tasks.config.tokenizer import BpeConfig, TokenizerConfig
from regard.tasks.config.training import TrainingConfig


class TranslateConfig(TaskConfig):
    """From pairs of text to a model that translates."""

    task: Literal["translate"] = "translate"
    """What is learned."""

    data: PairDataConfig = PairDataConfig()
    """Which files are learned from."""

    text: TokenizerConfig = BpeConfig()
    """How text becomes tokens."""

    model: ModelConfig = BahdanauConfig()
    """What reads the source and writes the target."""

    training: TrainingConfig = TrainingConfig()
    """How it learns. Steps, patience, how often to save and validate, how many checkpoints to keep,
    threads and device may change when a run is resumed."""

    decoding: DecodingConfig = DecodingConfig()
    """How it is asked for its answer; may change when a run is resumed."""
