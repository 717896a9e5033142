"""A folder is a run: training, refusals, and bit-identical resume."""

from itertools import pairwise
from pathlib import Path

import pytest

from regard.seq2seq.errors import ConfigError, DataError, RunError
from regard.tasks.run import load, train
from tests.tasks.translate.small import configured, write_pairs


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pairs(tmp_path_factory.mktemp("pairs") / "pairs.tsv")


def contents(folder: Path) -> dict[str, bytes]:
    """The log and the last checkpoint."""
    last = sorted((folder / "checkpoints").iterdir())[-1]
    found = {path.name: path.read_bytes() for path in last.iterdir()}
    return found | {"log": (folder / "log.jsonl").read_bytes()}


@pytest.mark.parametrize(
    "model",
    [
        {"kind": "plain", "embedding": 7, "state_size": 11},
        {"kind": "luong", "embedding": 7, "encoder_size": 5, "state_size": 11, "score": "bilinear"},
        {"kind": "transformer", "size": 12, "heads": 2, "layers": 1, "inner": 17},
    ],
    ids=lambda model: model["kind"],
)
def test_every_kind_of_model_trains_and_answers(
    model: dict[str, object], pairs: Path, tmp_path: Path
) -> None:
    changes = {f"model__{key}": value for key, value in model.items()}
    config = configured(pairs, training__steps=3, **changes)
    assert train(tmp_path, config).ending == "finished"
    answers = load(tmp_path).predict(["one two three", "", "four zero"])
    assert len(answers) == 3
    assert answers[1].text == ""


def test_it_resumes_bit_identically(pairs: Path, tmp_path: Path) -> None:
    train(tmp_path / "whole", configured(pairs))
    for steps in (4, 7):
        stopped(tmp_path / "parts", pairs, steps)
    train(tmp_path / "parts", configured(pairs))
    assert contents(tmp_path / "parts") == contents(tmp_path / "whole")


def stopped(folder: Path, pairs: Path, step: int) -> None:
    """Train until some step, then be interrupted as by Ctrl-C."""

    class Stop(KeyboardInterrupt):
        pass

    class Reporter:
        def started(self, step: int, steps: int) -> None: ...
        def progressed(self, update: object) -> None:
            if update.step == step:  # type: ignore[attr-defined]
                raise Stop

        def validated(self, step: int, validation: object, best: bool) -> None: ...
        def saved(self, path: Path) -> None: ...
        def noted(self, line: str) -> None: ...
        def finished(self, outcome: object) -> None: ...

    with pytest.raises(Stop):
        train(folder, configured(pairs), Reporter())


def test_a_finished_run_says_so(pairs: Path, tmp_path: Path) -> None:
    config = configured(pairs, training__steps=2)
    assert train(tmp_path, config).ending == "finished"
    assert train(tmp_path, config).ending == "finished before"


def test_another_configuration_is_refused_with_its_key(pairs: Path, tmp_path: Path) -> None:
    train(tmp_path, configured(pairs, training__steps=2))
    with pytest.raises(ConfigError, match=r"training\.rate is 0\.5"):
        train(tmp_path, configured(pairs, training__steps=2, training__rate=0.5))
    more = train(tmp_path, configured(pairs, training__steps=3))
    assert (more.ending, more.step) == ("finished", 3)


def test_other_data_are_refused(tmp_path: Path) -> None:
    pairs = write_pairs(tmp_path / "pairs.tsv")
    train(tmp_path / "run", configured(pairs, training__steps=2))
    write_pairs(pairs, 100)
    with pytest.raises(RunError, match="train"):
        train(tmp_path / "run", configured(pairs, training__steps=3))


def test_files_may_lie_elsewhere(tmp_path: Path) -> None:
    """What is in them is compared, not what they are called."""
    train(tmp_path / "run", configured(write_pairs(tmp_path / "here.tsv"), training__steps=2))
    (tmp_path / "here.tsv").rename(tmp_path / "there.tsv")
    outcome = train(tmp_path / "run", configured(tmp_path / "there.tsv", training__steps=3))
    assert (outcome.ending, outcome.step) == ("finished", 3)
    other = write_pairs(tmp_path / "other.tsv", 60)
    with pytest.raises(
        RunError, match=r"the data 'train\.pairs' has changed since this run started"
    ):
        train(tmp_path / "run", configured(other, training__steps=4))


def test_bad_lines_stop_or_are_skipped(tmp_path: Path) -> None:
    pairs = write_pairs(tmp_path / "pairs.tsv")
    with pairs.open("a", encoding="utf-8") as file:
        file.write("three\t\nno tab at all\n")
    with pytest.raises(DataError, match=r"pairs\.tsv"):
        train(tmp_path / "run", configured(pairs, training__steps=1))
    # The folder is no run yet, so that the same one can be taken.
    done = train(tmp_path / "run", configured(pairs, training__steps=1, data__on_bad_input="skip"))
    assert done.ending == "finished"


def test_too_many_tokens_are_reported_with_the_line(pairs: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"line \d+ has 5 tokens, but data.longest is 4"):
        train(tmp_path / "run", configured(pairs, data__longest=4))
    assert not (tmp_path / "run").exists()


def test_it_learns_and_shows_its_attention(pairs: Path, tmp_path: Path) -> None:
    config = configured(
        pairs, training__steps=150, training__validate_every=150, model__dropout=0.0
    )
    train(tmp_path, config)
    translator = load(tmp_path)
    asked = ["two four one", "three three zero"]
    answers = translator.predict(asked)
    assert [answer.text for answer in answers] == ["2 4 1", "3 3 0"]
    assert answers[0].weights is not None
    assert answers[0].weights.shape == (3, 4)  # the end of the source can be read too
    several = translator.hypotheses(asked, 3)
    assert [len(each) for each in several] == [3, 3]
    assert [each[0].text for each in several] == ["2 4 1", "3 3 0"]
    assert all(a.score >= b.score for each in several for a, b in pairwise(each))


def test_a_folder_that_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"has no run\.toml, so it is not a run"):
        load(tmp_path)
