"""Where a run stands, and whether it is still the same run."""

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
    """What makes a run this run, and on what it was computed."""

    settings: Mapping[str, Any]
    """The configuration, flat: `training.rate` and its value."""

    data: Mapping[str, str]
    """A hash of each file that belongs to it: examples, links, tokenizers."""

    threads: int
    versions: Mapping[str, str]
    asked: Mapping[str, Any] = field(default_factory=dict)
    """How it is asked, flat: `decoding.beam` and its value. That may change."""


@dataclass(frozen=True, slots=True)
class RunState:
    """Where a run stands after an update; all that is saved and is not a tensor."""

    step: int
    epoch: int
    position: int
    """How many updates of this epoch are made."""

    best: BestStep | None
    validations_since_best: int
    """How many validations there were since the best."""

    log: int
    """How many bytes of the log belong to this."""

    log_hash: str
    """Their SHA-256."""

    identity: Identity

    def to_json(self) -> bytes:
        """The record as the content of a file."""
        return json.dumps(dataclasses.asdict(self), indent=1, sort_keys=True).encode()

    @classmethod
    def from_json(cls, content: bytes, where: str) -> "RunState":
        """The record that such a file holds."""
        try:
            found = parse_json(content)
            best = None if found["best"] is None else BestStep(**found["best"])
            made = cls(**found | {"best": best, "identity": Identity(**found["identity"])})
            made.check()
        except (ValueError, TypeError, KeyError) as error:
            raise RunError(f"{where} is no record of a run ({str(error)[:100]}).") from error
        return made

    def check(self) -> None:
        """Raise a `ValueError` if something in it cannot be."""
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
                raise ValueError("the best is no number")
        if not all(type(count) is int and 0 <= count < LARGEST for count in counts):
            raise ValueError("a count is none")
        named = self.identity.settings, self.identity.asked
        texts = self.identity.data, self.identity.versions
        if not all(isinstance(table, dict) for table in named + texts):
            raise ValueError("its identity is none")
        said = [self.log_hash, *(text for table in texts for text in table.values())]
        if not all(isinstance(text, str) for text in said):
            raise ValueError("a hash is none")


LARGEST = 1 << 62


def identity(
    options: TrainingOptions,
    settings: Mapping[str, Any],
    data: Mapping[str, str],
    asked: Mapping[str, Any] | None = None,
) -> Identity:
    """What the run is now. `settings` is the rest of the configuration, nested or flat.

    Where both have a key of the same name, it is how the loop is told.
    """
    flat = _as_saved(settings) | _as_saved({"training": dataclasses.asdict(options)})
    versions = {
        "torch": torch.__version__,
        "python": platform.python_version(),
        "processor": torch.backends.cpu.get_cpu_capability(),
    }
    return Identity(flat, dict(data), torch.get_num_threads(), versions, _as_saved(asked or {}))


def compare(saved: Identity, now: Identity) -> list[str]:
    """What is to be told of a run that goes on; an error that names the key if it may not."""
    for key in differing(saved, now):
        was, given = _said(saved.settings, key), _said(now.settings, key)
        raise ConfigError(
            f"{key} was {was} when this run began and is {given} now. Put it back, or begin "
            f"in another folder. (May change: {', '.join(sorted(FREE))}.)"
        )
    for name in sorted(set(saved.data) | set(now.data)):
        if saved.data.get(name) != now.data.get(name):
            raise RunError(
                f"the data {name!r} is not what this run began with. Put it back, or begin in "
                "another folder."
            )
    return _notes(saved, now)


FREE = frozenset(f"training.{name}" for name in MAY_CHANGE)


def differing(saved: Identity, now: Identity) -> Iterator[str]:
    """Settings that may not differ, and do."""
    for key in sorted((set(saved.settings) | set(now.settings)) - FREE):
        if _said(saved.settings, key) != _said(now.settings, key):
            yield key


def same_run(one: Identity, other: Identity) -> bool:
    """May both belong to one run?"""
    return one.data == other.data and not any(differing(one, other))


def check_loaded(found: Identity, now: Identity, configuration: str, weights: str) -> list[str]:
    """Raise if weights belong to another configuration; what is to be told if not.

    Args:
        found: What was saved with the weights.
        now: What the run's folder says.
        configuration: The name of its file, for people.
        weights: That of the checkpoint.
    """
    for key in differing(found, now):
        # What a later version has and this run had not, it had not been told.
        if key in found.settings:
            was, given = _said(found.settings, key), _said(now.settings, key)
            raise ConfigError(
                f"{configuration}: {key} is {given:.100}, but {weights} was trained with "
                f"{was:.100}. Put it back; it cannot change any more."
            )
    return [
        f"{key} is {_said(now.asked, key)} and was {_said(found.asked, key)} when it was saved"
        for key in sorted(set(found.asked) & set(now.asked))
        if _said(now.asked, key) != _said(found.asked, key)
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
            "from here on not to the bit what a run never stopped gives: " + "; ".join(changed)
        )
    if was != steps and now.settings.get("training.schedule") == "cosine":
        notes.append(f"training.steps was {was} and is {steps}: the rate follows the new number")
    return notes


def _said(settings: Mapping[str, Any], key: str) -> str:
    return json.dumps(settings[key], ensure_ascii=False) if key in settings else "not given"


def _as_saved(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Flat, and as JSON gives it back: lists for tuples, for one."""
    return json.loads(json.dumps(dict(_flat(settings)), sort_keys=True, default=str))


def _flat(settings: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in settings.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
