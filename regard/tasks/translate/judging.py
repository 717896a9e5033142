"""How a model is judged while it learns: its loss on unseen pairs, and what it answers to some."""

from collections.abc import Sequence

import torch
from torch import nn

from regard.seq2seq.data import Pair, PairCodec, plan
from regard.seq2seq.decoding import Greedy, Streaming
from regard.seq2seq.metrics import bleu, exact_match
from regard.seq2seq.model import EncoderDecoder
from regard.seq2seq.training import Validation

PAIRS, ANSWERED, SHOWN = 1000, 100, 3
"""By how many pairs the loss is told at most, how many are answered, and how many shown."""


class Judge:
    """Tells the loss, BLEU and exact matches of a model on pairs that it does not learn from."""

    def __init__(self, pairs: Sequence[Pair], codec: PairCodec) -> None:
        self.pairs, self.codec = list(pairs[:PAIRS]), codec
        lengths = [codec.size(pair) for pair in self.pairs]
        self.batches = plan(lengths, seed=0, epoch=0, tokens=4096)

    def __call__(self, model: nn.Module, step: int) -> Validation:
        assert isinstance(model, EncoderDecoder)
        with torch.no_grad():
            loss = self._loss(model)
            answers = self._answers(model)
        references = [pair.target or "" for pair in self.pairs[: len(answers)]]
        scores = {
            "loss": loss,
            "bleu": bleu(answers, references).value,
            "exact": exact_match(answers, references).value,
        }
        shown = zip(self.pairs, answers, strict=False)
        return Validation(scores, [f"{pair.source} → {said}" for pair, said in shown][:SHOWN])

    def _loss(self, model: EncoderDecoder) -> float:
        device, total, count = next(model.parameters()).device, 0.0, 0
        for numbers in self.batches:
            batch = self.codec.collate(numbers, [self.pairs[number] for number in numbers])
            term = model.loss(batch.to(device))["tokens"]
            total, count = total + float(term.total), count + term.count
        return total / max(1, count)

    def _answers(self, model: EncoderDecoder) -> list[str]:
        device = next(model.parameters()).device
        asked = [Pair(pair.source, None, pair.line) for pair in self.pairs[:ANSWERED]]
        answers = Streaming(model, self.codec, Greedy(), device=device)(asked)
        return [answer[0].text for answer in answers]
