"""Laws that every model keeps: by whatever encoder, decoder and attention."""

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from regard.seq2seq.batch import BOS, SourceTarget
from regard.seq2seq.protocols import HasWeights, Stepper
from tests.seq2seq.model_cases import (
    ADDING_UP,
    CASES,
    READING,
    TARGET,
    Case,
    batch,
    chosen,
    total,
)

EXACT = {"rtol": 1e-10, "atol": 1e-10}
some_cases = pytest.mark.parametrize("case", CASES[::3], ids=str)
every_case = pytest.mark.parametrize("case", CASES, ids=str)
every_reading = pytest.mark.parametrize("case", READING, ids=str)


def log_probs_whole(model, pairs: SourceTarget) -> Tensor:
    """Of all tokens at all places, by the way of training."""
    encoded = model.encoder(pairs.source)
    whole = model.decoder.forward(pairs.target.ids[:, :-1], encoded)
    return model.output_layer.log_probs(whole.features)


def stepped(model, pairs: SourceTarget, width: int = 1) -> tuple[Tensor, Tensor | None]:
    """The same token by token, all beams alike: `(batch, beam, target, …)`."""
    state, found, weights = model.start(pairs, width), [], []
    for column in pairs.target.ids[:, :-1].unbind(1):
        step = model.step(column[:, None].expand(-1, width), state)
        state = step.state
        found.append(step.log_probs)
        weights.append(step.weights)
    return torch.stack(found, 2), None if weights[0] is None else torch.stack(weights, 2)


def real(pairs: SourceTarget) -> Tensor:
    return torch.arange(pairs.target.ids.shape[1] - 1) < pairs.target.lengths[:, None] - 1


@some_cases
def test_a_model_is_what_a_loop_a_search_and_a_picture_see(case: Case) -> None:
    model = case.build()
    assert "tokens" in model(batch())
    assert isinstance(model, Stepper)
    assert isinstance(model, HasWeights)


@every_case
@torch.no_grad()
def test_stepping_equals_the_whole(case: Case) -> None:
    model, pairs = case.build(), batch()
    found, _ = stepped(model, pairs)
    torch.testing.assert_close(found[:, 0], log_probs_whole(model, pairs), **EXACT)


@some_cases
@torch.no_grad()
def test_beams_share_a_source(case: Case) -> None:
    model, pairs = case.build(), batch()
    one, _ = stepped(model, pairs)
    many, _ = stepped(model, pairs, width=3)
    torch.testing.assert_close(many, one.expand_as(many), **EXACT)
    for memory in model.start(pairs, 3).decoder.source:
        assert memory.values.shape[:2] == (len(pairs.items), 1)


@every_case
@torch.no_grad()
def test_padding_beside_a_sentence_changes_nothing(case: Case) -> None:
    model, pairs = case.build(), batch()
    together = log_probs_whole(model, pairs)
    for number in range(2):
        alone = chosen(pairs, [number])
        padded = chosen(pairs, [number], more=2)
        length = int(alone.target.lengths) - 1
        expected = log_probs_whole(model, alone)
        torch.testing.assert_close(together[number, :length], expected[0], **EXACT)
        torch.testing.assert_close(log_probs_whole(model, padded)[:, :length], expected, **EXACT)
    one, other = (model(each)["tokens"].total for each in (alone, padded))
    torch.testing.assert_close(one, other, **EXACT)


@some_cases
@torch.no_grad()
def test_the_order_of_a_batch_does_not_matter(case: Case) -> None:
    model, pairs = case.build(), batch()
    order = [2, 0, 1]
    expected = log_probs_whole(model, pairs)[order]
    mask = real(pairs)[order]
    found = log_probs_whole(model, chosen(pairs, order))
    torch.testing.assert_close(found[mask], expected[mask], **EXACT)


@every_case
@torch.no_grad()
def test_reordered_beams_go_on_from_their_own_prefix(case: Case) -> None:
    model, pairs = case.build(), batch()
    drawn = torch.Generator().manual_seed(5)
    prefix = torch.randint(4, TARGET, (3, 2, 3), generator=drawn)  # (sentence, beam, token)
    prefix[..., 0] = BOS
    following = torch.randint(4, TARGET, (2, 3), generator=drawn)
    beams, kept = torch.tensor([[1, 1, 0], [0, 1, 1], [1, 0, 1]]), torch.tensor([2, 0])
    state = follow(model, model.start(pairs, 2), prefix)
    before = model.step(following[:1, :2].expand(3, -1), state).log_probs
    moved = state.reorder(beams).keep(kept)
    other = prefix[torch.arange(3)[:, None], beams][kept]
    anew = follow(model, model.start(chosen(pairs, kept.tolist()), 3), other)
    for _ in range(2):
        here, there = model.step(following, moved), model.step(following, anew)
        torch.testing.assert_close(here.log_probs, there.log_probs, **EXACT)
        if here.weights is not None:
            width = there.weights.shape[-1]
            torch.testing.assert_close(here.weights[..., :width], there.weights, **EXACT)
        moved, anew = here.state, there.state
    again = model.step(following[:1, :2].expand(3, -1), state).log_probs
    torch.testing.assert_close(again, before, rtol=0, atol=0)  # the old state is as it was


def follow(model, state, prefix: Tensor):
    for column in prefix.unbind(-1):
        state = model.step(column, state).state
    return state


@torch.no_grad()
@pytest.mark.parametrize("copying", [False, True])
@pytest.mark.parametrize("case", ADDING_UP[::3], ids=str)
def test_log_probs_are_of_everything_that_can_come_next(case: Case, copying: bool) -> None:
    model, pairs = case.build(copying=copying), batch(copies=2)
    pairs.target.ids[0, 1] = TARGET + 1  # a word that only copying knows
    found, _ = stepped(model, pairs, width=2)
    assert found.shape[-1] == TARGET + 2 * copying
    sums = found.exp().sum(-1)
    torch.testing.assert_close(sums, torch.ones_like(sums), **EXACT)


@torch.no_grad()
@every_reading
def test_what_is_read_is_what_the_steps_read(case: Case) -> None:
    model, pairs = case.build(), batch()
    _, weights = stepped(model, pairs)
    found, mask = model.read(pairs), real(pairs)
    torch.testing.assert_close(found["decoder"][mask], weights[:, 0][mask], **EXACT)
    for own in found.values():
        assert bool((own[~mask] == 0).all())
        hidden = torch.arange(own.shape[-1]) >= pairs.source.lengths[:, None, None]
        assert bool((own.masked_select(hidden) == 0).all())
        if case in ADDING_UP:
            torch.testing.assert_close(own.sum(-1), mask.double(), **EXACT)
    if case.name.startswith("transformer"):
        heads = [found[f"decoder.1/head.{number}"] for number in range(2)]
        torch.testing.assert_close(torch.stack(heads).mean(0), found["decoder"], **EXACT)


@pytest.mark.parametrize(
    ("case", "copying"),
    [*((case, False) for case in CASES), *((case, True) for case in READING[::4])],
    ids=str,
)
def test_every_parameter_learns(case: Case, copying: bool) -> None:
    model = case.build(copying=copying, smoothing=0.1).train()
    total(model, batch(copies=2)).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert bool(parameter.grad.isfinite().all()), name
        assert bool(parameter.grad.any()), name


@torch.no_grad()
def test_without_training_a_target_is_itself() -> None:
    plain, smooth = (CASES[2].build(smoothing=share) for share in (0.0, 0.1))
    pairs = batch()
    log_probs = log_probs_whole(plain, pairs).gather(-1, pairs.target.ids[:, 1:, None])[..., 0]
    for model in (plain, smooth):
        term = model(pairs)["tokens"]
        torch.testing.assert_close(term.total, -log_probs[real(pairs)].sum(), **EXACT)
        assert term.count == int(real(pairs).sum())
    assert not torch.allclose(smooth.train()(pairs)["tokens"].total, term.total)


@every_case
def test_the_gradient_is_that_of_the_loss(case: Case) -> None:
    model, pairs = case.build(smoothing=0.1).train(), batch([3, 2], [2, 1])
    parameters = list(model.parameters())
    drawn = torch.Generator().manual_seed(7)
    along = [torch.randn(p.shape, generator=drawn, dtype=p.dtype) for p in parameters]
    gradients = torch.autograd.grad(total(model, pairs), parameters)
    expected = sum((g * a).sum() for g, a in zip(gradients, along, strict=True))
    ends = []
    with torch.no_grad():
        for step in (1e-6, -2e-6):
            for parameter, direction in zip(parameters, along, strict=True):
                parameter.add_(direction, alpha=step)
            ends.append(total(model, pairs))
    torch.testing.assert_close((ends[0] - ends[1]) / 2e-6, expected, rtol=1e-5, atol=1e-6)


@some_cases
def test_autocast_changes_little(case: Case) -> None:
    model, pairs = case.build(dtype=torch.float32, smoothing=0.1), batch()
    plain = total(model, pairs)
    with torch.autocast("cpu", torch.bfloat16):
        narrow = total(model, pairs)
        with torch.no_grad():
            stepped(model, pairs)
    torch.testing.assert_close(narrow, plain, rtol=2e-2, atol=0)
    narrow.backward()
    assert all(p.grad.dtype == torch.float32 for p in model.parameters())


@every_case
def test_an_empty_source_breaks_nothing(case: Case) -> None:
    model, pairs = case.build().train(), batch([0, 3], [2, 1])
    total(model, pairs).backward()
    assert all(bool(p.grad.isfinite().all()) for p in model.parameters())
    with torch.no_grad():
        found, _ = stepped(model.eval(), pairs)
        nothing = chosen(pairs, [0])
        alone, _ = stepped(model, nothing)
    assert nothing.source.ids.shape == (1, 0)
    length = alone.shape[2]
    torch.testing.assert_close(found[:1, :, :length], alone, **EXACT)


def test_distributed_data_parallel_wraps_the_loss(tmp_path: Path) -> None:
    """One process of one: the terms and gradients are those of the bare model."""
    model, pairs = CASES[2].build(), batch()
    sum(term.total for term in model(pairs).values()).backward()
    wanted = [parameter.grad.clone() for parameter in model.parameters()]
    model.zero_grad()
    init = f"file://{tmp_path / 'rendezvous'}"
    torch.distributed.init_process_group("gloo", init_method=init, rank=0, world_size=1)
    try:
        wrapped = nn.parallel.DistributedDataParallel(model)
        sum(term.total for term in wrapped(pairs).values()).backward()
    finally:
        torch.distributed.destroy_process_group()
    for parameter, gradient in zip(model.parameters(), wanted, strict=True):
        torch.testing.assert_close(parameter.grad, gradient, rtol=0.0, atol=0.0)
