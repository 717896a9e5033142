"""Training: the loop, and everything that makes a run safe."""

from regard.seq2seq.training.batch_stream import BatchStream, Plan
from regard.seq2seq.training.checkpoints import Checkpoints, FoundCheckpoint, load_weights
from regard.seq2seq.training.loop import Update, updates
from regard.seq2seq.training.optimizer import Optimiser
from regard.seq2seq.training.options import MAY_CHANGE, TrainingOptions
from regard.seq2seq.training.outcome import Outcome, TrainingJob, Validate, Validation
from regard.seq2seq.training.reporters import (
    LineReporter,
    NullReporter,
    Reporter,
    RichReporter,
    reporter,
)
from regard.seq2seq.training.run import run
from regard.seq2seq.training.run_state import BestStep, RunState, check_loaded, identity
from regard.seq2seq.training.seeds import derive_seed, seed_torch

__all__ = [
    "MAY_CHANGE",
    "BatchStream",
    "BestStep",
    "Checkpoints",
    "FoundCheckpoint",
    "LineReporter",
    "NullReporter",
    "Optimiser",
    "Outcome",
    "Plan",
    "Reporter",
    "RichReporter",
    "RunState",
    "TrainingJob",
    "TrainingOptions",
    "Update",
    "Validate",
    "Validation",
    "check_loaded",
    "derive_seed",
    "identity",
    "load_weights",
    "reporter",
    "run",
    "seed_torch",
    "updates",
]
