"""Pairs to batches: padding at the end, spans, copied words with ids past the vocabulary."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.seq2seq.batch import BOS, EOS, PAD, UNK, Batch, Codec, SourceTarget
from regard.seq2seq.data import Characters, Pair, PairCodec, Subwords, Tokenizer, Words
from regard.seq2seq.errors import DataError

SOURCES = ["the cat sat", "a dog", "the dog and the cat, the two"]
TARGETS = ["die Katze saß", "ein Hund", "der Hund und die Katze, die zwei"]
PAIRS = [Pair(a, b, n) for n, (a, b) in enumerate(zip(SOURCES, TARGETS, strict=True), 1)]
WORDS = Words.build(SOURCES), Words.build(TARGETS)
CODECS = {
    "words": PairCodec(*WORDS),
    "characters": PairCodec(Characters.build(SOURCES), Characters.build(TARGETS)),
    "joint": PairCodec(*[Subwords.build([*SOURCES, *TARGETS], 60)] * 2),
    "copying": PairCodec(*WORDS, copying=True),
    "mixed": PairCodec(Subwords.build(SOURCES, 40), WORDS[1], copying=True),
}
MIXED = ["the", "cat", "Zoe", "dog", "Hund,", "und.", "Bob", "die"]
every_codec = pytest.mark.parametrize("name", CODECS)
sentences = st.lists(st.sampled_from(MIXED), max_size=6)
texts = st.tuples(sentences, sentences)


def as_pairs(drawn: list[tuple[list[str], list[str]]]) -> list[Pair]:
    """Not in the strategy: the checks of a call draw numbers, which hypothesis must not see."""
    return [Pair(" ".join(a), " ".join(b), 1) for a, b in drawn]


def check_side(text: Tokenizer, given: str, row: list[int], length: int, *, framed: bool) -> None:
    ids = text.encode(given).ids
    expected = [BOS, *ids, EOS] if framed else [*ids, EOS]
    assert row[:length] == expected
    assert set(row[length:]) <= {PAD}


@pytest.mark.parametrize("name", ["words", "characters", "joint"])
@given(drawn=st.lists(texts, min_size=1, max_size=4))
def test_batches_hold_what_each_item_is_alone(
    name: str, drawn: list[tuple[list[str], list[str]]]
) -> None:
    items = as_pairs(drawn)
    codec = CODECS[name]
    batch = codec.collate(range(7, 7 + len(items)), items)
    assert list(batch.items) == list(range(7, 7 + len(items)))
    assert batch.target is not None
    assert batch.copy_ids is batch.links is None
    for row, item in enumerate(items):
        source, target = batch.source, batch.target
        check_side(
            codec.source_tokenizer, item.source, source.ids[row].tolist(), int(source.lengths[row]),
            framed=False,
        )  # fmt: skip
        check_side(
            codec.target_tokenizer, item.target or "", target.ids[row].tolist(),
            int(target.lengths[row]), framed=True,
        )  # fmt: skip
        assert codec.sizes(item) == (int(source.lengths[row]), int(target.lengths[row]))
    assert batch.source.ids.shape[1] == int(batch.source.lengths.max())
    assert batch.counts()["tokens"] == sum(codec.sizes(item)[1] - 1 for item in items)


@every_codec
@given(drawn=st.lists(texts, min_size=1, max_size=4))
def test_places_are_of_the_texts(name: str, drawn: list[tuple[list[str], list[str]]]) -> None:
    items = as_pairs(drawn)
    batch = CODECS[name].collate(range(len(items)), items)
    assert batch.target is not None
    for tokens, texts in (
        (batch.source, [item.source for item in items]),
        (batch.target, [item.target or "" for item in items]),
    ):
        assert list(map(len, tokens.spans)) == tokens.lengths.tolist()
        for spans, text in zip(tokens.spans, texts, strict=True):
            assert "".join(text[start:end] for start, end in spans) == text
            assert spans[-1] == (len(text), len(text))


@every_codec
def test_known_targets_come_back(name: str) -> None:
    codec = CODECS[name]
    assert isinstance(codec, Codec)
    batch = codec.collate([0, 1, 2], PAIRS)
    assert isinstance(batch, Batch)
    assert isinstance(batch, SourceTarget)
    assert batch.target is not None
    for row, pair in zip(batch.target.ids.tolist(), PAIRS, strict=True):
        assert codec.decode(row, pair) == pair.target


@pytest.mark.parametrize("name", ["copying", "mixed"])
@given(drawn=st.lists(texts, min_size=1, max_size=4))
def test_copies_decode_to_the_source(name: str, drawn: list[tuple[list[str], list[str]]]) -> None:
    items = as_pairs(drawn)
    codec = CODECS[name]
    size = len(codec.target_tokenizer)
    batch = codec.collate(range(len(items)), items)
    assert batch.copy_ids is not None
    assert batch.target is not None
    assert batch.copy_ids.shape == batch.source.ids.shape
    assert batch.extra_vocab == max(0, int(batch.copy_ids.max()) - size + 1)
    assert int(batch.target.ids.max()) < size + batch.extra_vocab
    for row, item in enumerate(items):
        length = int(batch.source.lengths[row])
        copies = batch.copy_ids[row].tolist()
        assert UNK not in copies[: length - 1]
        assert copies[length - 1] == EOS
        assert set(copies[length:]) <= {PAD}
        # Whatever the vocabulary lacks: copied token by token, a source is itself.
        assert codec.decode(copies, item) == item.source
        pieces = codec.source_tokenizer.encode(item.source).pieces
        own = {number for number in copies if number >= size}
        assert own == set(range(size, size + len(own)))
        assert len(set(zip(pieces, copies[: length - 1], strict=True))) == len(set(pieces))


def test_a_word_that_only_the_source_has_can_be_learnt() -> None:
    codec = CODECS["copying"]
    size = len(codec.target_tokenizer)
    pair = Pair("Zoe and Bob and Zoe", "Hund Bob Zoe Eve", 1)
    batch = codec.collate([0], [pair])
    assert batch.copy_ids is not None
    assert batch.target is not None
    assert batch.copy_ids.tolist() == [[size, size + 1, size + 2, size + 1, size, EOS]]
    hund = codec.target_tokenizer.number(" Hund")
    assert batch.target.ids.tolist() == [[BOS, hund, size + 2, size, UNK, EOS]]
    assert batch.extra_vocab == 3
    assert codec.decode(batch.target.ids[0].tolist(), pair) == "Hund Bob Zoe ⁇"


def test_ids_that_nobody_has() -> None:
    past = len(WORDS[1])
    with pytest.raises(DataError, match=f"token {past} is past the vocabulary"):
        CODECS["words"].decode([past], PAIRS[0])
    with pytest.raises(DataError, match="in line 1"):
        CODECS["copying"].decode([past + 99], PAIRS[0])


def test_sources_alone_and_empty_ones() -> None:
    codec = CODECS["copying"]
    items = [Pair("", None, 1), Pair("the cat", None, 2)]
    batch = codec.collate([4, 5], items)
    assert batch.target is None
    assert batch.source.lengths.tolist() == [1, 3]
    assert batch.source.ids[0].tolist() == [EOS, PAD, PAD]
    assert batch.source.spans[0] == [(0, 0)]
    assert batch.counts() == {"sentences": 2}
    assert codec.sizes(items[0]) == (1, 0)
    assert codec.collate([], []).source.ids.shape == (0, 0)


LINKED = [
    replace(PAIRS[1], links=(((0, 1), (0, 3)), ((2, 5), (4, 8)))),
    replace(PAIRS[2], links=(((0, 7), (0, 3)),)),
]


def test_links_share_one_between_the_tokens_they_touch() -> None:
    batch = PairCodec(*WORDS).collate([2, 1], LINKED[::-1])
    assert batch.links is not None
    assert batch.target is not None
    assert batch.links.shape == (2, batch.target.ids.shape[1] - 1, batch.source.ids.shape[1])
    assert batch.links[1, :3, :3].tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 0]]
    assert batch.links[0, 0, :3].tolist() == [0.5, 0.5, 0]
    sums = batch.links.sum(-1)
    assert torch.all((sums == 0) | (sums == 1))
    moved = batch.to("cpu")
    assert torch.equal(moved.links, batch.links)


def test_tokens_without_links_read_the_end_if_asked() -> None:
    plain, nulls = (
        PairCodec(*WORDS, nulls=asked).collate([1, 2], LINKED) for asked in (False, True)
    )
    assert plain.links is not None
    assert nulls.links is not None
    assert plain.target is not None
    for row, length in enumerate(plain.target.lengths.tolist()):
        end = int(plain.source.lengths[row]) - 1
        for token in range(plain.links.shape[1]):
            expected = plain.links[row, token].clone()
            if token < length - 2 and not expected.any():
                expected[end] = 1.0
            assert torch.equal(nulls.links[row, token], expected)
