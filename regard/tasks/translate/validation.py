"""How a model is judged while it learns: its loss on unseen pairs, and what it answers to some."""

from collections.abc import Iterator, Sequence

import torch
from torch import nn

from regard.seq2seq.data import Pair, PairCodec, plan_batches
from regard.seq2seq.decoding import BatchedPredictor, Greedy
from regard.seq2seq.metrics import bleu, exact_match
from regard.seq2seq.models.encoder_decoder import EncoderDecoder
from regard.seq2seq.protocols import LossTerm, Prediction
from regard.seq2seq.training import Validation
from regard.tasks.plots import AttentionMap, terminal_heatmap

PAIRS, ANSWERED, SHOWN = 1000, 100, 3
"""By how many pairs the loss is told at most, how many are answered, and how many shown."""

WIDEST = 72
"""Columns of the widest picture that is shown as it goes."""


class TranslationValidator:
    """Tells the loss, BLEU and exact matches of a model on pairs that it does not learn from.

    Args:
        pairs: Which these are; the first of them are taken.
        codec: Makes batches of them.
        watch: Which score tells the best weights; if not the loss, all are answered.
    """

    def __init__(self, pairs: Sequence[Pair], codec: PairCodec, watch: str = "loss") -> None:
        self.pairs, self.codec = list(pairs[:PAIRS]), codec
        self.answered = self.pairs[: ANSWERED if watch == "loss" else PAIRS]

    def __call__(self, model: nn.Module, step: int) -> Validation:
        assert isinstance(model, EncoderDecoder)
        with torch.no_grad():
            found = list(token_terms(model, self.codec, self.pairs))
            answers = self._answers(model)
        said = [answer.text for answer in answers]
        references = [pair.target or "" for pair in self.answered]
        scores = {
            "loss": sum(float(term.total) for term in found) / _counted(found),
            "bleu": bleu(said, references).value,
            "exact": exact_match(said, references).value,
        }
        shown = [f"{p.source} → {text}" for p, text in zip(self.answered, said, strict=True)]
        return Validation(scores, shown[:SHOWN], _picture(answers))

    def _answers(self, model: EncoderDecoder) -> list[Prediction]:
        device = next(model.parameters()).device
        asked = [Pair(pair.source, None, pair.line) for pair in self.answered]
        answers = BatchedPredictor(model, self.codec, Greedy(), device=device)(asked)
        return [answer[0] for answer in answers]


def token_terms(
    model: EncoderDecoder, codec: PairCodec, pairs: Sequence[Pair]
) -> Iterator[LossTerm]:
    """What the targets cost a model, batch by batch."""
    device = next(model.parameters()).device
    lengths = [max(codec.sizes(pair)) for pair in pairs]
    for numbers in plan_batches(lengths, seed=0, epoch=0, tokens=4096):
        batch = codec.collate(numbers, [pairs[number] for number in numbers])
        yield model(batch.to(device))["tokens"]


def _counted(found: Sequence[LossTerm]) -> int:
    return max(1, sum(term.count for term in found))


def _picture(answers: Sequence[Prediction]) -> str:
    """What was read for the first answer that a terminal has room for; empty if there is none."""
    for answer in answers:
        if answer.weights is None or not answer.target:
            continue
        if sum(max(1, len(token)) for token in answer.source) < WIDEST:
            return terminal_heatmap(AttentionMap.of(answer))
    return ""
