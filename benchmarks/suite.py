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

TOPICS: dict[str, tuple[str, tuple[str, ...]]] = {
    "limits": ("The limits of the machine", ("limits",)),
    "additive": ("Additive attention", ("additive", "additive_length")),
    "dot": ("Dot-product attention", ("dot",)),
    "distances": ("Cosine, Gaussian and inverse distance", ("distances",)),
    "local": ("Local attention", ("local",)),
    "sparse": ("Sparsemax and entmax", ("sparse",)),
    "decoding": ("One decoding step", ("decoding",)),
    "accuracy": ("Accuracy in float32", ("accuracy",)),
    "imports": ("Import time", ("imports",)),
    "training": ("Training", ("learning", "allocator")),
    "translating": ("Translating", ("translating", "answering")),
    "recipes": ("Recipes: BLEU and cost", ("bleu", "bleu_rnn")),
    "resuming": ("Resuming after kill -9", ("kills",)),
    "alignment": (
        "Word alignment",
        ("alignment", "alignment_few", "dates_alignment", "dates_guided"),
    ),
}
"""The pages, by the name of their file: a title, and the benchmarks on it."""


def module_of(name: str) -> ModuleType:
    """The module of a benchmark; its docstring is what its page says about it."""
    return importlib.import_module(f"benchmarks.{name}")


def title_of(name: str) -> str:
    """The first line of its docstring."""
    return (inspect.getdoc(module_of(name)) or name).splitlines()[0]


def text_of(name: str) -> str:
    """The rest of its docstring."""
    return (inspect.getdoc(module_of(name)) or name).partition("\n")[2].strip()


def measured(name: str, settings: Settings) -> Result:
    """Run one benchmark, and note what it was run with."""
    result = {
        "name": name,
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
