"""Dates of the demo, with guided alignment: trained on the gold links of its pairs.

`data.links` are those of the generator, by characters, with `data.link_nulls`: a hyphen learns to
attend to EOS of the source. Everything else is as above.
"""

from benchmarks.dates_alignment import reached
from benchmarks.settings import Outcome, Settings


def run(settings: Settings) -> Outcome:
    """Train each, or go on with it; then align."""
    return reached(settings, "guided")
