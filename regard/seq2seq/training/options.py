"""The options of training, as plain values."""

from dataclasses import dataclass
from typing import Literal

from regard.seq2seq.errors import ConfigError

MAY_CHANGE = frozenset(
    {"steps", "save_every", "validate_every", "keep", "patience", "device", "threads"}
)
"""Options that may change on resume. All others would make it another run."""

NAMED = {
    "positive": ("steps", "save_every", "validate_every", "keep", "accumulate", "rate"),
    "not negative": ("patience", "warmup", "decay", "clip", "threads"),
    "from 0 on and below 1": ("ema", "first_momentum", "second_momentum"),
}


@dataclass(frozen=True, slots=True)
class TrainingOptions:
    """Options of training. Updates are counted from 1; "every n" means after n, 2n, … of them."""

    steps: int = 10_000
    """Number of updates."""

    save_every: int = 500
    """Updates between checkpoints; one is also saved at the end, at a signal and for a new best."""

    validate_every: int = 500
    keep: int = 3
    """How many of the latest checkpoints are kept. The best is kept, too."""

    patience: int = 0
    """Early stopping: validations in a row without a new best; 0 for never."""

    watch: str = "loss"
    """The validation metric that selects the best checkpoint."""

    seed: int = 1
    rate: float = 1e-3
    """Peak learning rate."""

    schedule: Literal["cosine", "inverse_root", "constant"] = "cosine"
    """How the learning rate decays after the warm-up."""

    warmup: int = 0
    """Number of warm-up updates."""

    decay: float = 0.01
    """AdamW's weight decay, for matrices only."""

    first_momentum: float = 0.9
    second_momentum: float = 0.98
    clip: float = 1.0
    """Maximum gradient norm; 0 for no clipping."""

    ema: float = 0.0
    """Decay of the weights' exponential moving average, 0.999 say; 0 for no average."""

    accumulate: int = 1
    """Gradient accumulation: batches per update."""

    threads: int = 0
    """Number of torch threads; 0 for torch's default."""

    device: str = "cpu"
    """A torch device, or "auto": a GPU if there is one."""

    autocast: bool = False
    """Compute the loss under bfloat16 autocast; never on a CPU."""

    def __post_init__(self) -> None:
        allowed = {
            "positive": lambda value: value > 0,
            "not negative": lambda value: value >= 0,
            "from 0 on and below 1": lambda value: 0 <= value < 1,
        }
        for words, names in NAMED.items():
            for name in names:
                if not allowed[words](value := getattr(self, name)):
                    raise ConfigError(
                        f"training.{name} is {value}, but must be {words}. Give another value."
                    )
