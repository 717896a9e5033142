"""The whole configuration of a tagger."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from regard.tasks.config.data import DataConfig
from regard.tasks.config.options import Count, Layers, Options, Paths, Share, Size, Width
from regard.tasks.config.task import TaskConfig
from regard.tasks.config.training import BatchConfig, OptimizationConfig, TokenBatches


class TagDataConfig(DataConfig):
    """Which files are trained on."""

    train: Paths = ()
    """Files of labelled words, a word a line and a blank line between sentences: CoNLL-U
    (.conllu) or columns; plain or .gz."""

    valid: Paths = ()
    """The same to validate on; none: a share of `train` is split off."""

    valid_share: Annotated[float, Field(gt=0, lt=1)] = 0.1
    """What share is split off. Equal sentences stay together."""

    word_column: Count = 0
    """The column of the word, counted from 1; 0: the second of CoNLL-U, else the first."""

    label_column: Count = 0
    """The column of the label, counted from 1; 0: UPOS of CoNLL-U, else the last."""

    longest: Size = 256
    """Maximum length of a sentence, in words."""

    @property
    def held_out(self) -> float:
        """Share of `train` that is split off."""
        return self.valid_share


class TaggerConfig(Options):
    """Words and their characters, a bidirectional RNN, self-attention."""

    embedding: Width = 128
    """Size of a word's own vector."""

    min_count: Size = 2
    """Words that occur less often in `train` have no vector of their own: UNK."""

    character_embedding: Width = 32
    """Size of a character's vector."""

    character_size: Width = 96
    """Size of the vector that a convolution makes of a word's characters."""

    hidden_size: Width = 160
    """Size of the RNN's hidden state in each direction."""

    layers: Layers = 1
    """Layers of the RNN."""

    cell: Literal["gru", "lstm"] = "lstm"
    """The RNN cell."""

    heads: Layers = 4
    """Heads of self-attention."""

    dropout: Share = 0.4
    """Dropout rate between the parts."""

    word_dropout: Share = 0.05
    """Share of words that are UNK in training."""

    @model_validator(mode="after")
    def _check_heads(self) -> "TaggerConfig":
        if 2 * self.hidden_size % self.heads:
            raise ValueError(
                f"heads is {self.heads}, which does not divide 2 · hidden_size = "
                f"{2 * self.hidden_size}. Choose a number that does."
            )
        return self


class TagTrainingConfig(OptimizationConfig):
    """How a tagger is trained."""

    steps: Size = 2000
    """How many updates."""

    batch: BatchConfig = TokenBatches(size=1024)
    """What an update is computed from."""

    rate: Annotated[float, Field(gt=0)] = 2e-3
    """The maximum learning rate."""

    warmup: Count = 100
    """Updates until the rate is at its maximum."""

    ema: Share = 0.99
    """Decay of the averaged weights; 0: none are kept."""

    save_every: Size = 250
    """A checkpoint after so many updates."""

    validate_every: Size = 250
    """A validation after so many updates."""


class TagConfig(TaskConfig):
    """From labelled words to a model that labels each word of a sentence."""

    task: Literal["tag"] = "tag"
    """What is learned."""

    data: TagDataConfig = TagDataConfig()
    """Which files are trained on."""

    model: TaggerConfig = TaggerConfig()
    """What reads a sentence and labels its words."""

    training: TagTrainingConfig = TagTrainingConfig()
    """How it is trained. Steps, patience, how often to save and validate, how many checkpoints to
    keep, threads and device may change when a run is resumed."""
