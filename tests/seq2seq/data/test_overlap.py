"""What is wrong between corpora."""

from regard.seq2seq.data import Characters, Pair, format_fault, overlap, unknown_characters


def pairs(*sources: str) -> list[Pair]:
    return [Pair(source, "x", line) for line, source in enumerate(sources, 3)]


def test_overlap_names_both_lines() -> None:
    found = list(overlap(pairs("a", "b", "b"), pairs("c", "b", "B", "a"), "valid.tsv"))
    assert [fault.line for fault in found] == [4, 6]
    assert not any(fault.severe for fault in found)
    assert (
        format_fault(found[0]) == "valid.tsv, line 4: is in the training set, too, at line 4: 'b'"
    )


def test_lacking_names_each_character_once() -> None:
    text = Characters.build(["abc"])
    found = list(unknown_characters(text, [(1, "ab"), (5, "až🙂ž"), (9, "🙂\ue000")], "a.txt"))
    assert [(fault.line, fault.severe) for fault in found] == [(5, False), (5, False), (9, False)]
    assert "U+017E LATIN SMALL LETTER Z WITH CARON 'ž'" in found[0].message
    assert found[1].message.endswith("lines with it: 2")
    assert "U+E000 without a name '\\ue000'" in found[2].message
