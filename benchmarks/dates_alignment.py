"""Dates of the demo: the alignment error rate of its attention, by characters.

The demo's model, trained with three seeds, aligns its 1,000 unseen dates character by character.
Sure is a digit with the same digit, translated digits, too; possible is any character of the same
field; hyphens have no link. The rule named beforehand: `--threshold 0.5`, a link where a character
has most of the weight; the default, which links every character, stands beside it. A finished run
in `.benchmarks/runs` is only aligned.
"""

import json
from pathlib import Path

from benchmarks.bleu import RUNS, commanded
from benchmarks.results import Row
from benchmarks.settings import Outcome, Settings, promise
from regard.tasks import dates
from regard.tasks.config import ConfigSource, as_toml, load
from regard.tasks.config.translate import TranslateConfig
from regard.tasks.demo import SETTINGS, TEST, TRAIN, VALID

SEEDS, STEPS = (1, 2, 3), 900
NEEDED = 0.10
NAMED = "threshold 0.5"
RULES = {"default": [], NAMED: ["--threshold", "0.5"]}


def run(settings: Settings) -> Outcome:
    """Train each, or go on with it; then align."""
    return reached(settings, "by itself")


def reached(settings: Settings, way: str) -> Outcome:
    """What attention that learned in this way gives, for each seed."""
    seeds = settings.choose(SEEDS, SEEDS[:1])
    rows = [one(way, seed, settings.quick) for seed in seeds]
    return Outcome(rows, [promise(f"AER of dates, attention {way}", rows, error, at_most=NEEDED)])


def one(way: str, seed: int, quick: bool) -> Row:
    """One model and its scores."""
    name = f"dates-{way.replace(' ', '-')}-{seed}" + ("-quick" if quick else "")
    folder = RUNS / name
    paths = dates.write(folder / "data", TRAIN, VALID, TEST, seed)
    config = folder / "config.toml"
    config.write_text(as_toml(_config(paths, way, seed, 3 if quick else STEPS)), "utf-8")
    train = ["train", "translate", "--config", str(config), "--out", str(folder / "run")]
    commanded(train)
    test = [str(paths["test"]), "--units", "char", "--gold", str(dates.links_path(paths["test"]))]
    found = {}
    for rule, more in RULES.items():
        said, _ = commanded(["align", str(folder / "run"), *test, "--json", *more])
        found[rule] = {score["name"]: score for score in json.loads(said)}
    return {"case": {"attention": way, "seed": seed}, "who": "regard", "aligned": found}


def error(row: Row) -> float:
    """The alignment error rate by the rule that was named."""
    return row["aligned"][NAMED]["AER"]["value"]


def _config(paths: dict[str, Path], way: str, seed: int, steps: int) -> TranslateConfig:
    files: dict[str, object] = {"train": [str(paths["train"])], "valid": [str(paths["valid"])]}
    if way == "guided":
        links = [str(dates.links_path(paths["train"]))]
        files |= {"links": links, "link_units": "char", "link_nulls": True}
    training = {"steps": steps, "seed": seed, "threads": 1}
    chosen = {"data": files, "training": training}
    return load(
        TranslateConfig,
        overrides=[ConfigSource("the demo", SETTINGS), ConfigSource("here", chosen)],
    )
