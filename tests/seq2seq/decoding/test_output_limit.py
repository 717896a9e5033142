"""Options out of range are refused by name, before anything is computed."""

from collections.abc import Callable

import pytest
import torch

from regard.attention.core.errors import OptionError
from regard.seq2seq.decoding import Beam, Greedy, OutputLimit, PowerPenalty, Sampling, WuPenalty
from tests.seq2seq.decoding.toy import Toy, batch_of

HUGE = 99_999_999_999_999_999_999
REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "beam_size": (lambda: Beam(HUGE), "beam_size is 99999999999999999999. .* 1 to 10000"),
    "n_best": (lambda: Beam(5, HUGE), "n_best is 99999999999999999999. .* 1 to 10000"),
    "count": (lambda: Sampling(count=HUGE), "count is 99999999999999999999. .* 1 to 10000"),
    "seed": (lambda: Sampling(seed=HUGE), "seed is 99999999999999999999. .* 0 to 9223372036854"),
    "a seed below 0": (lambda: Sampling(seed=-1), "seed is -1"),
    "max_length": (lambda: Greedy(HUGE), "max_length is 99999999999999999999. .* 1 to 1000000"),
    "of a beam": (
        lambda: Beam(max_length=HUGE),
        "max_length is 99999999999999999999. .* 1 to 1000000",
    ),
    "of sampling": (lambda: Sampling(max_length=HUGE), "max_length is 999999999.* 1 to 1000000"),
    "offset": (lambda: OutputLimit(2.0, HUGE), "offset is 99999999999999999999. .* 0 to 1000000"),
    "maximum": (
        lambda: OutputLimit(maximum=HUGE),
        "maximum is 99999999999999999999. .* 1 to 1000000",
    ),
    "Power": (lambda: PowerPenalty(1e9), "alpha is 1000000000.0. Give a number from 0 to 10"),
    "Wu": (lambda: WuPenalty(1e9), "alpha is 1000000000.0. Give a number from 0 to 10"),
}


@pytest.mark.parametrize(("build", "message"), REFUSED.values(), ids=REFUSED)
def test_an_option_out_of_range_is_refused(build: Callable[[], object], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        build()


@pytest.mark.parametrize(
    "longest", [OutputLimit(1e308, 10, maximum=7), OutputLimit(2.0, 20, maximum=7)], ids=str
)
def test_no_output_is_longer_than_the_maximum(longest: OutputLimit) -> None:
    (hypothesis,) = Greedy(longest)(Toy(ending=-60.0), batch_of(5))[0]
    assert len(hypothesis.tokens) == 7
    assert not hypothesis.ended


@pytest.mark.parametrize("temperature", [1e-300, 5e-324])
def test_the_lowest_temperature_is_greedy(temperature: float) -> None:
    (drawn,) = Sampling(temperature)(Toy(), batch_of(5))[0]
    (best,) = Greedy()(Toy(), batch_of(5))[0]
    assert drawn.tokens == best.tokens


def test_what_is_impossible_stays_so_at_any_temperature() -> None:
    log_probs = torch.tensor([[[-torch.inf, -1.0, -torch.inf]]])
    for temperature in (5e-324, 1.0, 1e308):
        assert Sampling(temperature).probs(log_probs).tolist() == [[[0.0, 1.0, 0.0]]]
    nothing = torch.full((1, 1, 3), -torch.inf)
    assert Sampling().probs(nothing).tolist() == [[[0.0, 0.0, 0.0]]]


def test_more_hypotheses_than_there_are_words() -> None:
    (hypotheses,) = Beam(101, 101, max_length=3)(Toy(), batch_of(5))
    assert len({tuple(hypothesis.tokens) for hypothesis in hypotheses}) == len(hypotheses) > 5
