"""A model that is a table: the next token's distribution is drawn once for each item and prefix."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from regard.seq2seq.batch import BOS, EOS, Batch, SourceTarget, Tokens
from regard.seq2seq.protocols import DecodeStep, Hypothesis, StepperState

WORDS = 5
Prefix = tuple[int, ...]


def batch_of(*items: int) -> SourceTarget:
    """Sources of different lengths, by their items' numbers."""
    lengths = torch.tensor([source_length(item) for item in items])
    ids = torch.zeros(len(items), int(lengths.max()), dtype=torch.int64)
    return SourceTarget(items, Tokens(ids, lengths))


def source_length(item: int) -> int:
    return 2 + item % 3


@dataclass
class Toy:
    """Log-probabilities and weights are functions of (seed, item, prefix)."""

    seed: int = 0
    words: int = WORDS
    ending: float = 0.0
    """Added to the log-odds of EOS."""

    calls: list[str] = field(default_factory=list)
    rows: int = 0
    """How many rows were computed in all."""

    def start(self, batch: Batch, width: int) -> "Prefixes":
        self.calls.append("start")
        columns = max(source_length(item) for item in batch.items)
        return Prefixes(self, list(batch.items), [[()] * width for _ in batch.items], columns)

    def step(self, tokens: Tensor, state: StepperState) -> DecodeStep:
        assert isinstance(state, Prefixes)
        self.calls.append("step")
        prefixes = [
            [(*prefix, token) for prefix, token in zip(beams, row, strict=True)]
            for beams, row in zip(state.prefixes, tokens.tolist(), strict=True)
        ]
        after = Prefixes(self, state.items, prefixes, state.columns)
        self.rows += tokens.numel()
        log_probs, weights = [], []
        for item, beams in zip(state.items, prefixes, strict=True):
            rows = {prefix: self.row(item, prefix[1:]) for prefix in set(beams)}
            log_probs.append(torch.stack([rows[prefix][0] for prefix in beams]))
            read = torch.stack([rows[prefix][1] for prefix in beams])
            padding = state.columns - read.shape[-1]
            weights.append(torch.nn.functional.pad(read, (0, padding)))
        assert all(prefix[0] == BOS for beams in prefixes for prefix in beams)
        return DecodeStep(torch.stack(log_probs), after, torch.stack(weights))

    def row(self, item: int, prefix: Prefix) -> tuple[Tensor, Tensor]:
        """Log-probabilities of the next token, and its weights."""
        draw = random.Random(f"{self.seed}/{item}/{prefix}")
        odds = [draw.gauss(0, 1.5) for _ in range(self.words)]
        odds[EOS] += self.ending
        read = [draw.gauss(0, 1) for _ in range(source_length(item))]
        return torch.tensor(odds).double().log_softmax(-1), torch.tensor(read).softmax(-1)

    def log_prob(self, item: int, tokens: Sequence[int]) -> float:
        """Of all these tokens."""
        steps = (
            self.row(item, tuple(tokens[:place]))[0][token] for place, token in enumerate(tokens)
        )
        return float(sum(steps))

    def read(self, item: int, tokens: Sequence[int]) -> Tensor:
        """The weights of each of these tokens."""
        return torch.stack([self.row(item, tuple(tokens[:at]))[1] for at in range(len(tokens))])

    def owns(self, item: int, found: Hypothesis) -> None:
        """Assert that a hypothesis has its own log-probability and its own weights."""
        tokens = [*found.tokens, EOS] if found.ended else found.tokens
        assert abs(found.log_prob - self.log_prob(item, tokens)) < 1e-9
        assert found.weights is not None
        torch.testing.assert_close(found.weights, self.read(item, tokens), rtol=0, atol=0)


@dataclass
class Prefixes:
    """The tokens so far of each beam."""

    toy: Toy
    items: list[int]
    prefixes: list[list[Prefix]]
    columns: int

    @property
    def source_lengths(self) -> Tensor:
        return torch.tensor([source_length(item) for item in self.items])

    def reorder(self, beams: Tensor) -> "Prefixes":
        self.toy.calls.append("reorder")
        rows = zip(self.prefixes, beams.tolist(), strict=True)
        prefixes = [[old[beam] for beam in new] for old, new in rows]
        return Prefixes(self.toy, self.items, prefixes, self.columns)

    def keep(self, sentences: Tensor) -> "Prefixes":
        self.toy.calls.append("keep")
        kept = sentences.tolist()
        assert kept == sorted(set(kept))
        assert 0 < len(kept) < len(self.items)
        items, prefixes = [self.items[row] for row in kept], [self.prefixes[row] for row in kept]
        return Prefixes(self.toy, items, prefixes, self.columns)
