"""Text to tokens and back: round trips, places, and vocabularies that stay the same."""

import json
import subprocess
import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.attention.core.errors import OptionError
from regard.seq2seq.batch import BOS, EOS, PAD, UNK
from regard.seq2seq.data import (
    Characters,
    Subwords,
    Tokenizer,
    Words,
    build_tokenizers,
    load_tokenizer,
)
from regard.seq2seq.data.tokenizer import SPECIAL
from regard.seq2seq.data.unicode import nfc_with_offsets, spaced
from regard.seq2seq.errors import DataError

LINES = [
    "A man in an orange hat, starring at something.",
    "Zwei junge Männer — 2 Büsche!  (Ende)",
    "हिन्दी में लिखा है। می‌خواهم 日本語です。",
    "👩‍👧 ❤️ e\u0301te\u0301 été\u2028x\x85y ﬁ",
    " leading, trailing \t ",
    "<no token> <the end> it's",
]
KINDS: dict[str, Callable[[], Tokenizer]] = {
    "characters": lambda: Characters.build(LINES),
    "words": lambda: Words.build(LINES),
    "subwords": lambda: Subwords.build(LINES * 2, 140),
    "few characters": lambda: Characters.build(LINES, 20),
    "few words": lambda: Words.build(LINES, 12),
}
every_kind = pytest.mark.parametrize("kind", KINDS)
any_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
known_text = st.text(sorted(set("".join(LINES))), max_size=30)
# Marks, Hangul in parts, a starter that composes, one whose parts do not start.
tricky = st.text("aeo\u0301\u0327\u0300가\u1100\u1161\u11a8\u09c7\u09be\u0f73\u0f71Å\ufb01日")
made: dict[str, Tokenizer] = {}


def text_of(kind: str) -> Tokenizer:
    return made.setdefault(kind, KINDS[kind]())


@every_kind
@given(given_text=st.one_of(any_text, known_text))
def test_places_tile_the_text(kind: str, given_text: str) -> None:
    found = text_of(kind).encode(given_text)
    assert len(found.ids) == len(found.spans) == len(found.pieces)
    assert "".join(given_text[start:end] for start, end in found.spans) == given_text
    ends = [0, *(end for _, end in found.spans)]
    assert all(start == end for (start, _), end in zip(found.spans, ends, strict=False))
    assert ends[-1] == len(given_text)


@every_kind
@given(given_text=st.one_of(any_text, known_text))
def test_pieces_put_together_are_the_text(kind: str, given_text: str) -> None:
    text = text_of(kind)
    found = text.encode(given_text)
    assert text.detokenize(found.pieces) == spaced(given_text)
    for number, piece in zip(found.ids, found.pieces, strict=True):
        assert number == UNK or text.pieces[number] == piece
        assert (text.number(piece) is None) == (number == UNK)
        assert number >= UNK


@pytest.mark.parametrize("kind", ["characters", "subwords"])
@given(given_text=known_text)
def test_known_characters_come_back(kind: str, given_text: str) -> None:
    text = text_of(kind)
    ids = text.encode(given_text).ids
    assert UNK not in ids
    assert text.decode(ids) == spaced(given_text)
    assert text.decode([BOS, *ids, EOS, PAD, 7]) == spaced(given_text)
    assert text.unknown_characters(given_text) == []


@pytest.mark.parametrize("line", LINES)
def test_known_words_come_back(line: str) -> None:
    text = text_of("words")
    assert text.decode(text.encode(line).ids) == spaced(line)


def test_a_word_is_a_word_with_its_marks_and_joiners() -> None:
    def words(line: str) -> list[str]:
        return [word.strip() for word in text_of("words").encode(line).pieces]

    assert words("हिन्दी में है।") == ["हिन्दी", "में", "है", "।"]
    assert words("می‌خواهم e\u0301te\u0301") == ["می‌خواهم", "e\u0301te\u0301"]
    assert words("👩‍👧 ❤️ (x_1)") == ["👩‍👧", "❤️", "(", "x_1", ")"]


def test_places_of_scripts_and_marks() -> None:
    text = Subwords.build(["日本語 e\u0301 👩‍👧 x"] * 3, 60)
    line = "x👩‍👧 日本 e\u0301"
    found = text.encode(line)
    pieces = [line[start:end] for start, end in found.spans]
    assert pieces == [
        piece.removeprefix(" ") if n == 0 else piece for n, piece in enumerate(found.pieces)
    ]


@every_kind
@given(given_text=any_text)
def test_a_text_is_one_line(kind: str, given_text: str) -> None:
    text = text_of(kind)
    ids = text.encode(given_text).ids
    assert len(f"{text.decode(ids)}.".splitlines()) == 1
    assert len("".join(text.encode(given_text).pieces).splitlines()) <= 1
    assert text.encode(given_text).ids == text.encode(spaced(given_text)).ids


@pytest.mark.parametrize("sign", ["\n", "\r", "\v", "\f", "\x1b", "\x1c", "\x85", "\u2028"])
def test_a_control_character_is_a_space(sign: str) -> None:
    for kind, build in KINDS.items():
        assert not any(sign in piece for piece in build().pieces), kind
    assert Characters.build([f"a{sign}b"]).pieces == Characters.build(["a b"]).pieces
    assert Words.build([f"a{sign}b"]).fingerprint() == Words.build(["a b"]).fingerprint()
    assert spaced("tabs\tstay") == "tabs\tstay"


@every_kind
def test_names_of_special_tokens_are_only_text(kind: str) -> None:
    text = text_of(kind)
    for name in SPECIAL:
        assert all(number >= UNK for number in text.encode(f"{name} a {name}").ids)
        assert text.number(name) is None


@every_kind
def test_what_is_not_known(kind: str) -> None:
    text = text_of(kind)
    assert text.unknown_characters(",Ж,ЩЖ") == ["Ж", "Щ"]
    assert text.decode(text.encode("ЖЩ").ids).strip("⁇ ") == ""
    assert text.encode("").ids == []
    assert text.decode([]) == ""
    assert text.encode("half \ud800").spans[-1][1] == 6


def test_unknown_characters_of_a_word_are_one_token() -> None:
    found = text_of("subwords").encode("in Жуков, in")
    assert "Жуков" in found.pieces
    assert text_of("subwords").decode(found.ids) == "in ⁇, in"


@every_kind
def test_saved_and_loaded(kind: str, tmp_path: Path) -> None:
    text = text_of(kind)
    text.save(tmp_path / "text.json")
    loaded = load_tokenizer(tmp_path / "text.json")
    assert type(loaded) is type(text)
    assert loaded.fingerprint() == text.fingerprint()
    assert loaded.pieces == text.pieces
    for line in [*LINES, "unseen Жуков"]:
        assert loaded.encode(line) == text.encode(line)
    assert [each.name for each in tmp_path.iterdir()] == ["text.json"]


def test_fingerprints_differ() -> None:
    texts = [
        *map(text_of, KINDS),
        Characters.build(LINES, normal="NFC"),
        Subwords.build(LINES * 2, 139),
    ]
    assert len({text.fingerprint() for text in texts}) == len(texts)


def test_files_that_hold_no_vocabulary(tmp_path: Path) -> None:
    path = tmp_path / "text.json"
    with pytest.raises(DataError, match="there is no file"):
        load_tokenizer(path)
    good = text_of("subwords").to_dict()
    wrong: list[object] = [
        [], {}, good | {"kind": "syllables"}, good | {"pieces": [1]}, good | {"normal": "NFKC"},
        good | {"pieces": "ab"}, good | {"pieces": ["a\n"]}, good | {"pieces": [""]},
        good | {"pieces": [SPECIAL[0]]}, good | {"pieces": ["\ud800"]}, good | {"pieces": {"a": 1}},
        good | {"kind": "bare", "cut": "never", "lower": True},
        good | {"kind": "bare", "cut": "spaces", "lower": "no"},
        good | {"pieces": ["a", "a"]}, good | {"format": "other"}, good | {"merges": [["q", "r"]]},
    ]  # fmt: skip
    for content in wrong:
        path.write_text(json.dumps(content))
        with pytest.raises(DataError, match=r"text\.json is not a readable tokenizer"):
            load_tokenizer(path)
    path.write_bytes(b"\xff{")
    with pytest.raises(DataError, match="is not a readable tokenizer"):
        load_tokenizer(path)
    with pytest.raises(DataError, match="cannot be written"):
        text_of("words").save(tmp_path / "none" / "text.json")


def test_another_process_builds_the_same() -> None:
    code = (
        "from regard.seq2seq.data import build_tokenizers\n"
        "from tests.seq2seq.data.test_tokenizers import LINES\n"
        "for kind in ('characters', 'words', 'subwords'):\n"
        "    for text in build_tokenizers(LINES, LINES[::-1], kind=kind, size=150):\n"
        "        print(text.fingerprint())"
    )
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, text=True,
        env={"PYTHONHASHSEED": "1", "PYTHONPATH": ".", "RAYON_NUM_THREADS": "3"},
    ).stdout.split()  # fmt: skip
    kinds = ("characters", "words", "subwords")
    here = [build_tokenizers(LINES, [], kind=kind, size=150, joint=True)[0] for kind in kinds]
    # The order of the lines does not matter.
    assert printed == [text.fingerprint() for text in here for _ in range(2)]


def test_sizes_are_kept() -> None:
    for kind in ("characters", "words", "subwords"):
        source, target = build_tokenizers(LINES, LINES[:2], kind=kind, size=130)
        assert len(source) <= 130
        assert source.fingerprint() != target.fingerprint()
        source, target = build_tokenizers(LINES[:3], LINES[3:], kind=kind, size=130, joint=True)
        assert source is target
        assert source.unknown_characters("".join(LINES)) == [] or kind == "words"
    assert len(text_of("subwords")) == 140
    assert Subwords.build([]).encode("ab").ids == [UNK]
    with pytest.raises(DataError, match="is smaller than"):
        Subwords.build(LINES, 20)
    with pytest.raises(OptionError, match="'syllables'"):
        build_tokenizers(LINES, LINES, kind="syllables")


@given(st.one_of(tricky, any_text))
def test_composing_by_groups_is_composing(given_text: str) -> None:
    found, places = nfc_with_offsets(given_text)
    assert found == unicodedata.normalize("NFC", given_text)
    if places is None:
        assert found == given_text
        return
    assert len(places) == len(found)
    # Each group's characters come from its place, and the places tile the text.
    groups = list(dict.fromkeys(places))
    assert "".join(given_text[start:end] for start, end in groups) == given_text
    for start, end in groups:
        part = "".join(c for c, place in zip(found, places, strict=True) if place == (start, end))
        assert part == unicodedata.normalize("NFC", given_text[start:end])


@pytest.mark.parametrize("kind", ["characters", "words", "subwords"])
@given(given_text=tricky)
def test_places_under_composing_are_of_the_given_text(kind: str, given_text: str) -> None:
    name = f"composed {kind}"
    if name not in made:
        made[name] = build_tokenizers(
            [*LINES, "가각が Å"], [], kind=kind, size=160, joint=True, normal="NFC"
        )[0]
    text = made[name]
    found = text.encode(given_text)
    assert text.detokenize(found.pieces) == unicodedata.normalize("NFC", spaced(given_text))
    for piece, (start, end) in zip(found.pieces, found.spans, strict=True):
        inside = unicodedata.normalize("NFC", given_text[start:end])
        assert piece.removeprefix(" ") in inside or piece in inside
    assert found.ids == text.encode(unicodedata.normalize("NFC", given_text)).ids


def test_nothing_is_composed_unless_asked() -> None:
    assert Characters.build(["e\u0301"]).pieces[4:] == ("e", "\u0301")
    assert Characters.build(["e\u0301"], normal="NFC").pieces[4:] == ("é",)
