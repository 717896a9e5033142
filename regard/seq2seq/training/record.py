"""Where a run stands, and whether it is still the same run."""

import dataclasses
import json
import platform
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from regard.seq2seq.errors import ConfigError, RunError
from regard.seq2seq.training.options import MAY_CHANGE, TrainingOptions


@dataclass(frozen=True, slots=True)
class Best:
    """The best validation so far."""

    step: int
    value: float


@dataclass(frozen=True, slots=True)
class Identity:
    """What makes a run this run, and on what it was computed."""

    settings: Mapping[str, Any]
    """The configuration, flat: `training.rate` and its value."""

    data: Mapping[str, str]
    """A hash of each file of examples."""

    threads: int
    versions: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Record:
    """Where a run stands after an update; all that is saved and is not a tensor."""

    step: int
    epoch: int
    position: int
    """How many updates of this epoch are made."""

    best: Best | None
    stale: int
    """How many validations there were since the best."""

    log: int
    """How many bytes of the log belong to this."""

    identity: Identity

    def to_json(self) -> bytes:
        """The record as the content of a file."""
        return json.dumps(dataclasses.asdict(self), indent=1, sort_keys=True).encode()

    @classmethod
    def from_json(cls, content: bytes, where: str) -> "Record":
        """The record that such a file holds."""
        try:
            found = json.loads(content)
            best = None if found["best"] is None else Best(**found["best"])
            return cls(**found | {"best": best, "identity": Identity(**found["identity"])})
        except (ValueError, TypeError, KeyError) as error:
            raise RunError(f"{where} is no record of a run ({error}).") from error


def identity(
    options: TrainingOptions, settings: Mapping[str, Any], data: Mapping[str, str]
) -> Identity:
    """What the run is now. `settings` is the rest of the configuration, nested or flat."""
    flat = dict(_flat({**settings, "training": dataclasses.asdict(options)}))
    # What JSON gives back is compared with it: lists for tuples, for one.
    flat = json.loads(json.dumps(flat, sort_keys=True, default=str))
    versions = {
        "torch": torch.__version__,
        "python": platform.python_version(),
        "processor": torch.backends.cpu.get_cpu_capability(),
    }
    return Identity(flat, dict(data), torch.get_num_threads(), versions)


def compare(saved: Identity, now: Identity) -> list[str]:
    """What is to be told of a run that goes on; an error that names the key if it may not."""
    free = {f"training.{name}" for name in MAY_CHANGE}
    for key in sorted(set(saved.settings) | set(now.settings)):
        was, given = _said(saved.settings, key), _said(now.settings, key)
        if was != given and key not in free:
            raise ConfigError(
                f"{key} was {was} when this run began and is {given} now. Put it back, or begin "
                f"in another folder. (May change: {', '.join(sorted(free))}.)"
            )
    for name in sorted(set(saved.data) | set(now.data)):
        if saved.data.get(name) != now.data.get(name):
            raise RunError(
                f"the data {name!r} is not what this run began with. Put it back, or begin in "
                "another folder."
            )
    return _notes(saved, now)


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


def _flat(settings: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in settings.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
