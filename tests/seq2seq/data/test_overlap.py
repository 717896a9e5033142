"""What is wrong between corpora."""

from regard.seq2seq.data import Characters, format_fault, overlap, unknown_characters


def placed(path: str, *groups: str) -> list[tuple[str, str]]:
    return [(group, f"{path}, line {line}") for line, group in enumerate(groups, 3)]


def test_overlap_names_both_places() -> None:
    train, valid = placed("train.tsv", "a", "b", "b"), placed("valid.tsv", "c", "b", "B", "a")
    found = list(overlap(train, valid))
    assert [fault.path for fault in found] == ["valid.tsv, line 4", "valid.tsv, line 6"]
    assert not any(fault.severe for fault in found)
    assert format_fault(found[0]) == (
        "valid.tsv, line 4: is in the training set, too, at train.tsv, line 4: 'b'"
    )


def test_lacking_names_each_character_once() -> None:
    text = Characters.build(["abc"])
    found = list(unknown_characters(text, [(1, "ab"), (5, "až🙂ž"), (9, "🙂\ue000")], "a.txt"))
    assert [(fault.line, fault.severe) for fault in found] == [(5, False), (5, False), (9, False)]
    assert "U+017E LATIN SMALL LETTER Z WITH CARON 'ž'" in found[0].message
    assert found[1].message.endswith("lines with it: 2")
    assert "U+E000 without a name '\\ue000'" in found[2].message
