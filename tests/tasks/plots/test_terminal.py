"""The matrix in a terminal: in its place, whatever the words and however narrow it is."""

import unicodedata

import pytest
from rich.cells import cell_len

from regard.tasks.plots import terminal_heatmap
from regard.tasks.plots.labels import graphemes, truncate
from regard.tasks.plots.terminal import SHADES
from tests.tasks.plots.drawings import drawing, sentence

DIRECTIONS = "\u2068\u2069\u200e"


def grid(text: str) -> list[str]:
    """The lines with each character as many times as it is wide, and no signs of direction."""
    seen = []
    for line in text.splitlines():
        letters = graphemes("".join(c for c in line if c not in DIRECTIONS))
        seen.append([letter for letter in letters for _ in range(cell_len(letter))])
    return seen  # type: ignore[return-value]


def test_words_side_by_side_have_gaps() -> None:
    text = terminal_heatmap(drawing(["just", "drink", "."], ["trink", "nur"]))
    header, first, second = text.splitlines()
    assert header == "      just drink ."
    assert first.startswith("trink ")
    assert set(first[6:10]) <= set(SHADES[3:])
    assert first[10:].strip() == ""
    assert second[11] in SHADES[3:]


@pytest.mark.parametrize(
    "source", ["私 は コーヒー を 飲む", "e\u0301te\u0301 là", "नमस्ते दुनिया क्षि"]
)
def test_shades_stand_below_their_words(source: str) -> None:
    words = unicodedata.normalize("NFC", source).split()
    header, *rows = grid(terminal_heatmap(drawing(words, words)))
    for word, row in zip(words, rows, strict=True):
        place = next(n for n, cell in enumerate(row) if cell in SHADES[3:])
        assert "".join(header[place:]).startswith(graphemes(word)[0])


@pytest.mark.parametrize("length", [1, 5, 60])
@pytest.mark.parametrize("width", [30, 80, 200])
def test_it_is_never_wider_than_the_terminal(length: int, width: int) -> None:
    words = sentence(length)
    lines = terminal_heatmap(drawing(words, words[:3]), width).splitlines()
    assert max(cell_len(line) for line in lines) <= width


@pytest.mark.parametrize("width", [40, 80])
def test_sixty_words_stand_upright_and_none_is_lost(width: int) -> None:
    words = sentence(60)
    bands = terminal_heatmap(drawing(words, ["target"] * 60), width).split("\n\n")
    assert len(bands) > 1
    found = []
    for band in bands:
        lines = band.splitlines()
        head = lines[:-60]
        assert all(line.strip() for line in head)
        wide = max(map(len, head))
        filled = [line.ljust(wide) for line in head]
        found += ["".join(line[n] for line in filled).strip() for n in range(7, wide, 2)]
        assert [line[:6] for line in lines[-60:]] == ["target"] * 60
    assert found == [truncate(word, 16) for word in words]


def test_short_words_leave_no_lines_above_them() -> None:
    words = ["extraordinarily"] * 10 + ["a"] * 10
    _, second = terminal_heatmap(drawing(words, ["b"]), 22).split("\n\n")
    assert second.splitlines()[0].split() == ["a"] * 10


def test_a_shade_is_where_its_word_stands_upright() -> None:
    words = sentence(60)
    rows = [
        band.splitlines()[-60:] for band in terminal_heatmap(drawing(words, words)).split("\n\n")
    ]
    margin = 17
    for place in range(60):
        whole = "".join(band[place][margin:].ljust(64) for band in rows)
        assert whole.index(max(whole, key=SHADES.index)) == 2 * place


def test_right_to_left_words_run_to_the_left_and_keep_to_themselves() -> None:
    text = terminal_heatmap(drawing(["אבא", "קרא", "ספר"], ["father", "read"]))
    header, father, _ = text.splitlines()
    assert header.startswith("\u200e")
    assert header.index("ספר") < header.index("קרא") < header.index("אבא")
    assert header.count("\u2068") == header.count("\u2069") == 3
    assert father.rstrip()[-1] in SHADES[3:]  # the first word is the last column
    assert cell_len(father.rstrip()) == cell_len(header)


def test_what_cannot_be_seen_gets_a_sign() -> None:
    text = terminal_heatmap(drawing(["a\tb", "\x1b[31m", ""], ["c\nd"]))
    assert len(text.splitlines()) == 2
    assert "\x1b" not in text
    assert "∎" in text.splitlines()[0]
