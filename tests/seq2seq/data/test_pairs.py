"""Pairs from every format, every fault with its line, and what is done about them."""

import gzip
import json
from collections import Counter
from pathlib import Path

import pytest

from regard.seq2seq.batch import Corpus
from regard.seq2seq.data import Pair, PairCorpus, clean, open_pairs, open_sources
from regard.seq2seq.errors import DataError

PAIRS = [("one", "eins"), ("two\u2028", "zwei"), ("trois ", " drei")]


def tsv(folder: Path, content: bytes, name: str = "pairs.tsv") -> PairCorpus:
    (folder / name).write_bytes(content)
    return open_pairs([str(folder / name)], longest=20)


def kinds(corpus: PairCorpus) -> list[tuple[str, int | None, bool]]:
    return [(fault.kind, fault.line, fault.severe) for fault in corpus.faults()]


def message(corpus: PairCorpus, kind: str) -> str:
    (fault,) = (fault for fault in corpus.faults() if fault.kind == kind)
    return fault.message


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("kind", ["tsv", "parallel", "jsonl", "unnamed"])
def test_every_format_gives_the_same_pairs(tmp_path: Path, kind: str, packed: bool) -> None:
    files = {
        "tsv": {"pairs.tsv": [f"{a}\t{b}" for a, b in PAIRS]},
        "unnamed": {"pairs": [f"{a}\t{b}" for a, b in PAIRS]},
        "parallel": {"a.en": [a for a, _ in PAIRS], "a.de": [b for _, b in PAIRS]},
        "jsonl": {"pairs.jsonl": [json.dumps({"target": b, "source": a}) for a, b in PAIRS]},
    }[kind]
    paths = []
    for name, lines in files.items():
        content = "\n".join(lines).encode()
        path = tmp_path / (f"{name}.gz" if packed else name)
        path.write_bytes(gzip.compress(content) if packed else content)
        paths.append(str(path))
    corpus = open_pairs(paths)
    assert isinstance(corpus, Corpus)
    assert [corpus[n] for n in range(len(corpus))] == [
        Pair(a, b, line) for line, (a, b) in enumerate(PAIRS, 1)
    ]
    assert list(corpus.faults()) == []
    assert corpus.paths == tuple(paths)
    with pytest.raises(IndexError):
        corpus[3]


def test_fields_have_names(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"en": "a", "de": "b"}\n')
    assert open_pairs([str(path)], fields=("de", "en"))[0] == Pair("b", "a", 1)


def test_columns_that_are_none_or_too_many(tmp_path: Path) -> None:
    corpus = tsv(tmp_path, b"a\tb\nno tab here\nc\td\te\n\nf\tg")
    assert kinds(corpus) == [("wrong columns", line, True) for line in (2, 3, 4)]
    messages = [fault.message for fault in corpus.faults()]
    assert "has 0 tabs where 1" in messages[0]
    assert "'no tab here'" in messages[0]
    assert "has 2 tabs" in messages[1]
    with pytest.raises(DataError, match=r"pairs\.tsv, line 2: has 0 tabs"):
        corpus[1]
    assert corpus[4].source == "f"


def test_every_fault_of_a_line(tmp_path: Path) -> None:
    rows = [
        b"fine\tgut", b"\tempty", b"empty\t \xe3\x80\x80", b"n\0l\tx", b"bad\xff\tx",
        b"long " * 5 + b"\tx", b"fine\tgut", b"fine\tbesser", b"\t",
    ]  # fmt: skip
    corpus = tsv(tmp_path, b"\xef\xbb\xbf" + b"\r\n".join(rows))
    assert kinds(corpus) == [
        ("byte order mark", None, False),
        ("carriage return", None, False),
        ("empty side", 2, True),
        ("empty side", 3, True),
        ("NUL", 4, True),
        ("invalid UTF-8", 5, True),
        ("over-long", 6, True),
        ("duplicate", 7, False),
        ("empty side", 9, True),
        ("empty side", 9, True),
    ]
    assert "25 characters, more than 20" in message(corpus, "over-long")
    assert "line 1" in message(corpus, "duplicate")


def test_every_fault_of_a_record(tmp_path: Path) -> None:
    rows = [
        '{"source": "a", "target": "b"}', "{", "", "[1]", "[" * 99999, '{"source": "a"}',
        '{"source": 1, "target": "b"}', '{"source": "\\u0000", "target": "b"}',
        '{"source": "\\ud800", "target": "b"}', "1" * 9999,
    ]  # fmt: skip
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(rows))
    corpus = open_pairs([str(path)])
    assert kinds(corpus) == [
        ("bad JSON", 2, True), ("bad JSON", 3, True), ("bad JSON", 4, True),
        ("bad JSON", 5, True), ("missing field", 6, True), ("missing field", 7, True),
        ("NUL", 8, True), ("invalid UTF-8", 9, True), ("bad JSON", 10, True),
    ]  # fmt: skip
    assert all("\n" not in fault.message for fault in corpus.faults())
    assert "'target' (it has 'source')" in [fault.message for fault in corpus.faults()][4]


def parallel(folder: Path, sources: list[str], targets: list[str]) -> PairCorpus:
    (folder / "a.en").write_text("".join(f"{line}\n" for line in sources), "utf-8")
    (folder / "a.de").write_text("".join(f"{line}\n" for line in targets), "utf-8")
    return open_pairs([str(folder / "a.en"), str(folder / "a.de")])


@pytest.mark.parametrize("extra", [1, 3])
@pytest.mark.parametrize("place", [0, 61, 150, 299, 300])
@pytest.mark.parametrize("swapped", [False, True])
def test_mismatched_counts_name_the_first_suspicious_line(
    tmp_path: Path, place: int, extra: int, swapped: bool
) -> None:
    sources = ["w" * (5 + number * 7919 % 83) for number in range(300)]
    targets = ["z" * (len(line) * 5 // 4 + number % 3) for number, line in enumerate(sources)]
    longer = [*sources[:place], *["intruder" * 5] * extra, *sources[place:]]
    corpus = parallel(tmp_path, *((targets, longer) if swapped else (longer, targets)))
    (fault,) = (fault for fault in corpus.faults() if fault.kind == "mismatched counts")
    assert fault.severe
    assert fault.line is None
    assert f"has {300 + extra} lines" in fault.message or f"has {300 + extra}," in fault.message
    assert "300" in fault.message
    words = fault.message.partition(" misaligned from line " if place < 300 else "; line ")[2]
    assert abs(int(words.split()[0].rstrip(":")) - 1 - place) <= 1
    with pytest.raises(DataError, match=r"301|303"):
        clean(corpus, "skip")


def test_faults_of_parallel_files_name_the_file(tmp_path: Path) -> None:
    corpus = parallel(tmp_path, ["a", " ", "c"], ["x", "y", ""])
    found = [(Path(fault.path).name, fault.line) for fault in corpus.faults()]
    assert found == [("a.en", 2), ("a.de", 3)]


def test_empty_files(tmp_path: Path) -> None:
    corpus = tsv(tmp_path, b"")
    assert kinds(corpus) == [("empty file", None, True)]
    with pytest.raises(DataError, match="has no lines"):
        clean(corpus, "skip")
    assert kinds(parallel(tmp_path, [], ["a"]))[-1][0] == "mismatched counts"


def test_clean_stops_at_the_first_or_skips_and_counts(tmp_path: Path) -> None:
    corpus = tsv(tmp_path, b"a\tb\nc\n\t\na\tb\n\xff\tx\nd\te\nf\n")
    with pytest.raises(DataError, match=r"pairs\.tsv, line 2: has 0 tabs.*regard check") as caught:
        clean(corpus)
    assert "\n" not in str(caught.value)
    left = clean(corpus, "skip")
    assert left.numbers == [0, 3, 5]
    assert left.skipped == {"wrong columns": 2, "empty side": 1, "invalid UTF-8": 1}
    assert left.warnings == {"duplicate": 1}
    assert sum(left.skipped.values()) + len(left.numbers) == len(corpus)
    assert [corpus[number].source for number in left.numbers] == ["a", "a", "d"]


def test_clean_with_nothing_left(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="none of the 2 items"):
        clean(tsv(tmp_path, b"a\nb\n"), "skip")


def test_every_severe_fault_is_what_indexing_refuses(tmp_path: Path) -> None:
    corpus = tsv(tmp_path, b"a\tb\n\tb\na\tb\nx\0\ty\nlonger than twenty characters\tz\n\xc3\tb\n")
    severe = {fault.line for fault in corpus.faults() if fault.severe}
    for number in range(len(corpus)):
        if number + 1 in severe:
            with pytest.raises(DataError, match=f"line {number + 1}: "):
                corpus[number]
        else:
            assert corpus[number].line == number + 1


def test_sources_alone_answer_for_every_line(tmp_path: Path) -> None:
    (tmp_path / "input.txt").write_text("a\tb\n\nc" + "c" * 30)
    corpus = open_sources(str(tmp_path / "input.txt"), longest=20)
    assert [corpus[n].source for n in range(3)] == ["a\tb", "", "c" * 31]
    assert Counter(fault.severe for fault in corpus.faults()) == {False: 2}
    (tmp_path / "input.tsv").write_text("a\tb\nc\n")
    corpus = open_sources(str(tmp_path / "input.tsv"))
    assert [corpus[n] for n in range(2)] == [Pair("a", None, 1), Pair("c", None, 2)]
    (tmp_path / "input.jsonl").write_text('{"q": "a"}\n{"q": "a"}\n')
    corpus = open_sources(str(tmp_path / "input.jsonl"), field="q")
    assert [corpus[n] for n in range(2)] == [Pair("a", None, 1), Pair("a", None, 2)]
    assert list(corpus.faults()) == []


def test_fingerprints_are_of_the_bytes(tmp_path: Path) -> None:
    one = tsv(tmp_path, b"a\tb\n").fingerprints()
    (tmp_path / "other.tsv.gz").write_bytes(gzip.compress(b"a\tb\n"))
    assert open_pairs([str(tmp_path / "other.tsv.gz")]).fingerprints() == one
    assert tsv(tmp_path, b"a\tb").fingerprints() != one
    both = parallel(tmp_path, ["a"], ["b"]).fingerprints()
    assert parallel(tmp_path, ["b"], ["a"]).fingerprints() != both


def test_numbers_of_files(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="3 files"):
        open_pairs(["a", "b", "c"])
    with pytest.raises(DataError, match="standard input cannot be both"):
        open_pairs(["-", "-"])
    with pytest.raises(DataError, match="there is no file"):
        open_pairs([str(tmp_path / "none.tsv")])
