"""What a run is given, what it gives back, and what it hears from a validation."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from torch import nn

from regard.seq2seq.batch import Codec, Corpus
from regard.seq2seq.training.batch_stream import Plan
from regard.seq2seq.training.run_state import BestStep


@dataclass(frozen=True, slots=True)
class Validation:
    """Scores, and a few texts for people."""

    scores: Mapping[str, float]
    samples: Sequence[str] = ()
    picture: str = ""
    """What was read for one of them, for a terminal; not in the log."""

    lower_is_better: Collection[str] = ("loss",)
    """Scores of which less is better."""


Validate = Callable[[nn.Module, int], Mapping[str, float] | Validation]
"""Judge the model, which has its averaged weights if there are any, after this step."""


@dataclass(frozen=True, slots=True)
class TrainingJob:
    """What is trained, on what, and how it is judged."""

    model: nn.Module
    """Called with a batch it is the loss; built after `seed_torch(seed, "initialisation")`."""

    corpus: Corpus[Any]
    codec: Codec[Any, Any]
    plan: Plan
    validate: Validate | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    """The rest of the configuration, for the record: none of it may change when a run goes on, so
    what may (where a file lies, how much is printed) is left out."""

    data: Mapping[str, str] = field(default_factory=dict)
    """A hash of each file of examples, by its role ("train", "valid"), and of each tokenizer."""

    asked: Mapping[str, Any] = field(default_factory=dict)
    """How the model is asked, for the record: that may change, and is told when it has."""


Ending = Literal["finished", "stopped early", "interrupted", "finished before"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended."""

    ending: Ending
    step: int
    """How many updates are made."""

    checkpoint: Path
    """The last one."""

    best: BestStep | None = None
    signal: int | None = None

    @property
    def code(self) -> int:
        """With what a command leaves: 143 after SIGTERM, 130 after Ctrl-C, else 0."""
        return 0 if self.signal is None else 128 + self.signal

    @property
    def _limit(self) -> str:
        stopped = self.best is not None and self.best.step < self.step
        return "training.steps (or training.patience)" if stopped else "training.steps"

    def __str__(self) -> str:
        best = "" if self.best is None else f"; best {self.best.value:.4g} at step {self.best.step}"
        match self.ending:
            case "interrupted":
                said = f"stopped and saved at step {self.step}; run the same command to go on"
            case "finished before":
                said = f"already finished at step {self.step}; to go on, raise {self._limit}"
            case "stopped early":
                said = f"no better for training.patience validations: finished at step {self.step}"
            case _:
                said = f"finished at step {self.step}"
        return said + best
