"""Everything goes through vmap, autocast, half precision and state_dict."""

import pytest
import torch
from torch import Tensor, nn

from regard import Attention, kernels, masks
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


@cross
@pytest.mark.parametrize("masked", [False, True], ids=["open", "masked"])
def test_vmap_gives_a_reading_of_the_whole(
    score: Mechanism, select: Mechanism, masked: bool
) -> None:
    attention, inputs = _attention(score, select), _inputs(3, 2)
    lengths = torch.tensor([[7, 5], [3, 1], [0, 2]])

    def read(queries: Tensor, keys: Tensor, values: Tensor, lengths: Tensor):
        mask = masks.Causal() & masks.Lengths(lengths) if masked else None
        return attention(queries, keys, values, mask=mask)

    together = torch.vmap(read)(*inputs, lengths)
    for item, given in enumerate(zip(*inputs, lengths, strict=True)):
        alone = read(*given)
        torch.testing.assert_close(together.context[item], alone.context)
        torch.testing.assert_close(together.weights[item], alone.weights)
        torch.testing.assert_close(together.rows([1])[item], alone.rows([1]))


def test_a_gradient_for_each_item() -> None:
    """vmap over grad, as for gradients per sample."""
    attention, inputs = _attention(SCORES[5], SOFTMAX), _inputs(3)

    def loss(queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        return attention(queries, keys, values).context.square().sum()

    together = torch.vmap(torch.func.grad(loss))(*inputs)
    for item, given in enumerate(zip(*inputs, strict=True)):
        queries = given[0].clone().requires_grad_()
        loss(queries, *given[1:]).backward()
        torch.testing.assert_close(together[item], queries.grad)


@cross
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_autocast(score: Mechanism, select: Mechanism, dtype: torch.dtype) -> None:
    """Autocast has ended when the weights are asked for; they are what was used all the same."""
    attention, inputs = _attention(score, select), _inputs(2)
    with torch.autocast("cpu", dtype=dtype):
        inside, outside = attention(*inputs), attention(*inputs)
        weights = inside.weights
    assert outside.context.dtype == outside.weights.dtype == dtype
    assert torch.equal(outside.weights, weights)
    in_half = attention.to(dtype)(*(tensor.to(dtype) for tensor in inputs))
    torch.testing.assert_close(outside.context, in_half.context, rtol=0.1, atol=0.1)


@cross
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16], ids=str)
def test_every_dtype_answers_in_kind(
    score: Mechanism, select: Mechanism, dtype: torch.dtype
) -> None:
    attention, inputs = _attention(score, select).to(dtype), [t.to(dtype) for t in _inputs(2)]
    context, weights = attention(*inputs, mask=masks.Lengths([7, 0]))
    assert context.dtype == weights.dtype == dtype
    assert context.isfinite().all()
    assert (context[1] == 0).all()
    # Summed in float32 and rounded once: as near as the dtype can tell.
    summed = weights.double() @ inputs[2].double()
    torch.testing.assert_close(context.double(), summed, rtol=0, atol=4 * torch.finfo(dtype).eps)


@cross
def test_state_dict_round_trip(score: Mechanism, select: Mechanism) -> None:
    first, inputs = _attention(score, select), _inputs(2)
    for parameter in first.parameters():
        nn.init.normal_(parameter)
    second = _attention(score, select)
    second.load_state_dict(first.state_dict())
    assert torch.equal(second(*inputs).context, first(*inputs).context)
    assert second.fingerprint() == first.fingerprint()


@pytest.mark.parametrize("batch", [(), (2,), (2, 3), (2, 3, 2), (1, 2, 1, 3)], ids=str)
@pytest.mark.parametrize("path", [kernels.Reference(), kernels.Sdpa()], ids=["reference", "sdpa"])
def test_any_number_of_batch_axes(batch: tuple[int, ...], path: kernels.Kernel) -> None:
    inputs = _inputs(*batch)
    with kernels.using(path):
        whole = Attention()(*inputs, mask=masks.Causal())
    flat = [tensor.reshape(-1, *tensor.shape[-2:]) for tensor in inputs]
    items = [Attention()(*given, mask=masks.Causal()) for given in zip(*flat, strict=True)]
    contexts = torch.stack([item.context for item in items]).reshape(whole.context.shape)
    torch.testing.assert_close(whole.context, contexts)
    torch.testing.assert_close(
        whole.rows([1]).flatten(), torch.cat([i.rows([1]) for i in items]).flatten()
    )
