"""The configuration of a run's folder, and which of its keys are fixed on resume."""

from pathlib import Path
from typing import Any

from regard.seq2seq.errors import RunError
from regard.seq2seq.system.files import read_regular
from regard.seq2seq.training import TrainingOptions
from regard.tasks.config import ConfigSource, TaskConfig, load, may_change, parse_toml
from regard.tasks.config.loading import LARGEST
from regard.tasks.config.training import OptimizationConfig
from regard.tasks.config.wording import shortened
from regard.tasks.registry import config_type, entries

CONFIG = "run.toml"
SCHEDULES = {"none": "constant", "cosine": "cosine", "inverse_root": "inverse_root"}
LOOP_KEYS = (
    "save_every", "validate_every", "keep", "patience", "seed",
    "rate", "warmup", "clip", "ema", "accumulate", "autocast", "threads", "device", "watch",
)  # fmt: skip
"""Keys that the configuration and the loop have in common."""


def written_config(directory: Path | str) -> ConfigSource:
    """Read `run.toml` of a run's folder."""
    path = Path(directory) / CONFIG
    try:
        content = read_regular(path.parent, CONFIG, limit=LARGEST)
    except (FileNotFoundError, NotADirectoryError):
        raise RunError(
            f"{directory} has no {CONFIG}, so it is not a run. Give the folder that was --out of "
            "regard train."
        ) from None
    except OSError as error:
        raise RunError(f"{path}: {error.strerror}. Put the run's own back.") from error
    return parse_toml(str(path), content)


def task_name(directory: Path | str) -> str:
    """The task of a run: "translate", "align"."""
    source = written_config(directory)
    name = source.values.get("task", "translate")
    if not isinstance(name, str) or name not in entries():
        shown = shortened(repr(name))
        raise RunError(f"{source.origin}: task is {shown}. There are {', '.join(entries())}.")
    return name


def load_config(directory: Path | str) -> TaskConfig:
    """The configuration of a run's folder."""
    return load(config_type(task_name(directory)), overrides=[written_config(directory)])


def fixed_settings(config: TaskConfig) -> dict[str, Any]:
    """All keys that may not change on resume, as nested tables."""
    return _fixed(type(config), config.model_dump(mode="json"), "")


def free_settings(config: TaskConfig) -> dict[str, Any]:
    """The settings of inference, which may change."""
    return config.model_dump(mode="json", include={"decoding"})


def training_options(given: OptimizationConfig, steps: int) -> TrainingOptions:
    """The options of the training loop, with so many updates."""
    options: dict[str, Any] = {name: getattr(given, name) for name in LOOP_KEYS}
    schedule: Any = SCHEDULES[given.decay]
    return TrainingOptions(steps=steps, schedule=schedule, decay=given.weight_decay, **options)


def _fixed(shape: type[TaskConfig], table: dict[str, Any], before: str) -> dict[str, Any]:
    return {
        key: _fixed(shape, value, f"{before}{key}.") if isinstance(value, dict) else value
        for key, value in table.items()
        if not may_change(shape, f"{before}{key}")
    }
