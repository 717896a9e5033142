"""Pairs of text to batches, and tokens back to text."""

from collections.abc import Sequence
from typing import Protocol, final, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.seq2seq.batch import BOS, EOS, PAD, UNK, SourceTarget, Span, Tokens
from regard.seq2seq.data.formats import Pair
from regard.seq2seq.data.tokenizer import Encoding, Tokenizer
from regard.seq2seq.errors import DataError

Link = tuple[Span, Span]
"""Characters of a source that belong to characters of its target."""


@runtime_checkable
class GoldLinks(Protocol):
    """The links of each item of a corpus, by its number."""

    def __getitem__(self, number: int, /) -> Sequence[Link]: ...


@final
class PairCodec:
    """A `Codec` of pairs.

    A source ends with `END`, so that an empty one has a position to read; its place is empty. A
    target is `BEGIN`, its tokens, `END`. If copying, a word of the source that the target's
    vocabulary lacks gets an id past it, in the target too: a model takes such an id in as
    `UNKNOWN`, and learns to give it out.

    Args:
        source_text: how sources become tokens.
        target_text: how targets do; may be the same.
        copying: give source tokens their ids as words of the target.
        links: for each item of the corpus which characters belong together, for guided training.
        nulls: link a target token without links to the source's end, where nothing is read.
    """

    def __init__(
        self,
        source_text: Tokenizer,
        target_text: Tokenizer,
        *,
        copying: bool = False,
        links: GoldLinks | None = None,
        nulls: bool = False,
    ) -> None:
        self.source_text = source_text
        self.target_text = target_text
        self.copying = copying
        self._links, self._nulls = links, nulls

    def sizes(self, item: Pair) -> tuple[int, int]:
        """Tokens of the source and of the target, their ends included."""
        source = len(self.source_text.encode(item.source).ids) + 1
        if item.target is None:
            return source, 0
        return source, len(self.target_text.encode(item.target).ids) + 2

    def size(self, item: Pair) -> int:
        return max(self.sizes(item))

    def collate(self, numbers: Sequence[int], items: Sequence[Pair]) -> SourceTarget:
        sources = [self.source_text.encode(item.source) for item in items]
        own = [self._own(source) for source in sources] if self.copying else []
        batch = SourceTarget(
            list(numbers),
            _tokens([[*source.ids, EOS] for source in sources], _places(sources, items)),
        )
        if self.copying:
            batch.copy_ids = _padded(
                [
                    [*self._copies(source.pieces, words), EOS]
                    for source, words in zip(sources, own, strict=True)
                ]
            )
            batch.extra_vocab = max((len(words) for words in own), default=0)
        if items and all(item.target is not None for item in items):
            self._add_targets(batch, items, own)
        return batch

    def answered(
        self, items: Sequence[Pair], tokens: Sequence[Sequence[int]], spans: Sequence[list[Span]]
    ) -> SourceTarget:
        """A batch of sources with what a model said to each, as its tokens and where they lie."""
        batch = self.collate(range(len(items)), [Pair(i.source, None, i.line) for i in items])
        rows = [[BOS, *said, EOS] for said in tokens]
        ends = [max((end for _, end in own), default=0) for own in spans]
        places = [[(0, 0), *own, (end, end)] for own, end in zip(spans, ends, strict=True)]
        batch.target = _tokens(rows, places)
        return batch

    def decode(self, tokens: Sequence[int], item: Pair) -> str:
        return self.target_text.detokenize(self.target_tokens(tokens, item))

    def source_tokens(self, item: Pair) -> list[str]:
        """As many as a model reads; the end's is empty."""
        return [*self.source_text.encode(item.source).pieces, ""]

    def target_tokens(self, tokens: Sequence[int], item: Pair) -> list[str]:
        """As many as are given."""
        past = self.copying and any(token >= len(self.target_text) for token in tokens)
        own = list(self._own(self.source_text.encode(item.source))) if past else []
        try:
            return self.target_text.to_pieces(tokens, own)
        except IndexError:
            raise DataError(
                f"token {max(tokens)} is past the vocabulary of {len(self.target_text)} and past "
                f"the {len(own)} words of its own that the source of line {item.line} has."
            ) from None

    def _own(self, source: Encoding) -> dict[str, int]:
        """Words of a source that the target's vocabulary lacks, with their ids."""
        new = (piece for piece in source.pieces if self.target_text.number(piece) is None)
        return {piece: len(self.target_text) + n for n, piece in enumerate(dict.fromkeys(new))}

    def _copies(self, pieces: Sequence[str], own: dict[str, int]) -> list[int]:
        """Ids of the target, past its vocabulary for words of the source's own."""
        numbers = (self.target_text.number(piece) for piece in pieces)
        return [
            own.get(piece, UNK) if number is None else number
            for piece, number in zip(pieces, numbers, strict=True)
        ]

    def _add_targets(
        self, batch: SourceTarget, items: Sequence[Pair], own: Sequence[dict[str, int]]
    ) -> None:
        targets = [self.target_text.encode(item.target or "") for item in items]
        rows = [target.ids for target in targets]
        if self.copying:
            rows = [self._copies(t.pieces, words) for t, words in zip(targets, own, strict=True)]
        places = [
            [(0, 0), *target.spans, (len(item.target or ""),) * 2]
            for target, item in zip(targets, items, strict=True)
        ]
        batch.target = _tokens([[BOS, *row, EOS] for row in rows], places)
        if self._links is not None:
            batch.links = self._linked(batch.source, batch.target, batch.items)

    def _linked(
        self, source: Tokens, target: Tokens, numbers: Sequence[int]
    ) -> Float[Tensor, "batch target source"]:
        """Rows as `Readable` has them: `END` included, `BEGIN` not; what is linked shares 1."""
        assert self._links is not None
        linked = torch.zeros(len(numbers), target.ids.shape[1] - 1, source.ids.shape[1])
        for row, number in enumerate(numbers):
            for ours, theirs in self._links[number]:
                columns = _touched(source.spans[row], ours)
                for line in _touched(target.spans[row][1:], theirs):
                    linked[row, line, columns] = 1
            if self._nulls:
                words = linked[row, : len(target.spans[row]) - 2]
                words[words.sum(-1) == 0, len(source.spans[row]) - 1] = 1
        return linked / linked.sum(-1, keepdim=True).clamp(min=1)


def _places(sources: Sequence[Encoding], items: Sequence[Pair]) -> list[list[Span]]:
    return [
        [*source.spans, (len(item.source),) * 2]
        for source, item in zip(sources, items, strict=True)
    ]


def _touched(spans: Sequence[Span], link: Span) -> list[int]:
    """Tokens that have a character of the link."""
    return [n for n, (start, end) in enumerate(spans) if max(start, link[0]) < min(end, link[1])]


def _tokens(rows: Sequence[Sequence[int]], spans: list[list[Span]]) -> Tokens:
    return Tokens(_padded(rows), torch.tensor([len(row) for row in rows], dtype=torch.long), spans)


def _padded(rows: Sequence[Sequence[int]]) -> Int[Tensor, "batch length"]:
    longest = max((len(row) for row in rows), default=0)
    filled = [[*row, *[PAD] * (longest - len(row))] for row in rows]
    return torch.tensor(filled, dtype=torch.long).reshape(len(rows), longest)
