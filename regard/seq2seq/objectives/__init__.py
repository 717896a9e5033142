"""Objectives: auxiliary losses beside the cross-entropy of the tokens."""

from regard.seq2seq.objectives.base import Objective, Output
from regard.seq2seq.objectives.coverage import CoverageObjective, coverage_loss
from regard.seq2seq.objectives.guided_alignment import (
    GuidedAlignmentObjective,
    guided_alignment_loss,
)
from regard.seq2seq.objectives.reinforce import ReinforceObjective, draws_by_reinforce

__all__ = [
    "CoverageObjective",
    "GuidedAlignmentObjective",
    "Objective",
    "Output",
    "ReinforceObjective",
    "coverage_loss",
    "draws_by_reinforce",
    "guided_alignment_loss",
]
