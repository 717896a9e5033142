"""A tagger: p(label | word, sentence), one label a word."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from regard.attention.masks import Lengths
from regard.attention.multihead import MultiHead
from regard.seq2seq.batch import UNK, Batch, Tokens
from regard.seq2seq.encoders import EncoderBody
from regard.seq2seq.errors import DataError
from regard.seq2seq.nn.dropout import Dropout
from regard.seq2seq.nn.embeddings import build_embedding
from regard.seq2seq.protocols import Loss, LossTerm


@dataclass(slots=True)
class TaggingBatch:
    """Sentences of words with their characters, and their labels if these are known."""

    items: Sequence[int]
    words: Tokens
    characters: Int[Tensor, "batch word character"]
    """0 is padding."""

    labels: Int[Tensor, "batch word"] | None = None
    """−1 where a label is not among those that were trained on, and in the padding."""

    def counts(self) -> Mapping[str, int]:
        """Labelled words, and sentences."""
        tokens = 0 if self.labels is None else int((self.labels >= 0).sum())
        return {"tokens": tokens, "sentences": len(self.items)}

    def to(self, device: torch.device | str) -> "TaggingBatch":
        """The same on another device."""
        labels = None if self.labels is None else self.labels.to(device)
        return TaggingBatch(
            self.items, self.words.to(device), self.characters.to(device), labels
        )  # fmt: skip


@dataclass(slots=True)
class Tagged:
    """What a tagger computed for a batch."""

    logits: Float[Tensor, "batch word label"]
    weights: Float[Tensor, "batch heads word word"]
    """What each word attended to."""


class CharacterCNN(nn.Module):
    """A vector for how a word is spelt: a convolution and a maximum (Ma 2016, section 2.1).

    Args:
        vocab_size: How many characters there are.
        embedding_size: Size of a character's vector.
        size: Size of the word's.
    """

    def __init__(self, vocab_size: int, embedding_size: int, size: int) -> None:
        super().__init__()
        self.embedding = build_embedding(vocab_size, embedding_size)
        self.convolution = nn.Conv1d(embedding_size, size, 3, padding=1)

    def forward(self, characters: Int[Tensor, "word character"]) -> Float[Tensor, "word size"]:
        real = (characters > 0)[:, None]
        vectors = self.embedding(characters).mT.masked_fill(~real, 0.0)
        features = self.convolution(vectors).relu()
        return features.masked_fill(~real, 0.0).amax(-1)


class Tagger(nn.Module):
    """Words and characters, an encoder's body, self-attention, one label a word.

    Args:
        word_count: Size of the vocabulary of words.
        embedding_size: Size of a word's own vector.
        characters: Makes a vector of a word's characters.
        body: Runs over the vectors of a sentence.
        attention: Self-attention over what the body gives.
        labels: How many labels there are.
        dropout: Between the parts.
        word_dropout: Share of words that are UNK in training, so that UNK is trained.
    """

    def __init__(
        self,
        word_count: int,
        embedding_size: int,
        characters: CharacterCNN,
        body: EncoderBody,
        attention: MultiHead,
        labels: int,
        *,
        dropout: float = 0.0,
        word_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.embedding = build_embedding(word_count, embedding_size)
        self.characters, self.body, self.attention = characters, body, attention
        self.dropout, self.word_dropout = Dropout(dropout), word_dropout
        self.output = nn.Linear(body.out_size, labels)

    def forward(self, batch: Batch) -> Loss:
        """The cross-entropy of the labels."""
        assert isinstance(batch, TaggingBatch)
        if batch.labels is None:
            raise DataError("the batch has no labels. Give them: TaggingBatch(…, labels=…).")
        real = batch.labels >= 0
        logits = self.tag(batch).logits[real]
        total = functional.cross_entropy(logits, batch.labels[real], reduction="sum")
        return {"tokens": LossTerm(total, batch.counts()["tokens"])}

    def tag(self, batch: TaggingBatch) -> Tagged:
        """Logits of the labels, and what each word attended to."""
        lengths = batch.words.lengths
        encoded = self.body(self._vectors(batch), lengths)
        values = self.dropout(encoded.values)
        reading = self.attention(values, values, values, mask=Lengths(lengths))
        return Tagged(self.output(self.dropout(values + reading.context)), reading.weights)

    def _vectors(self, batch: TaggingBatch) -> Float[Tensor, "batch word size"]:
        ids = batch.words.ids
        if self.training and self.word_dropout:
            dropped = torch.rand(ids.shape, device=ids.device) < self.word_dropout
            ids = ids.masked_fill(dropped, UNK)
        spelling = self.characters(batch.characters.flatten(0, 1)).unflatten(0, ids.shape)
        return self.dropout(torch.cat([self.embedding(ids), spelling], -1))
