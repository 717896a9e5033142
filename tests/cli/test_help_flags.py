"""The help of each verb: flags show no type, options have the field's names."""

import pytest

from tests.cli.commands import regard

VERBS = ("demo", "check", "init", "train", "predict", "evaluate", "score", "align", "show")


@pytest.mark.parametrize("verb", ["", *VERBS])
def test_flags_show_no_type(verb: str) -> None:
    result = regard(*filter(None, [verb, "--help"]))
    assert result.returncode == 0
    assert "--help" in result.stdout
    assert "bool" not in result.stdout


def test_options_have_the_fields_names() -> None:
    text = " ".join(regard("predict", "--help").stdout.replace("│", " ").split())
    for words in ("--beam <int> Beam size", "--ensemble RUN", "--latest Use the latest checkpoint"):
        assert words in text
