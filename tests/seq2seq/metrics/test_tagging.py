"""Accuracy and entity F1 on examples worked by hand, and laws."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.seq2seq.errors import DataError
from regard.seq2seq.metrics.tagging import accuracy, entities, entity_f1, is_bio

labels = st.lists(st.sampled_from(["O", "B-A", "I-A", "B-B", "I-B"]), max_size=8)


def test_entities_by_hand() -> None:
    assert entities([]) == set()
    assert entities(["O", "B-A", "I-A", "I-B", "B-B", "B-B"]) == {
        (1, 3, "A"), (3, 4, "B"), (4, 5, "B"), (5, 6, "B")
    }  # fmt: skip


def test_f1_by_hand() -> None:
    """Two found of which one is right, three wanted: P = 1/2, R = 1/3, F1 = 2/5."""
    gold = [["B-A", "I-A", "O"], ["B-B", "O", "B-A"]]
    ours = [["B-A", "I-A", "O"], ["O", "B-B", "O"]]
    assert entity_f1(ours, gold).value == pytest.approx(40.0)
    assert entity_f1([["O"]], [["O"]]).value == 0.0


def test_accuracy_by_hand() -> None:
    assert accuracy([["A", "B"], ["A"]], [["A", "A"], ["A"]]).value == pytest.approx(200 / 3)
    for metric in (accuracy, entity_f1):
        with pytest.raises(DataError, match="other lengths"):
            metric([["A"]], [["A", "B"]])
    with pytest.raises(DataError, match="no words"):
        accuracy([], [])


@given(labels)
def test_entities_do_not_overlap_and_cover_what_is_not_o(given_labels: list[str]) -> None:
    found = sorted(entities(given_labels))
    covered = [place for start, end, _ in found for place in range(start, end)]
    assert covered == [place for place, label in enumerate(given_labels) if label != "O"]
    assert all(given_labels[start][2:] == kind for start, _, kind in found)


@given(labels, labels)
def test_f1_is_symmetric_and_perfect_on_itself(one: list[str], other: list[str]) -> None:
    other = (other + ["O"] * len(one))[: len(one)]
    assert entity_f1([one], [other]).value == pytest.approx(entity_f1([other], [one]).value)
    assert entity_f1([one], [one]).value == (100.0 if entities(one) else 0.0)


def test_what_marks_entities() -> None:
    assert is_bio(["O", "B-LOC", "I-LOC"])
    assert not is_bio(["NOUN", "O"])
    assert not is_bio(["O"])
