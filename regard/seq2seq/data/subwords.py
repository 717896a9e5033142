"""A subword tokenizer: byte-pair encoding over characters (Sennrich et al. 2016)."""

import json
from collections.abc import Iterable, Sequence
from typing import Any, final

import tokenizers
from tokenizers import models, trainers

from regard.attention.core.options import check_int
from regard.seq2seq.batch import UNK
from regard.seq2seq.data.tokenizer import SPECIAL, Encoding, Normal, Tokenizer
from regard.seq2seq.data.words import splitter, with_space, without_space
from regard.seq2seq.errors import DataError


@final
class Subwords(Tokenizer):
    """Byte-pair encoding (BPE); merges never cross words.

    Characters not seen in training are UNK, a run of them in a word one token.
    """

    kind = "subwords"

    def __init__(
        self, pieces: Sequence[str], merges: Sequence[tuple[str, str]], normal: Normal = None
    ) -> None:
        super().__init__(pieces, normal)
        self._merges = tuple(merges)
        numbers = {piece: number for number, piece in enumerate(self.pieces)}
        model = models.BPE(numbers, list(merges), unk_token=SPECIAL[UNK], fuse_unk=True)
        self._tokenizer = tokenizers.Tokenizer(model)
        self._tokenizer.pre_tokenizer = splitter

    @classmethod
    def build(cls, lines: Iterable[str], size: int = 8000, normal: Normal = None) -> "Subwords":
        """Learn merges of pairs seen twice or more, up to `size` tokens."""
        check_int("size", size, len(SPECIAL) + 1)
        tokenizer = tokenizers.Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = splitter
        # The names are only reserved: the model does not search texts for them.
        trainer = trainers.BpeTrainer(
            vocab_size=size, special_tokens=list(SPECIAL), show_progress=False, min_frequency=2
        )
        texts = (with_space(cls.prepare(line, normal)) for line in lines if line)
        tokenizer.train_from_iterator(texts, trainer)
        model = json.loads(tokenizer.to_str())["model"]
        ranked = sorted(model["vocab"], key=model["vocab"].__getitem__)
        if len(ranked) > size:
            raise DataError(
                f"a vocabulary of {size} subwords is smaller than the {len(ranked)} characters of "
                f"this text, special tokens included. Give {len(ranked)} or more."
            )
        return cls(ranked[len(SPECIAL) :], [(a, b) for a, b in model["merges"]], normal)

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> "Subwords":
        """The inverse of `to_dict`."""
        merges = [(first, second) for first, second in fields["merges"]]
        return cls(fields["pieces"], merges, fields["normal"])

    def to_dict(self) -> dict[str, Any]:
        return super().to_dict() | {"merges": [list(pair) for pair in self._merges]}

    def tokenize(self, text: str) -> Encoding:
        if not text:
            return Encoding([], [], [])
        spaced = with_space(text)
        found = self._tokenizer.encode(spaced, add_special_tokens=False)
        pieces = [spaced[start:end] for start, end in found.offsets]
        return Encoding(found.ids, [without_space(span) for span in found.offsets], pieces)

    def detokenize(self, pieces: Iterable[str]) -> str:
        return "".join(pieces).removeprefix(" ")
