"""The order of words on a line; what browsers show is written down here."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.tasks.plots.bidi import right_to_left, visual_order

CASES = {
    "to the right": ("we read a book", "we read a book"),
    "to the left": ("קראנו ספר היום", "היום ספר קראנו"),
    "Latin within Arabic": (
        "قرأ الولد كتاب New York Times أمس .",
        ". أمس New York Times كتاب الولد قرأ",
    ),
    "Hebrew within Latin": ("he said שלום עולם to me", "he said עולם שלום to me"),
    "numbers within Arabic": ("في 3 / 5 / 1979 كان", "كان 1979 / 5 / 3 في"),
    "a number after Hebrew": ("פרק 7 כאן", "כאן 7 פרק"),
    "a number after Hebrew within Latin": ("see פרק 7 here", "see 7 פרק here"),
    "a comma between": ("אבא , אמא", "אמא , אבא"),
    "a comma between both kinds": ("abc , אמא", "abc , אמא"),
    "numbers alone": ("3 . 5", "3 . 5"),
}


@pytest.mark.parametrize(("words", "seen"), CASES.values(), ids=CASES)
def test_words_stand_as_browsers_have_them(words: str, seen: str) -> None:
    given = words.split()
    assert [given[place] for place in visual_order(given)] == seen.split()


def test_the_digits_of_a_date_stay_together() -> None:
    letters = list("في3/5/1979كان")
    seen = [letters[place] for place in visual_order(letters)]
    assert "".join(seen) == "ناك3/5/1979يف"


@given(st.lists(st.sampled_from(["a", "ב", "1", ".", "", "ع", "٣", "日"])))
def test_every_word_stands_somewhere(words: list[str]) -> None:
    assert sorted(visual_order(words)) == list(range(len(words)))


@given(st.lists(st.sampled_from(["a", "é", "日", "1", ".", "∎"])))
def test_nothing_turns_without_need(words: list[str]) -> None:
    assert visual_order(words) == list(range(len(words)))
    assert not right_to_left(words)
