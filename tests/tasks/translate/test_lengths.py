"""Maximum lengths of sources and answers: truncated and skipped lines are noted."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from regard.attention.core.errors import OptionError
from regard.seq2seq.alignment import Argmax
from regard.seq2seq.batch import EOS
from regard.seq2seq.data import LengthWarning, MaxLength, Pair
from regard.seq2seq.errors import ConfigError, DataError
from regard.tasks.pairs.lengths import FACTOR, default_max_length
from regard.tasks.run import load, train
from regard.tasks.translate import Translator
from regard.tasks.translate.aligning import ByAttention, soft_alignments
from regard.tasks.translate.attention_view import answered, attention_map
from regard.tasks.translate.faithfulness import measure_faithfulness
from regard.tasks.translate.hypothesis_alignment import hypothesis_alignments
from tests.tasks.translate.small import configured, write_pairs

MOST, LONG = 7, " ".join(["one two three four zero"] * 5000)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lengths")
    train(folder / "run", configured(write_pairs(folder / "pairs.tsv"), training__steps=3))
    return folder / "run"


@pytest.fixture
def notes() -> list[str]:
    return []


@pytest.fixture
def translator(run: Path, notes: list[str]) -> Translator:
    """One that may read seven tokens and write as many."""
    found = load(run)
    found.max_length, found.note = MaxLength(MOST, MOST), notes.append
    return found


def endless(translator: Translator) -> Translator:
    """It never ends by itself."""
    with torch.no_grad():
        translator.model.output_layer.linear.bias[EOS] = -50.0
    return translator


def steps(translator: Translator, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """For each step how many sources it is about; to be counted instead of timed."""
    made: list[int] = []
    step = translator.model.step
    monkeypatch.setattr(
        translator.model, "step", lambda tokens, state: made.append(1) or step(tokens, state)
    )
    return made


def test_a_line_of_25000_words_takes_no_more_steps_than_agreed(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    translator = endless(load(run))
    made = steps(translator, monkeypatch)
    usual = FACTOR * translator.config.data.longest
    with pytest.warns(LengthWarning, match=f"line 1: the source has 25000 tokens, .* {usual}"):
        (answer,) = translator.predict([LONG], beam=2)
    assert len(answer.source) == usual + 1
    assert len(answer.tokens) == len(made) == usual


def test_what_is_truncated_is_answered_as_its_beginning(
    translator: Translator, notes: list[str]
) -> None:
    beginning = " ".join(LONG.split()[:MOST])
    short, long, after = translator.predict([beginning, LONG, "one"])
    assert (long.text, long.score) == (short.text, pytest.approx(short.score))
    assert len(long.source) == MOST + 1
    assert after.text == translator.predict(["one"])[0].text
    assert notes == ["line 2: the source has 25000 tokens, more than 7: only the first 7 are used."]


def test_what_is_skipped_keeps_its_line(translator: Translator, notes: list[str]) -> None:
    translator.max_length = replace(translator.max_length, too_long="skip")
    before, skipped, after = translator.predict(["one", LONG, "two"])
    assert (skipped.text, skipped.tokens) == ("", [])
    assert before.source[0].strip() == "one"
    assert after.source[0].strip() == "two"
    assert notes == ["line 2: the source has 25000 tokens, more than 7: the line is skipped."]


def test_an_error_names_the_line_and_the_numbers(translator: Translator) -> None:
    translator.max_length = replace(translator.max_length, too_long="error")
    with pytest.raises(DataError, match=r"line 2: .* 25000 tokens, but max_source_length is 7"):
        translator.predict(["one", LONG])
    with pytest.raises(DataError, match=r"line 1: the target has 25000 tokens, but max_length"):
        next(translator.score([("one", LONG)]))


def test_scores_are_bounded_on_both_sides(translator: Translator, notes: list[str]) -> None:
    beginning = " ".join(LONG.split()[:MOST])
    cut = "1 2 3 4 0 1 2"
    long, short = translator.score([(LONG, "1 2 3 4 0 " * 1000), (beginning, cut)])
    assert long.score == pytest.approx(short.score)
    assert len(notes) == 2
    translator.max_length = replace(translator.max_length, too_long="skip")
    skipped, kept = translator.score([(LONG, "1"), (beginning, cut)])
    assert math.isnan(skipped.score)
    assert kept.score == pytest.approx(short.score)


Asked = Callable[[Translator, Pair], object]
READERS: dict[str, Asked] = {
    "evaluate": lambda translator, pair: translator.evaluate([pair]),
    "align": lambda translator, pair: list(soft_alignments(translator, [pair])),
    "both ways": lambda translator, pair: list(ByAttention(translator, translator).soft([pair])),
    "show": attention_map,
    "a text to show": answered,
    "trust": measure_faithfulness,
}


@pytest.mark.parametrize("asked", READERS.values(), ids=READERS)
def test_whoever_reads_is_bounded_and_notes_it(
    translator: Translator, notes: list[str], asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    widths = []
    collate = type(translator.codec).collate

    def watched(*given: object) -> object:
        batch = collate(*given)  # type: ignore[arg-type]
        widths.append(batch.source.ids.shape[1])
        return batch

    monkeypatch.setattr(type(translator.codec), "collate", watched)
    # The same words on both sides: one translator is asked both ways.
    asked(translator, Pair(LONG, "one two three four zero " * 1000, 1))
    assert any("25000 tokens, more than 7" in note for note in notes)
    assert max(widths, default=0) <= MOST + 1


def test_links_of_a_truncated_pair_are_of_what_was_read(translator: Translator) -> None:
    (soft,) = soft_alignments(translator, [Pair(LONG, "1 2", 1)])
    assert soft.weights.shape == (2, MOST)
    translator.max_length = replace(translator.max_length, too_long="skip")
    empty, kept = soft_alignments(translator, [Pair(LONG, "1 2", 1), Pair("one", "1", 2)])
    assert not Argmax()(empty.weights, empty.nothing)
    assert kept.weights.shape == (1, 1)


@pytest.mark.parametrize("too_long", ["truncate", "skip"])
def test_links_of_an_answer_are_of_what_was_read(translator: Translator, too_long: str) -> None:
    translator.max_length = replace(translator.max_length, too_long=too_long)
    answers = translator.predict(["one two", LONG])
    one, other = hypothesis_alignments(translator, ["one two", LONG], answers)
    assert one.weights.shape[1] == 2
    assert other.weights.shape[1] == (MOST if too_long == "truncate" else 0)


def test_defaults_follow_the_training_and_the_configuration(tmp_path: Path) -> None:
    pairs = write_pairs(tmp_path / "pairs.tsv")
    assert default_max_length(11) == MaxLength(44, 44)
    assert default_max_length(11, configured(pairs).decoding) == MaxLength(44, 44)
    said = configured(
        pairs, decoding__max_source_length=5, decoding__max_length=3, decoding__too_long="skip"
    )
    assert default_max_length(11, said.decoding) == MaxLength(5, 3, "skip")
    with pytest.raises(ConfigError, match="too_long is 'cut'"):
        MaxLength(1, 1, "cut")


def test_an_answer_is_no_longer_than_agreed(translator: Translator) -> None:
    endless(translator)
    for beam in (1, 3):
        assert len(translator.predict(["one two three"], beam=beam)[0].tokens) == MOST


def test_what_no_memory_could_hold_is_refused(translator: Translator) -> None:
    with pytest.raises(OptionError, match=r"beam is 99999999999999999999. .* 1 to 1000"):
        translator.predict(["one"], beam=99_999_999_999_999_999_999)
    with pytest.raises(OptionError, match=r"best is 1001. .* 1 to 1000"):
        translator.hypotheses(["one"], 1001)
    with pytest.raises(OptionError, match=r"best is 1001. .* 1 to 1000"):
        translator.sampling(count=1001)
    translator.max_length = MaxLength(99_999, 99_999)
    with pytest.raises(OptionError, match="max_source_length is 99999 and max_length is 99999"):
        translator.predict(["one"])
