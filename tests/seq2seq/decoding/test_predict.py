"""Prediction N is that of input N, whatever the batches."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from regard.seq2seq.batch import BOS, EOS, PAD, UNK, Codec, SourceTarget, Tokens
from regard.seq2seq.decoding import BatchedPredictor, Beam, Greedy, Sampling, UnkReplacement
from regard.seq2seq.protocols import DecodeStep, Hypothesis, Prediction, Search, StepperState

LETTERS = "abcdefghijklmnopqrstuvwxyz"
SIZE = 4 + len(LETTERS)


class Letters:
    """Letters of a small alphabet; the others are unknown."""

    def sizes(self, item: str) -> tuple[int, ...]:
        return (len(item) + 1,)

    def collate(self, numbers: Sequence[int], items: Sequence[str]) -> SourceTarget:
        lengths = torch.tensor([len(item) + 1 for item in items])
        ids = torch.full((len(items), int(lengths.max())), PAD)
        for row, item in enumerate(items):
            known = [4 + LETTERS.index(a) if a in LETTERS else UNK for a in item]
            ids[row, : len(item) + 1] = torch.tensor([*known, EOS])
        return SourceTarget(list(numbers), Tokens(ids, lengths))

    def decode(self, tokens: Sequence[int], item: str) -> str:
        return "".join(LETTERS[token - 4] if token > UNK else "?" for token in tokens)


class LettersWithTokens(Letters):
    """The same, and it shows its tokens."""

    def source_tokens(self, item: str) -> list[str]:
        return [*item, ""]

    def target_tokens(self, tokens: Sequence[int], item: str) -> list[str]:
        return [self.decode([token], item) for token in tokens]


@dataclass
class Shift:
    """A model whose output is the source with each letter replaced by the next of the alphabet."""

    batches: list[tuple[int, int]]

    def start(self, batch: SourceTarget, width: int) -> "ShiftState":
        self.batches.append(tuple(batch.source.ids.shape))
        return ShiftState(batch.source.ids, batch.source.lengths, width, 0)

    def step(self, tokens: Tensor, state: StepperState) -> DecodeStep:
        assert isinstance(state, ShiftState)
        assert state.place > 0 or (tokens == BOS).all()
        place = (state.lengths - 1).clamp(max=state.place)[:, None]
        said = state.ids.gather(1, place)[:, 0]
        said = said.where(said <= UNK, (said - 4 + 1) % len(LETTERS) + 4)
        odds = torch.linspace(-1, 1, SIZE).repeat(len(said), state.width, 1)
        odds[torch.arange(len(said)), :, said] += 9.0
        weights = torch.zeros(len(said), state.width, state.ids.shape[1])
        weights.scatter_(-1, place[:, None].expand(-1, state.width, -1), 1.0)
        after = ShiftState(state.ids, state.lengths, state.width, state.place + 1)
        return DecodeStep(odds.log_softmax(-1), after, weights)


@dataclass
class ShiftState:
    """The next position."""

    ids: Tensor
    lengths: Tensor
    width: int
    place: int

    @property
    def source_lengths(self) -> Tensor:
        return self.lengths

    def reorder(self, beams: Tensor) -> "ShiftState":
        return self

    def keep(self, sentences: Tensor) -> "ShiftState":
        return ShiftState(self.ids[sentences], self.lengths[sentences], self.width, self.place)


LINES = ["hal", "", "a", "regard", "   ", "zoo", "it", "abcdefgh", "", "b", "decoding"] * 3
ANSWERS = ["ibm", "", "b", "sfhbse", "", "app", "ju", "bcdefghi", "", "c", "efdpejoh"] * 3


def streaming(search: Search | None = None, **options: object) -> BatchedPredictor[str]:
    return BatchedPredictor(Shift([]), LettersWithTokens(), search or Greedy(), **options)


@pytest.mark.parametrize("search", [Greedy(), Beam(3)], ids=["greedy", "beam"])
@pytest.mark.parametrize("sentences", [1, 3, 64])
@pytest.mark.parametrize("window", [1, 7, 4096])
def test_predictions_are_in_the_order_of_the_inputs(
    search: Search, sentences: int, window: int
) -> None:
    predict = streaming(search, sentences=sentences, window=window)
    answers = list(predict(LINES))
    assert [hypotheses[0].text for hypotheses in answers] == ANSWERS
    assert all(rows <= sentences for rows, _ in predict.model.batches)


def test_sampling_does_not_depend_on_the_batches() -> None:
    search = Sampling(temperature=4.0, count=2, seed=3, max_length=8)
    texts = [
        [
            [answer.text for answer in hypotheses]
            for hypotheses in streaming(search, **options)(LINES)
        ]
        for options in ({}, {"sentences": 2}, {"window": 5}, {"tokens": 20})
    ]
    assert all(other == texts[0] for other in texts)
    assert len({text for hypotheses in texts[0] for text in hypotheses}) > 20


def test_batches_hold_so_many_tokens_at_most() -> None:
    predict = streaming(tokens=20)
    list(predict([*LINES, "a" * 50]))
    assert predict.model.batches[0] == (1, 51)
    assert all(rows * columns <= 20 for rows, columns in predict.model.batches[1:])
    assert any(rows > 1 for rows, _ in predict.model.batches)


def test_no_more_than_a_window_is_read_ahead() -> None:
    read = 0

    def endless() -> Iterator[str]:
        nonlocal read
        while True:
            read += 1
            yield LETTERS[read % 7 : read % 7 + 3]

    answers = streaming(window=5)(endless())
    for count in range(1, 13):
        assert next(answers)[0].text
        assert read <= -(-count // 5) * 5


def test_progress_counts_inputs_to_the_last() -> None:
    heard: list[int] = []
    list(streaming(window=11, sentences=3)(LINES, heard.append))
    assert heard == sorted(set(heard))
    assert heard[-1] == len(LINES)


def test_tokens_and_weights_are_those_of_the_prediction() -> None:
    ((answer,), (empty,)) = streaming()(["abz", None])
    assert answer.source == ["a", "b", "z", ""]
    assert answer.target == ["b", "c", "a"]
    torch.testing.assert_close(answer.weights, torch.eye(4)[:3])
    assert empty == Prediction("", 0.0)


def test_a_codec_need_not_have_token_texts() -> None:
    assert isinstance(Letters(), Codec)
    ((answer,),) = BatchedPredictor(Shift([]), Letters(), Greedy())(["abz"])
    assert (answer.text, answer.source, answer.target) == ("bca", [], [])


def test_unk_is_replaced_by_attention() -> None:
    swapped = UnkReplacement({"é": "e"}, separator="")
    lines = ["aéb", "né", "ñ", "no"]
    assert [hypotheses[0].text for hypotheses in streaming()(lines)] == ["b?c", "o?", "?", "op"]
    filled = [hypotheses[0].text for hypotheses in streaming(replacement=swapped)(lines)]
    assert filled == ["bec", "oe", "ñ", "op"]


def test_unk_without_weights_stays() -> None:
    found = Hypothesis([5, UNK], -1.0, -2.0)
    assert UnkReplacement().words(found, ["one", "two"]) == {}
    spell = lambda tokens: " ".join(map(str, tokens))
    assert UnkReplacement().text(found, ["one", "two"], spell) == "5 3"


def test_the_source_eos_replaces_nothing() -> None:
    weights = torch.tensor([[0.1, 0.2, 0.7], [0.0, 0.0, 1.0]])
    found = Hypothesis([UNK], -1.0, -2.0, weights)
    assert UnkReplacement().words(found, ["one", "two", ""]) == {0: "two"}
    assert UnkReplacement().words(found, ["", "", ""]) == {}


def test_words_are_joined_by_spaces() -> None:
    weights = torch.tensor([[0.1, 0.9], [0.7, 0.3], [0.2, 0.8], [0.5, 0.5]])
    found = Hypothesis([UNK, 7, UNK], -1.0, -2.0, weights)
    spell = lambda tokens: " ".join(map(str, tokens))
    assert UnkReplacement({"two": "zwei"}).text(found, ["one", "two"], spell) == "zwei 7 zwei"
