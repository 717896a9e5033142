"""Words of the source, copied by how much they were read."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from regard.seq2seq.nn import linear_cross_entropy
from regard.seq2seq.outputs.output_layer import CopyInputs, LinearOutput


class PointerGenerator(nn.Module):
    """p = g · p(vocabulary) + (1 − g) · Σ weights on copies of it (See 2017, eq. 8 and 9).

    g = sigmoid(w·f + b). Words that the vocabulary lacks have ids past it, and can only be copied.

    Args:
        readout: Tells the tokens of the vocabulary.
    """

    copies = True

    def __init__(self, readout: LinearOutput) -> None:
        super().__init__()
        self.readout, self.vocabulary = readout, readout.vocabulary
        self.gate = nn.Linear(readout.linear.in_features, 1)

    def loss(
        self,
        features: Float[Tensor, "row size"],
        targets: Int[Tensor, " row"],
        smoothing: float = 0.0,
        aside: CopyInputs | None = None,
    ) -> tuple[Float[Tensor, ""], Float[Tensor, " row"]]:
        aside = _needed(aside)
        totals, chosen = [features.new_zeros(())], []
        for rows in linear_cross_entropy.chunks(
            len(features), self.vocabulary, linear_cross_entropy.CHUNK
        ):
            # The scores are found again on the way back rather than held.
            total, log_probs = checkpoint(
                self._chunk, features[rows], targets[rows], smoothing,
                aside.weights[rows], aside.copy_ids[rows], use_reentrant=False,
            )  # fmt: skip
            totals.append(total)
            chosen.append(log_probs.detach())
        return torch.stack(totals).sum(), torch.cat(chosen) if chosen else features.new_zeros(0)

    def log_probs(
        self, features: Float[Tensor, "*row size"], aside: CopyInputs | None = None
    ) -> Float[Tensor, "*row token"]:
        aside = _needed(aside)
        share = torch.sigmoid(self.gate(features))
        chances = share * self.readout.log_probs(features).exp()
        chances = functional.pad(chances, (0, aside.extra_vocab))
        copied = (1 - share) * aside.weights
        chances = chances.scatter_add(-1, aside.copy_ids.expand(copied.shape), copied)
        return _log(chances)

    def _chunk(
        self,
        features: Float[Tensor, "row size"],
        targets: Int[Tensor, " row"],
        smoothing: float,
        weights: Float[Tensor, "row source"],
        copies: Int[Tensor, "row source"],
    ) -> tuple[Float[Tensor, ""], Float[Tensor, " row"]]:
        """The loss of some rows. Smoothing is of the vocabulary, whatever is copied."""
        share = torch.sigmoid(self.gate(features))[:, 0]
        log_probs = self.readout.log_probs(features)
        known = targets < self.vocabulary
        own = log_probs.gather(-1, torch.where(known, targets, 0)[:, None])[:, 0].exp()
        copied = weights.masked_fill(copies != targets[:, None], 0.0).sum(-1)
        chosen = _log(share * own * known + (1 - share) * copied)
        return -((1 - smoothing) * chosen + smoothing * log_probs.mean(-1)).sum(), chosen


def _log(chances: Tensor) -> Tensor:
    """Of what may be 0: a word that can be neither told nor copied."""
    return chances.clamp(min=torch.finfo(chances.dtype).tiny).log()


def _needed(aside: CopyInputs | None) -> CopyInputs:
    assert aside is not None, "the model gives what was read to a readout that copies"
    return aside
