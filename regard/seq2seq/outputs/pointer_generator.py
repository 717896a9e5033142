"""Pointer-generator: source words can be copied, by their attention weights."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from regard.seq2seq.nn import linear_cross_entropy
from regard.seq2seq.outputs.output_layer import CopyInputs, LinearOutput


class PointerGenerator(nn.Module):
    """p = g · p(vocabulary) + (1 − g) · Σ weights on copies of the token (See 2017, eq. 8 and 9).

    g = sigmoid(w·f + b). Words outside the vocabulary have ids past it, and can only be copied.

    Args:
        generator: The distribution over the vocabulary.
    """

    copies = True

    def __init__(self, generator: LinearOutput) -> None:
        super().__init__()
        self.generator, self.vocab_size = generator, generator.vocab_size
        self.gate = nn.Linear(generator.linear.in_features, 1)

    def loss(
        self,
        features: Float[Tensor, "row size"],
        targets: Int[Tensor, " row"],
        smoothing: float = 0.0,
        copy_inputs: CopyInputs | None = None,
    ) -> tuple[Float[Tensor, ""], Float[Tensor, " row"]]:
        copy_inputs = _required(copy_inputs)
        totals, chosen = [features.new_zeros(())], []
        for rows in linear_cross_entropy.chunks(
            len(features), self.vocab_size, linear_cross_entropy.CHUNK
        ):
            # Backward computes the logits again rather than holding them.
            total, log_probs = checkpoint(
                self._chunk, features[rows], targets[rows], smoothing,
                copy_inputs.weights[rows], copy_inputs.copy_ids[rows], use_reentrant=False,
            )  # fmt: skip
            totals.append(total)
            chosen.append(log_probs.detach())
        return torch.stack(totals).sum(), torch.cat(chosen) if chosen else features.new_zeros(0)

    def log_probs(
        self, features: Float[Tensor, "*row size"], copy_inputs: CopyInputs | None = None
    ) -> Float[Tensor, "*row token"]:
        copy_inputs = _required(copy_inputs)
        gate = torch.sigmoid(self.gate(features))
        probs = gate * self.generator.log_probs(features).exp()
        probs = functional.pad(probs, (0, copy_inputs.extra_vocab))
        copied = (1 - gate) * copy_inputs.weights
        probs = probs.scatter_add(-1, copy_inputs.copy_ids.expand(copied.shape), copied)
        return _safe_log(probs)

    def _chunk(
        self,
        features: Float[Tensor, "row size"],
        targets: Int[Tensor, " row"],
        smoothing: float,
        weights: Float[Tensor, "row source"],
        copy_ids: Int[Tensor, "row source"],
    ) -> tuple[Float[Tensor, ""], Float[Tensor, " row"]]:
        """The loss of some rows. Label smoothing is over the vocabulary, whatever is copied."""
        gate = torch.sigmoid(self.gate(features))[:, 0]
        log_probs = self.generator.log_probs(features)
        in_vocab = targets < self.vocab_size
        generated = log_probs.gather(-1, torch.where(in_vocab, targets, 0)[:, None])[:, 0].exp()
        copied = weights.masked_fill(copy_ids != targets[:, None], 0.0).sum(-1)
        chosen = _safe_log(gate * generated * in_vocab + (1 - gate) * copied)
        return -((1 - smoothing) * chosen + smoothing * log_probs.mean(-1)).sum(), chosen


def _safe_log(probs: Tensor) -> Tensor:
    """Finite for 0 too: a word that can be neither generated nor copied."""
    return probs.clamp(min=torch.finfo(probs.dtype).tiny).log()


def _required(copy_inputs: CopyInputs | None) -> CopyInputs:
    assert copy_inputs is not None, "the model gives copy inputs to an output layer that copies"
    return copy_inputs
