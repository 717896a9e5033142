"""Examples on their way from a file to a model: what each stage hands to the next."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, cast, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor
from typing_extensions import TypeVar

PAD, BOS, EOS, UNK = range(4)
"""The first ids of every vocabulary."""

Span = tuple[int, int]
"""Where something lies in a text: from this character on, up to that one."""

Item_co = TypeVar("Item_co", covariant=True)
Item_contra = TypeVar("Item_contra", contravariant=True)
Batch_co = TypeVar("Batch_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Fault:
    """Something wrong with the data, with its place: for `check`, and for training to stop at."""

    kind: str
    """A short name, the same for all of its kind: "empty side", "invalid UTF-8"."""

    message: str
    """One sentence that says what is wrong there, with an excerpt."""

    path: str
    line: int | None = None
    """Counted from 1; None for what is wrong with a file as a whole."""

    severe: bool = True
    """Must training stop for it? A warning need not."""

    item: int | None = None
    """The number of the corpus item that has it, which need not be its line; None for a file."""


@runtime_checkable
class Corpus(Protocol[Item_co]):
    """Examples by number, from files. In which order they are seen is not its business."""

    @property
    def paths(self) -> Sequence[str]:
        """The files that it is read from."""

    def __len__(self) -> int: ...

    def __getitem__(self, number: int) -> Item_co: ...

    def faults(self, *, duplicates: bool = True) -> Iterator[Fault]:
        """What is wrong, in the order of the file. To find duplicates takes memory."""

    def where(self, number: int) -> str:
        """The place of an item for people: "train.conllu, line 312"."""

    def fingerprints(self) -> Mapping[str, str]:
        """SHA-256 of the content by the role of a file: "pairs", "links"."""


@runtime_checkable
class Source(Protocol):
    """What an encoder reads, padded at the end: tokens, frames, patches, statements."""

    lengths: Int[Tensor, " batch"]
    spans: list[list[Span]]
    """Where each position lies for people; empty if nobody asked."""

    def to(self, device: torch.device | str) -> "Source": ...


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


S = TypeVar("S", bound=Source, default=Tokens)
"""The kind of source; tokens unless it is named."""


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
class SourceTarget(Generic[S]):
    """Sources with their targets, if these are known. Rows of both belong together."""

    items: Sequence[int]
    source: S
    target: Tokens | None = None
    """BOS, the words, EOS: all but the last go in, all but the first come out."""

    copy_ids: Int[Tensor, "batch source"] | None = None
    """For copying: each source token as an id of the target. Words that its vocabulary lacks have
    ids from its size on, the same for the same word of one source."""

    extra_vocab: int = 0
    """How many ids past the vocabulary there are at most in this batch."""

    links: Float[Tensor, "batch target source"] | None = None
    """Given alignments, for guided training: rows sum to 1, or to 0 where nothing is linked."""

    def counts(self) -> Mapping[str, int]:
        """Target tokens, EOS among them and BOS not; sentences; tokens that are linked."""
        if self.target is None:
            return {"sentences": len(self.items)}
        tokens = int(self.target.lengths.sum()) - len(self.items)
        linked = {} if self.links is None else {"links": int((self.links.sum(-1) > 0).sum())}
        return {"tokens": tokens, "sentences": len(self.items), **linked}

    def to(self, device: torch.device | str) -> "SourceTarget[S]":
        """The same on another device."""

        def there(tensor: Tensor | None) -> Tensor | None:
            return None if tensor is None else tensor.to(device)

        target = None if self.target is None else self.target.to(device)
        return SourceTarget(
            self.items, cast("S", self.source.to(device)), target,
            there(self.copy_ids), self.extra_vocab, there(self.links),
        )  # fmt: skip


@runtime_checkable
class Codec(Protocol[Item_contra, Batch_co]):
    """Examples to batches."""

    def sizes(self, item: Item_contra) -> tuple[int, ...]:
        """How long it is, side by side: batches are planned by the longest."""

    def collate(self, numbers: Sequence[int], items: Sequence[Item_contra]) -> Batch_co: ...


@runtime_checkable
class TextCodec(Codec[Item_contra, Batch_co], Protocol[Item_contra, Batch_co]):
    """A codec that also turns a model's tokens back into text."""

    def decode(self, tokens: Sequence[int], item: Item_contra) -> str:
        """A text. Ids past the vocabulary are words of this item's own source."""
