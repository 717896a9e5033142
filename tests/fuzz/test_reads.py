"""Reads of drawn shapes, layouts, dtypes, masks and scores against the reference in float64."""

import pytest

from regard.native import loader, parallel
from tests.fuzz.draw import Draw
from tests.fuzz.reads import any_read

SIZES = (1, 2, 3, 4, 5, 7, 8, 9, 13, 15, 16, 17, 24, 31, 32, 33, 48, 63, 64, 65, 67)
EACH = 8
"""Reads of a case."""


@pytest.fixture(autouse=True)
def _level(level: int, unchecked: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loader, "level", lambda: level)


@pytest.mark.parametrize("sizes", [SIZES, (0, *SIZES[:8])], ids=["some", "none"])
def test_any_read(
    sizes: tuple[int, ...], level: int, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(EACH * seed, EACH * (seed + 1)):
        draw = Draw(number, sizes)
        threads = draw.random.choice((1, 1, 2, 5))
        monkeypatch.setattr(parallel, "threads", lambda _, threads=threads: threads)
        any_read(draw)
