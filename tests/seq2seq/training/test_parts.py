"""Seeds, schedules, EMA, batch stream, options."""

import dataclasses
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.seq2seq.errors import ConfigError, DataError
from regard.seq2seq.training import BatchStream, Optimiser, TrainingOptions, derive_seed
from regard.seq2seq.training.ema import EMA
from regard.seq2seq.training.schedule import schedule
from tests.seq2seq.training.toy import Code, Examples, Toy, plan


@given(st.integers(), st.text(), st.integers(min_value=0))
def test_keys_are_what_torch_takes(seed, purpose, counter):
    number = derive_seed(seed, purpose, counter)
    assert 0 <= number < 2**63
    torch.Generator().manual_seed(number)


def test_keys_differ():
    keys = {derive_seed(s, p, n) for s in range(20) for p in ("step", "order") for n in range(50)}
    assert len(keys) == 2000
    assert derive_seed(1, "step", 11) != derive_seed(11, "step", 1)


@pytest.mark.parametrize("kind", ["cosine", "inverse_root", "constant"])
@pytest.mark.parametrize("warmup", [0, 1, 10])
def test_a_rate_rises_then_falls(kind, warmup):
    options = TrainingOptions(steps=50, rate=0.3, warmup=warmup, schedule=kind)
    rates = [schedule(options)(step) for step in range(1, 51)]
    top = max(1, warmup)
    assert rates[top - 1] == pytest.approx(0.3, rel=0.01)
    assert rates[:top] == sorted(rates[:top])
    assert rates[top:] == sorted(rates[top:], reverse=True)
    assert min(rates) > 0
    assert (rates[-1] < 0.01) == (kind == "cosine")


def test_inverse_root_is_the_papers():
    """Vaswani 2017, eq. 3: proportional to min(n^-0.5, n · warmup^-1.5)."""
    rate = schedule(TrainingOptions(steps=50, rate=1.0, warmup=7, schedule="inverse_root"))
    for step in range(1, 50):
        paper = min(step**-0.5, step * 7**-1.5)
        assert rate(step) == pytest.approx(paper * math.sqrt(7))


def test_an_average_is_the_weighted_sum_of_what_it_saw():
    model = Toy()
    average = EMA(model, 0.9)
    seen, shares = [model.hidden.weight.detach().clone()], [1.0]
    for step in range(1, 12):
        with torch.no_grad():
            model.hidden.weight.add_(torch.randn(7, 7))
        average.update(step)
        stays = min(0.9, (1 + step) / (10 + step))
        shares = [share * stays for share in shares] + [1 - stays]
        seen.append(model.hidden.weight.detach().clone())
    wanted = sum(share * weight for share, weight in zip(shares, seen, strict=True))
    torch.testing.assert_close(average.tensors()["hidden.weight"], wanted)


def test_an_average_stands_in_and_leaves_no_trace():
    model = Toy()
    average = EMA(model, 0.9)
    first = model.hidden.weight.detach().clone()
    with torch.no_grad():
        model.hidden.weight.add_(1)
    own = model.hidden.weight.detach().clone()

    def fail():
        with average.applied():
            assert torch.equal(model.hidden.weight, first)
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert torch.equal(model.hidden.weight, own)


def test_a_feed_resumes_from_any_place():
    def handed(feed, number):
        batches = iter(feed)
        return [[list(part.items) for part in next(batches)] for _ in range(number)]

    for accumulate in (1, 3, 100):  # 7, 3 and 1 updates an epoch
        whole = handed(BatchStream(Examples(), Code(), plan, accumulate), 25)
        for stop in range(0, 20, 3):
            first = BatchStream(Examples(), Code(), plan, accumulate)
            handed(first, stop)
            second = BatchStream(Examples(), Code(), plan, accumulate)
            second.epoch, second.position = first.epoch, first.position
            assert handed(second, 5) == whole[stop : stop + 5]
    each = [
        item
        for parts in handed(BatchStream(Examples(), Code(), plan, 3), 3)
        for p in parts
        for item in p
    ]
    assert sorted(each) == list(range(37))


def test_a_feed_without_batches_says_so():
    with pytest.raises(DataError, match="epoch 0 has no batches"):
        next(iter(BatchStream(Examples(), Code(), lambda epoch: [])))


@pytest.mark.parametrize(
    ("name", "value"),
    [("steps", 0), ("rate", -1.0), ("ema", 1.0), ("keep", 0), ("clip", -0.1), ("accumulate", 0)],
)
def test_options_out_of_range_are_named(name, value):
    with pytest.raises(ConfigError, match=f"training.{name} is {value}, but must be "):
        dataclasses.replace(TrainingOptions(), **{name: value})


def test_a_frozen_model_is_refused():
    with pytest.raises(ConfigError, match="no parameter to train"):
        Optimiser(Toy().requires_grad_(False), TrainingOptions())
