"""Batches in the order of a plan, from any position in it: resumable without state of its own."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from regard.seq2seq.batch import Batch, Codec, Corpus
from regard.seq2seq.errors import DataError

Plan = Callable[[int], list[list[int]]]
"""The batches of an epoch as numbers of items: a pure function of the epoch, counted from 0."""


class BatchStream:
    """Yields the batches of each update and tracks its position.

    `epoch` and `position` point at the next update: a stream that starts there yields the same
    batches as this one would.
    """

    def __init__(
        self, corpus: Corpus[Any], codec: Codec[Any, Any], plan: Plan, accumulate: int = 1
    ) -> None:
        self._corpus, self._codec, self._plan = corpus, codec, plan
        self._accumulate = accumulate
        self.epoch, self.position = 0, 0

    def __iter__(self) -> Iterator[list[Batch]]:
        while True:
            batches = self._plan(self.epoch)
            if not batches:
                raise DataError(f"epoch {self.epoch} has no batches. Give at least one example.")
            starts = range(0, len(batches), self._accumulate)
            if self.position >= len(starts):
                raise DataError(
                    f"epoch {self.epoch} has {len(starts)} updates, but the checkpoint was saved "
                    f"after {self.position} of them. It belongs to other examples: train in "
                    "another folder."
                )
            for position in range(self.position, len(starts)):
                start = starts[position]
                parts = [self._batch(n) for n in batches[start : start + self._accumulate]]
                last = position + 1 == len(starts)
                self.epoch, self.position = (
                    (self.epoch + 1, 0) if last else (self.epoch, position + 1)
                )
                yield parts

    def _batch(self, numbers: Sequence[int]) -> Batch:
        return self._codec.collate(numbers, [self._corpus[number] for number in numbers])
