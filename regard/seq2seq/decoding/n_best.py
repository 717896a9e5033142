"""The n-best lists of finished hypotheses, apart from the beams that are still active."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.seq2seq.decoding.backpointers import Ended


@dataclass(slots=True)
class NBestLists:
    """The best finished hypotheses of each sentence so far, sorted; −∞ where there is none yet."""

    scores: Float[Tensor, "sentence best"]
    log_probs: Float[Tensor, "sentence best"]
    beams: Int[Tensor, "sentence best"]
    lengths: Int[Tensor, "sentence best"]

    @classmethod
    def empty(cls, sentences: int, n_best: int, device: torch.device) -> "NBestLists":
        """Before any has ended."""
        low = torch.full((sentences, n_best), -math.inf, dtype=torch.float64, device=device)
        zero = torch.zeros(sentences, n_best, dtype=torch.int64, device=device)
        return cls(low, low.clone(), zero, zero.clone())

    def insert(
        self,
        active: Int[Tensor, " active"],
        log_probs: Float[Tensor, "active beam"],
        beams: Int[Tensor, "active beam"],
        divisor: float,
        length: int,
    ) -> None:
        """Insert new ones; a log-probability of −∞ stands for none."""
        if not bool((log_probs > -math.inf).any()):
            return
        scores = torch.cat([self.scores[active], log_probs / divisor], -1)
        # Stable, so that of equals the earlier stays first.
        order = scores.sort(dim=-1, descending=True, stable=True).indices
        order = order[:, : self.scores.shape[1]]
        lengths = torch.full_like(beams, length)
        self.scores[active] = scores.gather(-1, order)
        for column, new in (
            (self.log_probs, log_probs),
            (self.beams, beams),
            (self.lengths, lengths),
        ):
            column[active] = torch.cat([column[active], new], -1).gather(-1, order)

    def of(self, sentence: int) -> list[Ended]:
        """Those of one sentence."""
        columns = (self.scores, self.log_probs, self.beams, self.lengths)
        rows = zip(*(column[sentence].tolist() for column in columns), strict=True)
        return [
            Ended(sentence, length, beam, score, log_prob, ended=True)
            for score, log_prob, beam, length in rows
            if score > -math.inf
        ]
