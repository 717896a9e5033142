"""Links as text and by words, gold, and the errors for broken files."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.attention.core.errors import OptionError
from regard.seq2seq.alignment import (
    Gold,
    Links,
    alignment_error,
    format_pharaoh,
    pool_to_units,
    read_naacl,
    read_pharaoh,
    unit_spans,
)
from regard.seq2seq.alignment.pharaoh import check_range
from regard.seq2seq.errors import DataError

links = st.frozensets(st.tuples(st.integers(0, 30), st.integers(0, 30)))


@given(links, st.sampled_from([0, 1]))
def test_what_is_written_is_read(own: Links, first: int) -> None:
    (gold,) = read_pharaoh([format_pharaoh(own, first=first)], "it", first=first)
    assert gold == Gold(own, frozenset())


def test_possible_links_are_told_apart() -> None:
    (gold,) = read_pharaoh(["1-1 2p3 2?1"], "it", first=1)
    assert gold.sure == {(0, 0)}
    assert gold.possible == {(0, 0), (1, 2), (1, 0)}


def test_naacl_gathers_by_pair() -> None:
    lines = ["1 1 1 S", "1 2 3 P 0.5", "", "3 4 5"]
    gold = read_naacl(lines, "it", 3)
    assert gold[0] == Gold(frozenset({(0, 0)}), frozenset({(1, 2)}))
    assert gold[1] == Gold(frozenset(), frozenset())
    assert gold[2].sure == {(3, 4)}


@pytest.mark.parametrize(
    ("lines", "message"),
    [(["0-0", "0-"], "gold, line 2: '0-' is not a link"), (["0–1"], "line 1"), (["0-1"], "counts")],
)
def test_what_is_not_a_link_is_an_error_with_its_line(lines: list[str], message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_pharaoh(lines, "gold", first=1 if message == "counts" else 0)


@pytest.mark.parametrize("line", ["1 2", "a 1 1 S", "3 1 1 S", "1 0 1 S"])
def test_naacl_out_of_range(line: str) -> None:
    with pytest.raises(DataError, match="gold, line 1"):
        read_naacl([line], "gold", 2)


def test_links_must_be_to_words_that_are_there() -> None:
    gold = [Gold(frozenset({(0, 0)}), frozenset()), Gold(frozenset(), frozenset({(2, 3)}))]
    check_range(gold, [(1, 1), (3, 4)], "gold")
    with pytest.raises(DataError, match="gold, line 2: the link 2-3"):
        check_range(gold, [(1, 1), (3, 3)], "gold")
    with pytest.raises(DataError, match="2 pairs, but there are 1"):
        check_range(gold, [(1, 1)], "gold")


@given(st.lists(links.filter(bool), min_size=1, max_size=4))
def test_the_gold_itself_has_no_error(own: list[Links]) -> None:
    scores = {s.name: s.value for s in alignment_error(own, [Gold(o, frozenset()) for o in own])}
    assert scores == {"precision": 1.0, "recall": 1.0, "AER": 0.0}


@given(st.lists(st.tuples(links, links, links), min_size=1, max_size=4))
def test_aer_is_one_minus_f_where_all_is_sure(cases: list[tuple[Links, Links, Links]]) -> None:
    """Without possible links AER is 1 − F1, another way to the same figure."""
    gold = [Gold(sure | {(0, 0)}, frozenset()) for sure, _, _ in cases]
    found = [own for _, own, _ in cases]
    precision, recall, error = (score.value for score in alignment_error(found, gold))
    both = precision + recall
    assert error == pytest.approx(1 - (2 * precision * recall / both if both else 0.0))


def test_counts_must_agree_and_something_must_be_sure() -> None:
    with pytest.raises(DataError, match="2 pairs but gold links of 1"):
        alignment_error([frozenset(), frozenset()], [Gold(frozenset({(0, 0)}), frozenset())])
    with pytest.raises(DataError, match="no sure link"):
        alignment_error([frozenset()], [Gold(frozenset(), frozenset({(0, 0)}))])


def test_units_of_a_text() -> None:
    assert unit_spans("char", "a b", []) == [(0, 1), (1, 1), (2, 3)]
    assert unit_spans("subword", "ab", [(0, 1), (1, 2), (2, 2)]) == [(0, 1), (1, 2)]
    with pytest.raises(OptionError, match='Choose "word"'):
        unit_spans("words", "a", [])


def test_shares_are_what_plain_loops_give() -> None:
    """A token's characters, one by one: which unit has each of them?"""
    tokens = [(0, 2), (2, 5), (5, 5), (5, 11), (11, 12), (12, 12)]
    units = [(0, 3), (3, 3), (4, 9), (9, 12)]
    found = pool_to_units(torch.eye(6), tokens, tokens, tokens[:2] + tokens[3:5], units).weights
    for row, (start, end) in enumerate(tokens[:2] + tokens[3:5]):
        held = [sum(a <= n < b for n in range(start, end)) for a, b in units]
        expected = [each / sum(held) for each in held]
        assert found[row].tolist() == pytest.approx(expected)


def test_pooled_rows_still_sum_to_one() -> None:
    """Pieces "un der", "stand" and an end; a piece with a space at its edge is the word's own."""
    source = [(0, 2), (2, 5), (5, 11), (11, 11)]
    words = unit_spans("word", "under stand", source)
    weights = torch.rand(3, 4).softmax(-1)
    found = pool_to_units(weights, [(0, 3), (3, 5), (5, 11)], source, words, words)
    assert found.weights.shape == (2, 2)
    assert torch.allclose(found.weights.sum(-1) + found.nothing, torch.ones(2))
    assert found.nothing[1] == weights[2, 3]
