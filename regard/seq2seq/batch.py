"""From a file to a model: corpus, item, codec, batch."""

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
"""Start and end of something in a text, in characters; the end is exclusive."""

Item_co = TypeVar("Item_co", covariant=True)
Item_contra = TypeVar("Item_contra", contravariant=True)
Batch_co = TypeVar("Batch_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault in the data, with its location: for `check`, and for training to stop at."""

    kind: str
    """A short name, the same for all of its kind: "empty side", "invalid UTF-8"."""

    message: str
    """One sentence that says what is wrong there, with an excerpt."""

    path: str
    line: int | None = None
    """Counted from 1; None for a fault of the file as a whole."""

    severe: bool = True
    """Must training stop for it? A warning need not."""

    item: int | None = None
    """The number of the corpus item that has it, which need not be its line; None for a file."""


@runtime_checkable
class Corpus(Protocol[Item_co]):
    """Examples by number, from files, in no training order."""

    @property
    def paths(self) -> Sequence[str]:
        """The files that it is read from."""

    def __len__(self) -> int: ...

    def __getitem__(self, number: int) -> Item_co: ...

    def faults(self, *, duplicates: bool = True) -> Iterator[Fault]:
        """What is wrong, in the order of the file. To find duplicates takes memory."""

    def where(self, number: int) -> str:
        """The location of an item, for messages: "train.conllu, line 312"."""

    def fingerprints(self) -> Mapping[str, str]:
        """SHA-256 of the content by the role of a file: "pairs", "links"."""


@runtime_checkable
class Source(Protocol):
    """What an encoder reads, padded at the end: tokens, frames, patches, statements."""

    lengths: Int[Tensor, " batch"]
    spans: list[list[Span]]
    """The span of each position in the input; empty if not requested."""

    def to(self, device: torch.device | str) -> "Source": ...


@dataclass(slots=True)
class Tokens:
    """Sequences of ids, padded at the end."""

    ids: Int[Tensor, "batch length"]
    lengths: Int[Tensor, " batch"]
    spans: list[list[Span]] = field(default_factory=list)
    """The span of each token in its text; empty if not requested."""

    def to(self, device: torch.device | str) -> "Tokens":
        """The same on another device."""
        return Tokens(self.ids.to(device), self.lengths.to(device), self.spans)


S = TypeVar("S", bound=Source, default=Tokens)
"""The kind of source; tokens unless it is named."""


@runtime_checkable
class Batch(Protocol):
    """Some examples, ready for a model."""

    items: Sequence[int]
    """Their numbers in the corpus, for error messages."""

    def counts(self) -> Mapping[str, int]:
        """What each loss term is divided by; known before the loss is computed.

        So gradients can be accumulated over parts of a batch with the same result.
        """

    def to(self, device: torch.device | str) -> "Batch": ...


@dataclass(slots=True)
class SourceTarget(Generic[S]):
    """Sources with their targets, if these are known, row by row."""

    items: Sequence[int]
    source: S
    target: Tokens | None = None
    """BOS, the tokens, EOS: all but the last are inputs, all but the first are labels."""

    copy_ids: Int[Tensor, "batch source"] | None = None
    """For copying: each source token as an id of the target. Out-of-vocabulary words have ids from
    the vocabulary's size on, the same for the same word of one source."""

    extra_vocab: int = 0
    """Maximum number of ids past the vocabulary in this batch."""

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

        def move(tensor: Tensor | None) -> Tensor | None:
            return None if tensor is None else tensor.to(device)

        target = None if self.target is None else self.target.to(device)
        return SourceTarget(
            self.items, cast("S", self.source.to(device)), target,
            move(self.copy_ids), self.extra_vocab, move(self.links),
        )  # fmt: skip


@runtime_checkable
class Codec(Protocol[Item_contra, Batch_co]):
    """Examples to batches."""

    def sizes(self, item: Item_contra) -> tuple[int, ...]:
        """The length of each side: batches are planned by the longest."""

    def collate(self, numbers: Sequence[int], items: Sequence[Item_contra]) -> Batch_co: ...


@runtime_checkable
class TextCodec(Codec[Item_contra, Batch_co], Protocol[Item_contra, Batch_co]):
    """A codec that also detokenizes."""

    def decode(self, tokens: Sequence[int], item: Item_contra) -> str:
        """The text. Ids past the vocabulary are words of this item's own source."""
