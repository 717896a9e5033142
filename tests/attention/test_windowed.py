"""Local attention in windows is the reference's to the digit, at the cost of what it reads."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.autograd import gradcheck, gradgradcheck
from torch.utils._python_dispatch import TorchDispatchMode

from regard import Attention, MultiHead, attend, errors, kernels, masks, scores, selection
from regard.attention.core import gather
from regard.attention.kernels import gathered_matmul, rule, windowed
from tests.catalogue import SCORES, SIZE, Mechanism
from tests.laws.cases import Case, plans

SELECTIONS = {
    "along": lambda: selection.LocalMonotonic(1),
    "around": lambda: selection.LocalPredictive(SIZE, 1),
}
EXACT = {"rtol": 1e-9, "atol": 1e-10}
some = settings(max_examples=8, deadline=None, derandomize=True)
locally = pytest.mark.parametrize("select", SELECTIONS)
family = pytest.mark.parametrize("score", SCORES, ids=str)


@contextmanager
def in_small_parts() -> Iterator[None]:
    """As if the read were large: windows shared by few, gathered and held a little at a time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(windowed, "QUERIES_PER_WINDOW", 2)
        patch.setattr(windowed, "BLOCK", 64)
        patch.setattr(gathered_matmul, "FEW", 0)
        patch.setattr(gathered_matmul, "BLOCK", 16)
        yield


@contextmanager
def at_once() -> Iterator[None]:
    """As it comes."""
    yield


WAYS = {"at once": at_once, "in small parts": in_small_parts}
ways = pytest.mark.parametrize("way", WAYS)


def results(module: nn.Module, case: Case, kernel: kernels.Kernel, **more) -> list[Tensor]:
    """Context, weights, and the gradients of everything that may learn."""
    module.zero_grad()
    leaves = [t.detach().clone().requires_grad_() for t in (case.queries, case.keys, case.values)]
    with kernels.using(kernel):
        context, weights = module(*leaves, mask=case.mask, **more)
    (context.square().sum() + weights.square().sum()).backward()
    learned = [*leaves, *module.parameters()]
    gradients = [torch.zeros_like(t) if t.grad is None else t.grad.clone() for t in learned]
    return [context.detach(), weights.detach(), *gradients]


def assert_agrees(module: nn.Module, case: Case, **more) -> None:
    found, expected = (
        results(module, case, kernel, **more)
        for kernel in (kernels.Windowed(), kernels.Reference())
    )
    for ours, truth in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, truth, **EXACT)


def attention(score: Mechanism, select: str) -> Attention:
    torch.manual_seed(0)
    return Attention(score.make(), SELECTIONS[select]()).double()


def plain_case(*batch: int, queries: int = 5, keys: int = 11, size: int = SIZE) -> Case:
    torch.manual_seed(3)
    shapes = (queries, size), (keys, size), (keys, 3)
    return Case(*(torch.randn(*batch, *s, dtype=torch.float64) for s in shapes), None, 0)


@family
@locally
@ways
@some
@given(plan=plans(fewest_keys=1))
def test_it_agrees_with_the_reference(score: Mechanism, select: str, way: str, plan) -> None:
    with WAYS[way]():
        assert_agrees(attention(score, select), plan.case())


@family
@locally
@ways
def test_a_bias_learns_with_it(score: Mechanism, select: str, way: str) -> None:
    case, found = plain_case(2), []
    for kernel in (kernels.Windowed(), kernels.Reference()):
        torch.manual_seed(5)
        for shape in ((2, 5, 11), (1, 1, 11), (2, 5, 1)):
            bias = torch.randn(shape, dtype=torch.float64, requires_grad=True)
            with WAYS[way]():
                found += [*results(attention(score, select), case, kernel, bias=bias), bias.grad]
    for ours, truth in zip(found[: len(found) // 2], found[len(found) // 2 :], strict=True):
        torch.testing.assert_close(ours, truth, **EXACT)


@pytest.mark.parametrize("reach", [0, 2, 6, 40])
@pytest.mark.parametrize("queries", [1, 5, 67])
@ways
def test_windows_of_any_width_at_the_ends(reach: int, queries: int, way: str) -> None:
    case = plain_case(2, queries=queries, keys=37)
    with WAYS[way]():
        assert_agrees(Attention(select=selection.LocalMonotonic(reach)), case)
        assert_agrees(Attention(select=selection.LocalPredictive(SIZE, reach)).double(), case)


@settings(some, max_examples=40)
@given(
    centres=st.lists(st.floats(0, 97, width=32), min_size=1, max_size=7),
    reach=st.integers(0, 40),
)
def test_the_edge_is_where_the_reference_has_it(centres: list[float], reach: int) -> None:
    """In float32, to the last digit of a centre: which keys are in, and with which weight."""
    rows, keys = len(centres), 97
    bound = rule.GaussianWindowRule(torch.tensor(centres)[:, None], reach, max(reach, 1) / 2)
    view = kernels.View(masks.PairIndex(rows, keys))
    comparison = kernels.PrecomputedScores(torch.randn(rows, keys))
    request = kernels.Request(comparison, bound, torch.eye(keys), view, {})
    found, expected = (kernel(request)[0] for kernel in (kernels.Windowed(), kernels.Reference()))
    assert torch.equal(found > 0, expected > 0)
    torch.testing.assert_close(found, expected)


@locally
@pytest.mark.parametrize("stride", [1, 3])
def test_step_by_step_is_the_whole(select: str, stride: int) -> None:
    reader, case = attention(SCORES[1], select), plain_case(2, queries=11)
    whole = reader(case.queries, case.keys, case.values)
    memory, state, found = reader.prepare(case.keys, case.values), None, []
    with kernels.using(kernels.Windowed()):
        for queries in case.queries.split(stride, -2):
            reading = reader.read(queries, memory, state=state)
            state = reading.state
            found.append(reading.context)
    torch.testing.assert_close(torch.cat(found, -2), whole.context, **EXACT)


@locally
@torch.no_grad()
def test_rows_of_the_weights(select: str) -> None:
    module, case = attention(SCORES[1], select), plain_case(2, queries=67)
    case.keys[1, 3] = torch.nan
    case.mask = masks.Causal() & masks.Lengths([11, 5])
    with kernels.using(kernels.Windowed()):
        reading = case.ask(module)
        rows = reading.rows([64, 60, 1])
    with kernels.using(kernels.Reference()):
        expected = case.ask(module).weights
    assert expected[1, 64].isnan().all()
    torch.testing.assert_close(rows, expected[:, [64, 60, 1]], equal_nan=True, **EXACT)


@locally
@ways
@pytest.mark.parametrize("shared", ["memory", "queries", "values"])
def test_an_axis_of_one_broadcasts(select: str, way: str, shared: str) -> None:
    case = plain_case(3, 2)
    case.queries = case.queries[:, :1] if shared == "queries" else case.queries
    case.keys = case.keys[:, :1] if shared in ("memory", "values") else case.keys
    case.values = case.values[:, :1] if shared == "memory" else case.values
    case.mask = masks.Lengths(torch.tensor([[11, 7], [5, 0], [1, 2]]))
    with WAYS[way]():
        assert_agrees(attention(SCORES[5], select), case)
        assert_agrees(attention(SCORES[1], select), case)


def test_what_is_shared_or_transposed_is_not_copied() -> None:
    columns = torch.randint(0, 7, (2, 3, 5, 4))
    shared = torch.randn(2, 1, 7, 11)
    heads = torch.randn(2, 7, 3, 11).transpose(1, 2)
    for keys in (shared, heads):
        rows, positions = gather.flat_rows(keys, columns)
        assert rows.data_ptr() == keys.data_ptr()
        expected = keys.expand(2, 3, 7, 11).gather(
            2, columns.flatten(2)[..., None].expand(-1, -1, -1, 11)
        )
        assert torch.equal(rows[positions].flatten(2, 3), expected)


@locally
@ways
@pytest.mark.parametrize("key_heads", [4, 2], ids=["heads", "groups"])
@pytest.mark.parametrize("mask", [None, masks.Causal() & masks.Lengths([11, 5])], ids=str)
def test_heads(select: str, way: str, key_heads: int, mask) -> None:
    case = plain_case(2, queries=7)
    case.mask = mask
    local = {
        "along": lambda: Attention(scores.Additive(2, 2, 3), selection.LocalMonotonic(2)),
        "around": lambda: Attention(select=selection.LocalPredictive(2, 2)),
    }
    torch.manual_seed(1)
    with WAYS[way]():
        assert_agrees(
            MultiHead(local[select], 4, SIZE, SIZE, 2, key_heads, value_size=3).double(), case
        )


@pytest.mark.usefixtures("unchecked")
@locally
@ways
@pytest.mark.parametrize("score", ["ScaledDot-learned", "Additive", "InverseDistance", "Gaussian"])
def test_derivatives_of_first_and_second_order(select: str, way: str, score: str) -> None:
    module = attention({str(s): s for s in SCORES}[score], select)
    names = [name for name, _ in module.named_parameters()]

    def read(*given: Tensor) -> Tensor:
        learned = dict(zip(names, given[3:], strict=True))
        mask = masks.Causal() & masks.Lengths([11, 0])
        return torch.func.functional_call(module, learned, given[:3], {"mask": mask}).context

    case = plain_case(2)
    given = [case.queries, case.keys, case.values, *(p.detach() for p in module.parameters())]
    given = [tensor.clone().requires_grad_() for tensor in given]
    with kernels.using(kernels.Windowed()), WAYS[way]():
        assert gradcheck(read, given, fast_mode=True)
        assert gradgradcheck(read, given, fast_mode=True)


@locally
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize(
    "score", ["ScaledDot", "Additive", "InverseDistance", "Gaussian", "callable"]
)
@ways
def test_at_most_twice_as_wrong_as_the_reference(select: str, dtype, score: str, way: str) -> None:
    module = attention({str(s): s for s in SCORES}[score], select).to(dtype)
    case = plain_case(3, queries=67, keys=131)
    case = Case(*(t.to(dtype) for t in (case.queries, case.keys, case.values)), None, 0)
    with WAYS[way]():
        found, plain = (results(module, case, k) for k in (kernels.Windowed(), kernels.Reference()))
    exact = results(module.double(), case.to(torch.float64), kernels.Reference())
    for ours, theirs, truth in zip(found, plain, exact, strict=True):
        off, allowed = (ours.double() - truth).norm(), (theirs.double() - truth).norm()
        assert off <= 2 * allowed + torch.finfo(torch.float32).eps * truth.norm()


@locally
def test_vmap_and_gradients_for_each_item(select: str) -> None:
    module, case = attention(SCORES[1], select), plain_case(3)

    def loss(queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        with kernels.using(kernels.Windowed()):
            return module(queries, keys, values, mask=masks.Causal()).context.square().sum()

    inputs = (case.queries, case.keys, case.values)
    found = torch.vmap(torch.func.grad(loss, argnums=(0, 1, 2)))(*inputs)
    for item, own in enumerate(zip(*inputs, strict=True)):
        leaves = [tensor.clone().requires_grad_() for tensor in own]
        loss(*leaves).backward()
        for ours, leaf in zip(found, leaves, strict=True):
            torch.testing.assert_close(ours[item], leaf.grad, **EXACT)


@locally
def test_autocast(select: str) -> None:
    module, case = attention(SCORES[5], select).float(), plain_case(2).to(torch.float32)
    inputs = (case.queries, case.keys, case.values)
    found = []
    for kernel in (kernels.Windowed(), kernels.Reference()):
        with torch.autocast("cpu", dtype=torch.bfloat16), kernels.using(kernel):
            found.append(module(*inputs).context)
    assert found[0].dtype == torch.bfloat16
    torch.testing.assert_close(*found)


@locally
@ways
def test_a_nonfinite_query_reads_nan_and_affects_no_other(select: str, way: str) -> None:
    module, case = attention(SCORES[1], select), plain_case(2)
    clean = module(case.queries, case.keys, case.values).context
    for plant in (torch.nan, torch.inf, -torch.inf):
        case.queries[1, 2] = plant
        with kernels.using(kernels.Windowed()), WAYS[way]():
            context = module(case.queries, case.keys, case.values).context
        assert context[1, 2].isnan().all()
        context[1, 2] = clean[1, 2]
        torch.testing.assert_close(context, clean, **EXACT)


@ways
def test_dropout_is_applied_to_the_context_not_to_the_weights(way: str) -> None:
    torch.manual_seed(2)
    keys = torch.randn(31, 5)
    with kernels.using(kernels.Windowed()), WAYS[way]():
        reading = attend(keys, keys, torch.eye(31), select=selection.LocalMonotonic(3, dropout=0.5))
    weights, thinned = reading.weights, reading.context
    kept = thinned != 0
    assert kept.any()
    assert not kept[weights > 0].all()
    torch.testing.assert_close(thinned[kept], 2 * weights[kept])


class Largest(TorchDispatchMode):
    """The largest tensor that was made, views of what was given aside."""

    def __init__(self, given: list[Tensor]) -> None:
        super().__init__()
        self.given = {tensor.untyped_storage().data_ptr() for tensor in given}
        self.numbers = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        made = function(*args, **(kwargs or {}))
        for tensor in made if isinstance(made, tuple | list) else [made]:
            if isinstance(tensor, Tensor) and tensor.untyped_storage().data_ptr() not in self.given:
                self.numbers = max(self.numbers, tensor.numel())
        return made


MASKED = {"open": None, "masked": masks.Causal() & masks.Window(500) & masks.Lengths([900])}


@pytest.mark.usefixtures("unchecked")
@torch.no_grad()
@locally
@pytest.mark.parametrize("mask", MASKED)
def test_what_is_held_grows_with_queries_and_reach_and_not_with_keys(select, mask) -> None:
    make = {
        "along": selection.LocalMonotonic,
        "around": lambda reach: selection.LocalPredictive(SIZE, reach),
    }[select]

    def largest(queries: int, keys: int, reach: int) -> int:
        inputs = [torch.randn(1, n, 5) for n in (queries, keys, keys)]
        module = Attention(select=make(reach))
        memory = module.prepare(*inputs[1:], MASKED[mask])
        given = [memory.prepared["keys"], memory.values, inputs[0]]
        with Largest(given) as seen, kernels.using(kernels.Windowed()):
            module.read(inputs[0], memory)
        return seen.numbers

    base = largest(200, 1000, 20)
    assert base <= 200 * (2 * 20 + 1 + windowed.QUERIES_PER_WINDOW) * SIZE
    assert largest(200, 10_000, 20) == base
    assert largest(400, 1000, 20) <= 2.2 * base
    assert largest(200, 1000, 40) <= 2.2 * base


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("select", "record"), [("along", rule.FixedWindowRule), ("around", rule.GaussianWindowRule)]
)
def test_no_more_pairs_are_scored_than_the_windows_hold(select, record, monkeypatch) -> None:
    counted, inner = [], record.weights

    def counting(self, scores: Tensor, allowed, pairs) -> Tensor:
        counted.append(scores.numel())
        return inner(self, scores, allowed, pairs)

    monkeypatch.setattr(record, "weights", counting)
    reach, queries = 1, 128
    share = windowed.QUERIES_PER_WINDOW if select == "along" else 1
    for keys in (1009, 2003):
        counted.clear()
        read = Attention(select=SELECTIONS[select]())
        read(torch.randn(queries, SIZE), torch.randn(keys, SIZE), torch.randn(keys, SIZE))
        assert sum(counted) == queries * (2 * reach + share)


def _asked(queries: int, keys: int, select: Callable[[], selection.Selection]) -> list[str]:
    """The kernels that would be chosen, in order."""
    read = Attention(select=select())
    with torch.no_grad():
        inputs = torch.randn(queries, SIZE), torch.randn(keys, SIZE), torch.randn(keys, 3)
        (part,) = read(*inputs).parts
    takes = [k for k in kernels.KERNELS if k.prefers(part.request) and not k.refusals(part.request)]
    return [type(kernel).__name__ for kernel in takes]


@locally
def test_it_is_chosen_where_windows_are_much_smaller_than_the_memory(select: str) -> None:
    assert _asked(64, 1000, SELECTIONS[select])[0] == "Windowed"
    assert "Windowed" not in _asked(64, 17, SELECTIONS[select])
    assert "Windowed" not in _asked(1, 100, SELECTIONS[select])
    assert "Windowed" not in _asked(64, 1000, selection.Softmax)


@pytest.mark.parametrize(
    ("keys", "select", "reason"),
    [
        (7, selection.Softmax(), "selects by SoftmaxRule, not in a window"),
        (0, selection.LocalMonotonic(2), "a size is 0"),
        (2**24 + 1, selection.LocalMonotonic(2), "more than 16777216 keys are not exact"),
    ],
    ids=["softmax", "no keys", "too many keys"],
)
def test_refusals(keys: int, select: selection.Selection, reason: str) -> None:
    vectors = torch.zeros(1, 1).expand(keys, 1)
    with kernels.using(kernels.Windowed()), pytest.raises(errors.KernelError, match=reason):
        attend(torch.zeros(1, 1), vectors, vectors, select=select)
