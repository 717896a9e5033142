"""The default validation of a task: the loss, and the metrics of `evaluate`."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from regard.seq2seq.data import by_length
from regard.seq2seq.training import Validation
from regard.tasks.artifacts import Artifacts
from regard.tasks.config import TaskConfig
from regard.tasks.task import AnyTask

ITEMS = 1000
"""Maximum number of items, taken evenly."""


class DefaultValidator:
    """The loss of a model, and the metrics of its predictor, on validation items."""

    def __init__(
        self, task: AnyTask, config: TaskConfig, kept: Artifacts, items: Sequence[Any]
    ) -> None:
        self.task, self.config, self.kept = task, config, kept
        self.items = list(items[:: -(-len(items) // ITEMS) or 1])
        self.codec = task.codec(config, kept)

    def __call__(self, model: nn.Module, step: int) -> Validation:
        with torch.no_grad():
            loss = self._loss(model)
        predictor = self.task.predictor(self.config, self.kept, model, f"step {step}")
        found = predictor.evaluate(self.items)
        scores = {"loss": loss} | {score.name: score.value for score in found}
        falling = ["loss", *(score.name for score in found if not score.higher_is_better)]
        return Validation(scores, lower_is_better=falling)

    def _loss(self, model: nn.Module) -> float:
        """Σ weight · total / count over the terms, each counted over all items."""
        device = next(model.parameters()).device
        totals: dict[str, float] = {}
        counts: dict[str, int] = {}
        weights: dict[str, float] = {}
        for numbers in by_length(self.codec)(self.items):
            batch = self.codec.collate(numbers, [self.items[number] for number in numbers])
            for name, term in model(batch.to(device)).items():
                totals[name] = totals.get(name, 0.0) + float(term.total)
                counts[name] = counts.get(name, 0) + term.count
                weights[name] = term.weight
        return sum(weights[name] * totals[name] / max(1, counts[name]) for name in totals)
