"""Text as subwords: byte-pair encoding over characters (Sennrich et al. 2016)."""

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
    """Frequent words are tokens, rare ones are made of several; merges never cross words.

    Characters not seen in building are `UNKNOWN`, a run of them in a word one token.
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
        """Learn merges of what is seen twice, up to `size` tokens; every character is one."""
        check_int("size", size, len(SPECIAL) + 1)
        tokenizer = tokenizers.Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = splitter
        # The names are only reserved here: the model that cuts texts does not look for them.
        trainer = trainers.BpeTrainer(
            vocab_size=size, special_tokens=list(SPECIAL), show_progress=False, min_frequency=2
        )
        texts = (with_space(cls.prepare(line, normal)) for line in lines if line)
        tokenizer.train_from_iterator(texts, trainer)
        model = json.loads(tokenizer.to_str())["model"]
        ranked = sorted(model["vocab"], key=model["vocab"].__getitem__)
        if len(ranked) > size:
            raise DataError(
                f"a vocabulary of {size} subwords has no room for the {len(ranked)} characters of "
                f"this text, special tokens included. Ask for {len(ranked)} or more."
            )
        return cls(ranked[len(SPECIAL) :], [(a, b) for a, b in model["merges"]], normal)

    @classmethod
    def from_dict(cls, described: dict[str, Any]) -> "Subwords":
        """What `described` told."""
        merges = [(first, second) for first, second in described["merges"]]
        return cls(described["pieces"], merges, described["normal"])

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
