"""Fonts are found for what is written, and if there is none, that is said: no boxes are drawn."""

from collections.abc import Iterator
from pathlib import Path

import matplotlib.font_manager
import pytest
from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen
from matplotlib import ft2font

from regard.seq2seq.errors import ConfigError
from regard.tasks.pictures import save_picture, what_is_missing
from regard.tasks.pictures.fonts import families_for
from tests.tasks.pictures.drawings import drawing


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
    assert families_for(["été", "день", "ημέρα", "שלום", "السلام", "∎"]) == ["DejaVu Sans"]


@pytest.mark.parametrize(
    ("text", "package"),
    [("日本", "fonts-noto-cjk"), ("한국", "fonts-noto-cjk"), ("नमस्ते", "fonts-noto-core")],
)
def test_what_to_install_is_said(
    tmp_path: Path, system: list[str], text: str, package: str
) -> None:
    with pytest.raises(
        ConfigError, match=f"no font here has .*apt install {package}.*html"
    ) as told:
        save_picture(tmp_path / "a.png", drawing([text], ["a"]))
    assert "\n" not in str(told.value)
    assert not (tmp_path / "a.png").exists()
    assert package in what_is_missing([text])


def test_fonts_of_the_system_are_found_and_drawn_with(tmp_path: Path, system: list[str]) -> None:
    system.append(write_font(tmp_path / "one.ttf", "Tiny One", "日"))
    system.append(write_font(tmp_path / "two.ttf", "Tiny Two", "日本"))
    system.append(write_font(tmp_path / "three.ttf", "Tiny Three", "語"))
    assert families_for(["a日", "本"]) == ["DejaVu Sans", "Tiny Two"]
    assert families_for(["日本語"]) == ["DejaVu Sans", "Tiny Two", "Tiny Three"]
    assert what_is_missing(["日本語"]) == ""
    # A letter without a font would be a warning, and a warning is an error here.
    save_picture(tmp_path / "a.png", drawing(["日本語"], ["本"]))


def test_a_broken_font_is_passed_over(tmp_path: Path, system: list[str]) -> None:
    (tmp_path / "broken.ttf").write_bytes(b"not a font")
    system.append(str(tmp_path / "broken.ttf"))
    system.append(write_font(tmp_path / "one.ttf", "Tiny One", "日"))
    assert families_for(["日"])[1:] == ["Tiny One"]


def test_what_is_not_seen_needs_no_font(system: list[str]) -> None:
    assert what_is_missing(["a\u200d\u2068b\ufe0f \n"]) == ""


def test_a_matplotlib_that_cannot_shape_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(ft2font, "__libraqm_version__")
    with pytest.raises(ConfigError, match=r"3\.11 and newer can"):
        families_for(["a"])


def test_arabic_letters_are_joined() -> None:
    """Joined, they are narrower than they are one by one."""
    from regard.tasks.pictures.sheet import Sheet  # noqa: PLC0415

    sheet = Sheet(["سلم"])
    assert sheet.measure("سلم", 40) < 0.9 * sum(sheet.measure(letter, 40) for letter in "سلم")
