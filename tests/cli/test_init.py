"""`regard init` writes a configuration that loads, and refuses in one line."""

from pathlib import Path

import pytest

from regard.cli.main import main
from regard.tasks.config import load, setting
from regard.tasks.config.translate import TranslateConfig
from tests.cli.commands import alone, regard


@pytest.fixture
def pairs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of pairs, in the folder we are in."""
    monkeypatch.chdir(tmp_path)
    Path("pairs.tsv").write_text("a\tb\n", encoding="utf-8")
    Path("größe ☂.tsv").write_text("a\tb\n", encoding="utf-8")
    return tmp_path


def test_what_it_writes_loads(pairs: Path) -> None:
    said = alone("init", "translate", "--data", "größe ☂.tsv", "--set", "model=luong", cwd=pairs)
    assert (said.returncode, said.stderr) == (0, "")
    (pairs / "run.toml").write_text(said.stdout, encoding="utf-8")
    expected = load(
        TranslateConfig, overrides=[setting("data.train=größe ☂.tsv"), setting("model=luong")]
    )
    assert load(TranslateConfig, path="run.toml") == expected
    assert said.stdout.startswith("# Train with: regard train translate --config run.toml")
    again = regard("init", "translate", "--config", "run.toml", cwd=pairs)
    assert again.stdout == said.stdout


def test_files_for_both_sides_and_for_validation(
    pairs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--data", "pairs.tsv", "--data", "größe ☂.tsv", "--valid", "pairs.tsv"]
    assert main(["init", "translate", *arguments]) == 0
    said = capsys.readouterr().out
    assert 'train = ["pairs.tsv", "größe ☂.tsv"]\n' in said
    assert 'valid = ["pairs.tsv"]\n' in said


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["translat"],
            "translat is not a task. Did you mean translate? There is translate, align and tag.",
        ),
        (["sing"], "sing is not a task. There is translate, align and tag."),
        ([], "Missing argument 'task'. See regard init --help."),
        (["translate", "--data", "pair.tsv"],
         "--data pair.tsv: no such file. Did you mean pairs.tsv?"),
        (["translate", "--valid", "no/a.tsv"],
         "--valid no/a.tsv: no such file. There is no folder no either."),
        (["translate", "--data", "."], "--data .: this is a folder. Give a file."),
        (["translate", *["--data", "pairs.tsv"] * 3],
         '--data: data.train is ["pairs.tsv", "pairs.tsv", "pairs.tsv"]. '
         "Give a list of at most 2 texts."),
        (["translate", "--set", "training.step=3"],
         "--set training.step=3: training has no step. Did you mean training.steps?"),
        (["translate", "--config", "nix.toml"],
         "nix.toml: no such file. Write one with: regard init translate > nix.toml"),
    ],
    ids=lambda given: " ".join(given) if isinstance(given, list) else "",
)  # fmt: skip
def test_refusals(
    arguments: list[str], sentence: str, pairs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["init", *arguments]) == 2
    assert capsys.readouterr() == ("", f"regard: {sentence}\n")
