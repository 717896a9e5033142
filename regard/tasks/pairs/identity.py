"""What of a configuration makes a run this run: what its weights were trained with."""

from typing import Any

from regard.seq2seq.training import TrainingOptions
from regard.tasks.config import may_change
from regard.tasks.config.align import AlignConfig
from regard.tasks.config.training import OptimizationConfig
from regard.tasks.config.translate import TranslateConfig

SCHEDULES = {"none": "constant", "cosine": "cosine", "inverse_root": "inverse_root"}


def settings_of(config: TranslateConfig | AlignConfig) -> dict[str, Any]:
    """All keys that may not change, as tables in tables."""
    return _held(config.model_dump(mode="json"), "")


def requested(config: TranslateConfig | AlignConfig) -> dict[str, Any]:
    """How the model is asked, which may change."""
    return config.model_dump(mode="json", include={"decoding"})


def training_options(given: OptimizationConfig, steps: int) -> TrainingOptions:
    """How the loop is told, with so many updates."""
    names = (
        "save_every", "validate_every", "keep", "patience", "seed",
        "rate", "warmup", "clip", "ema", "accumulate", "autocast", "threads", "device",
    )  # fmt: skip
    options: dict[str, Any] = {name: getattr(given, name) for name in names}
    watch = getattr(given, "watch", "loss")
    options |= {"decay": given.weight_decay, "watch": watch, "maximise": watch != "loss"}
    return TrainingOptions(steps=steps, schedule=SCHEDULES[given.decay], **options)  # type: ignore[arg-type]


def _held(table: dict[str, Any], before: str) -> dict[str, Any]:
    """A table without the keys that may change."""
    return {
        key: _held(value, f"{before}{key}.") if isinstance(value, dict) else value
        for key, value in table.items()
        if not may_change(f"{before}{key}")
    }
