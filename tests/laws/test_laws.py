"""Laws over the whole family: every score × every selection × masks of every kind.

No number here was recorded: each law holds for any input, or compares a mechanism with itself.
"""

import pytest
import torch
from hypothesis import given, settings

from regard import masks
from tests.catalogue import NAMES, PAIRS
from tests.laws.cases import BATCHES, NO_BATCH, VALUE_SIZE, Plan, make, plans

family = pytest.mark.parametrize(("score", "select"), PAIRS, ids=NAMES)
few = settings(max_examples=3, deadline=None, derandomize=True)
EXACT = {"rtol": 1e-10, "atol": 1e-10}
"""Sums of a few float64 numbers in another order."""


@family
@few
@given(plan=plans())
def test_weights_are_shares_of_what_may_be_read(score, select, plan: Plan) -> None:
    case = plan.case()
    reading = case.ask(make(score, select, training=True))
    weights, allowed = reading.weights, case.allowed()
    assert weights.shape == case.shape
    assert (weights >= 0).all()
    assert (weights[~allowed] == 0).all()
    total = weights.sum(-1)
    assert (total <= 1 + 1e-9).all()
    if select.sums_to_one:
        torch.testing.assert_close(total, allowed.any(-1).double(), **EXACT)


@family
@few
@given(plan=plans())
def test_context_is_what_the_weights_sum(score, select, plan: Plan) -> None:
    case = plan.case()
    context, weights = case.ask(make(score, select, training=True))
    assert context.shape == (*case.shape[:-1], VALUE_SIZE)
    torch.testing.assert_close(context, weights @ case.values, **EXACT)


@family
@few
@given(plan=plans())
def test_rows_are_rows_of_the_weights(score, select, plan: Plan) -> None:
    case = plan.case()
    reading = case.ask(make(score, select, training=True))
    last = case.shape[-2] - 1
    if len(reading.parts) == 1:
        reading.parts[0].cached_weights = None
    rows = reading.rows([last, 0])
    torch.testing.assert_close(rows, reading.weights[..., [last, 0], :], **EXACT)


@family
@few
@given(plan=plans())
def test_a_query_with_nothing_to_read_reads_exactly_zero(score, select, plan: Plan) -> None:
    case = plan.case()
    context, weights = case.ask(make(score, select, training=True))
    empty = ~case.allowed().any(-1)
    assert (context[empty] == 0).all()
    assert (weights[empty] == 0).all()


@family
@few
@given(plan=plans(fewest_keys=1))
def test_context_stays_in_the_hull_of_the_values(score, select, plan: Plan) -> None:
    case = plan.case()
    context = case.ask(make(score, select)).context
    values = case.values.expand(*case.shape[:-2], -1, -1)
    low, high = values.amin(-2, keepdim=True), values.amax(-2, keepdim=True)
    if not select.sums_to_one:  # less than the whole may be read: the hull includes 0
        low, high = low.clamp(max=0), high.clamp(min=0)
    reads = case.allowed().any(-1)
    inside = (low - 1e-9 <= context) & (context <= high + 1e-9)
    assert inside[reads].all()


@family
@few
@given(plan=plans(fewest_keys=1))
def test_order_of_the_pairs_does_not_matter(score, select, plan: Plan) -> None:
    case = plan.case()
    if not (score.order_free and select.order_free):
        # What speaks of positions must notice, or it would not be what it says.
        return
    attention = make(score, select)
    order = torch.randperm(case.shape[-1], generator=torch.Generator().manual_seed(case.seed))
    moved = case.ask(
        attention,
        keys=case.keys[..., order, :],
        values=case.values[..., order, :],
        mask=masks.Dense(case.allowed()[..., order]),
    )
    reading = case.ask(attention)
    torch.testing.assert_close(moved.context, reading.context, **EXACT)
    torch.testing.assert_close(moved.weights, reading.weights[..., order], **EXACT)


@family
@few
@given(plan=plans(batches=BATCHES))
def test_items_of_a_batch_do_not_see_each_other(score, select, plan: Plan) -> None:
    case = plan.case()
    attention = make(score, select)
    together = case.ask(attention).context
    for item in range(case.shape[0]):
        alone = case.ask(
            attention,
            queries=case.queries[item],
            keys=case.keys[item],
            values=case.values[item],
            mask=masks.Dense(case.allowed()[item]),
        )
        torch.testing.assert_close(together[item], alone.context, **EXACT)


@family
@few
@given(plan=plans())
def test_step_by_step_equals_the_whole(score, select, plan: Plan) -> None:
    case = plan.case()
    attention = make(score, select)
    whole = case.ask(attention)
    memory = attention.prepare(case.keys, case.values)
    state, allowed = None, case.allowed()
    for step in range(case.shape[-2]):
        now = slice(step, step + 1)
        reading = attention.read(
            case.queries[..., now, :], memory, state=state, mask=allowed[..., now, :]
        )
        state = reading.state
        torch.testing.assert_close(reading.context, whole.context[..., now, :], **EXACT)
        torch.testing.assert_close(reading.weights, whole.weights[..., now, :], **EXACT)


@family
@few
@given(plan=plans(masked=False))
def test_a_prepared_memory_reads_like_the_whole(score, select, plan: Plan) -> None:
    case = plan.case()
    attention = make(score, select)
    memory = attention.prepare(case.keys, case.values)
    reading = attention.read(case.queries, memory)
    torch.testing.assert_close(reading.context, case.ask(attention).context, **EXACT)


@family
@few
@given(plan=plans(fewest_keys=1))
def test_what_a_hidden_key_contains_does_not_matter(score, select, plan: Plan) -> None:
    case = plan.case()
    attention = make(score, select)
    unread = ~case.allowed().any(-2)  # hidden from every query
    reading = case.ask(attention)
    for other in (77.0, torch.nan, torch.inf, -torch.inf):
        planted = case.ask(
            attention,
            keys=case.keys.masked_fill(unread[..., None], other),
            values=case.values.masked_fill(unread[..., None], other),
        )
        assert torch.equal(planted.context, reading.context)
        assert torch.equal(planted.weights, reading.weights)


@family
@few
@given(plan=plans())
def test_an_axis_of_one_broadcasts(score, select, plan: Plan) -> None:
    case = plan.case()
    attention = make(score, select)
    shared = case.queries[:1] if len(case.shape) > 2 else case.queries
    once = case.ask(attention, queries=shared)
    each = case.ask(attention, queries=shared.expand_as(case.queries))
    torch.testing.assert_close(once.context, each.context, **EXACT)
    torch.testing.assert_close(once.weights, each.weights, **EXACT)


@family
@few
@given(plan=plans(masked=False, batches=[NO_BATCH]))
def test_a_bare_query_is_a_sequence_of_one(score, select, plan: Plan) -> None:
    case = plan.case()
    attention = make(score, select)
    bare = case.ask(attention, queries=case.queries[0])
    one = case.ask(attention, queries=case.queries[:1])
    assert torch.equal(bare.context, one.context[0])
    assert torch.equal(bare.weights, one.weights[0])
    assert torch.equal(bare.rows([0]), one.weights[0])
