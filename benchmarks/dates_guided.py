"""Dates of the demo, guided: the same, with the gold links of the training pairs beside them.

`data.links` are those that the generator keeps, by characters, with `data.link_nulls`: a hyphen
learns to read the end of the source. Everything else is as above.
"""

from benchmarks.dates_alignment import reached
from benchmarks.settings import Outcome, Settings


def run(settings: Settings) -> Outcome:
    """Train each, or go on with it; then align."""
    return reached(settings, "guided")
