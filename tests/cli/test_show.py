"""`regard show`: each view, the faithfulness report, and what is refused."""

import json
from pathlib import Path

import pytest

from regard.cli.main import main
from regard.tasks.run import train
from tests.tasks.translate.small import configured, write_pairs

TEXTS = ("one two three", "1 2 3")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A Transformer of two layers with two heads, hardly trained."""
    folder = tmp_path_factory.mktemp("show")
    tiny = {"kind": "transformer", "size": 12, "heads": 2, "layers": 2, "inner": 17}
    model = {f"model__{key}": value for key, value in tiny.items()}
    pairs = write_pairs(folder / "pairs.tsv", 40)
    train(folder / "run", configured(pairs, training__steps=1, **model))
    return str(folder / "run")


@pytest.mark.parametrize("view", ["heat", "arcs", "heads"])
@pytest.mark.parametrize("kind", ["png", "svg", "pdf"])
def test_every_view_is_drawn(run: str, tmp_path: Path, view: str, kind: str) -> None:
    path = tmp_path / f"a.{kind}"
    assert main(["show", run, *TEXTS, "--view", view, "-o", str(path)]) == 0
    data = path.read_bytes()
    if kind != "svg":
        assert data.startswith({"png": b"\x89PNG", "pdf": b"%PDF"}[kind])
        return
    text = data.decode()
    for part in (*"123", "one", "two", "three", "∎", "forced to the given target"):
        assert part in text
    names = ["decoder.0 (mean of 2 heads)", "decoder.1 (mean of 2 heads)"]
    assert [name in text for name in names] == [True, view == "heads"]
    assert ">three<" in text  # text, not outlines


def test_the_heads_of_a_layer(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", run, *TEXTS, "--view", "heads", "--layer", "decoder.1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [each["name"] for each in found["maps"]] == ["decoder.1/head.0", "decoder.1/head.1"]
    for each in found["maps"]:
        assert [sum(row) for row in each["weights"]] == pytest.approx([1, 1, 1], abs=1e-3)
    assert main(["show", run, *TEXTS, "--view", "heads", "--layer", "decoder.1"]) == 0
    assert capsys.readouterr().out.count("forced to the given target") == 2


def test_a_space_is_not_shown_as_the_end(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", run, *TEXTS, "--units", "char"]) == 0
    assert "one two three∎" in capsys.readouterr().out


@pytest.fixture(scope="module")
def characters(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A model of characters with one layer and no heads."""
    folder = tmp_path_factory.mktemp("characters")
    pairs = write_pairs(folder / "pairs.tsv", 40)
    train(folder / "run", configured(pairs, training__steps=1, text__kind="characters"))
    return str(folder / "run")


def test_a_character_model_shows_characters(
    characters: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", characters, *TEXTS]) == 0
    assert "one two three∎" in capsys.readouterr().out
    assert main(["show", characters, *TEXTS, "--units", "word", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["source"] == ["one", "two", "three", ""]
    assert main(["show", characters, *TEXTS, "--check", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["source"][:3] == ["o", "n", "e"]


def test_one_map_for_the_view_of_heads_is_noted(
    characters: str, run: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", characters, *TEXTS, "--view", "heads"]) == 0
    assert "--view heads draws one map" in capsys.readouterr().err
    assert main(["show", run, *TEXTS, "--view", "heads"]) == 0
    assert "draws one map" not in capsys.readouterr().err


def test_a_page_has_every_layer_and_head(run: str, tmp_path: Path) -> None:
    path = tmp_path / "a.html"
    assert main(["show", run, *TEXTS, "-o", str(path), "--threshold", "0.4"]) == 0
    page = path.read_text("utf-8")
    data = json.loads(page.split('id="data">')[1].split("</script>")[0])
    assert len(data["maps"]) == 2 + 4
    assert data["threshold"] == 0.4


def test_trust_is_noted(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", run, *TEXTS, "--check", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["source"] == ["one", "two", "three"]
    assert found["erased"] == [0, 1, 2]
    assert [len(row) for row in found["drops"]] == [3, 3, 3]
    assert 0 <= found["agreement"] <= 1
    assert found["reading"].startswith("Attention of decoder.0 (mean of 2 heads), forced")
    assert main(["show", run, *TEXTS, "--check", "--layer", "decoder.0", "--view", "heads"]) == 0
    said = capsys.readouterr().out
    for part in (
        "Attention of decoder.0 (mean of 2 heads), forced",
        "entropy  ",
        f"{100 * found['agreement']:.0f} %",
        "each of the 3 source words",
    ):
        assert part in said


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (["--view", "pie"], "views are heat, arcs, heads"),
        (["--view", "arcs"], "-o attention.png"),
        (["-o", "a.gif"], ".png, .svg, .pdf, .html"),
        (["--layer", "decoder.7"], "no layer decoder.7"),
        (["--threshold", "7"], "--threshold"),
        (["--units", "line"], "units is 'line'"),
    ],
    ids=lambda given: " ".join(given) if isinstance(given, list) else "",
)
def test_what_cannot_be_drawn_is_reported_on_one_line(
    run: str, more: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", run, *TEXTS, *more]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert told in said.err
    assert len(said.err.splitlines()) == 1


@pytest.mark.parametrize("texts", [["", "1"], [" ", "1"], ["one", " "]])
def test_nothing_to_read_is_noted(
    run: str, texts: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", run, *texts]) == 2
    assert "is empty" in capsys.readouterr().err


def test_a_letter_without_a_font_is_noted_and_the_picture_drawn(
    run: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MPL_IGNORE_SYSTEM_FONTS", "1")
    path = tmp_path / "a.png"
    assert main(["show", run, "日本", "1", "-o", str(path)]) == 0
    assert path.exists()
    about, note, *rest = capsys.readouterr().err.splitlines()
    assert about == f"{run}: best averaged weights, of step 1"
    assert note.startswith("note: no font here has 日 (U+65E5), 本 (U+672C)")
    assert "apt install fonts-noto-cjk" in note
    assert "-o attention.html" in note
    assert rest == [f"drew {path}"]
    page = path.with_suffix(".html")
    assert main(["show", run, "日本", "1", "-o", str(page)]) == 0
    assert capsys.readouterr().err.splitlines()[1:] == [f"drew {page}"]


def test_the_terminal_is_never_too_narrow(
    run: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    assert main(["show", run, "one two three four " * 15, "1 2 3"]) == 0
    _, *lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 50
