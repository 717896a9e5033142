"""The demo end to end, small."""

from pathlib import Path

import pytest

from regard.tasks import demo


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
