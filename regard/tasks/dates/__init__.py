"""Dates as people write them, in 40 languages, with their ISO forms and gold alignments.

>>> example = draw(1, seed=25, split="test")[0]
>>> example.source, example.target, example.language, example.form
('sobota 24. dubna 2083', '2083-04-24', 'cs', 'full')
"""

from regard.tasks.dates.example import Example
from regard.tasks.dates.files import links_path, write, write_pairs
from regard.tasks.dates.languages import LANGUAGES
from regard.tasks.dates.sampling import draw, held_out

__all__ = [
    "LANGUAGES",
    "Example",
    "draw",
    "held_out",
    "links_path",
    "write",
    "write_pairs",
]
