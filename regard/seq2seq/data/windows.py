"""One stream for every predictor: answers in the order of the items, in bounded memory."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

from regard.seq2seq.batch import Codec
from regard.seq2seq.data.batches import plan_batches

WINDOW, TOKENS = 4096, 4096
"""Items held at once, and tokens in a batch."""

Item = TypeVar("Item")
Answer = TypeVar("Answer")
Progress = Callable[[int], None]
"""Called with the number of items done so far."""

BatchPlanner = Callable[[Sequence[Item]], Iterable[Sequence[int]]]
"""The positions of a window's items, batch by batch; each is in one of them."""


def windowed(
    items: Iterable[Item],
    batches: BatchPlanner[Item],
    answer: Callable[[Sequence[int], Sequence[Item]], Iterable[Answer]],
    progress: Progress | None = None,
    window: int | None = None,
) -> Iterator[Answer]:
    """Answer N is the answer to item N; a window of items is held at a time.

    Args:
        items: Any number of them.
        batches: Which items of a window are computed together.
        answer: Answers a batch, given the items' numbers in the stream and the items.
        progress: Called after each batch.
        window: How many items are held; `WINDOW` unless given.
    """
    numbered, done = enumerate(items), 0
    while held := list(islice(numbered, WINDOW if window is None else window)):
        answers: dict[int, Answer] = {}
        for positions in batches([item for _, item in held]):
            numbers = [held[position][0] for position in positions]
            batch = [held[position][1] for position in positions]
            answers.update(zip(numbers, answer(numbers, batch), strict=True))
            if progress is not None:
                progress(done + len(answers))
        done += len(held)
        for number, _ in held:
            yield answers.pop(number)


def by_length(codec: Codec[Item, object], tokens: int | None = None) -> BatchPlanner[Item]:
    """Items of about the same length together, so that there is little padding."""

    def batches(items: Sequence[Item]) -> list[list[int]]:
        sizes = [max(codec.sizes(item)) for item in items]
        return plan_batches(sizes, seed=0, epoch=0, tokens=TOKENS if tokens is None else tokens)

    return batches
