"""How to train, in plain values."""

from dataclasses import dataclass
from typing import Literal

from regard.seq2seq.errors import ConfigError

MAY_CHANGE = frozenset(
    {"steps", "save_every", "validate_every", "keep", "patience", "device", "threads"}
)
"""Options that may differ when a run goes on. All others would make it another run."""

NAMED = {
    "positive": ("steps", "save_every", "validate_every", "keep", "accumulate", "rate"),
    "not negative": ("patience", "warmup", "decay", "clip", "threads"),
    "from 0 on and below 1": ("ema", "first_momentum", "second_momentum"),
}


@dataclass(frozen=True, slots=True)
class TrainingOptions:
    """How to train. Updates are counted from 1; whatever happens "every n" happens after n."""

    steps: int = 10_000
    """How many updates in all."""

    save_every: int = 500
    """A checkpoint is written after so many updates; also when the run stops or has a new best."""

    validate_every: int = 500
    keep: int = 3
    """How many of the last checkpoints stay. The best stays too."""

    patience: int = 0
    """Stop after so many validations in a row without a new best; 0 for never."""

    watch: str = "loss"
    """Which score of the validation tells the best."""

    seed: int = 1
    rate: float = 1e-3
    """The highest learning rate."""

    schedule: Literal["cosine", "inverse_root", "constant"] = "cosine"
    """How the rate falls after the warm-up."""

    warmup: int = 0
    """Over how many updates the rate rises."""

    decay: float = 0.01
    """AdamW's weight decay, for matrices only."""

    first_momentum: float = 0.9
    second_momentum: float = 0.98
    clip: float = 1.0
    """The longest gradient; a longer one is shortened to it; 0 for no limit."""

    ema: float = 0.0
    """How much of the averaged weights stays at each update, 0.999 say; 0 for no average."""

    accumulate: int = 1
    """How many batches make one update."""

    threads: int = 0
    """How many threads torch may use; 0 for as many as it likes."""

    device: str = "cpu"
    """A device of torch's, or "auto": a GPU if there is one."""

    autocast: bool = False
    """Compute the loss in bfloat16 where torch thinks it safe; on a CPU never."""

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
