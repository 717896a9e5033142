"""`MultiHead` with nn.MultiheadAttention's weights reads the same, and never answers NaN."""

import pytest
import torch
from torch import Tensor, nn

from regard import Attention, MultiHead, kernels
from tests.parity.close import assert_as_exact, assert_same, with_gradients

Options = dict[str, object]

BATCH, QUERIES, KEYS, HEADS, HEAD_SIZE = 2, 3, 5, 7, 11
SIZE, KEY_SIZE, VALUE_SIZE = HEADS * HEAD_SIZE, 13, 17
FORMS = {
    "one size": (SIZE, SIZE, True),
    "three sizes": (KEY_SIZE, VALUE_SIZE, True),
    "no bias": (KEY_SIZE, VALUE_SIZE, False),
}


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(1)


@pytest.fixture(params=FORMS)
def peer(request: pytest.FixtureRequest) -> nn.MultiheadAttention:
    return build(*FORMS[request.param])


def build(key_size: int, value_size: int, bias: bool) -> nn.MultiheadAttention:
    peer = nn.MultiheadAttention(
        SIZE, HEADS, bias=bias, kdim=key_size, vdim=value_size, batch_first=True
    ).double()
    for name, parameter in peer.named_parameters():
        if name.endswith("bias"):  # 0 at first, and 0 hides a bias in the wrong position
            nn.init.normal_(parameter)
    return peer


def load(peer: nn.MultiheadAttention) -> MultiHead:
    ours = MultiHead(
        Attention, HEADS, SIZE, peer.kdim, HEAD_SIZE,
        value_size=peer.vdim, bias=peer.in_proj_bias is not None,
    )  # fmt: skip
    projections = [ours.query, ours.key, ours.value]
    weights = [peer.q_proj_weight, peer.k_proj_weight, peer.v_proj_weight]
    if peer.in_proj_weight is not None:
        weights = peer.in_proj_weight.chunk(3)
    for projection, weight in zip(projections, weights, strict=True):
        projection.weight = nn.Parameter(weight.detach().clone())
    if peer.in_proj_bias is not None:
        for projection, bias in zip(projections, peer.in_proj_bias.chunk(3), strict=True):
            projection.bias = nn.Parameter(bias.detach().clone())
    ours.double().out.load_state_dict(peer.out_proj.state_dict())
    return ours


def draw(peer: nn.MultiheadAttention, batch: tuple[int, ...] = (BATCH,)) -> list[Tensor]:
    shapes = [(QUERIES, SIZE), (KEYS, peer.kdim), (KEYS, peer.vdim)]
    return [torch.randn(*batch, *shape, dtype=torch.float64) for shape in shapes]


def draw_case(name: str) -> tuple[Options, Options]:
    """One condition in our words and in torch's, where True hides."""
    hidden = torch.rand(BATCH * HEADS, QUERIES, KEYS) > 0.7
    hidden[..., 0] = False
    padding = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
    bias = torch.randn(BATCH * HEADS, QUERIES, KEYS, dtype=torch.float64)
    pairs, seen = hidden[0], ~padding[:, None, :]
    words: dict[str, tuple[Options, Options]] = {
        "plain": ({}, {}),
        "key_padding_mask": ({"mask": seen}, {"key_padding_mask": padding}),
        "attn_mask": ({"mask": ~pairs[None]}, {"attn_mask": pairs}),
        "both masks": (
            {"mask": seen & ~pairs},
            {"key_padding_mask": padding, "attn_mask": pairs},
        ),
        "bias": ({"bias": bias[:1]}, {"attn_mask": bias[0]}),
        "bias of each head": (
            {"bias": bias.unflatten(0, (BATCH, HEADS))},
            {"attn_mask": bias},
        ),
    }
    return words[name]


CASES = ["plain", "key_padding_mask", "attn_mask", "both masks", "bias", "bias of each head"]


@pytest.mark.parametrize("need_weights", [True, False], ids=["weights", "fused"])
@pytest.mark.parametrize("name", CASES)
def test_context_and_gradients(peer: nn.MultiheadAttention, name: str, need_weights: bool) -> None:
    multi, inputs = load(peer), draw(peer)
    ours, theirs = draw_case(name)
    direction = torch.randn(BATCH, QUERIES, SIZE)
    found = with_gradients(lambda *inputs: multi(*inputs, **ours).context, inputs, direction)
    expected = with_gradients(
        lambda *inputs: peer(*inputs, need_weights=need_weights, **theirs)[0], inputs, direction
    )
    assert_same(found, expected)


@pytest.mark.parametrize("name", CASES)
def test_weights_and_their_gradients(peer: nn.MultiheadAttention, name: str) -> None:
    multi, (queries, keys, values) = load(peer), draw(peer)
    ours, theirs = draw_case(name)
    direction = torch.randn(BATCH, HEADS, QUERIES, KEYS)
    found = with_gradients(
        lambda queries, keys: multi(queries, keys, values, **ours).weights,
        [queries, keys],
        direction,
    )
    expected = with_gradients(
        lambda queries, keys: peer(queries, keys, values, average_attn_weights=False, **theirs)[1],
        [queries, keys],
        direction,
    )
    assert_same(found, expected)


def test_gradients_of_the_parameters(peer: nn.MultiheadAttention) -> None:
    multi, inputs = load(peer), draw(peer)
    direction = torch.randn(BATCH, QUERIES, SIZE, dtype=torch.float64)
    multi(*inputs).context.backward(direction)
    peer(*inputs)[0].backward(direction)
    projections = [multi.query, multi.key, multi.value]
    theirs = [peer.q_proj_weight, peer.k_proj_weight, peer.v_proj_weight]
    if peer.in_proj_weight is None:
        assert_same([one.weight.grad for one in projections], [weight.grad for weight in theirs])
    else:
        packed = torch.cat([one.weight.grad for one in projections])
        assert_same([packed], [peer.in_proj_weight.grad])
    if peer.in_proj_bias is not None:  # packed, for that of the keys alone is 0 but for rounding
        packed = torch.cat([one.bias.grad for one in projections])
        assert_same([packed], [peer.in_proj_bias.grad])
    outs = zip(multi.out.parameters(), peer.out_proj.parameters(), strict=True)
    for ours, parameter in outs:
        assert_same([ours.grad], [parameter.grad])


def test_no_batch(peer: nn.MultiheadAttention) -> None:
    multi, inputs = load(peer), draw(peer, batch=())
    theirs, weights = peer(*inputs, average_attn_weights=False)
    reading = multi(*inputs)
    assert_same([reading.context, reading.weights], [theirs, weights])


@pytest.mark.parametrize("kernel", [kernels.Reference(), kernels.Sdpa()], ids=["plain", "fused"])
def test_each_kernel(peer: nn.MultiheadAttention, kernel: kernels.Kernel) -> None:
    multi, inputs = load(peer), draw(peer)
    with kernels.using(kernel):
        found = multi(*inputs).context
    assert_same([found], [peer(*inputs, need_weights=False)[0]])


def test_float32() -> None:
    peer = build(SIZE, SIZE, True).float()
    multi, inputs = load(peer).float(), [tensor.float() for tensor in draw(peer)]
    direction = torch.randn(BATCH, QUERIES, SIZE)
    found = with_gradients(lambda *inputs: multi(*inputs).context, inputs, direction)
    expected = with_gradients(lambda *inputs: peer(*inputs)[0], inputs, direction)
    peer.double()
    doubles = [tensor.double() for tensor in inputs]
    truth = with_gradients(lambda *inputs: peer(*inputs)[0], doubles, direction)
    assert_as_exact(found, expected, truth)


@torch.no_grad()
def test_self_attention_at_rest() -> None:
    """Without gradients and in evaluation torch takes another path, written in C++."""
    peer = build(SIZE, SIZE, True).eval()
    multi, sequence = load(peer), draw(peer)[0]
    padding = torch.tensor([[False] * 3, [False, False, True]])
    theirs, weights = peer(
        sequence, sequence, sequence, key_padding_mask=padding, average_attn_weights=False
    )
    reading = multi(sequence, sequence, sequence, mask=~padding[:, None, :])
    assert_same([reading.context, reading.weights], [theirs, weights])


def test_a_fully_masked_query_reads_nan_in_torch(peer: nn.MultiheadAttention) -> None:
    """And with weights not asked for, it reads 0 there: the answer depends on the question."""
    multi, inputs = load(peer), draw(peer)
    padding = torch.tensor([[False] * 5, [True] * 5])
    context, weights = peer(*inputs, key_padding_mask=padding)
    assert context[1].isnan().all()
    assert weights[1].isnan().all()
    context, _ = peer(*inputs, key_padding_mask=padding, need_weights=False)
    assert context[1].isfinite().all()

    reading = multi(*inputs, mask=~padding[:, None, :])
    assert torch.equal(reading.context[1], torch.zeros(QUERIES, SIZE).double())
    assert torch.equal(reading.weights[1], torch.zeros(HEADS, QUERIES, KEYS).double())
    assert_same([reading.context[0]], [context[0]])


def test_a_fully_masked_query_has_nan_gradients_in_torch(peer: nn.MultiheadAttention) -> None:
    multi, inputs = load(peer), draw(peer)
    padding = torch.tensor([[False] * 5, [True] * 5])
    direction = torch.randn(BATCH, QUERIES, SIZE)
    _, *theirs = with_gradients(
        lambda *inputs: peer(*inputs, key_padding_mask=padding)[0], inputs, direction
    )
    _, *found = with_gradients(
        lambda *inputs: multi(*inputs, mask=~padding[:, None, :]).context, inputs, direction
    )
    for ours, gradient in zip(found, theirs, strict=True):
        assert gradient[1].isnan().any()
        assert torch.equal(ours[1], torch.zeros_like(ours[1]))
        assert_same([ours[0]], [gradient[0]])
