import dataclasses
import math
import platform

import pytest
import torch
from torch import Tensor, nn

from regard.native.eligibility import usable
from regard.seq2seq.errors import RunError
from regard.seq2seq.objectives import GuidedAlignmentObjective
from regard.seq2seq.protocols import Loss, LossTerm
from regard.seq2seq.training import Optimiser, TrainingOptions, seed_torch, updates
from tests.seq2seq.model_cases import CASES, chosen
from tests.seq2seq.model_cases import batch as pairs
from tests.seq2seq.training.toy import Code, Examples, Toy

PLAIN = TrainingOptions(steps=5, rate=0.01, clip=0, decay=0.5, schedule="constant")
EXAMPLES, CODE = Examples(), Code()
BAHDANAU, TRANSFORMER = (
    next(case for case in CASES if case.name == name) for name in ("bahdanau", "transformer")
)


def batch(numbers):
    return CODE.collate(numbers, [EXAMPLES[number] for number in numbers])


def toy(kind=Toy):
    seed_torch(7, "initialisation")
    return kind(dropout=0.0).double()


def gradients(model, parts):
    """What the optimiser is given: the update is stopped before it is made."""
    kept = {}
    optimiser = Optimiser(model, PLAIN)
    optimiser.step = lambda number, norm: kept.update(
        {name: p.grad.clone() for name, p in model.named_parameters()}
    )
    update = next(updates(model, [parts], optimiser, seed=1))
    return kept, update


@pytest.mark.parametrize("cut", [[11], [1, 10], [4, 7], [2, 3, 6], [1] * 11])
def test_parts_give_the_gradient_of_the_whole(cut):
    numbers = list(range(11))
    parts = [batch(part.tolist()) for part in torch.tensor(numbers).split(cut)]
    model = toy()
    found, update = gradients(model, parts)
    loss = model(batch(numbers))
    objective = sum(term.weight * term.total / term.count for term in loss.values())
    wanted = torch.autograd.grad(objective, list(model.parameters()))
    for gradient, expected in zip(found.values(), wanted, strict=True):
        torch.testing.assert_close(gradient, expected, rtol=1e-12, atol=1e-14)
    assert update.loss == pytest.approx(objective.item(), rel=1e-6)
    assert update.norm == pytest.approx(math.sqrt(sum(g.square().sum().item() for g in wanted)))
    assert update.counts == batch(numbers).counts()
    assert update.terms.keys() == loss.keys()


def test_a_mean_of_means_would_be_another_gradient():
    numbers = list(range(11))
    whole, _ = gradients(toy(), [batch(numbers)])
    halves = [gradients(toy(), [batch(part)])[0] for part in (numbers[:4], numbers[4:])]
    name = "hidden.weight"
    mean = (halves[0][name] + halves[1][name]) / 2
    assert (mean - whole[name]).abs().max() > 1e-6


def guided(order=(0, 1, 2)):
    """Sentences with their links. They are not linked alike, and one of them not at all."""
    whole = pairs()
    some = chosen(whole, list(order))
    links = torch.zeros(3, whole.target.ids.shape[1] - 1, whole.source.ids.shape[1])
    links[0, :3, 1] = 1.0
    links[2, 1, :4] = 0.25
    some.links = links.double()[
        list(order), : some.target.ids.shape[1] - 1, : some.source.ids.shape[1]
    ]
    return some


@pytest.mark.parametrize("cut", [[(0,), (1, 2)], [(0, 1), (2,)], [(1,), (0,), (2,)]])
@pytest.mark.parametrize("layer", ["", "decoder.0/head.1+1"])
def test_parts_are_guided_as_the_whole_is(cut, layer):
    case = TRANSFORMER if layer else BAHDANAU
    model = case.build(GuidedAlignmentObjective(0.3, layer))
    whole, update = gradients(model, [guided()])
    found, in_parts = gradients(model, [guided(order) for order in cut])
    assert "links" in update.terms
    assert in_parts.terms == pytest.approx(update.terms, rel=1e-6)
    for name, gradient in found.items():
        torch.testing.assert_close(gradient, whole[name], rtol=1e-9, atol=1e-12)
    unguided, _ = gradients(case.build(), [guided()])
    assert any((whole[name] - unguided[name]).abs().max() > 1e-6 for name in whole)


class Uncounted(Toy):
    """A term with a count that the batch does not know."""

    def forward(self, batch):
        return {**super().forward(batch), "odd": LossTerm(self.hidden.weight.sum(), 1009)}


class Miscounted(Toy):
    def forward(self, batch):
        loss = dict(super().forward(batch))
        return loss | {"tokens": dataclasses.replace(loss["tokens"], count=1)}


def test_terms_must_be_counted_before_they_are_divided():
    parts = [batch([1, 2]), batch([3])]
    gradients(toy(Uncounted), parts[:1])  # one part knows its own count
    with pytest.raises(
        RunError, match="'odd' is divided by the count of 'odd', but the batch counts"
    ):
        gradients(toy(Uncounted), parts)
    model = toy(Miscounted)
    before = model.hidden.weight.clone()
    with pytest.raises(RunError, match=r"'tokens' was divided by \d+ at step 1, but .* count 2"):
        next(updates(model, [parts], Optimiser(model, PLAIN), seed=1))
    assert torch.equal(model.hidden.weight, before)


class Spoilt(Toy):
    """Infinite for item 17; with `behind`, in its gradient only."""

    behind = False

    def forward(self, batch):
        loss = dict(super().forward(batch))
        if 17 in batch.items:
            zero = self.hidden.bias[0] * 0
            bad = zero.sqrt() if self.behind else zero + math.inf
            loss["bad"] = LossTerm(bad, len(batch.items), unit="sentences")
        else:
            loss["bad"] = LossTerm(self.hidden.bias[0] * 0, len(batch.items), unit="sentences")
        return loss


@pytest.mark.parametrize("behind", [False, True])
def test_what_is_not_finite_stops_before_the_update(behind):
    model = toy(Spoilt)
    model.behind = behind
    optimiser = Optimiser(model, dataclasses.replace(PLAIN, ema=0.9))
    groups = [[batch([1, 2])], [batch([3]), batch([4, 17])]]
    made = updates(model, groups, optimiser, seed=1)
    next(made)
    kept = {**model.state_dict(), **optimiser.tensors(), **optimiser.average.tensors()}
    before = {name: tensor.clone() for name, tensor in kept.items() if name != "seen"}
    what = r"the gradient of hidden.bias" if behind else r"the loss \(bad\)"
    items = "3, 4, 17" if behind else "4, 17"
    with pytest.raises(RunError, match=rf"^{what} is not finite at step 2 \(items {items}\)"):
        next(made)
    for name, tensor in before.items():
        assert torch.equal(kept[name], tensor), name


def test_an_update_is_adamw_by_hand():
    """One step of Loshchilov and Hutter's algorithm 2, clipped, decay on matrices only."""
    options = dataclasses.replace(PLAIN, clip=0.01)
    model = toy()
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    found, update = gradients(toy(), [batch([1, 2, 3])])
    next(updates(model, [[batch([1, 2, 3])]], Optimiser(model, options), seed=1))
    assert update.norm > options.clip
    for name, p in model.named_parameters():
        gradient = found[name] * options.clip / update.norm
        start = before[name]
        if start.ndim == 2:
            start = start * (1 - options.rate * options.decay)
        # At the first step both moments, unbiased, are the gradient's own.
        wanted = start - options.rate * gradient / (gradient.abs() + 1e-8)
        torch.testing.assert_close(p.detach(), wanted, rtol=1e-6, atol=1e-7)


def test_the_average_follows_each_update():
    model = toy()
    optimiser = Optimiser(model, dataclasses.replace(PLAIN, ema=0.95))
    wanted = model.hidden.weight.detach().clone()
    for update in updates(model, [[batch([n])] for n in range(6)], optimiser, seed=1):
        share = min(0.95, (1 + update.step) / (10 + update.step))
        wanted = share * wanted + (1 - share) * model.hidden.weight.detach()
        torch.testing.assert_close(optimiser.average.tensors()["hidden.weight"], wanted)


def test_an_update_draws_from_its_own_number_alone():
    numbers = [[batch([1, 2])], [batch([3, 4])], [batch([5, 6])]]

    def trained(noise):
        seed_torch(7, "initialisation")
        model = Toy()
        for _ in updates(model, numbers, Optimiser(model, PLAIN), seed=2):
            torch.rand(noise)  # what others draw in between must not matter
        return model.hidden.weight

    assert torch.equal(trained(0), trained(3))


class Loud(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2, 3))
        self.dtype: torch.dtype | None = None

    def forward(self, batch) -> Loss:
        made: Tensor = self.weight @ self.weight.T
        self.dtype = made.dtype
        return {"tokens": LossTerm(made.float().sum(), 1)}


@pytest.mark.parametrize(("autocast", "dtype"), [(False, torch.float32), (True, torch.bfloat16)])
def test_autocast_is_as_asked(autocast, dtype):
    model = Loud()
    next(updates(model, [[batch([1])]], Optimiser(model, PLAIN), 1, 0, autocast))
    assert model.dtype is dtype
    assert model.weight.grad.dtype is torch.float32


class Termless(Toy):
    """Its forward pass gives a tensor, as other libraries have it, or nothing."""

    result: object = torch.zeros(())

    def forward(self, batch):
        return self.result


@pytest.mark.parametrize("result", [torch.zeros(()), {}])
def test_a_model_without_terms_of_a_loss_is_refused(result):
    model = toy(Termless)
    model.result = result
    with pytest.raises(RunError, match=r"returned no loss terms at step 1"):
        next(updates(model, [[batch([1])]], Optimiser(model, PLAIN), 1))


class Telling(Toy):
    """It tells whether tiny numbers are zero while its loss is found, and on the way back."""

    def forward(self, batch):
        self.gone = [_tiny_is_zero()]
        found = super().forward(batch)
        found["tokens"].total.register_hook(lambda _: self.gone.append(_tiny_is_zero()))
        return found


def _tiny_is_zero():
    return not (torch.full((3,), 1e-40) * 1.0).view(torch.int32).any()


@pytest.mark.skipif(platform.machine() != "x86_64" or not usable(), reason="needs C")
def test_updates_are_made_without_subnormal_numbers():
    model = toy(Telling)
    for _ in updates(model, [[batch([1, 2])]] * 2, Optimiser(model, PLAIN), seed=1):
        assert model.gone == [True, True]
        assert not _tiny_is_zero()
