"""Little data and no shared letters: the alignment error rate of Hansards.

English and French as in `alignment`, but with 30,000 pairs of Tatoeba beside the 447, and every
letter of the French replaced by one of another alphabet: no cognates can be matched by spelling.
The rule named beforehand: the product of both directions above 0.5.
"""

import tempfile
from pathlib import Path

from benchmarks.alignment import FEW, NAMED, Files, aligner, data_of, eflomal, eflomal_versions
from benchmarks.settings import Outcome, Settings, promise

PAIRS = 30_000
ALPHABET = 0x1200
"""Where letters begin that have no case and stand alone: the Ethiopic ones."""


def run(settings: Settings) -> Outcome:
    """The aligner beside eflomal."""
    data = data_of(settings)
    with tempfile.TemporaryDirectory(prefix="regard-alignment-") as folder:
        most = FEW if settings.quick else PAIRS
        files = Files(data, Path(folder), most, moved=Moved())
        found = aligner(files, settings.quick)
        peers = [eflomal(files)] if settings.peers else []
    best = min((min(row["errors"].values()) for row in peers), default=1.0)
    promises = [
        promise(
            "AER of the aligner, product, below eflomal's best", [found],
            lambda row: row["errors"][NAMED], at_most=best,
        )
    ]  # fmt: skip
    versions = {"eflomal": eflomal_versions()} if peers else {}
    return Outcome([*peers, found], promises, versions)


class Moved(dict[int, int]):
    """Moves the letters of texts, each to one of another alphabet in the order of their coming.

    >>> Moved()("aha, 7!")
    'ሀሁሀ, 7!'
    """

    def __call__(self, text: str) -> str:
        return text.translate(self)

    def __missing__(self, character: int) -> int:
        self[character] = ALPHABET + len(self) if chr(character).isalpha() else character
        return self[character]
