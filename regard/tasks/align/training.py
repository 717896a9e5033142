"""Training an aligner in a folder; the same again goes on where it was."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import torch
from jaxtyping import Int
from torch import Tensor

from regard.seq2seq.data import PairCodec, Tokenizer
from regard.seq2seq.models.aligner import Aligner, VocabularySide, char_ngrams
from regard.seq2seq.training import Outcome, Plan, Reporter, Validate
from regard.tasks.align.validation import AlignmentValidator
from regard.tasks.config.align import AlignConfig
from regard.tasks.config.memory_limit import check_room
from regard.tasks.pairs.examples import Examples
from regard.tasks.pairs.training import PairTask, train_on_pairs

PASSES, LEAST = 5, 400
"""How often an aligner sees each pair, and how many updates it makes at least, unless told."""


def train(directory: Path | str, config: AlignConfig, reporter: Reporter | None = None) -> Outcome:
    """Train in a folder, or go on there."""
    task = PairTask(codec=codec_of, model=_model, validator=_judge, steps=updates)
    return train_on_pairs(task, directory, config, reporter)


def updates(config: AlignConfig, planned: Plan) -> int:
    """As many as were asked for, or what suits the pairs: more learn a small text by heart."""
    training = config.training
    return training.steps or max(LEAST, -(-PASSES * len(planned(0)) // training.accumulate))


def codec_of(
    _: AlignConfig, texts: tuple[Tokenizer, Tokenizer], _links: object = None
) -> PairCodec:
    """Pairs to batches."""
    return PairCodec(*texts)


def build_aligner(
    config: AlignConfig,
    codec: PairCodec,
    frequencies: tuple[Int[Tensor, " source"], Int[Tensor, " target"]],
) -> Aligner:
    """An aligner with new weights; raise if the machine has no room for them."""
    words, each = len(codec.source_tokenizer) + len(codec.target_tokenizer), config.model
    # How each word is spelt is not learned, but takes as much room.
    check_room(words * (each.size + each.spelling + 2) + 2 * each.spelling * each.size)
    sides = [
        VocabularySide(counts, _spelt(text, config.model.spelling), config.model.size)
        for counts, text in zip(
            frequencies, (codec.source_tokenizer, codec.target_tokenizer), strict=True
        )
    ]
    return Aligner(sides[0], sides[1], config.model.jumps)


def _spelt(text: Tokenizer, size: int) -> Tensor:
    """What stands for no word is spelt like none."""
    special = len(text.pieces) - len(text.to_dict()["pieces"])
    words = [piece.strip() for piece in text.pieces[special:]]
    return char_ngrams([*[""] * special, *words], size)


def _model(config: AlignConfig, codec: PairCodec, examples: Examples) -> Aligner:
    counts = (
        _frequencies(codec.source_tokenizer, examples.sources()),
        _frequencies(codec.target_tokenizer, examples.targets()),
    )
    return build_aligner(config, codec, counts)


def _frequencies(text: Tokenizer, lines: Iterable[str]) -> Int[Tensor, " word"]:
    counts: Counter[int] = Counter()
    for line in lines:
        counts.update(text.encode(line).ids)
    return torch.tensor([counts[number] for number in range(len(text))])


def _judge(_: AlignConfig, codec: PairCodec, examples: Examples) -> Validate:
    return AlignmentValidator(examples.valid, codec)
