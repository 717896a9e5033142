"""Every kind of picture, as PNG and as SVG: whole, readable, and with nobody's text as markup."""

import math
import re
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy
import pytest

from regard.seq2seq.errors import ConfigError
from regard.tasks.plots import AttentionMap, save_figure, save_stacked
from regard.tasks.plots.arcs import Arcs
from regard.tasks.plots.figures import VIEWS
from regard.tasks.plots.heatmap import Heatmap, Panel
from regard.tasks.plots.labels import truncate
from tests.tasks.plots.drawings import drawing, sentence

SVG = "{http://www.w3.org/2000/svg}"
EVIL = ["</svg><script>", "$x_1$", "a--b", "]]>", "\\frac", "&lt;"]


def parsed(path: Path) -> ElementTree.Element:
    return ElementTree.fromstring(path.read_bytes())


def spelled(picture: ElementTree.Element) -> list[str]:
    return [(each.text or "").strip() for each in picture.iter(f"{SVG}text")]


def cells(picture: ElementTree.Element) -> list[int]:
    """How many there are in each matrix."""
    meshes = [group for group in picture.iter(f"{SVG}g") if "QuadMesh" in group.get("id", "")]
    return [len(list(mesh.iter(f"{SVG}path"))) for mesh in meshes]


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("length", [5, 30])
def test_svg_has_every_word(tmp_path: Path, view: str, length: int) -> None:
    source, target = sentence(length), [word.upper() for word in sentence(length - 2)]
    save_figure(tmp_path / "a.svg", drawing(source, target, ["one", "two"]), view)
    picture = parsed(tmp_path / "a.svg")
    said = spelled(picture)
    for word in (*source, *target):
        assert word in said
    count = length * (length - 2)
    assert cells(picture) == {"heat": [count], "arcs": [], "heads": [count] * 2}[view]
    legend = next(line for line in said if "forced to the given target" in line)
    assert ("one" in said) if view == "heads" else (legend.startswith("Attention of one"))


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("length", [5, 30])
def test_png_is_large_enough_and_not_too_large(tmp_path: Path, view: str, length: int) -> None:
    save_figure(tmp_path / "a.png", drawing(sentence(length), sentence(length)), view)
    data = (tmp_path / "a.png").read_bytes()
    assert data.startswith(b"\x89PNG")
    width, height = struct.unpack(">II", data[16:24])
    assert 200 < width < 4000
    assert 200 < height < 4000


@pytest.mark.parametrize("view", VIEWS)
def test_text_is_no_markup_and_no_mathematics(tmp_path: Path, view: str) -> None:
    save_figure(tmp_path / "a.svg", drawing(EVIL, EVIL), view)
    picture = parsed(tmp_path / "a.svg")
    assert not list(picture.iter(f"{SVG}script"))
    said = spelled(picture)
    assert said.count("$x_1$") == 2
    assert "\\frac" in said


def test_the_same_picture_is_the_same_file(tmp_path: Path) -> None:
    for name in ("a.png", "b.png", "a.svg", "b.svg", "a.pdf", "b.pdf"):
        save_figure(tmp_path / name, drawing(sentence(5), sentence(5)), "heat")
    for kind in ("png", "svg", "pdf"):
        assert (tmp_path / f"a.{kind}").read_bytes() == (tmp_path / f"b.{kind}").read_bytes()


def corners(text: Any) -> numpy.ndarray:
    """Of what is written, in dots, turned as it is."""
    turned = text.get_rotation()
    text.set_rotation(0)
    box = text.get_window_extent()
    text.set_rotation(turned)
    anchor = numpy.array(text.get_transform().transform(text.get_position()))
    points = numpy.array([[box.x0, box.y0], [box.x1, box.y0], [box.x1, box.y1], [box.x0, box.y1]])
    angle = math.radians(turned)
    turn = numpy.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    return (points - anchor) @ turn.T + anchor


def touching(one: numpy.ndarray, other: numpy.ndarray) -> bool:
    """Do two rectangles meet? Not if a line can be drawn between them."""
    for box in (one, other):
        for edge in (box[1] - box[0], box[2] - box[1]):
            first, second = one @ edge, other @ edge
            slack = 0.02 * float(edge @ edge)
            if first.max() < second.min() + slack or second.max() < first.min() + slack:
                return False
    return True


def overlapping(texts: Sequence[Any]) -> list[tuple[str, str]]:
    boxes = [(text.get_text(), corners(text)) for text in texts]
    return [
        (name, other)
        for number, (name, box) in enumerate(boxes)
        for other, there in boxes[:number]
        if touching(box, there)
    ]


def panel(attention: AttentionMap) -> Panel:
    return Panel(attention.source, attention.target, attention.first, "a title")


@pytest.mark.parametrize(("length", "count"), [(1, 1), (5, 1), (60, 1), (5, 4), (30, 4)])
def test_no_word_of_a_heat_map_hides_another(length: int, count: int) -> None:
    attention = drawing(sentence(length), sentence(length))
    panels = [panel(attention)] * count
    rows = [panels[:2], panels[2:]] if count > 1 else [panels]
    canvas = Heatmap(rows, attention.caption, shared_labels=True).draw()
    assert len(canvas.figure.texts) > 2 * length
    assert overlapping(canvas.figure.texts) == []


def test_small_maps_stand_below_one_another() -> None:
    attention = drawing(["a", "long", "mountains"], ["b"])
    canvas = Heatmap([[panel(attention)] * 2] * 2, "", shared_labels=True).draw()
    left = [round(axes.get_position().x0, 6) for axes in canvas.figure.axes[:-1]]
    assert left[:2] == left[2:]
    assert left[0] < left[1]


@pytest.mark.parametrize("length", [1, 5, 60])
def test_no_word_of_two_texts_hides_another(length: int) -> None:
    attention = drawing(sentence(length), sentence(length))
    canvas = Arcs(attention, 0.2).draw()
    assert overlapping(canvas.figure.texts) == []


def test_overlaps_would_be_seen() -> None:
    attention = drawing(sentence(5), sentence(5))
    canvas = Heatmap([[panel(attention)]], attention.caption, shared_labels=True).draw()
    canvas.write(0.5, 1.5, "a long line of words across the matrix", rotation=45)
    assert overlapping(canvas.figure.texts)


def test_words_of_their_own_are_on_each_of_several(tmp_path: Path) -> None:
    found = [drawing(["ein", "Tag"], ["1"]), drawing(["un", "jour", "gris"], ["2", "3"])]
    save_stacked(tmp_path / "a.svg", found, "what is drawn")
    picture = parsed(tmp_path / "a.svg")
    assert {"ein", "Tag", "un", "jour", "gris", "1", "2", "3"} <= set(spelled(picture))
    assert cells(picture) == [2, 6]


@pytest.mark.parametrize(("threshold", "lines"), [(0.0, 12), (0.5, 3), (0.999, 0)])
def test_arcs_are_for_what_is_above_the_threshold(threshold: float, lines: int) -> None:
    canvas = Arcs(drawing(["a", "b", "c", "d"], ["e", "f", "g"]), threshold).draw()
    scale = 3
    drawn = [each for each in canvas.figure.get_children() if "PathPatch" in type(each).__name__]
    assert len(drawn) == lines + scale
    said = [text.get_text() for text in canvas.figure.texts]
    assert any(re.search(f"above {threshold:g}$", text) for text in said)


def test_long_words_are_cut() -> None:
    attention = drawing(["x" * 300], ["y" * 300])
    for canvas in (
        Arcs(attention, 0.2).draw(),
        Heatmap([[panel(attention)]], "", shared_labels=True).draw(),
    ):
        assert truncate("x" * 300, 24) in [text.get_text() for text in canvas.figure.texts]


def test_columns_run_to_the_left_where_the_text_does() -> None:
    attention = drawing(["אבא", "קרא", "ספר"], ["father", "read", "book"])
    for canvas in (
        Arcs(attention, 0.2).draw(),
        Heatmap([[panel(attention)]], "", shared_labels=True).draw(),
    ):
        at = {text.get_text(): text.get_position()[0] for text in canvas.figure.texts}
        assert at["ספר"] < at["קרא"] < at["אבא"]


def test_an_unknown_view_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"'pie'\. Choose heat, arcs, heads"):
        save_figure(tmp_path / "a.png", drawing(["a"], ["b"]), "pie")
