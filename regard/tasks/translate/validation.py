"""Validation of a translator: its loss on validation pairs, and metrics of decoded answers."""

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
"""Maximum number of pairs for the loss; how many are decoded, and how many are shown."""

WIDEST = 72
"""Maximum width of an attention map that is shown during training, in columns."""


class TranslationValidator:
    """Loss, BLEU and exact match of a model on validation pairs.

    Args:
        pairs: The validation pairs, of which the first are used.
        codec: Collates them.
        watch: The metric that selects the best checkpoint; if not the loss, all are decoded.
    """

    def __init__(self, pairs: Sequence[Pair], codec: PairCodec, watch: str = "loss") -> None:
        self.pairs, self.codec = list(pairs[:PAIRS]), codec
        self.answered = self.pairs[: ANSWERED if watch == "loss" else PAIRS]

    def __call__(self, model: nn.Module, step: int) -> Validation:
        assert isinstance(model, EncoderDecoder)
        with torch.no_grad():
            found = list(token_terms(model, self.codec, self.pairs))
            answers = self._answers(model)
        texts = [answer.text for answer in answers]
        references = [pair.target or "" for pair in self.answered]
        scores = {
            "loss": sum(float(term.total) for term in found) / _counted(found),
            "bleu": bleu(texts, references).value,
            "exact": exact_match(texts, references).value,
        }
        shown = [f"{p.source} → {text}" for p, text in zip(self.answered, texts, strict=True)]
        return Validation(scores, shown[:SHOWN], _picture(answers))

    def _answers(self, model: EncoderDecoder) -> list[Prediction]:
        device = next(model.parameters()).device
        sources = [Pair(pair.source, None, pair.line) for pair in self.answered]
        answers = BatchedPredictor(model, self.codec, Greedy(), device=device)(sources)
        return [answer[0] for answer in answers]


def token_terms(
    model: EncoderDecoder, codec: PairCodec, pairs: Sequence[Pair]
) -> Iterator[LossTerm]:
    """The cross-entropy of the targets, batch by batch."""
    device = next(model.parameters()).device
    lengths = [max(codec.sizes(pair)) for pair in pairs]
    for numbers in plan_batches(lengths, seed=0, epoch=0, tokens=4096):
        batch = codec.collate(numbers, [pairs[number] for number in numbers])
        yield model(batch.to(device))["tokens"]


def _counted(found: Sequence[LossTerm]) -> int:
    return max(1, sum(term.count for term in found))


def _picture(answers: Sequence[Prediction]) -> str:
    """The attention map of the first answer that fits a terminal; empty if there is none."""
    for answer in answers:
        if answer.weights is None or not answer.target:
            continue
        if sum(max(1, len(token)) for token in answer.source) < WIDEST:
            return terminal_heatmap(AttentionMap.of(answer))
    return ""
