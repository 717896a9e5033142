"""The tour runs, draws, prints the weather table, and says what is wrong when it cannot."""

import runpy
import subprocess
import sys
from pathlib import Path

import matplotlib.font_manager
import matplotlib.image
import numpy
import pytest

ROOT = Path(__file__).parents[2]
TOUR = ROOT / "docs" / "tour.py"


@pytest.fixture(scope="module", autouse=True)
def _fonts_are_known() -> None:
    """On a fresh machine matplotlib looks for fonts first, and says so: not in the tour's lines."""
    matplotlib.font_manager.findfont("DejaVu Sans")


@pytest.fixture(scope="module")
def toured(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """What the tour printed, and the folder with its pictures."""
    folder = tmp_path_factory.mktemp("tour")
    command = [sys.executable, str(TOUR)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
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
    assert pixels.shape[-1] == 4
    colours = (255 * pixels).round().astype(numpy.uint8).view(numpy.uint32)
    assert len(numpy.unique(colours)) > 100


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


def assert_refused(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> None:
    """The tour in this process, which leaves at once."""
    monkeypatch.setattr(sys, "argv", ["tour", *arguments])
    with pytest.raises(SystemExit) as left:
        runpy.run_path(str(TOUR), run_name="__main__")
    assert left.value.code == 2


def test_a_folder_that_cannot_be_written_is_said_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("not a folder")
    assert_refused(monkeypatch, "--out", str(tmp_path / "file" / "pictures"))
    printed, complaint = capsys.readouterr()
    assert printed == ""
    (line,) = complaint.splitlines()
    assert str(tmp_path / "file") in line
    assert "--out" in line


def test_without_matplotlib_it_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert_refused(monkeypatch)
    (line,) = capsys.readouterr().err.splitlines()
    assert "[plot]" in line
