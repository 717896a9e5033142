"""Fonts are found for what is written; where there is none a square stands, and that is said."""

import re
from collections.abc import Iterator
from pathlib import Path

import matplotlib.font_manager
import pytest
from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen
from matplotlib import ft2font

from regard.seq2seq.errors import ConfigError
from regard.tasks.plots import save_figure
from regard.tasks.plots.arcs import Arcs
from regard.tasks.plots.canvas import Canvas
from regard.tasks.plots.figures import VIEWS
from regard.tasks.plots.fonts import fonts_for
from tests.tasks.plots.drawings import drawing


def write_font(path: Path, family: str, letters: str) -> str:
    """A font in which each of these letters is a square."""
    pen = TTGlyphPen(None)
    pen.moveTo((100, 0))
    for corner in ((100, 700), (900, 700), (900, 0)):
        pen.lineTo(corner)
    pen.closePath()
    square = pen.glyph()
    names = [".notdef", *(f"letter{n}" for n in range(len(letters)))]
    builder = FontBuilder(1000, isTTF=True)
    builder.setupGlyphOrder(names)
    builder.setupCharacterMap(dict(zip(map(ord, letters), names[1:], strict=True)))
    builder.setupGlyf(dict.fromkeys(names, square))
    builder.setupHorizontalMetrics(dict.fromkeys(names, (1000, 100)))
    builder.setupHorizontalHeader(ascent=800, descent=-200)
    builder.setupNameTable({"familyName": family, "styleName": "Regular"})
    builder.setupOS2()
    builder.setupPost()
    builder.save(path)
    return str(path)


@pytest.fixture
def system(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The fonts of the system: none, until a test puts some there."""
    paths: list[str] = []
    monkeypatch.setattr(matplotlib.font_manager, "findSystemFonts", lambda: paths)
    known = list(matplotlib.font_manager.fontManager.ttflist)
    yield paths
    matplotlib.font_manager.fontManager.ttflist[:] = known


def test_one_font_is_enough_for_many_scripts(system: list[str]) -> None:
    assert fonts_for(["été", "день", "ημέρα", "שלום", "السلام", "∎"]).families == ["DejaVu Sans"]


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("ending", ["png", "svg"])
def test_a_letter_without_a_font_leaves_the_picture(
    tmp_path: Path, system: list[str], view: str, ending: str
) -> None:
    # A letter that matplotlib draws as a box would be a warning, and a warning is an error here.
    note = save_figure(tmp_path / f"a.{ending}", drawing(["a日b", "fox"], ["日", "c"]), view)
    assert (tmp_path / f"a.{ending}").exists()
    assert note.count("日 (U+65E5)") == 1


def test_a_square_stands_for_the_letter_and_the_rest_stays(system: list[str]) -> None:
    canvas = Arcs(drawing(["a日b", "語"], ["été"]), 0.2).draw()
    written = [text.get_text() for text in canvas.figure.texts]
    assert {"a□b", "□", "été"} <= set(written)


@pytest.mark.parametrize(
    ("text", "squares"),
    [("नमस्ते", 4), ("👨\u200d👩\u200d👧", 1), ("❤\ufe0f", 0), ("x\U000e0100日", 1)],
)
def test_what_people_call_a_character_is_one_square(
    system: list[str], text: str, squares: int
) -> None:
    assert fonts_for([text]).drawable(text).count("□") == squares


@pytest.mark.parametrize(
    ("text", "package"),
    [
        ("日本", "fonts-noto-cjk"),
        ("한국", "fonts-noto-cjk"),
        ("नमस्ते", "fonts-noto-core"),
        ("🚲", "fonts-symbola"),
    ],
)
def test_what_to_install_is_said_on_one_line(system: list[str], text: str, package: str) -> None:
    note = fonts_for([text]).note
    assert re.search(f"no font here has .*apt install {package}", note)
    assert "\n" not in note
    for letter in text:
        assert f"{letter} (U+{ord(letter):04X})" in note


def test_of_many_letters_some_are_named_and_the_rest_counted(system: list[str]) -> None:
    letters = [chr(number) for number in range(0x65E5, 0x65E5 + 23)]
    note = fonts_for(letters).note
    named = sum(letter in note for letter in letters)
    assert 0 < named < len(letters)
    assert f"{len(letters) - named} more" in note


def test_letters_that_are_cut_off_are_not_told_of(tmp_path: Path, system: list[str]) -> None:
    for view in VIEWS:
        assert save_figure(tmp_path / "a.png", drawing(["x" * 40 + "日"], ["a"]), view) == ""


def test_fonts_of_the_system_are_found_and_drawn_with(tmp_path: Path, system: list[str]) -> None:
    system.append(write_font(tmp_path / "one.ttf", "Tiny One", "日"))
    system.append(write_font(tmp_path / "two.ttf", "Tiny Two", "日本"))
    system.append(write_font(tmp_path / "three.ttf", "Tiny Three", "語"))
    assert fonts_for(["a日", "本"]).families == ["DejaVu Sans", "Tiny Two"]
    assert fonts_for(["日本語"]).families == ["DejaVu Sans", "Tiny Two", "Tiny Three"]
    assert fonts_for(["日本語"]).note == ""
    assert save_figure(tmp_path / "a.png", drawing(["日本語"], ["本"])) == ""


def test_a_broken_font_is_passed_over(tmp_path: Path, system: list[str]) -> None:
    (tmp_path / "broken.ttf").write_bytes(b"not a font")
    system.append(str(tmp_path / "broken.ttf"))
    system.append(write_font(tmp_path / "one.ttf", "Tiny One", "日"))
    assert fonts_for(["日"]).families[1:] == ["Tiny One"]


def test_what_is_not_seen_needs_no_font(system: list[str]) -> None:
    assert fonts_for(["a\u200d\u2068b\ufe0f \n"]).note == ""


def test_a_matplotlib_that_cannot_shape_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(ft2font, "__libraqm_version__")
    with pytest.raises(ConfigError, match=r"3\.11 and newer can"):
        fonts_for(["a"])


def test_arabic_letters_are_joined() -> None:
    """Joined, they are narrower than they are one by one."""
    canvas = Canvas(["سلم"])
    assert canvas.measure("سلم", 40) < 0.9 * sum(canvas.measure(letter, 40) for letter in "سلم")
