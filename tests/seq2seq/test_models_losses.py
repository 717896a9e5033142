"""The loss in chunks against the plain one, and the parts of a loss beside the tokens."""

import math

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from regard import selection
from regard.attention.core.errors import OptionError, ShapeError
from regard.seq2seq.batch import SourceTarget
from regard.seq2seq.errors import DataError
from regard.seq2seq.nn import linear_cross_entropy
from regard.seq2seq.objectives import (
    CoverageObjective,
    GuidedAlignmentObjective,
    Objective,
    coverage_loss,
)
from regard.seq2seq.outputs.output_layer import CopyInputs, LinearOutput
from regard.seq2seq.outputs.pointer_generator import PointerGenerator
from regard.seq2seq.protocols import Encoded
from tests.seq2seq.model_cases import ADDING_UP, BOTH, CASES, TARGET, Case, bahdanau, batch, chosen

ROWS, SIZE, SOURCE, EXTRA = 17, 7, 5, 2
EXACT = {"rtol": 1e-10, "atol": 1e-12}


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear_cross_entropy, "CHUNK", 3 * TARGET)
    monkeypatch.setattr(linear_cross_entropy, "CACHE_CHUNK", 2 * TARGET)


def content() -> tuple[Tensor, Tensor]:
    torch.manual_seed(1)
    features = torch.randn(ROWS, SIZE, dtype=torch.float64, requires_grad=True)
    return features, torch.randint(0, TARGET, (ROWS,))


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_loss_in_chunks_is_the_plain_one(smoothing: float) -> None:
    (features, targets), output_layer = content(), LinearOutput(SIZE, TARGET).double()
    found, chosen = output_layer.loss(features, targets, smoothing)
    scores = output_layer.linear(features)
    plain = functional.cross_entropy(scores, targets, reduction="sum", label_smoothing=smoothing)
    torch.testing.assert_close(found, plain, **EXACT)
    log_probs = scores.log_softmax(-1)
    torch.testing.assert_close(chosen, log_probs[torch.arange(ROWS), targets].detach(), **EXACT)
    torch.testing.assert_close(output_layer.log_probs(features), log_probs, **EXACT)
    wanted = [features, *output_layer.parameters()]
    ours, theirs = (torch.autograd.grad(3.0 * total, wanted) for total in (found, plain))
    torch.testing.assert_close(ours, theirs, **EXACT)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_gradient_of_the_loss(smoothing: float) -> None:
    (features, targets), output_layer = content(), LinearOutput(SIZE, TARGET).double()
    weight, bias = output_layer.linear.weight, output_layer.linear.bias

    def total(*given: Tensor) -> Tensor:
        return linear_cross_entropy.linear_cross_entropy(*given, targets, smoothing)[0]

    assert torch.autograd.gradcheck(total, (features, weight, bias))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_scores_far_apart_are_told_apart(dtype: torch.dtype) -> None:
    scores = torch.tensor([[0.0, -30.0, -3000.0], [1e4, 1e4, 0.0]], dtype=dtype)
    plain = scores.log_softmax(-1)
    for learns in (True, False):
        given = scores.clone().requires_grad_(learns)
        torch.testing.assert_close(linear_cross_entropy.log_softmax(given), plain)
    output_layer = LinearOutput(1, 3).to(dtype)
    with torch.no_grad():
        output_layer.linear.weight.zero_()
        output_layer.linear.bias.copy_(scores[0])
    total, _ = output_layer.loss(torch.zeros(1, 1, dtype=dtype), torch.tensor([2]), 0.1)
    plain = functional.cross_entropy(scores[:1], torch.tensor([2]), label_smoothing=0.1)
    torch.testing.assert_close(total, plain)


def test_nothing_is_kept_of_all_scores_at_once() -> None:
    """The largest tensor that autograd holds is not of (rows × tokens)."""
    sizes = []

    def pack(tensor: Tensor) -> Tensor:
        sizes.append(tensor.numel())
        return tensor

    features, targets = torch.randn(97, 3, requires_grad=True), torch.zeros(97, dtype=torch.long)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        LinearOutput(3, 89).loss(features, targets)
    assert max(sizes) < 97 * 89


def aside(drawn: torch.Generator) -> CopyInputs:
    weights = torch.rand(ROWS, SOURCE, dtype=torch.float64, generator=drawn)
    weights = (weights / weights.sum(-1, keepdim=True)).requires_grad_()
    copies = torch.randint(0, TARGET + EXTRA, (ROWS, SOURCE), generator=drawn)
    return CopyInputs(weights, copies, EXTRA)


def test_copying_is_a_mixture() -> None:
    features, _ = content()
    drawn = torch.Generator().manual_seed(2)
    beside, copying = aside(drawn), PointerGenerator(LinearOutput(SIZE, TARGET)).double()
    found = copying.log_probs(features, beside).exp()
    share = copying.gate(features).sigmoid()
    own = functional.pad(copying.generator.linear(features).softmax(-1), (0, EXTRA)) * share
    expected = own.detach().clone()
    for row in range(ROWS):
        for place in range(SOURCE):
            word = int(beside.copy_ids[row, place])
            expected[row, word] += ((1 - share[row]) * beside.weights[row, place]).item()
    torch.testing.assert_close(found, expected, **EXACT)
    torch.testing.assert_close(found.sum(-1), torch.ones_like(found[:, 0]), **EXACT)
    targets = beside.copy_ids[:, 0]  # some are past the vocabulary
    total, chosen = copying.loss(features, targets, 0.0, beside)
    each = copying.log_probs(features, beside)[torch.arange(ROWS), targets]
    torch.testing.assert_close(total, -each.sum(), **EXACT)
    torch.testing.assert_close(chosen, each, **EXACT)
    wanted = [features, beside.weights, *copying.parameters()]
    ours, theirs = (torch.autograd.grad(end, wanted) for end in (total, -each.sum()))
    torch.testing.assert_close(ours, theirs, **EXACT)


def test_a_word_that_cannot_come_costs_much_and_breaks_nothing() -> None:
    features, _ = content()
    beside, copying = (
        aside(torch.Generator()),
        PointerGenerator(LinearOutput(SIZE, TARGET)).double(),
    )
    beside.copy_ids = beside.copy_ids.clamp(max=TARGET - 1)
    targets = torch.full((ROWS,), TARGET + 1)
    total, _ = copying.loss(features, targets, 0.1, beside)
    total.backward()
    assert bool(total.isfinite())
    assert all(bool(p.grad.isfinite().all()) for p in copying.parameters())


def test_a_tied_output_layer_shares_the_embedding() -> None:
    table = nn.Embedding(TARGET, SIZE)
    output_layer = LinearOutput(SIZE, TARGET, tied=table)
    assert output_layer.linear.weight is table.weight
    with pytest.raises(
        ShapeError, match=r"\(11, 7\) cannot be tied to an output layer for 11 tokens"
    ):
        LinearOutput(5, TARGET, tied=table)


def drawing() -> Case:
    return Case("hard", BOTH, bahdanau(select=selection.Hard))


def test_draws_learn_from_what_came_of_them() -> None:
    model, pairs = drawing().build(), batch()
    assert set(model(pairs)) == {"tokens"}  # the best is taken, and nothing drawn
    model.train()
    torch.manual_seed(1)
    terms = model(pairs)
    assert set(terms) == {"tokens", "reinforce", "baseline"}
    parts = {
        "score": list(model.decoder.attention.score.parameters()),
        "baseline": list(model.reinforce.baseline.parameters()),
    }
    for term, touched in (("reinforce", "score"), ("baseline", "baseline")):
        for name, parameters in parts.items():
            gradients = torch.autograd.grad(
                terms[term].total, parameters, retain_graph=True, allow_unused=True
            )
            there = [g is not None and bool(g.any()) for g in gradients]
            assert all(there) if name == touched else not any(there), (term, name)


def test_the_expected_gradient_of_draws_is_that_of_the_expected_log_probability() -> None:
    """Many draws of one step against the sum over all places, whatever is foretold."""
    model, pairs = drawing().build().train(), batch([3], [0])
    with torch.no_grad():
        model.encoder.embedding.weight.mul_(20.0)  # so that it matters what is read
    attention, encoded = model.decoder.attention, model.encoder(pairs.source)
    memory = attention.prepare(encoded.values, encoded.values, encoded.mask)
    query = model.decoder.stack.initial(encoded.summary)[0][0][:, None]
    chances = attention.read(query, memory).parts[0].request.comparison.scores().softmax(-1)[0, 0]
    rewards = torch.stack([reward(model, pairs, encoded, place) for place in range(3)]).detach()
    weight = attention.score.query_weight
    expected = torch.autograd.grad(-(chances * rewards).sum(), weight)[0]
    with torch.no_grad():
        model.reinforce.baseline.bias.copy_(rewards.mean() + 0.1)
    torch.manual_seed(0)
    rounds = 4096
    term = model(chosen(pairs, [0] * rounds))["reinforce"]
    found = torch.autograd.grad(term.total / rounds, weight)[0]
    assert float((found - expected).norm()) < 0.2 * float(expected.norm())


def reward(model, pairs: SourceTarget, encoded: Encoded, place: int) -> Tensor:
    """How likely the one token is if that place is read: it fills the whole source."""
    values = encoded.values[:, place : place + 1].expand_as(encoded.values)
    only = Encoded(values, encoded.lengths, encoded.summary)
    features = model.decoder.forward(pairs.target.ids[:, :-1], only).features
    return model.output_layer.log_probs(features)[0, 0, int(pairs.target.ids[0, 1])]


def test_coverage_counts_what_is_read_twice() -> None:
    weights = torch.tensor([[[0.5, 0.5], [0.9, 0.1], [0.3, 0.7]]])
    mask = torch.tensor([[True, True, False]])
    torch.testing.assert_close(coverage_loss(weights, mask), torch.tensor(0.5 + 0.1))
    model, pairs = CASES[4].build(CoverageObjective(0.5)), batch()
    term = model(pairs)["coverage"]
    read, mask = model.read(pairs)["decoder"], model._target(pairs)[2]
    torch.testing.assert_close(term.total, coverage_loss(read, mask))
    assert (term.weight, term.count) == (0.5, pairs.counts()["tokens"])


def test_links_pull_the_weights_to_them() -> None:
    model, pairs = CASES[2].build(GuidedAlignmentObjective(1.0)), batch()
    assert "links" not in model(pairs)
    read = model.read(pairs)["decoder"]
    pairs.links = torch.zeros_like(read)
    pairs.links[..., 0] = 1.0
    pairs.links[2, 0] = 0.0  # nothing is linked
    mask = model._target(pairs)[2]
    pairs.links[~mask] = 0.0
    found = model(pairs)["links"]
    expected = -(read[mask][:, 0].log() * pairs.links[mask][:, 0]).sum()
    torch.testing.assert_close(found.total, expected)
    pairs.links = pairs.links[:, 1:]
    with pytest.raises(ShapeError, match="links have shape"):
        model(pairs)


@pytest.mark.parametrize("later", [0, 1])
@pytest.mark.parametrize("layer", ["", "decoder.0", "decoder.1/head.1"])
@pytest.mark.parametrize("case", ADDING_UP, ids=str)
def test_the_links_term_is_what_plain_loops_give(case: Case, layer: str, later: int) -> None:
    """Each linked token with the row that it is predicted from, or the next."""
    model, pairs = case.build(GuidedAlignmentObjective(0.3, layer + "+1" * later)), batch()
    readings = model.read(pairs)
    if layer and not any(name.startswith(layer) for name in readings):
        with pytest.raises(OptionError, match="has no layer"):
            model(_linked(pairs, readings["decoder"]))
        return
    names = [name for name in readings if "/" in name]
    known = list(dict.fromkeys(name.split("/")[0] for name in names)) or ["decoder"]
    chosen = layer or known[max(0, len(known) - 2)]
    own = [readings[name] for name in names if f"{name}/".startswith(f"{chosen}/")]
    read = torch.stack(own).mean(0) if own else readings[chosen]
    assert pairs.target is not None
    term, expected, count = model(_linked(pairs, read))["links"], 0.0, 0
    assert pairs.links is not None
    for row, length in enumerate(pairs.target.lengths.tolist()):
        for token in range(length - 2):  # EOS is never linked
            shares = pairs.links[row, token].tolist()
            own_row = read[row, token + later].tolist()
            expected -= sum(s * math.log(w) for s, w in zip(shares, own_row, strict=True) if s)
            count += any(shares)
    assert (term.count, term.weight) == (count, 0.3)
    assert float(term.total.detach()) == pytest.approx(expected, rel=1e-5)


def _linked(pairs: SourceTarget, like: Tensor) -> SourceTarget:
    """Each token but the last of a row linked to a place or two that are no padding."""
    assert pairs.target is not None
    pairs.links = torch.zeros_like(like)
    for row, length in enumerate(pairs.target.lengths.tolist()):
        for token in range(1 if row == 1 else 0, length - 2):
            pairs.links[row, token, 0] = 1.0 if token % 2 else 0.5
            pairs.links[row, token, 1] = 0.0 if token % 2 else 0.5
    return pairs


def test_what_a_batch_lacks_is_named() -> None:
    model, pairs = CASES[2].build(copying=True), batch()
    with pytest.raises(DataError, match="the batch has no copy_ids"):
        model(pairs)
    pairs.target = None
    with pytest.raises(DataError, match="sources only"):
        model(pairs)


@pytest.mark.parametrize("objectives", [[], [CoverageObjective()], [GuidedAlignmentObjective()]])
def test_without_attention_nothing_is_copied_covered_or_linked(objectives: list[Objective]) -> None:
    with pytest.raises(OptionError, match="NoAttentionDecoder has no attention"):
        CASES[0].build(*objectives, copying=not objectives)
