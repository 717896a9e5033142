"""Training: the loop, and everything that makes a run safe."""

from regard.seq2seq.training.feed import Feed, Plan
from regard.seq2seq.training.loop import Update, updates
from regard.seq2seq.training.optimiser import Optimiser
from regard.seq2seq.training.options import MAY_CHANGE, TrainingOptions
from regard.seq2seq.training.outcome import Job, Outcome, Validate, Validation
from regard.seq2seq.training.progress import Plain, Quiet, Reporter, Rich, reporter
from regard.seq2seq.training.record import Best, Record
from regard.seq2seq.training.run import run
from regard.seq2seq.training.seeds import key, settle
from regard.seq2seq.training.store import Found, Store, load_weights

__all__ = [
    "MAY_CHANGE",
    "Best",
    "Feed",
    "Found",
    "Job",
    "Optimiser",
    "Outcome",
    "Plain",
    "Plan",
    "Quiet",
    "Record",
    "Reporter",
    "Rich",
    "Store",
    "TrainingOptions",
    "Update",
    "Validate",
    "Validation",
    "key",
    "load_weights",
    "reporter",
    "run",
    "settle",
    "updates",
]
