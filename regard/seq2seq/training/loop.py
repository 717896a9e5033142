"""The training loop: batches in, updates out. No files, no clock, no signals."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from regard.native.process import flush_denormals
from regard.seq2seq.batch import Batch
from regard.seq2seq.errors import RunError
from regard.seq2seq.protocols import Loss, LossTerm
from regard.seq2seq.training.optimizer import Optimiser
from regard.seq2seq.training.seeds import seed_torch


@dataclass(frozen=True, slots=True)
class Update:
    """The statistics of one update."""

    step: int
    """Counted from 1."""

    loss: float
    """The objective, Σ weight · total / count."""

    terms: Mapping[str, float]
    """Each term's total / count, unweighted."""

    norm: float
    """Gradient norm before clipping."""

    rate: float
    counts: Mapping[str, int]
    """The batch's counts: tokens, sentences."""


def updates(
    model: nn.Module,
    batches: Iterable[Sequence[Batch]],
    optimiser: Optimiser,
    seed: int,
    done: int = 0,
    autocast: bool = False,
) -> Iterator[Update]:
    """Update the model once for each of the batches, and yield the statistics.

    A batch comes in parts (often one): gradient accumulation. Each part's loss is divided by the
    counts of all parts, so the accumulated gradient is that of the whole batch. Update n draws from
    (seed, "step", n) alone; `done` is the number of updates made before.
    """
    device = next(model.parameters()).device
    for step, parts in enumerate(batches, done + 1):
        seed_torch(seed, "step", step)
        model.train()
        optimiser.clear()
        tally = _Tally(parts, step)
        with flush_denormals():
            for part in parts:
                with torch.autocast(device.type, torch.bfloat16, enabled=autocast):
                    loss = _terms(model(part.to(device)), step)
                    objective = tally.objective(loss)
                objective.backward()
            values = tally.checked()
            norm = optimiser.norm()
            if not math.isfinite(norm):
                raise _nonfinite_error(
                    step, f"the gradient of {_some(optimiser.nonfinite())}", parts
                )
            optimiser.step(step, norm)
        terms = {name: total for name, (total, _) in values.items()}
        value = math.fsum(total * weight for total, weight in values.values())
        yield Update(step, value, terms, norm, optimiser.rate(step), tally.counts)


def _terms(found: object, step: int) -> Loss:
    if not (isinstance(found, Mapping) and found):
        raise RunError(
            f"the model returned no loss terms at step {step}. Let forward(batch) return a mapping "
            "of names to LossTerm."
        )
    return found


class _Tally:
    """The loss terms of one update, accumulated over its parts, with their divisors."""

    def __init__(self, parts: Sequence[Batch], step: int) -> None:
        self.parts, self.step = parts, step
        self.counts: dict[str, int] = {}
        for part in parts:
            for unit, count in part.counts().items():
                self.counts[unit] = self.counts.get(unit, 0) + count
        self._divisors: dict[str, int] = {}
        self._counted: dict[str, int] = {}
        self._weights: dict[str, float] = {}
        self._totals: list[dict[str, Tensor]] = []

    def objective(self, loss: Loss) -> Tensor:
        """This part's share of Σ weight · total / count."""
        shares = []
        for name, term in loss.items():
            if name not in self._divisors:
                self._divisors[name] = self._divisor(name, term)
            self._counted[name] = self._counted.get(name, 0) + term.count
            self._weights[name] = term.weight
            shares.append(term.total * (term.weight / max(1, self._divisors[name])))
        self._totals.append({name: term.total.detach() for name, term in loss.items()})
        return sum(shares[1:], start=shares[0])

    def _divisor(self, name: str, term: LossTerm) -> int:
        """The count of the whole batch that this term is divided by."""
        if len(self.parts) == 1:
            return term.count
        unit = term.unit or name
        if unit in self.counts:
            return self.counts[unit]
        raise RunError(
            f"the term {name!r} is divided by the count of {unit!r}, but the batch counts "
            f"{', '.join(self.counts)}. Name one of them, LossTerm(…, unit=…), add it to the "
            "batch's counts(), or train with accumulate 1."
        )

    def checked(self) -> dict[str, tuple[float, float]]:
        """Each term's total / count with its weight; raises if one is not finite or miscounted."""
        found = []
        for totals, part in zip(self._totals, self.parts, strict=True):
            values = torch.stack([total.float() for total in totals.values()]).tolist()
            found.append(dict(zip(totals, values, strict=True)))
            for name, value in found[-1].items():
                if not math.isfinite(value):
                    raise _nonfinite_error(self.step, f"the loss ({name})", [part])
        for name, count in self._counted.items():
            if count != self._divisors[name]:
                raise RunError(
                    f"the term {name!r} was divided by {self._divisors[name]} at step {self.step}, "
                    f"but its parts count {count}. Name it in the batch's counts()."
                )
        return {
            name: (
                math.fsum(part.get(name, 0.0) for part in found) / max(1, count),
                self._weights[name],
            )
            for name, count in self._divisors.items()
        }


def _nonfinite_error(step: int, what: str, parts: Sequence[Batch]) -> RunError:
    items = ", ".join(str(item) for part in parts for item in part.items)
    return RunError(
        f"{what} is not finite at step {step} (items {items}). The update was not made. Check "
        "these items, or train in a new folder with a lower training.rate or training.clip."
    )


def _some(names: list[str]) -> str:
    """The first few names.

    >>> _some(["a", "b", "c", "d", "e"])
    'a, b, c and 2 more'
    """
    if not names:
        return "all parameters together"
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more
