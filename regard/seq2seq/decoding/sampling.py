"""Sampling: tokens as often as the model would say them."""

import hashlib
from dataclasses import dataclass, field

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.attention.core.options import check_int, check_number, check_positive
from regard.seq2seq.batch import Batch
from regard.seq2seq.decoding.bounds import MOST_HYPOTHESES, MOST_TOKENS
from regard.seq2seq.decoding.output_limit import OutputLimit, limits
from regard.seq2seq.decoding.stepwise import Chosen, LogProbs, stepwise
from regard.seq2seq.protocols import Hypothesis, Stepper

FEW = 128
"""Among so many tokens the probable ones mostly are; only if not, all are sorted."""

MOST_SEED = 2**63 - 1

Sorted = tuple[
    Float[Tensor, "sentence beam candidate"],
    Int[Tensor, "sentence beam candidate"],
]


@dataclass(frozen=True)
class Sampling:
    """Hypotheses drawn from the model, the most probable first.

    Every draw is a function of the seed, the item's number, the hypothesis's and the step: what is
    drawn for an item does not depend on the batch it is in, nor on what was drawn before.

    Args:
        temperature: Log-probabilities are divided by it: below 1 is bolder, above 1 more varied.
        top_p: Draw among the fewest tokens that together are as probable as this (Holtzman 2020).
        count: How many hypotheses a sentence.
        seed: Another seed, other draws.
        longest: How many tokens an answer may have, `END` among them.
    """

    temperature: float = 1.0
    top_p: float = 1.0
    count: int = 1
    seed: int = 0
    longest: OutputLimit | int = field(default_factory=OutputLimit)

    def __post_init__(self) -> None:
        check_positive("temperature", self.temperature)
        needed = "a number above 0, and 1 at most"
        check_number("top_p", self.top_p, needed, lambda given: 0 < given <= 1)
        check_int("count", self.count, 1, MOST_HYPOTHESES)
        check_int("seed", self.seed, 0, MOST_SEED)
        if not isinstance(self.longest, OutputLimit):
            check_int("longest", self.longest, 1, MOST_TOKENS)

    def __call__(self, model: Stepper, batch: Batch) -> list[list[Hypothesis]]:
        def choose(log_probs: LogProbs, live: list[int], step: int) -> Chosen:
            drawn = [
                [chance(self.seed, batch.items[sentence], way, step) for way in range(self.count)]
                for sentence in live
            ]
            uniform = torch.tensor(drawn, dtype=torch.float64, device=log_probs.device)
            return picked(self.chances(log_probs), uniform)

        return stepwise(model, batch, self.count, limits(self.longest, batch), choose)

    def chances(self, log_probs: LogProbs) -> LogProbs:
        """What is drawn from: not normalised, in float64; 0 where nothing is possible."""
        above = log_probs.double().amax(-1, keepdim=True)
        # Divided by almost nothing, the best stays at 0 and the others fall to −∞, never all.
        chances = ((log_probs - above) / self.temperature).softmax(-1).nan_to_num(0.0)
        if self.top_p == 1:
            return chances
        values, words = _ordered(chances, self.top_p)
        before = values.cumsum(-1) - values
        kept = torch.zeros_like(chances, dtype=torch.bool)
        kept = kept.scatter(-1, words, before < self.top_p)
        return chances * kept


def _ordered(chances: LogProbs, enough: float) -> Sorted:
    """The greatest first; only so many of them as are surely enough."""
    few = chances.topk(min(FEW, chances.shape[-1]))
    if bool((few.values.sum(-1) >= enough).all()):
        return few.values, few.indices
    whole = chances.sort(descending=True, stable=True)
    return whole.values, whole.indices


def picked(chances: LogProbs, uniform: Float[Tensor, "sentence beam"]) -> Chosen:
    """The token at which the chances add up to this share of their sum.

    In the order of ids, not of chances: noise in the last digits could swap two of them.
    """
    summed = chances.cumsum(-1)
    passed = summed <= uniform[..., None] * summed[..., -1:]
    return passed.sum(-1).clamp(max=chances.shape[-1] - 1)


def chance(seed: int, item: int, way: int, step: int) -> float:
    """A number from 0 up to 1 that is as good as random, the same for the same place."""
    place = f"{seed}/{item}/{way}/{step}".encode()
    drawn = int.from_bytes(hashlib.blake2b(place, digest_size=8).digest(), "big")
    return (drawn >> 12) / (1 << 52)  # few enough bits that it never rounds up to 1
