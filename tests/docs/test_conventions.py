"""Each convention of docs/conventions.md in its plainest form; tests/laws has the whole family."""

import ast
import inspect
import re
from pathlib import Path

import pytest
import torch

from regard import Attention, MultiHead, attend, errors, kernels, masks, scores, selection

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "conventions.md"
TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
PLACE = re.compile(r"`([\w/]+\.py)`(?:, `(\w+)`)?")


def pairs(*batch: int, queries: int = 3, keys: int = 7, size: int = 5) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    shapes = (queries, size), (keys, size), (keys, 2)
    return [torch.randn(*batch, *shape, generator=generator) for shape in shapes]


def test_every_row_names_a_test_and_a_place_that_exist() -> None:
    text = PAGE.read_text()
    rows = [
        line for line in text.splitlines() if line.startswith("| ") and "| question" not in line
    ]
    assert len(rows) > 15
    for row in rows:
        ((path, name),) = TEST.findall(row)
        defined = {n.name for n in ast.parse((ROOT / path).read_text()).body if hasattr(n, "name")}
        assert name in defined, row
        places = PLACE.findall(row.rsplit("|", 2)[0])
        assert places, row
        for file, inside in places:
            source = (ROOT / "regard/attention" / file).read_text()
            assert not inside or re.search(rf"(def|class) {inside}\b|^{inside}\b", source, re.M), (
                row
            )


def test_a_float_is_never_a_mask() -> None:
    queries, keys, values = pairs()
    with pytest.raises(errors.MaskError, match="bias"):
        attend(queries, keys, values, mask=torch.zeros(3, 7))
    with pytest.raises(errors.DtypeError, match="mask"):
        attend(queries, keys, values, bias=torch.ones(3, 7, dtype=torch.bool))
    only_first = torch.zeros(3, 7, dtype=torch.bool)
    only_first[:, 0] = True
    assert torch.equal(attend(queries, keys, values, mask=only_first).context[1], values[0])


def test_nothing_to_read_is_exactly_zero() -> None:
    inputs = [t.requires_grad_() for t in pairs()]
    allowed = torch.tensor([[True], [False], [True]]).expand(3, 7)
    for kernel in (kernels.Reference(), kernels.Sdpa()):
        with kernels.using(kernel):
            context, weights = attend(*inputs, mask=allowed)
        assert context[1].count_nonzero() == 0
        assert weights[1].count_nonzero() == 0
        for gradient in torch.autograd.grad(context[1].sum(), inputs):
            assert gradient.count_nonzero() == 0


def test_what_is_hidden_never_matters_pair_by_pair() -> None:
    queries, keys, values = pairs(queries=7)
    keys.requires_grad_()
    attention = Attention(scores.Additive(5, 5, 3))
    complete = attention(queries, keys, values, mask=masks.Causal()).context
    broken = keys.detach().clone()
    broken[6] = torch.nan
    context = attention(queries, broken, values, mask=masks.Causal()).context
    assert torch.equal(context[:6], complete[:6])  # these may not read key 6
    assert context[6].isnan().all()  # this one may
    context[:6].sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in attention.parameters())


def test_the_last_query_sees_the_last_key() -> None:
    assert masks.Causal().dense(2, 4).tolist() == [[True, True, True, False], [True] * 4]


def test_padding_changes_nothing_and_s_counts_visible_keys() -> None:
    queries, keys, values = pairs()
    attention = Attention(select=selection.LocalPredictive(5, 2))
    short = attention(queries, keys[:4], values[:4])
    padded = attention(queries[None], keys[None], values[None], mask=masks.Lengths([4]))
    torch.testing.assert_close(padded.context[0], short.context)
    torch.testing.assert_close(padded.weights[0, :, :4], short.weights)


def test_heads_are_the_last_batch_axis() -> None:
    multi = MultiHead(Attention, heads=4, query_size=5, key_size=5, head_size=3, value_size=2)
    reading = multi(*pairs(11))
    assert reading.context.shape == (11, 3, 5)
    assert reading.weights.shape == (11, 4, 3, 7)


def test_a_bare_vector_is_answered_with_a_bare_vector() -> None:
    queries, keys, values = pairs()
    bare, row = attend(queries[1], keys, values), attend(queries, keys, values)
    torch.testing.assert_close(bare.context, row.context[1])
    torch.testing.assert_close(bare.weights, row.weights[1])


def test_sums_are_taken_in_float32_at_least() -> None:
    narrow = [t.bfloat16() for t in pairs(keys=4001)]
    exact = attend(*(t.double() for t in narrow)).context
    context = attend(*narrow).context
    # One rounding at the end is all that bfloat16 costs.
    torch.testing.assert_close(context.double(), exact, rtol=2**-8, atol=1e-6)


def test_weights_have_the_dtype_of_the_context() -> None:
    for dtype in (torch.bfloat16, torch.float16, torch.float32, torch.float64):
        context, weights = attend(*(t.to(dtype) for t in pairs()))
        assert context.dtype == weights.dtype == dtype


def test_weights_are_those_that_were_used() -> None:
    inputs = pairs()
    dropping = Attention(select=selection.Softmax(dropout=0.5))
    torch.testing.assert_close(dropping(*inputs).weights.sum(-1), torch.ones(3))  # before dropout
    context, weights = Attention(select=selection.Hard())(*inputs)  # in training: a draw
    assert torch.equal(context, weights @ inputs[2])
    learning = Attention(scores.Bilinear(5, 5))
    with kernels.using(kernels.Sdpa()):
        reading = learning(*inputs)
    with torch.no_grad():
        learning.score.weight.zero_()  # as an optimiser would, before the weights are asked for
    torch.testing.assert_close(reading.weights @ inputs[2], reading.context)


def test_names() -> None:
    names = ["queries", "keys", "values", "score", "select", "mask", "bias", "state"]
    assert list(inspect.signature(attend).parameters) == names


def compared(score: scores.Score, query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
    return score.compare(query, score.prepare(key), {}).scores()


def test_inverse_distance_at_a_key_is_one_over_the_floor() -> None:
    here = torch.ones(1, 2, requires_grad=True)
    score = compared(scores.InverseDistance(floor=0.125), here, torch.ones(1, 2))
    assert score.item() == pytest.approx(8.0)
    score.backward()
    assert here.grad.count_nonzero() == 0


def test_the_cosine_with_a_zero_vector_is_zero() -> None:
    nothing = torch.zeros(1, 2, requires_grad=True)
    score = compared(scores.Cosine(), nothing, torch.tensor([[3.0, 4.0]]))
    assert score.item() == 0.0
    score.backward()
    assert nothing.grad.abs().max() <= 1e4


def test_local_monotonic_past_the_end_reads_nothing() -> None:
    queries, keys, values = pairs(queries=7, keys=3)
    context, weights = attend(queries, keys, values, select=selection.LocalMonotonic(1))
    torch.testing.assert_close(weights.sum(-1), torch.tensor([1.0] * 4 + [0.0] * 3))
    assert context[4:].count_nonzero() == 0


def test_monotonic_after_the_end_reads_nothing() -> None:
    attention = Attention(scores.Dot(), selection.Monotonic()).eval()
    keys, values = torch.tensor([[-1.0], [1.0], [-1.0]]), torch.eye(3)
    queries = torch.tensor([[1.0], [1.0], [0.0], [1.0]])  # the third stops nowhere
    weights = attention(queries, keys, values).weights
    assert weights.tolist() == [[0, 1, 0], [0, 1, 0], [0, 0, 0], [0, 0, 0]]


def test_where_nothing_is_drawn_log_probs_and_entropy_are_zero() -> None:
    inputs = pairs()
    quiet = attend(*inputs)
    assert quiet.log_probs.tolist() == quiet.entropy.tolist() == [0.0] * 3
    drawn = attend(*inputs, select=selection.Hard())
    chances = quiet.weights
    torch.testing.assert_close(drawn.log_probs, (chances * drawn.weights).sum(-1).log())
    torch.testing.assert_close(drawn.entropy, -(chances * chances.log()).sum(-1))


def test_write_and_erase_change_a_memory_and_reorder_gives_another() -> None:
    queries, keys, values = pairs(2)
    memory = Attention().prepare(keys, values)
    assert memory.write(keys[:, :2], values[:, :2]) is memory
    assert len(memory) == 9
    assert memory.erase([0, -1]) is memory
    assert len(memory) == 7
    other = memory.reorder(torch.tensor([1, 0]))
    assert other is not memory
    torch.testing.assert_close(
        other.read(queries.flip(0)).context, memory.read(queries).context.flip(0)
    )


def test_reorder_chooses_items_or_beams_within_their_item() -> None:
    memory = Attention().prepare(*pairs(2, 3)[1:])
    values = memory.values
    items = memory.reorder(torch.tensor([1, 1, 0]))
    assert torch.equal(items.values, values[[1, 1, 0]])
    beams = memory.reorder(torch.tensor([[0, 0], [2, 1]]))
    assert torch.equal(beams.values, torch.stack([values[0, [0, 0]], values[1, [2, 1]]]))
    shared = Attention().prepare(*pairs(1)[1:])
    assert shared.reorder(torch.tensor([0, 1, 1])).batch == (1,)
