"""Validation of an aligner: cross-entropy per word, and the agreement of both directions."""

from collections.abc import Sequence

from torch import nn

from regard.seq2seq.alignment import Argmax, Links
from regard.seq2seq.data import Pair, PairCodec, plan_batches
from regard.seq2seq.models.aligner import Aligner
from regard.seq2seq.training import Validation
from regard.tasks.pairs.aligning import agreement

PAIRS, TOKENS = 1000, 4096
"""Maximum number of validation pairs, and of tokens in a batch."""


class AlignmentValidator:
    """The loss of an aligner, and the share of links that both directions have.

    Args:
        pairs: The validation pairs, of which `most` are taken evenly.
        codec: Collates them.
        most: Maximum number of pairs.
    """

    def __init__(self, pairs: Sequence[Pair], codec: PairCodec, most: int = PAIRS) -> None:
        self.pairs, self.codec = list(pairs[:: -(-len(pairs) // max(1, most)) or 1]), codec

    def __call__(self, model: nn.Module, _: int) -> Validation:
        assert isinstance(model, Aligner)
        device = next(model.parameters()).device
        lengths = [max(self.codec.sizes(pair)) for pair in self.pairs]
        loss, count = 0.0, 0
        links: tuple[list[Links], list[Links]] = [], []
        for numbers in plan_batches(lengths, seed=0, epoch=0, tokens=TOKENS):
            batch = self.codec.collate(numbers, [self.pairs[number] for number in numbers])
            found = model.posteriors(batch.to(device))
            loss -= float(found.log_prob)
            count += batch.counts()["tokens"]
            for one, other in zip(found.forward.cpu(), found.backward.mT.cpu(), strict=True):
                for own, weights in zip(links, (one, other), strict=True):
                    own.append(Argmax()(weights, 1 - weights.sum(-1)))
        scores = {"loss": loss / max(1, count), "agreement": 100 * agreement(*links)}
        return Validation(scores)
