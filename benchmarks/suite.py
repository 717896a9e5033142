"""Which benchmarks there are, and how one becomes a result."""

import importlib
import inspect
from types import ModuleType

from benchmarks import machine
from benchmarks.results import Result
from benchmarks.settings import Settings

NAMES = (
    "limits",
    "additive",
    "additive_length",
    "dot",
    "distances",
    "local",
    "sparse",
    "decoding",
    "accuracy",
    "imports",
    "allocator",
)
"""In the order in which they run and are reported."""

TOOLKIT = (
    "learning",
    "translating",
    "answering",
    "bleu",
    "bleu_rnn",
    "kills",
    "alignment",
    "alignment_few",
    "dates_alignment",
    "dates_guided",
)
"""Those of the toolkit: long, so that they run when they are named; some need data."""


def module_of(name: str) -> ModuleType:
    """The file of a benchmark; its docstring is what people read about it."""
    return importlib.import_module(f"benchmarks.{name}")


def title_of(name: str) -> str:
    """The first line of what it says about itself."""
    return (inspect.getdoc(module_of(name)) or name).splitlines()[0]


def measured(name: str, settings: Settings) -> Result:
    """Run one benchmark, and note what it was run with."""
    title, _, text = (inspect.getdoc(module_of(name)) or name).partition("\n")
    result = {
        "name": name,
        "title": title.rstrip("."),
        "text": text.strip(),
        "quick": settings.quick,
        "date": machine.date(),
        "commit": machine.commit(),
        "machine": machine.machine(),
        "threads": list(settings.threads),
        "plan": vars(settings.plan),
    }
    outcome = module_of(name).run(settings)
    versions = {"here": machine.versions(), **outcome.versions}
    return {
        **result,
        "versions": versions,
        "about": outcome.about,
        # What was promised was promised of the careful cases.
        "promises": [] if settings.quick else outcome.promises,
        "rows": outcome.rows,
    }
