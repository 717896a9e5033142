"""Heads are what a loop over them computes, for every score and every selection."""

import pytest
import torch
from torch import Tensor

from regard import Attention, MultiHead, masks, scores
from tests.catalogue import SCORES, SELECTIONS, SIZE, Mechanism

HEADS, QUERY_SIZE, KEY_SIZE, VALUE_SIZE, OUT_SIZE = 4, 11, 7, 3, 13
BATCH, QUERIES, KEYS = 2, 3, 5
CROSS = [(score, SELECTIONS[0]) for score in SCORES] + [(SCORES[1], s) for s in SELECTIONS]
cross = pytest.mark.parametrize(("score", "select"), CROSS, ids=str)
groups = pytest.mark.parametrize("key_heads", [4, 2, 1])


def _inputs() -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(3)
    sizes = (QUERIES, QUERY_SIZE), (KEYS, KEY_SIZE), (KEYS, VALUE_SIZE)
    queries, keys, values = (torch.randn(BATCH, *size, dtype=torch.float64) for size in sizes)
    return queries, keys, values


def _build(make, key_heads: int) -> MultiHead:
    torch.manual_seed(5)
    multi = MultiHead(
        make, HEADS, QUERY_SIZE, KEY_SIZE, SIZE, key_heads, value_size=VALUE_SIZE, out_size=OUT_SIZE
    )
    return multi.double().eval()


def _one_head(multi: MultiHead, made: Attention, key_head: int) -> Attention:
    """An attention with the parameters of one head of the keys."""
    for name, parameter in made.named_parameters():
        stacked = multi.attention.get_parameter(name)
        parameter.data = stacked[key_head].reshape(parameter.shape).clone()
    return made.double().eval()


def _by_loop(multi: MultiHead, make, inputs, mask) -> tuple[Tensor, Tensor]:
    queries, keys, values = inputs
    contexts, weights = [], []
    for head in range(HEADS):
        key_head = head * multi.key_heads // HEADS
        own, shared = (slice(n * SIZE, (n + 1) * SIZE) for n in (head, key_head))
        attention = _one_head(multi, make(), key_head)
        reading = attention(
            multi.query(queries)[..., own], multi.key(keys)[..., shared],
            multi.value(values)[..., shared], mask=mask,
        )  # fmt: skip
        contexts.append(reading.context)
        weights.append(reading.weights)
    return multi.out(torch.cat(contexts, -1)), torch.stack(weights, -3)


@cross
@groups
def test_every_mechanism_has_heads(score: Mechanism, select: Mechanism, key_heads: int) -> None:
    make = lambda: Attention(score.make(), select.make())
    multi, inputs, mask = _build(make, key_heads), _inputs(), masks.Lengths([5, 3])
    context, weights = multi(*inputs, mask=mask)
    expected_context, expected_weights = _by_loop(multi, make, inputs, mask)
    torch.testing.assert_close(context, expected_context)
    torch.testing.assert_close(weights, expected_weights)


@groups
def test_step_by_step(key_heads: int) -> None:
    make = lambda: Attention(scores.Coverage(scores.LocationAware(SIZE, SIZE, 3, 2, 3)))
    multi, (queries, keys, values) = _build(make, key_heads), _inputs()
    whole = multi(queries, keys, values, mask=masks.Lengths([5, 2]))
    memory, state = multi.prepare(keys, values, masks.Lengths([5, 2])), None
    for step in range(QUERIES):
        reading = multi.read(queries[:, step : step + 1], memory, state=state)
        state = reading.state
        torch.testing.assert_close(reading.context, whole.context[:, step : step + 1])
        torch.testing.assert_close(reading.weights, whole.rows([step]))


def test_heads_start_different() -> None:
    multi = _build(lambda: Attention(scores.Additive(SIZE, SIZE, 3)), HEADS)
    for parameter in multi.attention.parameters():
        assert parameter.shape[0] == HEADS
        assert len({tuple(head.flatten().tolist()) for head in parameter}) == HEADS


@groups
def test_a_bias_for_all_heads_or_for_each(key_heads: int) -> None:
    multi, inputs = _build(Attention, key_heads), _inputs()
    shared = torch.randn(BATCH, QUERIES, KEYS, dtype=torch.float64)
    each = shared[:, None].expand(-1, HEADS, -1, -1).clone()
    torch.testing.assert_close(
        multi(*inputs, bias=shared).context, multi(*inputs, bias=each).context
    )
    each[:, 1] += torch.randn(BATCH, QUERIES, KEYS, dtype=torch.float64)
    before, after = multi(*inputs, bias=shared).weights, multi(*inputs, bias=each).weights
    torch.testing.assert_close(before[:, [0, 2, 3]], after[:, [0, 2, 3]])
    assert not torch.allclose(before[:, 1], after[:, 1])


@groups
def test_a_fully_masked_query_reads_zero(key_heads: int) -> None:
    """Although the projection that joins the heads adds a constant."""
    multi, inputs = _build(Attention, key_heads), _inputs()
    assert multi.out.bias.abs().min() > 0
    context, weights = multi(*inputs, mask=masks.Lengths([5, 0]))
    assert (context[1] == 0).all()
    assert (weights[1] == 0).all()
    assert (context[0] != 0).all()


def test_a_bare_query() -> None:
    multi, (queries, keys, values) = _build(Attention, 2), _inputs()
    bare = multi(queries[0, 0], keys[0], values[0])
    whole = multi(queries, keys, values)
    torch.testing.assert_close(bare.context, whole.context[0, 0])
    torch.testing.assert_close(bare.weights, whole.weights[0, :, 0])


def test_rows_and_draws_have_the_axis_of_heads() -> None:
    multi, inputs = _build(lambda: Attention(SCORES[0].make(), SELECTIONS[4].make()), 2), _inputs()
    reading = multi.train()(*inputs)
    assert reading.rows([2, 0]).shape == (BATCH, HEADS, 2, KEYS)
    assert torch.equal(reading.rows([2, 0]), reading.weights[..., [2, 0], :])
    assert reading.log_probs.shape == reading.entropy.shape == (BATCH, HEADS, QUERIES)


def test_beams_share_one_memory() -> None:
    """Queries `(batch, beam, 1, size)` read keys `(batch, 1, key, size)`, which are not copied."""
    multi, (queries, keys, values) = _build(Attention, 2), _inputs()
    beams = torch.stack([queries, queries.flip(-2)], 1)
    shared = multi(beams, keys[:, None], values[:, None], mask=masks.Lengths([[5], [2]]))
    for beam in range(2):
        alone = multi(beams[:, beam], keys, values, mask=masks.Lengths([5, 2]))
        torch.testing.assert_close(shared.context[:, beam], alone.context)
        torch.testing.assert_close(shared.weights[:, beam], alone.weights)
