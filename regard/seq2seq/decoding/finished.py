"""Hypotheses that have ended, kept apart from those that go on."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.seq2seq.decoding.backpointers import Ended


@dataclass(slots=True)
class Finished:
    """The best few of each sentence so far, the best first; −∞ where there is none yet."""

    scores: Float[Tensor, "sentence best"]
    totals: Float[Tensor, "sentence best"]
    beams: Int[Tensor, "sentence best"]
    lengths: Int[Tensor, "sentence best"]

    @classmethod
    def none(cls, sentences: int, best: int, device: torch.device) -> "Finished":
        """Before anything has ended."""
        low = torch.full((sentences, best), -math.inf, dtype=torch.float64, device=device)
        zero = torch.zeros(sentences, best, dtype=torch.int64, device=device)
        return cls(low, low.clone(), zero, zero.clone())

    def take(
        self,
        live: Int[Tensor, " live"],
        totals: Float[Tensor, "live beam"],
        beams: Int[Tensor, "live beam"],
        divisor: float,
        length: int,
    ) -> None:
        """Put new ones among them; a total of −∞ stands for none."""
        if not bool((totals > -math.inf).any()):
            return
        scores = torch.cat([self.scores[live], totals / divisor], -1)
        # Stable, so that of equal ones the earlier stays before the later.
        order = scores.sort(dim=-1, descending=True, stable=True).indices
        order = order[:, : self.scores.shape[1]]
        lengths = torch.full_like(beams, length)
        self.scores[live] = scores.gather(-1, order)
        self.totals[live] = torch.cat([self.totals[live], totals], -1).gather(-1, order)
        self.beams[live] = torch.cat([self.beams[live], beams], -1).gather(-1, order)
        self.lengths[live] = torch.cat([self.lengths[live], lengths], -1).gather(-1, order)

    def of(self, sentence: int) -> list[Ended]:
        """Those of one sentence."""
        columns = (self.scores, self.totals, self.beams, self.lengths)
        rows = zip(*(column[sentence].tolist() for column in columns), strict=True)
        return [
            Ended(sentence, length, beam, score, total, ended=True)
            for score, total, beam, length in rows
            if score > -math.inf
        ]
