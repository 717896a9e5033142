"""Functions of the C library against the same formula in float64, over drawn shapes."""

import itertools

import pytest

from regard.native import loader, parallel
from regard.native.eligibility import usable
from tests.fuzz.direct import CASES
from tests.fuzz.draw import Draw

pytestmark = pytest.mark.skipif(not usable(), reason="the C extension was not built")
each_case = pytest.mark.parametrize("name", CASES)


@pytest.fixture(autouse=True)
def _level(level: int, unchecked: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loader, "level", lambda: level)


@each_case
def test_any_shape(name: str, level: int, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = Draw(seed)
    threads = draw.random.choice((1, 1, 2, 5))
    monkeypatch.setattr(parallel, "threads", lambda _: threads)
    CASES[name](draw)


class Given(Draw):
    """Sizes that are given; the rest is drawn."""

    def __init__(self, sizes: tuple[int, ...], seed: int) -> None:
        super().__init__(seed)
        self.given = sizes

    def some(self, count: int) -> list[int]:
        return list(self.given[:count])

    def size(self, most: int = 1 << 30, least: int = 0) -> int:
        return max(least, self.given[-1])


@each_case
@pytest.mark.parametrize("threads", [1, 3])
def test_sizes_of_zero(
    name: str, level: int, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every way in which some sizes are zero and others are not."""
    monkeypatch.setattr(parallel, "threads", lambda _: threads)
    for seed, sizes in enumerate(itertools.product((0, 3), repeat=6)):
        CASES[name](Given(sizes, seed))
