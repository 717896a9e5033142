"""The state of a run that is not tensors, and whether a resumed run is still the same run."""

import dataclasses
import json
import math
import platform
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from regard.seq2seq.errors import ConfigError, RunError
from regard.seq2seq.system.files import parse_json
from regard.seq2seq.training.options import MAY_CHANGE, TrainingOptions


@dataclass(frozen=True, slots=True)
class BestStep:
    """The best validation so far."""

    step: int
    value: float


@dataclass(frozen=True, slots=True)
class Identity:
    """What identifies a run: settings and data; and the setup it was computed on."""

    settings: Mapping[str, Any]
    """The configuration, flat: `training.rate` and its value."""

    data: Mapping[str, str]
    """A hash of each file that belongs to it: examples, links, tokenizers."""

    threads: int
    versions: Mapping[str, str]
    inference: Mapping[str, Any] = field(default_factory=dict)
    """Settings of inference, flat: `decoding.beam` and its value. These may change."""


@dataclass(frozen=True, slots=True)
class RunState:
    """The state of a run after an update: all of a checkpoint that is not a tensor."""

    step: int
    epoch: int
    position: int
    """Number of updates made in this epoch."""

    best: BestStep | None
    validations_since_best: int
    """For early stopping."""

    log: int
    """Size of the log at this step, in bytes."""

    log_hash: str
    """Their SHA-256."""

    identity: Identity

    def to_json(self) -> bytes:
        """The content of `record.json`."""
        return json.dumps(dataclasses.asdict(self), indent=1, sort_keys=True).encode()

    @classmethod
    def from_json(cls, content: bytes, where: str) -> "RunState":
        """Parse and validate the content of `record.json`."""
        try:
            found = parse_json(content)
            best = None if found["best"] is None else BestStep(**found["best"])
            state = cls(**found | {"best": best, "identity": Identity(**found["identity"])})
            state.check()
        except (ValueError, TypeError, KeyError) as error:
            raise RunError(f"{where} is not the state of a run ({str(error)[:100]}).") from error
        return state

    def check(self) -> None:
        """Raise a `ValueError` if a value is out of range or of the wrong type."""
        counts = [
            self.step,
            self.epoch,
            self.position,
            self.validations_since_best,
            self.log,
            self.identity.threads,
        ]
        if self.best is not None:
            counts.append(self.best.step)
            if not (isinstance(self.best.value, float | int) and math.isfinite(self.best.value)):
                raise ValueError("the best value is not a finite number")
        if not all(type(count) is int and 0 <= count < LARGEST for count in counts):
            raise ValueError("a count is not an integer from 0 on")
        named = self.identity.settings, self.identity.inference
        texts = self.identity.data, self.identity.versions
        if not all(isinstance(table, dict) for table in named + texts):
            raise ValueError("the identity is not made of tables")
        hashes = [self.log_hash, *(text for table in texts for text in table.values())]
        if not all(isinstance(text, str) for text in hashes):
            raise ValueError("a hash is not a string")


LARGEST = 1 << 62


def identity(
    options: TrainingOptions,
    settings: Mapping[str, Any],
    data: Mapping[str, str],
    inference: Mapping[str, Any] | None = None,
) -> Identity:
    """The identity of this run now. `settings` is the rest of the configuration, nested or flat.

    Where both have a key of the same name, the value in `options` wins.
    """
    flat = _as_saved(settings) | _as_saved({"training": dataclasses.asdict(options)})
    versions = {
        "torch": torch.__version__,
        "python": platform.python_version(),
        "processor": torch.backends.cpu.get_cpu_capability(),
    }
    return Identity(flat, dict(data), torch.get_num_threads(), versions, _as_saved(inference or {}))


def compare(saved: Identity, now: Identity) -> list[str]:
    """Notes for a resumed run; an error that names the key if it may not be resumed."""
    for key in differing(saved, now):
        was, given = _shown(saved.settings, key), _shown(now.settings, key)
        raise ConfigError(
            f"{key} was {was} when this run started and is {given} now. Change it back, or train "
            f"in another folder. (May change: {', '.join(sorted(FREE))}.)"
        )
    for name in sorted(set(saved.data) | set(now.data)):
        if saved.data.get(name) != now.data.get(name):
            raise RunError(
                f"the data {name!r} has changed since this run started. Change it back, or train "
                "in another folder."
            )
    return _notes(saved, now)


FREE = frozenset(f"training.{name}" for name in MAY_CHANGE)


def differing(saved: Identity, now: Identity) -> Iterator[str]:
    """Settings that may not differ, and do."""
    for key in sorted((set(saved.settings) | set(now.settings)) - FREE):
        if _shown(saved.settings, key) != _shown(now.settings, key):
            yield key


def same_run(one: Identity, other: Identity) -> bool:
    """May both belong to one run?"""
    return one.data == other.data and not any(differing(one, other))


def check_loaded(found: Identity, now: Identity, configuration: str, weights: str) -> list[str]:
    """Raise if weights belong to another configuration; else notes on settings that changed.

    Args:
        found: The identity saved with the weights.
        now: The identity by the run's folder.
        configuration: Path of the configuration, for messages.
        weights: Path of the checkpoint.
    """
    for key in differing(found, now):
        # A key that a later version added was not saved with this run: it has its default.
        if key in found.settings:
            was, given = _shown(found.settings, key), _shown(now.settings, key)
            raise ConfigError(
                f"{configuration}: {key} is {given:.100}, but {weights} was trained with "
                f"{was:.100}. Change it back: it is fixed after training."
            )
    return [
        f"{key} is {_shown(now.inference, key)} and was {_shown(found.inference, key)} when saved"
        for key in sorted(set(found.inference) & set(now.inference))
        if _shown(now.inference, key) != _shown(found.inference, key)
    ]


def _notes(saved: Identity, now: Identity) -> list[str]:
    before = {"threads": saved.threads, **saved.versions}
    after = {"threads": now.threads, **now.versions}
    before["device"] = saved.settings.get("training.device")
    after["device"] = now.settings.get("training.device")
    changed = [
        f"{name} was {before.get(name)} and is {after.get(name)}"
        for name in sorted(set(before) | set(after))
        if before.get(name) != after.get(name)
    ]
    was, steps = saved.settings.get("training.steps"), now.settings.get("training.steps")
    notes = []
    if changed:
        notes.append(
            "resumed on a different setup: results are no longer bit-identical: "
            + "; ".join(changed)
        )
    if was != steps and now.settings.get("training.schedule") == "cosine":
        notes.append(f"training.steps was {was} and is {steps}: the cosine schedule follows it")
    return notes


def _shown(settings: Mapping[str, Any], key: str) -> str:
    return json.dumps(settings[key], ensure_ascii=False) if key in settings else "not given"


def _as_saved(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Flat, after a JSON round trip: lists for tuples, for one."""
    return json.loads(json.dumps(dict(_flat(settings)), sort_keys=True, default=str))


def _flat(settings: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in settings.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
