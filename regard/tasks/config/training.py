"""How a model learns."""

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
    """A batch is filled by tokens, padding counted."""

    kind: Literal["tokens"] = "tokens"

    size: Size = 4096
    """How many tokens of the longer side."""


class SentenceBatches(Options):
    """A batch is filled by pairs, however long."""

    kind: Literal["sentences"] = "sentences"

    size: Size = 64
    """How many pairs."""


BatchConfig = Annotated[TokenBatches | SentenceBatches, Field(discriminator="kind")]


def _a_device(name: str) -> str:
    if not re.fullmatch(r"auto|cpu|(cuda|mps)(:\d+)?", name):
        raise ValueError("Give auto, cpu, cuda, cuda:1 or mps.")
    return name


class OptimizationConfig(Options, ABC):
    """How a model learns, whatever it is."""

    steps: Count
    """How many updates."""

    batch: BatchConfig = TokenBatches()
    """What an update learns from."""

    accumulate: Size = 1
    """How many batches an update learns from."""

    rate: Positive = 1e-3
    """The largest learning rate."""

    warmup: Count = 400
    """How many updates the rate rises for."""

    decay: Literal["none", "cosine", "inverse_root"] = "cosine"
    """How the rate falls after that."""

    weight_decay: AtLeastZero = 0.01
    """How strongly matrices are pulled towards 0."""

    clip: AtLeastZero = 1.0
    """Gradients longer than this are shortened to it; 0: never."""

    ema: Share
    """How slowly averaged weights follow the weights; 0: no average is kept."""

    watch: str = "loss"
    """Which score of a validation tells the best weights."""

    patience: Count = 0
    """Stop after so many validations without a better one; 0: never."""

    save_every: Size = 500
    """A checkpoint after so many updates."""

    validate_every: Size = 500
    """A validation after so many updates."""

    keep: Size = 3
    """How many of the last checkpoints stay; the best one always does."""

    seed: Annotated[int, Field(ge=0, lt=2**63)] = 1
    """Everything random follows from it."""

    threads: Annotated[Count, at_most(1024)] = 0
    """How many threads compute; 0: as many as torch takes by itself."""

    autocast: bool = True
    """Compute in bfloat16 on a GPU, where torch thinks it safe; a CPU computes in float32."""

    device: Annotated[str, AfterValidator(_a_device)] = "auto"
    """Where to compute: auto, cpu, cuda, cuda:1, mps."""


class TrainingConfig(OptimizationConfig):
    """How a translator learns."""

    steps: Size = 10000
    """How many updates."""

    ema: Share = 0.999
    """How slowly averaged weights follow the weights; 0: no average is kept."""

    smoothing: Share = 0.1
    """What share of the probability is spread over all tokens."""

    coverage: AtLeastZero = 0.0
    """How much it counts to read a place twice (See 2017); 0: not at all."""

    links: AtLeastZero = 0.05
    """How much it counts to read what `data.links` says (Garg 2019); 0: not at all."""

    links_layer: str = ""
    """Which reading is held to them: decoder.2, decoder.2/head.1, either with +1 behind it for the
    one a token later; empty: the only one, or of a Transformer decoder.0+1."""

    watch: Literal["loss", "bleu", "exact"] = "loss"
    """Which score of a validation tells the best weights; by other than the loss, more pairs are
    answered."""


class AlignerTrainingConfig(OptimizationConfig):
    """How an aligner learns."""

    steps: Count = 0
    """How many updates; 0: five passes over the pairs, and 400 updates at least."""

    batch: BatchConfig = TokenBatches(size=8192)
    """What an update learns from."""

    rate: Positive = 3e-3
    """The largest learning rate."""

    warmup: Count = 50
    """How many updates the rate rises for."""

    ema: Share = 0.0
    """How slowly averaged weights follow the weights; 0: no average is kept."""

    save_every: Size = 250
    """A checkpoint after so many updates."""

    validate_every: Size = 250
    """A validation after so many updates."""

    autocast: bool = False
    """Compute in bfloat16 on a GPU; sums over a whole vocabulary lose digits by it."""
