"""A task that a tiny model learns in seconds: numbers in words to digits."""

from pathlib import Path

import torch

from regard.seq2seq.batch import UNK
from regard.tasks.config import ConfigSource, load
from regard.tasks.config.translate import TranslateConfig
from regard.tasks.translate import Translator

DIGITS = dict(zip(["zero", "one", "two", "three", "four"], "01234", strict=True))
SETTINGS = {
    "text": {"kind": "words"},
    "model": {
        "kind": "bahdanau", "embedding": 13, "encoder_size": 11, "state_size": 17, "dropout": 0.1,
        "score": {"kind": "additive", "hidden_size": 7},
    },
    "training": {
        "steps": 12, "batch": {"kind": "sentences", "size": 16}, "rate": 0.02, "warmup": 3,
        "save_every": 5, "validate_every": 6, "ema": 0.9, "threads": 1, "device": "cpu",
    },
}  # fmt: skip


def write_pairs(path: Path, count: int = 120) -> Path:
    """Pairs of three numbers, all different."""
    words = list(DIGITS)
    lines = []
    for number in range(count):
        chosen = [words[number % 5], words[number // 5 % 5], words[number // 25 % 5]]
        lines.append(f"{' '.join(chosen)}\t{' '.join(DIGITS[word] for word in chosen)}\n")
    path.write_text("".join(lines), encoding="utf-8")
    return path


def say_unknown(translator: Translator) -> None:
    """From now on it says nothing but unknown words."""
    with torch.no_grad():
        bias = translator.model.output_layer.linear.bias
        bias.fill_(-50.0)
        bias[UNK] = 50.0


def configured(pairs: Path, **changes: object) -> TranslateConfig:
    """The small model on these pairs."""
    given: dict[str, dict[str, object]] = {"data": {"train": [str(pairs)], "valid_share": 0.2}}
    for key, value in changes.items():
        table, _, name = key.partition("__")
        given.setdefault(table, {})[name] = value
    return load(
        TranslateConfig,
        overrides=[ConfigSource("the test", SETTINGS), ConfigSource("the test", given)],
    )
