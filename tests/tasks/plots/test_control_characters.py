"""No word and no title of anybody's turns a picture round, or commands the terminal it is in."""

from pathlib import Path

import pytest

from regard.seq2seq.protocols import Prediction
from regard.tasks.plots import AttentionMap, html_page, save_figure, terminal_heatmap
from regard.tasks.plots.terminal_text import isolate
from tests.tasks.plots.drawings import drawing

EVIL = "a\x1b[2J\u202eb\u2066\x85c"
SIGNS = set("\x1b\u202e\u2066\x85")
WORDS = [EVIL, "שלום\u202e", "plain"]


def test_blocks_show_no_sign_that_turns_them() -> None:
    for width in (80, 9):
        shown = terminal_heatmap(drawing(WORDS, WORDS), width)
        assert not SIGNS & set(shown)
        assert shown.count("\u2068") == shown.count("\u2069")
        assert "plain" in shown or width == 9


def test_a_page_holds_no_sign_that_turns_it() -> None:
    found = drawing(WORDS, WORDS)
    title = " → ".join(map(isolate, WORDS))
    page = html_page(AttentionMap(title, found.legend, WORDS, WORDS, found.maps))
    for sign in SIGNS:
        assert sign not in page
        assert f'\\u{ord(sign):04x}"' not in page.replace("\\\\u", "")
    assert "\\\\u202eb" in page  # spelt out, so that people see it


def test_a_title_is_spelt_out() -> None:
    answer = Prediction(EVIL, 0.0, ["a"], ["b"], drawing(["a"], ["b"]).first)
    assert not SIGNS & set(AttentionMap.of(answer).title)
    assert isolate("\u2069אב") == "\u2068\\u2069אב\u2069"


@pytest.mark.parametrize("view", ["heat", "arcs", "heads"])
def test_a_drawing_is_that_of_the_visible_text(tmp_path: Path, view: str) -> None:
    """Letters are outlines in an SVG: the file is the same as that of what people are to see."""
    seen = []
    for word in ("a\u202eb", "a·b"):
        attention = drawing([word, "c"], [word], ["decoder"])
        save_figure(tmp_path / "a.svg", attention, view)
        seen.append((tmp_path / "a.svg").read_text("utf-8"))
    assert seen[0] == seen[1]
    assert "\u202e" not in seen[0]


def test_a_reading_has_a_name_that_can_be_drawn(tmp_path: Path) -> None:
    attention = drawing(["a"], ["b"], [EVIL])
    save_figure(tmp_path / "a.svg", attention, "heads")
    assert not SIGNS & set((tmp_path / "a.svg").read_text("utf-8"))
