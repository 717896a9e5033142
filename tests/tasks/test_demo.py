"""The demo end to end, small."""

from pathlib import Path

import pytest
import torch

from regard.seq2seq.protocols import Prediction
from regard.tasks import demo
from regard.tasks.dates import Example


def test_it_goes_through_and_leaves_everything_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, size in (("TRAIN", 300), ("VALID", 40), ("TEST", 60)):
        monkeypatch.setattr(demo, name, size)
    assert demo.show(str(tmp_path), steps=4, seed=1) == 0
    said = capsys.readouterr().out
    assert "% exact over 60 unseen dates" in said
    assert f"regard predict {tmp_path / 'run'}" in said.replace("\n", "")
    assert (tmp_path / "run" / "card.md").exists()
    assert (tmp_path / "attention.png").read_bytes().startswith(b"\x89PNG")
    # The same again goes on from what is there, and trains no more.
    assert demo.show(str(tmp_path), steps=4, seed=1) == 0


def test_the_picture_leaves_out_what_no_font_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MPL_IGNORE_SYSTEM_FONTS", "1")
    texts = {"de": "3. Mai", "ja": "5月3日"}
    spans = ((0, 1), (0, 1), (0, 1))
    examples = [Example(text, "5", language, "long", spans) for language, text in texts.items()]
    answers = [
        Prediction("5", 0.0, list(text), ["5"], torch.ones(1, len(text)) / len(text))
        for text in texts.values()
    ]
    said = demo._draw(tmp_path / "a.png", examples, answers)
    assert "no font here has the letters: Japanese" in said
    assert "Note" not in said
    assert (tmp_path / "a.png").exists()
