"""Labelled sentences from CoNLL-U and from columns, and what is wrong with them."""

import gzip
from pathlib import Path

import pytest

from regard.seq2seq.data import PlainSentences, Vocabulary, format_fault, open_conll, read_lines
from regard.seq2seq.errors import DataError

CONLLU = """\
# text = Ducks don't fly
1\tDucks\tduck\tNOUN\t_\t_\t3\tnsubj\t_\t_
2-3\tdon't\t_\t_\t_\t_\t_\t_\t_\t_
2\tdo\tdo\tAUX\t_\t_\t4\taux\t_\t_
3\tn't\tnot\tPART\t_\t_\t4\tadvmod\t_\t_
3.1\tever\tever\tADV\t_\t_\t_\t_\t_\t_
4\tfly\tfly\tVERB\t_\t_\t0\troot\t_\t_

# text = #1
1\t#1\t#1\tSYM\t_\t_\t0\troot\t_\t_
"""


def written(folder: Path, text: str, name: str = "a.conll") -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_conllu_gives_words_and_their_part_of_speech(tmp_path: Path) -> None:
    corpus = open_conll([written(tmp_path, CONLLU, "a.conllu")])
    assert [sentence.words for sentence in (corpus[0], corpus[1])] == [
        ("Ducks", "do", "n't", "fly"),
        ("#1",),
    ]
    assert corpus[0].labels == ("NOUN", "AUX", "PART", "VERB")
    assert [corpus[number].line for number in range(len(corpus))] == [2, 10]
    assert corpus.where(1) == f"{tmp_path / 'a.conllu'}, line 10"
    assert not list(corpus.faults())
    xpos = open_conll([str(tmp_path / "a.conllu")], label_column=8)
    assert xpos[0].labels == ("nsubj", "aux", "advmod", "root")


@pytest.mark.parametrize("end", ["", "\n", "\n\n\n"])
def test_columns_give_the_first_and_the_last(end: str, tmp_path: Path) -> None:
    """A word may be # there, and columns may stand between spaces."""
    text = f"#\tx\tO\n\n\nEmpire NN B-LOC\nState NN I-LOC{end}"
    corpus = open_conll([written(tmp_path, text)])
    assert [(corpus[n].words, corpus[n].labels) for n in range(len(corpus))] == [
        (("#",), ("O",)),
        (("Empire", "State"), ("B-LOC", "I-LOC")),
    ]


def test_several_files_are_one_corpus(tmp_path: Path) -> None:
    one = written(tmp_path, "a\tX\n", "one.conll")
    other = tmp_path / "other.conll.gz"
    other.write_bytes(gzip.compress(b"b\tY\n"))
    corpus = open_conll([one, str(other)])
    assert [corpus[number].words for number in range(len(corpus))] == [("a",), ("b",)]
    assert corpus.where(1) == f"{other}, line 1"
    assert corpus.fingerprints() != open_conll([one]).fingerprints()


@pytest.mark.parametrize(
    ("text", "message", "item"),
    [
        ("a\tX\n\nb\n", "line 3: has 1 columns, not 2: 'b'", 1),
        ("a\tX\nb\t\n", "line 2: has an empty label", 0),
        ("\n\n", "has no sentences", None),
    ],
)
def test_faults_have_their_line_and_item(
    text: str, message: str, item: int | None, tmp_path: Path
) -> None:
    (fault,) = open_conll([written(tmp_path, text)]).faults()
    assert message in format_fault(fault)
    assert (fault.severe, fault.item) == (True, item)


def test_a_broken_sentence_raises_when_it_is_asked_for(tmp_path: Path) -> None:
    corpus = open_conll([written(tmp_path, "a\tX\n\nb\n")])
    assert corpus[0].words == ("a",)
    with pytest.raises(DataError, match="line 3: has 1 columns"):
        corpus[1]


def test_a_sentence_twice_is_a_warning(tmp_path: Path) -> None:
    corpus = open_conll([written(tmp_path, "a\tX\n\nb\tX\n\na\tY\n")])
    (fault,) = corpus.faults()
    assert (fault.kind, fault.severe, fault.item, fault.line) == ("duplicate", False, 2, 5)
    assert not list(corpus.faults(duplicates=False))


def test_plain_lines_are_sentences_without_labels(tmp_path: Path) -> None:
    corpus = PlainSentences(read_lines(written(tmp_path, "two  words\n\nthree\n", "a.txt")))
    assert [corpus[n].words for n in range(len(corpus))] == [("two", "words"), (), ("three",)]
    assert corpus[0].labels is None
    assert not list(corpus.faults())


def test_a_vocabulary_has_its_ids_and_its_file() -> None:
    found = Vocabulary.build(["b", "a", "b", "c"], min_count=1)
    assert found.pieces == ("b", "a", "c")
    assert [found.id(piece) for piece in ("b", "c", "?")] == [4, 6, 3]
    assert (found.piece(4), len(found)) == ("b", 7)
    assert Vocabulary.build(["b", "a", "b"], min_count=2).pieces == ("b",)
    assert Vocabulary.from_json(found.to_json(), "x.json").pieces == found.pieces
    for content in (b"{}", b"[1]", b"["):
        with pytest.raises(DataError, match=r"x\.json is no vocabulary"):
            Vocabulary.from_json(content, "x.json")
    with pytest.raises(DataError, match="the same entry twice"):
        Vocabulary(["a", "a"])
