"""The tour runs, draws, prints the weather table, and says what is wrong when it cannot."""

import subprocess
import sys
from pathlib import Path

import matplotlib.font_manager
import matplotlib.image
import numpy
import pytest

ROOT = Path(__file__).parents[2]
TOUR = ROOT / "docs" / "tour.py"
RUN = f"import runpy; runpy.run_path({str(TOUR)!r}, run_name='__main__')"


@pytest.fixture(scope="module", autouse=True)
def _fonts_are_known() -> None:
    """On a fresh machine matplotlib looks for fonts first, and says so: not in the tour's lines."""
    matplotlib.font_manager.findfont("DejaVu Sans")


def run(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *map(str, arguments)], cwd=cwd, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def toured(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """What the tour printed, and the folder with its pictures."""
    folder = tmp_path_factory.mktemp("tour")
    done = run(TOUR, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout, folder / "tour"


@pytest.mark.parametrize("name", ["weather.png", "memory.png"])
def test_it_draws(toured: tuple[str, Path], name: str) -> None:
    printed, folder = toured
    assert f"tour/{name}" in printed
    pixels = matplotlib.image.imread(folder / name)
    height, width = pixels.shape[:2]
    assert height > 300
    assert width > 1000
    colours = numpy.unique(pixels.reshape(-1, pixels.shape[-1]), axis=0)
    assert len(colours) > 100


def test_the_pictures_of_the_docs_have_the_same_size(toured: tuple[str, Path]) -> None:
    for name in ("weather.png", "memory.png"):
        kept = ROOT / "docs" / "images" / name
        drawn = matplotlib.image.imread(toured[1] / name)
        assert matplotlib.image.imread(kept).shape == drawn.shape
        assert kept.stat().st_size < 200_000


def test_it_prints_the_weather_table(toured: tuple[str, Path]) -> None:
    lines = toured[0].splitlines()
    stations = [line.split() for line in lines if line.split() and line.split()[0] in "ABCDEF"]
    stations = [row for row in stations if len(row) == 9]
    assert [row[0] for row in stations] == list("ABCDEF")
    shown = [float(row[3]) for row in stations]
    assert shown == [6.5, 6.1, 4.45, 3.5, 2.8, 1.9]
    weights = [float(row[4]) for row in stations]
    # How near the slide's weights are: see tests/attention/test_weather.py.
    assert weights == pytest.approx([0.52, 0.37, 0.07, 0.03, 0.013, 0.005], abs=0.015)
    (read,) = [line.split() for line in lines if "read here" in line]
    assert read == ["read", "here", "31.0", "°C", "48.0", "%"]


def test_a_folder_that_cannot_be_written_is_said_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    done = run(TOUR, "--out", tmp_path / "file" / "pictures", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert str(tmp_path / "file") in line
    assert "--out" in line


def test_without_matplotlib_it_names_the_extra(tmp_path: Path) -> None:
    missing = f"import sys; sys.modules['matplotlib'] = None; sys.argv = ['tour']; {RUN}"
    done = run("-c", missing, cwd=tmp_path)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert "[plot]" in line
