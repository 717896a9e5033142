"""Pairs of text to batches, and tokens to text."""

from collections.abc import Sequence
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.seq2seq.batch import BOS, EOS, PAD, UNK, SourceTarget, Span, Tokens
from regard.seq2seq.data.formats import Pair
from regard.seq2seq.data.tokenizer import Encoding, Tokenizer
from regard.seq2seq.errors import DataError


@final
class PairCodec:
    """A `Codec` of pairs.

    A source ends with EOS, of an empty span, so that an empty source has a position to attend to.
    A target is BOS, its tokens, EOS. If copying, a source word that the target vocabulary lacks
    gets an id past it, in the target, too: a model embeds such an id as UNK, and learns to copy it.

    Args:
        source_tokenizer: for sources.
        target_tokenizer: for targets; may be the same.
        copying: give source tokens their target ids, for a pointer-generator.
        nulls: link a target token without links to the source's EOS.
    """

    def __init__(
        self,
        source_tokenizer: Tokenizer,
        target_tokenizer: Tokenizer,
        *,
        copying: bool = False,
        nulls: bool = False,
    ) -> None:
        self.source_tokenizer = source_tokenizer
        self.target_tokenizer = target_tokenizer
        self.copying = copying
        self._nulls = nulls

    def sizes(self, item: Pair) -> tuple[int, int]:
        """Tokens of the source and of the target, BOS and EOS included."""
        source = len(self.source_tokenizer.encode(item.source).ids) + 1
        if item.target is None:
            return source, 0
        return source, len(self.target_tokenizer.encode(item.target).ids) + 2

    def collate(self, numbers: Sequence[int], items: Sequence[Pair]) -> SourceTarget:
        sources = [self.source_tokenizer.encode(item.source) for item in items]
        own = [self._extra_ids(source) for source in sources] if self.copying else []
        batch = SourceTarget(
            list(numbers),
            _tokens([[*source.ids, EOS] for source in sources], _source_spans(sources, items)),
        )
        if self.copying:
            batch.copy_ids = _padded(
                [
                    [*self._copy_ids(source.pieces, words), EOS]
                    for source, words in zip(sources, own, strict=True)
                ]
            )
            batch.extra_vocab = max((len(words) for words in own), default=0)
        if items and all(item.target is not None for item in items):
            self._add_targets(batch, items, own)
        return batch

    def collate_hypotheses(
        self, items: Sequence[Pair], tokens: Sequence[Sequence[int]], spans: Sequence[list[Span]]
    ) -> SourceTarget:
        """A batch of sources with their hypotheses as targets: token ids and spans."""
        batch = self.collate(range(len(items)), [Pair(i.source, None, i.line) for i in items])
        rows = [[BOS, *ids, EOS] for ids in tokens]
        ends = [max((end for _, end in own), default=0) for own in spans]
        places = [[(0, 0), *own, (end, end)] for own, end in zip(spans, ends, strict=True)]
        batch.target = _tokens(rows, places)
        return batch

    def decode(self, tokens: Sequence[int], item: Pair) -> str:
        return self.target_tokenizer.detokenize(self.target_tokens(tokens, item))

    def source_tokens(self, item: Pair) -> list[str]:
        """One a source position; that of EOS is empty."""
        return [*self.source_tokenizer.encode(item.source).pieces, ""]

    def target_tokens(self, tokens: Sequence[int], item: Pair) -> list[str]:
        """One a token."""
        copied = self.copying and any(token >= len(self.target_tokenizer) for token in tokens)
        own = list(self._extra_ids(self.source_tokenizer.encode(item.source))) if copied else []
        try:
            return self.target_tokenizer.to_pieces(tokens, own)
        except IndexError:
            size = len(self.target_tokenizer)
            raise DataError(
                f"token {max(tokens)} is past the vocabulary of {size} and past "
                f"the {len(own)} extra words of the source in line {item.line}."
            ) from None

    def _extra_ids(self, source: Encoding) -> dict[str, int]:
        """Source words that the target vocabulary lacks, with their ids past it."""
        new = (piece for piece in source.pieces if self.target_tokenizer.number(piece) is None)
        return {piece: len(self.target_tokenizer) + n for n, piece in enumerate(dict.fromkeys(new))}

    def _copy_ids(self, pieces: Sequence[str], own: dict[str, int]) -> list[int]:
        """Target ids, past the vocabulary for words of `own`."""
        numbers = (self.target_tokenizer.number(piece) for piece in pieces)
        return [
            own.get(piece, UNK) if number is None else number
            for piece, number in zip(pieces, numbers, strict=True)
        ]

    def _add_targets(
        self, batch: SourceTarget, items: Sequence[Pair], own: Sequence[dict[str, int]]
    ) -> None:
        targets = [self.target_tokenizer.encode(item.target or "") for item in items]
        rows = [target.ids for target in targets]
        if self.copying:
            rows = [self._copy_ids(t.pieces, words) for t, words in zip(targets, own, strict=True)]
        places = [
            [(0, 0), *target.spans, (len(item.target or ""),) * 2]
            for target, item in zip(targets, items, strict=True)
        ]
        batch.target = _tokens([[BOS, *row, EOS] for row in rows], places)
        if any(item.links is not None for item in items):
            batch.links = self._link_weights(batch.source, batch.target, items)

    def _link_weights(
        self, source: Tokens, target: Tokens, items: Sequence[Pair]
    ) -> Float[Tensor, "batch target source"]:
        """Gold weights: rows for all targets but BOS; linked columns share 1."""
        gold = torch.zeros(len(items), target.ids.shape[1] - 1, source.ids.shape[1])
        for row, item in enumerate(items):
            for ours, theirs in item.links or ():
                columns = _overlapping(source.spans[row], ours)
                for line in _overlapping(target.spans[row][1:], theirs):
                    gold[row, line, columns] = 1
            if self._nulls:
                words = gold[row, : len(target.spans[row]) - 2]
                words[words.sum(-1) == 0, len(source.spans[row]) - 1] = 1
        return gold / gold.sum(-1, keepdim=True).clamp(min=1)


def _source_spans(sources: Sequence[Encoding], items: Sequence[Pair]) -> list[list[Span]]:
    return [
        [*source.spans, (len(item.source),) * 2]
        for source, item in zip(sources, items, strict=True)
    ]


def _overlapping(spans: Sequence[Span], link: Span) -> list[int]:
    """Tokens that overlap the span."""
    return [n for n, (start, end) in enumerate(spans) if max(start, link[0]) < min(end, link[1])]


def _tokens(rows: Sequence[Sequence[int]], spans: list[list[Span]]) -> Tokens:
    return Tokens(_padded(rows), torch.tensor([len(row) for row in rows], dtype=torch.long), spans)


def _padded(rows: Sequence[Sequence[int]]) -> Int[Tensor, "batch length"]:
    longest = max((len(row) for row in rows), default=0)
    filled = [[*row, *[PAD] * (longest - len(row))] for row in rows]
    return torch.tensor(filled, dtype=torch.long).reshape(len(rows), longest)
