"""Answers to a stream of inputs, in their order and in bounded memory."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Generic, Protocol, TypeGuard, TypeVar, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.core.options import check_int
from regard.seq2seq.batch import UNK, Batch, Codec
from regard.seq2seq.decoding.unk_replacement import UnkReplacement
from regard.seq2seq.protocols import Hypothesis, Prediction, Search, Stepper

Item = TypeVar("Item")
Item_contra = TypeVar("Item_contra", contravariant=True)


@runtime_checkable
class TokenTexts(Protocol[Item_contra]):
    """A codec that also shows tokens one by one, for people to see beside the weights."""

    def source_tokens(self, item: Item_contra) -> list[str]:
        """As many as a model reads; empty for a position that is no word, such as the end's."""

    def target_tokens(self, tokens: Sequence[int], item: Item_contra) -> list[str]:
        """As many as are given."""


@runtime_checkable
class AttentionRereader(Protocol[Item_contra]):
    """Whatever tells what answers read, in a layer that a step of a search need not show."""

    def __call__(
        self, items: Sequence[Item_contra], tokens: Sequence[Sequence[int]], /
    ) -> Sequence[Float[Tensor, "target source"]]:
        """For each item and the tokens of an answer to it: row t is what token t read."""


@dataclass(frozen=True)
class BatchedPredictor(Generic[Item]):
    """Batches of like lengths from a stream; answer N is always the answer to input N.

    Inputs are read a window at a time, and sorted by length within it, so that little is padded.
    Each is numbered by its place in the stream, so that sampling does not depend on the batches.

    Args:
        model: What is asked, ready to answer: without dropout.
        codec: Makes batches of inputs and texts of tokens; a `Spelling` fills the answers' tokens.
        search: How hypotheses are found.
        sentences: How many inputs are in a batch at most.
        tokens: How many tokens are in a batch at most, with padding. One input always goes.
        window: How many inputs are held at once.
        device: Where the model is.
        replacement: What is done with unknown words; None leaves them to the codec. It needs a
            codec that is a `Spelling`.
        again: Reads answers with unknown words once more, for what these are replaced by; None
            takes what the search read.
    """

    model: Stepper
    codec: Codec[Item, Batch]
    search: Search
    sentences: int = 64
    tokens: int = 4096
    window: int = 4096
    device: torch.device | str = "cpu"
    replacement: UnkReplacement | None = None
    again: AttentionRereader[Item] | None = None

    def __post_init__(self) -> None:
        check_int("sentences", self.sentences, least=1)
        check_int("tokens", self.tokens, least=1)
        check_int("window", self.window, least=1)

    def __call__(
        self, inputs: Iterable[Item | None], progress: Callable[[int], None] | None = None
    ) -> Iterator[list[Prediction]]:
        """For each input its answers, the best first; for None or a blank text one empty answer.

        `progress` hears after each batch how many inputs have been answered so far.
        """
        numbered, before = enumerate(inputs), 0
        while window := list(islice(numbered, self.window)):
            asked = [(number, item) for number, item in window if _asks(item)]
            answers = {number: [Prediction("", 0.0)] for number, item in window if not _asks(item)}
            for part in self._parts(asked):
                answers.update(self._answered(part))
                if progress:
                    progress(before + len(answers))
            before += len(window)
            for number, _ in window:
                yield answers.pop(number)

    def _parts(self, asked: list[tuple[int, Item]]) -> Iterator[list[tuple[int, Item]]]:
        """Batches, the longest inputs first, so that what needs most memory fails at once."""
        sized = [(self.codec.size(item), number, item) for number, item in asked]
        sized.sort(key=lambda entry: (-entry[0], entry[1]))
        part: list[tuple[int, Item]] = []
        widest = 0
        for size, number, item in sized:
            widest = widest if part else size
            if part and (len(part) == self.sentences or (len(part) + 1) * widest > self.tokens):
                yield part
                part, widest = [], size
            part.append((number, item))
        if part:
            yield part

    def _answered(self, part: list[tuple[int, Item]]) -> dict[int, list[Prediction]]:
        numbers, items = [number for number, _ in part], [item for _, item in part]
        batch = self.codec.collate(numbers, items).to(self.device)
        found = self.search(self.model, batch)
        asked = [(item, way) for item, ways in zip(items, found, strict=True) for way in ways]
        told = iter(
            [
                self._answer(way, item, read)
                for (item, way), read in zip(asked, self._read(asked), strict=True)
            ]
        )
        return {
            number: list(islice(told, len(ways))) or [Prediction("", float("-inf"))]
            for number, ways in zip(numbers, found, strict=True)
        }

    def _read(self, asked: list[tuple[Item, Hypothesis]]) -> list[Hypothesis]:
        """The hypotheses with the weights by which unknown words are replaced."""
        read = [way for _, way in asked]
        if self.replacement is None or self.again is None:
            return read
        unknown = [place for place, way in enumerate(read) if UNK in way.tokens]
        for first in range(0, len(unknown), self.sentences):
            some = unknown[first : first + self.sentences]
            weights = self.again(
                [asked[place][0] for place in some], [read[place].tokens for place in some]
            )
            for place, own in zip(some, weights, strict=True):
                read[place] = replace(read[place], weights=own)
        return read

    def _answer(self, way: Hypothesis, item: Item, read: Hypothesis) -> Prediction:
        source, target = self._spelled(way, item)
        # The row of `END` stands for no token that anybody sees.
        weights = None if way.weights is None else way.weights[: len(way.tokens)].cpu()
        text = self._text(read, item, source)
        if self.replacement is not None:
            target = self.replacement.spelled(read, source, target)
        return Prediction(text, way.score, source, target, weights, way.tokens)

    def _spelled(self, way: Hypothesis, item: Item) -> tuple[list[str], list[str]]:
        if not isinstance(self.codec, TokenTexts):
            return [], []
        return self.codec.source_tokens(item), self.codec.target_tokens(way.tokens, item)

    def _text(self, way: Hypothesis, item: Item, source: list[str]) -> str:
        if self.replacement is None:
            return self.codec.decode(way.tokens, item)
        return self.replacement.text(
            way, source, lambda tokens: self.codec.decode(tokens, item) if tokens else ""
        )


def _asks(item: Item | None) -> TypeGuard[Item]:
    return item is not None and not (isinstance(item, str) and not item.strip())
