"""A model card: what a run's model is, what it learned from and how good it is, for people."""

import platform
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from torch import nn

from regard.seq2seq.system.files import open_regular, parse_json
from regard.seq2seq.training import Outcome
from regard.tasks.config.align import AlignConfig
from regard.tasks.config.translate import TranslateConfig
from regard.tasks.pairs.examples import Examples

CARD, LOG = "card.md", "log.jsonl"
PACKAGES = ("regard", "torch", "tokenizers", "sacrebleu")


USAGE = {
    "translate": "regard predict {} input.txt",
    "align": "regard align {} pairs.tsv > links.pharaoh",
}
HOW_GOOD = {
    "translate": "BLEU and exact matches are of greedy answers; `regard evaluate` gives them with "
    "intervals and signatures, on pairs that nothing was chosen by.",
    "align": "The loss is what a word costs, both directions together; agreement is what share of "
    "their links both directions have. `regard align --gold` gives the error rate.",
}


def card(
    directory: Path,
    config: TranslateConfig | AlignConfig,
    examples: Examples,
    model: nn.Module,
    outcome: Outcome,
) -> str:
    """The card of a run as it stands, as Markdown."""
    count = sum(parameter.numel() for parameter in model.parameters())
    judged = _validated(directory, None if outcome.best is None else outcome.best.step)
    name = directory.resolve().name
    sections = {
        f"# {name}": [
            f"{_what(config)} with {count:,} parameters. Training {outcome}.",
            f"    {USAGE[config.task].format(directory)}",
        ],
        "## What it learned from": [
            _table(("files", "pairs", "SHA-256"), _files(config, examples)),
            f"Text: `{config.text.kind}`. " + _notes(examples),
        ],
        "## How good it is": [
            _table(("score of the validation", "value"), judged)
            if judged
            else "It has not been validated yet.",
            HOW_GOOD[config.task],
        ],
        "## Made with": [
            _table(("what", "version"), versions().items()),
            f"Seed {config.training.seed}. Everything else is in `run.toml`.",
        ],
    }
    return "\n\n".join("\n\n".join([head, *texts]) for head, texts in sections.items()) + "\n"


def _what(config: TranslateConfig | AlignConfig) -> str:
    if isinstance(config, AlignConfig):
        return "A word aligner"
    return f"A translator of kind `{config.model.kind}`"


def versions() -> dict[str, str]:
    """Of what computes here."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def _files(config: TranslateConfig | AlignConfig, examples: Examples) -> list[tuple[str, str, str]]:
    data, rows = config.data, []
    rows.append((_named(data.train), f"{len(examples.numbers):,}", examples.hashes["train"]))
    if "valid" in examples.hashes:
        rows.append((_named(data.valid), f"{len(examples.valid):,}", examples.hashes["valid"]))
    elif config.task == "translate":
        rows.append(("split off to validate", f"{len(examples.valid):,}", "–"))
    return rows


def _named(paths: tuple[str, ...]) -> str:
    return ", ".join(Path(path).name for path in paths)


def _notes(examples: Examples) -> str:
    return f"Of the lines: {'; '.join(examples.notes)}." if examples.notes else ""


def _validated(directory: Path, step: int | None) -> list[tuple[str, str]]:
    """The scores of the validation that found the best weights; none if the log has lost them."""
    found: Mapping[str, Any] = {}
    with open(open_regular(directory, LOG), "rb") as lines:
        for line in lines:
            match _parsed(line):
                case {"step": at, "validation": dict(scores)} if at == step:
                    found = scores
    return [(name, _number(value)) for name, value in found.items()]


def _parsed(line: bytes) -> object:
    """What a line says; None for one that somebody has spoilt."""
    try:
        return parse_json(line)
    except ValueError:
        return None


def _number(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, int | float) else "–"


def _table(head: tuple[str, ...], rows: Any) -> str:
    """A table of Markdown."""
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join("| " + " | ".join(_cell(each) for each in line) + " |" for line in lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
