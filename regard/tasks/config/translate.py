"""The configuration of a translator."""

from typing import Literal

from regard.tasks.config.data import PairDataConfig
from regard.tasks.config.decoding import DecodingConfig
from regard.tasks.config.model import BahdanauConfig, ModelConfig
from regard.tasks.config.task import TaskConfig
from regard.tasks.config.tokenizer import BpeConfig, TokenizerConfig
from regard.tasks.config.training import TrainingConfig


class TranslateConfig(TaskConfig):
    """Translation of texts."""

    task: Literal["translate"] = "translate"
    """The task."""

    data: PairDataConfig = PairDataConfig()
    """Training and validation data."""

    text: TokenizerConfig = BpeConfig()
    """Tokenizer."""

    model: ModelConfig = BahdanauConfig()
    """Model."""

    training: TrainingConfig = TrainingConfig()
    """Training. Steps, patience, how often to save and validate, how many checkpoints to keep,
    threads and device may change on resume."""

    decoding: DecodingConfig = DecodingConfig()
    """Decoding; may change on resume."""
