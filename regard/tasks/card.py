"""A model card: what the model is, what it was trained on, and its validation metrics."""

import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from torch import nn

from regard.seq2seq.system.files import open_regular, parse_json
from regard.seq2seq.training import Outcome
from regard.tasks.config import TaskConfig
from regard.tasks.examples import Examples
from regard.tasks.task import AnyTask

CARD, LOG = "card.md", "log.jsonl"
PACKAGES = ("regard", "torch", "tokenizers")


def card(
    directory: Path,
    task: AnyTask,
    config: TaskConfig,
    examples: Examples[Any],
    model: nn.Module,
    outcome: Outcome,
) -> str:
    """The model card of a run, as Markdown."""
    count = sum(parameter.numel() for parameter in model.parameters())
    scores = _validated(directory, None if outcome.best is None else outcome.best.step)
    name = directory.resolve().name
    sections = {
        f"# {name}": [
            f"{task.describe(config)} with {count:,} parameters. Training {outcome}.",
            f"    {task.usage.format(directory)}",
        ],
        "## Training data": [
            _table(("files", "items", "SHA-256"), _files(config, examples)),
            *([_notes(examples)] if examples.notes else []),
        ],
        "## Validation": [
            _table(("metric", "value"), scores) if scores else "It has not been validated yet.",
            *([task.scores_note] if task.scores_note else []),
        ],
        "## Versions": [
            _table(("what", "version"), versions(task.packages).items()),
            f"Seed {config.training.seed}. Everything else is in `run.toml`.",
        ],
    }
    return "\n\n".join("\n\n".join([head, *texts]) for head, texts in sections.items()) + "\n"


def versions(packages: Sequence[str] = ()) -> dict[str, str]:
    """The versions of Python and of these packages."""
    found = {"python": platform.python_version()}
    for package in (*PACKAGES, *packages):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def _files(config: TaskConfig, examples: Examples[Any]) -> list[tuple[str, str, str]]:
    data = config.data
    rows = [(_named(data.train), f"{len(examples.numbers):,}", _hash(examples, "train"))]
    if data.valid:
        rows.append((_named(data.valid), f"{len(examples.valid):,}", _hash(examples, "valid")))
    elif data.held_out:
        rows.append(("split off to validate on", f"{len(examples.valid):,}", "–"))
    return rows


def _hash(examples: Examples[Any], role: str) -> str:
    """The hash of the items, which comes first."""
    return next(digest for name, digest in examples.hashes.items() if name.startswith(f"{role}."))


def _named(paths: tuple[str, ...]) -> str:
    return ", ".join(Path(path).name for path in paths)


def _notes(examples: Examples[Any]) -> str:
    return f"Notes: {'; '.join(examples.notes)}."


def _validated(directory: Path, step: int | None) -> list[tuple[str, str]]:
    """The metrics of the best checkpoint's validation; none if the log lacks them."""
    found: Mapping[str, Any] = {}
    with open(open_regular(directory, LOG), "rb") as lines:
        for line in lines:
            match _parsed(line):
                case {"step": at, "validation": dict(scores)} if at == step:
                    found = scores
    return [(name, _number(value)) for name, value in found.items()]


def _parsed(line: bytes) -> object:
    """A line of the log; None if it is not JSON."""
    try:
        return parse_json(line)
    except ValueError:
        return None


def _number(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, int | float) else "–"


def _table(head: tuple[str, ...], rows: Any) -> str:
    """A Markdown table."""
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join("| " + " | ".join(_cell(each) for each in line) + " |" for line in lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
