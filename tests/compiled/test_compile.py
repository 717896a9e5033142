"""Everything compiles into one graph, with its masks, memories and states.

These tests run without the import hook that checks shapes (`REGARD_SHAPES=off`): torch.compile
cannot look through it.
"""

import pytest
import torch
from torch import Tensor, nn

from regard import Attention, MultiHead, State, kernels, masks, scores, selection
from tests.catalogue import SCORES, SELECTIONS, SIZE, Mechanism

QUERIES, KEYS, VALUE_SIZE = 3, 7, 2
DOT, SOFTMAX = SCORES[1], SELECTIONS[0]
CROSS = [(score, SOFTMAX) for score in SCORES] + [(DOT, select) for select in SELECTIONS]
cross = pytest.mark.parametrize(("score", "select"), CROSS, ids=str)


def _attention(score: Mechanism, select: Mechanism) -> Attention:
    torch.manual_seed(2)
    return Attention(score.make(), select.make()).eval()


def _inputs(*batch: int) -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(3)
    sizes = (QUERIES, SIZE), (KEYS, SIZE), (KEYS, VALUE_SIZE)
    queries, keys, values = (torch.randn(*batch, *size) for size in sizes)
    return queries, keys, values


@pytest.fixture(autouse=True)
def _forget_graphs() -> None:
    torch.compiler.reset()


@cross
def test_compiles_into_one_graph(score: Mechanism, select: Mechanism) -> None:
    attention = _attention(score, select)

    def read(queries: Tensor, keys: Tensor, values: Tensor, lengths: Tensor) -> list[Tensor]:
        mask = masks.Causal() & masks.Lengths(lengths)
        reading = attention(queries, keys, values, mask=mask)
        return [reading.context, reading.weights, reading.rows([2, 0]), reading.log_probs]

    inputs = (*_inputs(2), torch.tensor([7, 0]))
    compiled = torch.compile(read, fullgraph=True, backend="eager")
    for found, expected in zip(compiled(*inputs), read(*inputs), strict=True):
        torch.testing.assert_close(found, expected)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Attention(scores.Additive(2, 2, 3)),
        lambda: Attention(select=selection.Sparsemax()),
        lambda: Attention(select=selection.Entmax(1.5, learned=True)),
    ],
    ids=["additive", "sparsemax", "entmax"],
)
def test_heads_compile_with_their_gradients(make) -> None:
    torch.manual_seed(2)
    multi = MultiHead(make, 4, SIZE, SIZE, 2, 2, value_size=VALUE_SIZE)
    compiled = torch.compile(multi, fullgraph=True, backend="aot_eager")
    found = [_gradients(module) for module in (compiled, multi)]
    for ours, expected in zip(*found, strict=True):
        torch.testing.assert_close(ours, expected)


def _gradients(module: nn.Module) -> list[Tensor]:
    module.zero_grad()
    inputs = [tensor.requires_grad_() for tensor in _inputs(2)]
    module(*inputs, mask=masks.Lengths([7, 3])).context.square().sum().backward()
    return [t.grad.clone() for t in (*inputs, *module.parameters())]


def test_the_additive_operator_is_one_node_with_its_gradients() -> None:
    attention = Attention(scores.Additive(SIZE, SIZE, 3))

    def read(*inputs: Tensor) -> Tensor:
        with kernels.using(kernels.AdditiveKernel()):
            return attention(*inputs, mask=masks.Lengths([7, 0])).context

    nodes: list[str] = []

    def look(graph: torch.fx.GraphModule, _: list[Tensor]) -> torch.fx.GraphModule:
        nodes.extend(str(node.target) for node in graph.graph.nodes)
        return graph

    torch.compile(read, fullgraph=True, backend=look)(*_inputs(2))
    assert sum("additive_scores" in node for node in nodes) == 1
    compiled = torch.compile(read, fullgraph=True, backend="aot_eager")
    leaves = [[tensor.requires_grad_() for tensor in _inputs(2)] for _ in range(2)]
    for function, inputs in zip((compiled, read), leaves, strict=True):
        function(*inputs).square().sum().backward()
    for found, expected in zip(*leaves, strict=True):
        torch.testing.assert_close(found.grad, expected.grad)


@pytest.mark.parametrize("score", [scores.ScaledDot(), scores.Additive(SIZE, SIZE, 3)], ids=str)
@pytest.mark.parametrize(
    "select", [selection.LocalMonotonic(1), selection.LocalPredictive(SIZE, 1)], ids=str
)
def test_windows_compile_with_their_gradients(score, select) -> None:
    attention = Attention(score, select)

    def read(queries: Tensor, keys: Tensor, values: Tensor, lengths: Tensor) -> Tensor:
        with kernels.using(kernels.Windowed()):
            mask = masks.Causal() & masks.Lengths(lengths)
            return attention(queries, keys, values, mask=mask).context

    found = []
    for function in (torch.compile(read, fullgraph=True, backend="aot_eager"), read):
        attention.zero_grad()
        torch.manual_seed(3)
        inputs = [torch.randn(2, n, SIZE, requires_grad=True) for n in (67, 71, 71)]
        context = function(*inputs, torch.tensor([71, 0]))
        context.square().sum().backward()
        learned = [*inputs, *attention.parameters()]
        found.append([context.detach(), *(tensor.grad for tensor in learned)])
    for ours, expected in zip(*found, strict=True):
        torch.testing.assert_close(ours, expected)


@torch.no_grad()
def test_local_steps_compile() -> None:
    attention = Attention(select=selection.LocalMonotonic(2))
    queries, keys, values = _inputs(2)
    memory = attention.prepare(keys, values)

    def step(query: Tensor, state: State | None) -> tuple[Tensor, State]:
        with kernels.using(kernels.Windowed()):
            reading = attention.read(query, memory, state=state)
        return reading.context, reading.state

    compiled, states = torch.compile(step, fullgraph=True, backend="eager"), [None, None]
    for query in queries.split(1, -2):
        context, states[0] = compiled(query, states[0])
        expected, states[1] = step(query, states[1])
        torch.testing.assert_close(context, expected)


@torch.no_grad()
def test_a_decoder_step_compiles() -> None:
    """The memory and the state go in and out of the graph."""
    attention = _attention(SCORES[-1], SOFTMAX)
    queries, keys, values = _inputs(2)
    memory = attention.prepare(keys, values, masks.Lengths([7, 4]))

    def step(query: Tensor, state: State | None) -> tuple[Tensor, State]:
        reading = attention.read(query, memory, state=state)
        return reading.context, reading.state

    compiled, state, expected_state = (
        torch.compile(step, fullgraph=True, backend="eager"),
        None,
        None,
    )
    for query in queries.split(1, -2):
        context, state = compiled(query, state)
        expected, expected_state = step(query, expected_state)
        torch.testing.assert_close(context, expected)


def test_the_fused_path_compiles() -> None:
    attention, inputs = Attention(), _inputs(2)

    def read(*inputs: Tensor) -> Tensor:
        with kernels.using(kernels.Sdpa()):
            return attention(*inputs, mask=masks.Lengths([7, 3])).context

    compiled = torch.compile(read, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(*inputs), read(*inputs))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the compiler's own making
def test_with_the_default_compiler() -> None:
    attention, inputs = Attention(scores.Additive(SIZE, SIZE, 3)), _inputs(2)
    compiled = torch.compile(attention, fullgraph=True)
    torch.testing.assert_close(compiled(*inputs).context, attention(*inputs).context)
