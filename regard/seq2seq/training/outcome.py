"""The input of a run, its outcome, and the result of a validation."""

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
    """Metrics, and a few sample outputs."""

    scores: Mapping[str, float]
    samples: Sequence[str] = ()
    picture: str = ""
    """The attention map of one of them, for a terminal; not in the log."""

    lower_is_better: Collection[str] = ("loss",)
    """Metrics of which lower is better."""


Validate = Callable[[nn.Module, int], Mapping[str, float] | Validation]
"""Evaluate the model, with its averaged weights if there are any, after this step."""


@dataclass(frozen=True, slots=True)
class TrainingJob:
    """What is trained, on what, and how it is validated."""

    model: nn.Module
    """Returns the loss of a batch; built after `seed_torch(seed, "initialisation")`."""

    corpus: Corpus[Any]
    codec: Codec[Any, Any]
    plan: Plan
    validate: Validate | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    """The rest of the configuration: none of it may change on resume, so what may (paths of files,
    how much is printed) is left out."""

    data: Mapping[str, str] = field(default_factory=dict)
    """A hash of each file of examples, by its role ("train", "valid"), and of each tokenizer."""

    inference: Mapping[str, Any] = field(default_factory=dict)
    """Settings of inference: these may change, which is noted."""


Ending = Literal["finished", "stopped early", "interrupted", "finished before"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended."""

    ending: Ending
    step: int
    """Number of updates made."""

    checkpoint: Path
    """The last one."""

    best: BestStep | None = None
    signal: int | None = None

    @property
    def code(self) -> int:
        """Exit code of a command: 143 after SIGTERM, 130 after Ctrl-C, else 0."""
        return 0 if self.signal is None else 128 + self.signal

    @property
    def _limit(self) -> str:
        stopped = self.best is not None and self.best.step < self.step
        return "training.steps (or training.patience)" if stopped else "training.steps"

    def __str__(self) -> str:
        best = "" if self.best is None else f"; best {self.best.value:.4g} at step {self.best.step}"
        match self.ending:
            case "interrupted":
                text = f"stopped and saved at step {self.step}; run the same command to resume"
            case "finished before":
                text = f"already finished at step {self.step}; to continue, raise {self._limit}"
            case "stopped early":
                text = (
                    f"early stopping at step {self.step}: no new best for training.patience "
                    "validations"
                )
            case _:
                text = f"finished at step {self.step}"
        return text + best
