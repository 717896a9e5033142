"""How an aligner is judged while it learns: what words cost, and how far its directions agree."""

from collections.abc import Sequence

from torch import nn

from regard.seq2seq.alignment import Argmax, Links
from regard.seq2seq.data import Pair, PairCodec, plan_batches
from regard.seq2seq.models.aligner import Aligner
from regard.seq2seq.training import Validation
from regard.tasks.pairs.aligning import agreement

PAIRS, TOKENS = 1000, 4096
"""By how many pairs it is judged at most, and how many tokens are in a batch."""


class AlignmentValidator:
    """Tells the loss of an aligner, and what share of their links both directions have.

    Args:
        pairs: By what it is judged; so many of them, taken evenly.
        codec: Makes batches of them.
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
