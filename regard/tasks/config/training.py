"""Training: optimizer, schedule, batches, validation and checkpoints."""

import re
from abc import ABC
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from regard.tasks.config.options import (
    AtLeastZero,
    Count,
    Options,
    Positive,
    Share,
    Size,
    at_most,
)


class TokenBatches(Options):
    """Batches by number of tokens, padding included."""

    kind: Literal["tokens"] = "tokens"

    size: Size = 4096
    """Tokens per batch, of the longer side."""


class SentenceBatches(Options):
    """Batches by number of items, of any length."""

    kind: Literal["sentences"] = "sentences"

    size: Size = 64
    """Items per batch."""


BatchConfig = Annotated[TokenBatches | SentenceBatches, Field(discriminator="kind")]


def _a_device(name: str) -> str:
    if not re.fullmatch(r"auto|cpu|(cuda|mps)(:\d+)?", name):
        raise ValueError("Give auto, cpu, cuda, cuda:1 or mps.")
    return name


class OptimizationConfig(Options, ABC):
    """Training of any model."""

    steps: Count
    """Number of updates."""

    batch: BatchConfig = TokenBatches()
    """Size of a batch."""

    accumulate: Size = 1
    """Gradient accumulation: batches per update."""

    rate: Positive = 1e-3
    """Peak learning rate."""

    warmup: Count = 400
    """Number of warm-up updates."""

    decay: Literal["none", "cosine", "inverse_root"] = "cosine"
    """Learning-rate schedule after the warm-up."""

    weight_decay: AtLeastZero = 0.01
    """Weight decay of AdamW, on matrices only."""

    clip: AtLeastZero = 1.0
    """Maximum gradient norm; 0: no clipping."""

    ema: Share
    """Decay of the exponential moving average of the weights; 0: none."""

    watch: str = "loss"
    """Validation metric that selects the best checkpoint."""

    patience: Count = 0
    """Early stopping: validations without a new best; 0: never."""

    save_every: Size = 500
    """Updates between checkpoints."""

    validate_every: Size = 500
    """Updates between validations."""

    keep: Size = 3
    """How many of the latest checkpoints are kept; the best one always is."""

    seed: Annotated[int, Field(ge=0, lt=2**63)] = 1
    """Random seed."""

    threads: Annotated[Count, at_most(1024)] = 0
    """Number of threads; 0: torch's default."""

    autocast: bool = True
    """bfloat16 autocast on a GPU; a CPU computes in float32."""

    device: Annotated[str, AfterValidator(_a_device)] = "auto"
    """Device: auto, cpu, cuda, cuda:1, mps."""


class TrainingConfig(OptimizationConfig):
    """Training of a translator."""

    steps: Size = 10000
    """Number of updates."""

    ema: Share = 0.999
    """Decay of the exponential moving average of the weights; 0: none."""

    smoothing: Share = 0.1
    """Label smoothing."""

    coverage: AtLeastZero = 0.0
    """Weight of the coverage loss (See 2017); 0: none."""

    links: AtLeastZero = 0.05
    """Weight of the guided alignment loss on `data.links` (Garg 2019); 0: none."""

    links_layer: str = ""
    """Layer or head that is guided: decoder.2, decoder.2/head.1, either followed by +1 for the
    weights of the next token; empty: the only layer, or decoder.0+1 of a Transformer."""

    watch: Literal["loss", "bleu", "exact"] = "loss"
    """Validation metric that selects the best checkpoint; other than by the loss, more pairs are
    decoded."""


class AlignerTrainingConfig(OptimizationConfig):
    """Training of an aligner."""

    steps: Count = 0
    """Number of updates; 0: five epochs, and 400 updates at least."""

    batch: BatchConfig = TokenBatches(size=8192)
    """Size of a batch."""

    rate: Positive = 3e-3
    """Peak learning rate."""

    warmup: Count = 50
    """Number of warm-up updates."""

    ema: Share = 0.0
    """Decay of the exponential moving average of the weights; 0: none."""

    save_every: Size = 250
    """Updates between checkpoints."""

    validate_every: Size = 250
    """Updates between validations."""

    autocast: bool = False
    """bfloat16 autocast on a GPU; sums over a vocabulary lose precision by it."""
