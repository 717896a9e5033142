"""REINFORCE: hard attention is trained by the likelihood of the tokens after its samples."""

from torch import nn
from torch.nn import functional

from regard.attention.selection import Hard
from regard.seq2seq.batch import SourceTarget
from regard.seq2seq.decoders import Decoder, HasAttention
from regard.seq2seq.objectives.base import Output
from regard.seq2seq.protocols import Loss, LossTerm


def draws_by_reinforce(decoder: Decoder) -> bool:
    """Does its attention sample, trained by REINFORCE alone?"""
    if not isinstance(decoder, HasAttention):
        return False
    select = decoder.attention.select
    return isinstance(select, Hard) and select.gradient == "reinforce"


class ReinforceObjective(nn.Module):
    """The score-function estimator with a learned baseline (Xu 2015, eq. 12).

    The reward of a sample is the log-probability of its token and all later ones. The baseline
    predicts it from the features before the sample, not from those after it: so it lowers the
    variance and leaves the expectation unchanged.

    Args:
        size: Size of the decoder's features.
        weight: The estimator's weight relative to the cross-entropy.
        baseline_weight: The weight of the baseline's squared error.
    """

    name = "reinforce"
    needs_attention = True

    def __init__(self, size: int, weight: float = 1.0, baseline_weight: float = 1.0) -> None:
        super().__init__()
        self.weight, self.baseline_weight = weight, baseline_weight
        self.baseline = nn.Linear(size, 1)

    def forward(self, output: Output, batch: SourceTarget) -> Loss:
        if not output.training:
            return {}  # nothing is sampled
        real, log_probs = output.real, output.log_probs
        scattered = log_probs.new_zeros(real.shape).masked_scatter(real, log_probs)
        reward = scattered.flip(1).cumsum(1).flip(1)[real]
        before = functional.pad(output.decoded.features.detach()[:, :-1], (0, 0, 1, 0))
        expected = self.baseline(before[real])[:, 0]
        sample_log_probs = output.decoded.readings["decoder"].log_probs[real]
        gain = ((reward - expected).detach() * sample_log_probs).sum()
        error, count = (expected - reward).square().sum(), len(reward)
        return {
            "reinforce": LossTerm(-gain, count, self.weight, unit="tokens"),
            "baseline": LossTerm(error, count, self.baseline_weight, unit="tokens"),
        }
