"""Sampling: tokens are drawn from the model's distribution."""

import hashlib
from dataclasses import dataclass, field

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.attention.core.options import check_int, check_number, check_positive
from regard.seq2seq.batch import Batch
from regard.seq2seq.decoding.bounds import MAX_BEAM_SIZE
from regard.seq2seq.decoding.output_limit import (
    LengthLimit,
    OutputLimit,
    check_max_length,
    max_lengths,
)
from regard.seq2seq.decoding.shapes import LogProbs, TokenIds
from regard.seq2seq.decoding.stepwise import stepwise
from regard.seq2seq.protocols import Hypothesis, Stepper

FIRST_CANDIDATES = 128
"""So many tokens mostly hold the probability mass of top-p; only if not, all are sorted."""

MAX_SEED = 2**63 - 1

Sorted = tuple[
    Float[Tensor, "sentence beam candidate"],
    Int[Tensor, "sentence beam candidate"],
]


@dataclass(frozen=True)
class Sampling:
    """Hypotheses sampled from the model, the most probable first.

    Every draw is a function of the seed, the item's number, the sample's and the step: what is
    drawn for an item does not depend on its batch, nor on what was drawn before.

    Args:
        temperature: Log-probabilities are divided by it: below 1 sharper, above 1 flatter.
        top_p: Nucleus sampling: among the fewest tokens with this much probability (Holtzman 2020).
        count: How many samples of each sentence.
        seed: Of the draws.
        max_length: How many tokens an output may have, EOS included.
    """

    temperature: float = 1.0
    top_p: float = 1.0
    count: int = 1
    seed: int = 0
    max_length: LengthLimit = field(default_factory=OutputLimit)

    def __post_init__(self) -> None:
        check_positive("temperature", self.temperature)
        needed = "a number above 0, and 1 at most"
        check_number("top_p", self.top_p, needed, lambda given: 0 < given <= 1)
        check_int("count", self.count, 1, MAX_BEAM_SIZE)
        check_int("seed", self.seed, 0, MAX_SEED)
        check_max_length(self.max_length)

    def __call__(self, model: Stepper, batch: Batch) -> list[list[Hypothesis]]:
        def choose(log_probs: LogProbs, active: list[int], step: int) -> TokenIds:
            draws = [
                [
                    hashed_uniform(self.seed, batch.items[sentence], sample, step)
                    for sample in range(self.count)
                ]
                for sentence in active
            ]
            uniform = torch.tensor(draws, dtype=torch.float64, device=log_probs.device)
            return inverse_cdf(self.probs(log_probs), uniform)

        return stepwise(model, batch, self.count, max_lengths(self.max_length, batch), choose)

    def probs(self, log_probs: LogProbs) -> LogProbs:
        """The distribution that is sampled: unnormalised, in float64; all 0 if none is possible."""
        best = log_probs.double().amax(-1, keepdim=True)
        # At a temperature near 0 the best stays at 0 and the others fall to −∞, never all.
        probs = ((log_probs - best) / self.temperature).softmax(-1).nan_to_num(0.0)
        if self.top_p == 1:
            return probs
        values, tokens = _sorted(probs, self.top_p)
        before = values.cumsum(-1) - values
        nucleus = torch.zeros_like(probs, dtype=torch.bool)
        nucleus = nucleus.scatter(-1, tokens, before < self.top_p)
        return probs * nucleus


def _sorted(probs: LogProbs, enough: float) -> Sorted:
    """The greatest first; only a few if they have enough probability."""
    first = probs.topk(min(FIRST_CANDIDATES, probs.shape[-1]))
    if bool((first.values.sum(-1) >= enough).all()):
        return first.values, first.indices
    every = probs.sort(descending=True, stable=True)
    return every.values, every.indices


def inverse_cdf(probs: LogProbs, uniform: Float[Tensor, "sentence beam"]) -> TokenIds:
    """The token at which the cumulative distribution passes a uniform number.

    In the order of ids, not of probabilities: rounding could swap two of them.
    """
    cdf = probs.cumsum(-1)
    passed = cdf <= uniform[..., None] * cdf[..., -1:]
    return passed.sum(-1).clamp(max=probs.shape[-1] - 1)


def hashed_uniform(seed: int, item: int, sample: int, step: int) -> float:
    """A number in [0, 1), uniform over its arguments, by a hash of them."""
    key = f"{seed}/{item}/{sample}/{step}".encode()
    bits = int.from_bytes(hashlib.blake2b(key, digest_size=8).digest(), "big")
    return (bits >> 12) / (1 << 52)  # few enough bits that it never rounds up to 1
