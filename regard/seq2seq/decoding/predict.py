"""Predictions for a stream of inputs, in order and in bounded memory."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Generic, Protocol, TypeGuard, TypeVar, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.core.options import check_int
from regard.seq2seq.batch import UNK, Batch, TextCodec
from regard.seq2seq.data import windowed
from regard.seq2seq.decoding.unk_replacement import UnkReplacement
from regard.seq2seq.protocols import Hypothesis, Prediction, Search, Stepper

Item = TypeVar("Item")
Item_contra = TypeVar("Item_contra", contravariant=True)


@runtime_checkable
class TokenTexts(Protocol[Item_contra]):
    """A codec that also gives the text of each token, to be shown beside the weights."""

    def source_tokens(self, item: Item_contra) -> list[str]:
        """As many as there are source positions; empty for one that is no word, such as EOS."""

    def target_tokens(self, tokens: Sequence[int], item: Item_contra) -> list[str]:
        """As many as are given."""


@runtime_checkable
class AttentionRereader(Protocol[Item_contra]):
    """Computes the weights of given outputs, in a layer that a search does not return."""

    def __call__(
        self, items: Sequence[Item_contra], tokens: Sequence[Sequence[int]], /
    ) -> Sequence[Float[Tensor, "target source"]]:
        """For each item and the tokens of an output for it: row t has the weights of token t."""


@dataclass(frozen=True)
class BatchedPredictor(Generic[Item]):
    """Decodes a stream in batches of similar lengths; prediction N is always that of input N.

    Inputs are read a window at a time, and sorted by length within it, so that there is little
    padding. Each is numbered by its place in the stream, so that sampling does not depend on the
    batches.

    Args:
        model: In evaluation mode.
        codec: Makes batches of inputs and texts of tokens; if it has `TokenTexts`, predictions have
            the texts of their tokens.
        search: How hypotheses are found.
        sentences: How many inputs are in a batch at most.
        tokens: How many tokens are in a batch at most, with padding. One input always fits.
        window: How many inputs are held at once.
        device: Where the model is.
        replacement: How UNK is replaced; None leaves it to the codec. It needs a codec with
            `TokenTexts`.
        rereader: Computes the weights that UNK is replaced by; None takes the search's.
    """

    model: Stepper
    codec: TextCodec[Item, Batch]
    search: Search
    sentences: int = 64
    tokens: int = 4096
    window: int = 4096
    device: torch.device | str = "cpu"
    replacement: UnkReplacement | None = None
    rereader: AttentionRereader[Item] | None = None

    def __post_init__(self) -> None:
        check_int("sentences", self.sentences, minimum=1)
        check_int("tokens", self.tokens, minimum=1)
        check_int("window", self.window, minimum=1)

    def __call__(
        self, inputs: Iterable[Item | None], progress: Callable[[int], None] | None = None
    ) -> Iterator[list[Prediction]]:
        """The predictions for each input, the best first; for None or a blank text an empty one.

        `progress` is called after each batch with how many inputs are done so far.
        """
        return windowed(inputs, self._batches, self._predict, progress, self.window)

    def _batches(self, items: Sequence[Item | None]) -> Iterator[list[int]]:
        """Blank inputs; then the longest first, so that running out of memory happens at once."""
        if blank := [place for place, item in enumerate(items) if not _has_content(item)]:
            yield blank
        sizes = [
            (-max(self.codec.sizes(item)), place)
            for place, item in enumerate(items)
            if _has_content(item)
        ]
        batch: list[int] = []
        longest = 0
        for size, place in sorted(sizes):
            longest = longest if batch else -size
            full = len(batch) == self.sentences or (len(batch) + 1) * longest > self.tokens
            if batch and full:
                yield batch
                batch, longest = [], -size
            batch.append(place)
        if batch:
            yield batch

    def _predict(
        self, numbers: Sequence[int], given: Sequence[Item | None]
    ) -> list[list[Prediction]]:
        items = [item for item in given if _has_content(item)]
        if not items:
            return [[Prediction("", 0.0)] for _ in given]
        batch = self.codec.collate(numbers, items).to(self.device)
        hypotheses = self.search(self.model, batch)
        flat = [
            (item, hypothesis)
            for item, each in zip(items, hypotheses, strict=True)
            for hypothesis in each
        ]
        predictions = iter(
            [
                self._prediction(hypothesis, item, reread)
                for (item, hypothesis), reread in zip(flat, self._reread(flat), strict=True)
            ]
        )
        return [
            list(islice(predictions, len(each))) or [Prediction("", -math.inf)]
            for each in hypotheses
        ]

    def _reread(self, flat: list[tuple[Item, Hypothesis]]) -> list[Hypothesis]:
        """The hypotheses with the weights by which UNK is replaced."""
        hypotheses = [hypothesis for _, hypothesis in flat]
        if self.replacement is None or self.rereader is None:
            return hypotheses
        unknown = [number for number, each in enumerate(hypotheses) if UNK in each.tokens]
        for first in range(0, len(unknown), self.sentences):
            some = unknown[first : first + self.sentences]
            weights = self.rereader(
                [flat[number][0] for number in some],
                [hypotheses[number].tokens for number in some],
            )
            for number, reread in zip(some, weights, strict=True):
                hypotheses[number] = replace(hypotheses[number], weights=reread)
        return hypotheses

    def _prediction(self, hypothesis: Hypothesis, item: Item, reread: Hypothesis) -> Prediction:
        tokens, weights = hypothesis.tokens, hypothesis.weights
        source, target = self._token_texts(tokens, item)
        # The row of EOS belongs to no token that is shown.
        weights = None if weights is None else weights[: len(tokens)].cpu()
        text = self._text(reread, item, source)
        if self.replacement is not None:
            target = self.replacement.target_tokens(reread, source, target)
        return Prediction(text, hypothesis.score, source, target, weights, tokens)

    def _token_texts(self, tokens: list[int], item: Item) -> tuple[list[str], list[str]]:
        if not isinstance(self.codec, TokenTexts):
            return [], []
        return self.codec.source_tokens(item), self.codec.target_tokens(tokens, item)

    def _text(self, hypothesis: Hypothesis, item: Item, source: list[str]) -> str:
        if self.replacement is None:
            return self.codec.decode(hypothesis.tokens, item)
        return self.replacement.text(
            hypothesis, source, lambda tokens: self.codec.decode(tokens, item) if tokens else ""
        )


def _has_content(item: Item | None) -> TypeGuard[Item]:
    return item is not None and not (isinstance(item, str) and not item.strip())
