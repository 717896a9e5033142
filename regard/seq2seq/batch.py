"""Examples on their way from a file to a model: what each stage hands to the next."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

PAD, BOS, EOS, UNK = range(4)
"""The first ids of every vocabulary."""

Span = tuple[int, int]
"""Where something lies in a text: from this character on, up to that one."""

Found_co = TypeVar("Found_co", covariant=True)
Item_contra = TypeVar("Item_contra", contravariant=True)
Made_co = TypeVar("Made_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Fault:
    """Something wrong with the data, told with its place, for `check` and for whoever must stop."""

    kind: str
    """A short name, the same for all of its kind: "empty side", "invalid UTF-8"."""

    message: str
    """One sentence that says what is wrong there, with an excerpt."""

    path: str
    line: int | None = None
    """Counted from 1; None for what is wrong with a file as a whole."""

    severe: bool = True
    """Must training stop for it? A warning need not."""


@runtime_checkable
class Corpus(Protocol[Found_co]):
    """Examples by number. In which order they are seen is not its business."""

    def __len__(self) -> int: ...

    def __getitem__(self, number: int) -> Found_co: ...

    def faults(self) -> Iterator[Fault]:
        """What is wrong, in the order of the file."""


@dataclass(slots=True)
class Tokens:
    """Sequences of ids, padded at the end."""

    ids: Int[Tensor, "batch length"]
    lengths: Int[Tensor, " batch"]
    spans: list[list[Span]] = field(default_factory=list)
    """Where each token lies in its text; empty if nobody asked."""

    def to(self, device: torch.device | str) -> "Tokens":
        """The same on another device."""
        return Tokens(self.ids.to(device), self.lengths.to(device), self.spans)


@runtime_checkable
class Batch(Protocol):
    """Some examples, ready for a model."""

    items: Sequence[int]
    """Their numbers in the corpus, so that an error can name them."""

    def counts(self) -> Mapping[str, int]:
        """By how much each term of the loss will be divided; known before the loss is.

        So a batch can be taken in parts, and their gradients added, with the same result.
        """

    def to(self, device: torch.device | str) -> "Batch": ...


@dataclass(slots=True)
class SourceTarget:
    """Sources with their targets, if these are known. Rows of both belong together."""

    items: Sequence[int]
    source: Tokens
    target: Tokens | None = None
    """`BEGIN`, the words, `END`: all but the last go in, all but the first come out."""

    copy_ids: Int[Tensor, "batch source"] | None = None
    """For copying: each source token as an id of the target. Words that its vocabulary lacks have
    ids from its size on, the same for the same word of one source."""

    extra_vocab: int = 0
    """How many ids past the vocabulary there are at most in this batch."""

    links: Float[Tensor, "batch target source"] | None = None
    """Given alignments, for guided training: rows sum to 1, or to 0 where nothing is linked."""

    def counts(self) -> Mapping[str, int]:
        """Target tokens, `END` among them and `BEGIN` not; sentences; tokens that are linked."""
        if self.target is None:
            return {"sentences": len(self.items)}
        tokens = int(self.target.lengths.sum()) - len(self.items)
        linked = {} if self.links is None else {"links": int((self.links.sum(-1) > 0).sum())}
        return {"tokens": tokens, "sentences": len(self.items), **linked}

    def to(self, device: torch.device | str) -> "SourceTarget":
        """The same on another device."""

        def there(tensor: Tensor | None) -> Tensor | None:
            return None if tensor is None else tensor.to(device)

        target = None if self.target is None else self.target.to(device)
        return SourceTarget(
            self.items, self.source.to(device), target,
            there(self.copy_ids), self.extra_vocab, there(self.links),
        )  # fmt: skip


@runtime_checkable
class Codec(Protocol[Item_contra, Made_co]):
    """Examples to batches, and a model's tokens back to text."""

    def size(self, item: Item_contra) -> int:
        """How much of a batch it fills: its tokens, the longer side's."""

    def collate(self, numbers: Sequence[int], items: Sequence[Item_contra]) -> Made_co: ...

    def decode(self, tokens: Sequence[int], item: Item_contra) -> str:
        """A text. Ids past the vocabulary are words of this item's own source."""
