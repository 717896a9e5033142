"""A small model and corpus: dropout, a tied weight, a changing buffer, two loss terms."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from regard.seq2seq.batch import BOS, EOS, Batch, Fault, SourceTarget, Tokens
from regard.seq2seq.protocols import Loss, LossTerm
from regard.seq2seq.training import (
    Outcome,
    TrainingJob,
    TrainingOptions,
    derive_seed,
    run,
    seed_torch,
)

VOCABULARY, SIZE = 13, 7
OPTIONS = TrainingOptions(
    steps=23, save_every=5, validate_every=4, keep=2, seed=3, rate=0.05, warmup=3,
    ema=0.9, accumulate=2, threads=1,
)  # fmt: skip

Example = tuple[list[int], list[int]]


class Toy(nn.Module):
    def __init__(self, dropout: float = 0.3) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, SIZE)
        self.hidden = nn.Linear(SIZE, SIZE)
        self.dropout = nn.Dropout(dropout)
        self.out = nn.Linear(SIZE, VOCABULARY)
        self.out.weight = self.embedding.weight
        self.register_buffer("seen", torch.zeros(()))
        self.seen: Tensor

    def forward(self, batch: Batch) -> Loss:
        assert isinstance(batch, SourceTarget)
        assert batch.target is not None
        if self.training:
            self.seen += len(batch.items)
        source, target = batch.source, batch.target
        there = torch.arange(source.ids.shape[1]) < source.lengths[:, None]
        summary = (self.embedding(source.ids) * there[..., None]).sum(1) / source.lengths[:, None]
        hidden = torch.tanh(self.hidden(self.embedding(target.ids[:, :-1]) + summary[:, None]))
        logits = self.out(self.dropout(hidden))
        real = torch.arange(target.ids.shape[1] - 1) < target.lengths[:, None] - 1
        losses = nn.functional.cross_entropy(logits[real], target.ids[:, 1:][real], reduction="sum")
        counts = batch.counts()
        return {
            "tokens": LossTerm(losses, counts["tokens"]),
            "summary": LossTerm(summary.square().sum(), counts["sentences"], 0.1, unit="sentences"),
        }


class Examples:
    def __init__(self, number: int = 37) -> None:
        draw = torch.Generator().manual_seed(5)

        def words() -> list[int]:
            length = int(torch.randint(1, 6, (), generator=draw))
            return torch.randint(4, VOCABULARY, (length,), generator=draw).tolist()

        self.pairs: list[Example] = [(words(), words()) for _ in range(number)]

    def __len__(self) -> int:
        return len(self.pairs)

    def __getitem__(self, number: int) -> Example:
        return self.pairs[number]

    paths = ("toy",)

    def faults(self, *, duplicates: bool = True) -> Iterator[Fault]:
        return iter(())

    def where(self, number: int) -> str:
        return f"toy, line {number + 1}"

    def fingerprints(self) -> dict[str, str]:
        return {"toy": "0"}


class Code:
    def sizes(self, item: Example) -> tuple[int, ...]:
        return tuple(len(side) for side in item)

    def collate(self, numbers: Sequence[int], items: Sequence[Example]) -> SourceTarget:
        sources = padded([source for source, _ in items])
        return SourceTarget(numbers, sources, padded([[BOS, *target, EOS] for _, target in items]))

    def decode(self, tokens: Sequence[int], item: Example) -> str:
        return " ".join(str(token) for token in tokens)


def padded(rows: list[list[int]]) -> Tokens:
    ids = [torch.tensor(row) for row in rows]
    lengths = torch.tensor([len(row) for row in rows])
    return Tokens(nn.utils.rnn.pad_sequence(ids, batch_first=True), lengths)


def plan(epoch: int) -> list[list[int]]:
    """Seven batches in an order of the epoch's own; the last is smaller, and so is its update."""
    draw = torch.Generator().manual_seed(derive_seed(3, "order", epoch))
    order = torch.randperm(37, generator=draw).tolist()
    return [order[start : start + 6] for start in range(0, 37, 6)]


def validate(model: nn.Module, step: int) -> dict[str, float]:
    """A judgement that is drawn, in part: it must be drawn alike after a stop."""
    weight = model.get_parameter("hidden.weight")
    return {"loss": float(weight.square().mean() + 0.1 * torch.rand(())), "luck": step % 3}


def job(**changed: Any) -> TrainingJob:
    seed_torch(OPTIONS.seed, "initialisation")
    parts: dict[str, Any] = {
        "model": Toy(), "corpus": Examples(), "codec": Code(), "plan": plan, "validate": validate,
        "settings": {"model": {"kind": "toy", "size": SIZE}}, "data": {"train": "abc"},
    }  # fmt: skip
    return TrainingJob(**parts | changed)


def train(directory: Path, options: TrainingOptions = OPTIONS, **more: Any) -> Outcome:
    return run(directory, job(), options, **more)


def left(directory: Path) -> dict[str, bytes]:
    """All that must be equal: the log, and the files of the last checkpoint."""
    last = max((directory / "checkpoints").glob("step-*"))
    files = {path.name: path.read_bytes() for path in last.iterdir()}
    return {"name": last.name.encode(), "log": (directory / "log.jsonl").read_bytes(), **files}
