"""Each function of the C library, asked directly, as no kernel would: sizes of 0 included."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from regard.native import additive, distance, gathered_matmul, log_softmax, multihead_step
from regard.native import dot_softmax as dots
from regard.native import single_query as single
from regard.native.dropout import dropout
from regard.native.gru import gru, gru_backward
from regard.native.int8 import dequantize, quantize_int8
from regard.native.l2_normalize import l2_normalize
from regard.native.layer_norm import add_layernorm
from regard.native.signatures import StepMemory
from regard.native.transpose import transposed
from tests.fuzz.compare import Cast, assert_agrees, leaf
from tests.fuzz.draw import Draw

LANES = 32


def padded(tensor: Tensor) -> Tensor:
    """With zeros up to whole lanes."""
    return functional.pad(tensor, (0, -tensor.shape[-1] % LANES))


def softmax(scores: Tensor, allowed: Tensor | None = None) -> Tensor:
    """Weights; none where nothing is allowed."""
    if allowed is not None:
        scores = scores.masked_fill(~allowed, -torch.inf)
    found = scores.softmax(-1)
    return found if allowed is None else found.masked_fill(~allowed.any(-1, keepdim=True), 0.0)


def sent_to(output: Tensor, inputs: list[Tensor], sent: Tensor) -> list[Tensor]:
    """The gradients of the inputs, zeros where there is no way."""
    found = torch.autograd.grad(output, inputs, sent.to(output.dtype), allow_unused=True)
    return [
        torch.zeros_like(each) if one is None else one
        for each, one in zip(inputs, found, strict=True)
    ]


def exponentials(draw: Draw) -> None:
    rows, size = draw.some(2)
    x = draw.tensor(rows, size)
    found, largest = additive.exponentials(x, -(-size // LANES) * LANES)
    assert largest == (x.abs().max() if x.numel() else 0.0)
    assert not found[:, size:].any()
    assert_agrees("exponentials", [found[:, :size]], lambda cast: [(2 * cast(x)).exp()])


def additive_scores(draw: Draw) -> None:
    """Scores and gradients, from exponentials or from vectors, of a block of rows."""
    items, rows, keys, size = draw.some(4)
    memories, first = max(1, items - 1), draw.random.choice((0, 2))
    every = padded(draw.tensor(items, rows + first, size)).contiguous()
    k, v = padded(draw.tensor(memories, keys, size)), padded(draw.tensor(items, size))
    which, g = draw.index(memories, items), draw.tensor(items, rows, keys)
    q, width = every[:, first:], every.shape[-1]
    asked, against, reach = every, k, additive.VECTORS
    if draw.chance():
        (asked, far), (against, near) = (additive.exponentials(each, width) for each in (every, k))
        reach = far + near
    how = additive.AdditiveMethod(reach, draw.chance())
    block, found = asked[:, first:], g.new_full((items, rows, keys), torch.nan)
    given = block, against.contiguous(), v.contiguous(), which
    assert additive.additive_scores(*given, found, how)
    sums = (torch.full_like(asked, torch.nan)[:, first:], *(
        torch.full((items, *shape), torch.nan) for shape in ((keys, width), (width,))
    ))  # fmt: skip
    assert additive.additive_backward(*given, g.contiguous(), sums, how, overwrite=True)

    def formula(cast: Cast) -> list[Tensor]:
        mine = leaf(cast)
        inputs = mine(q), mine(k[which]), mine(v)
        hidden = (inputs[0][:, :, None] + inputs[1][:, None]).tanh()
        scores = (hidden * inputs[2][:, None, None]).sum(-1)
        return [scores.detach(), *sent_to(scores, [*inputs], g)]

    assert_agrees("additive", [found, *sums], formula)


def squared_distances(draw: Draw) -> None:
    items, rows, keys, size = draw.some(4)
    memories = max(1, items - 1)
    q, k = draw.strided(items, rows, size), draw.strided(memories, keys, size)
    which = draw.index(memories, items)
    found = distance.squared_distances(q, k, which)
    assert_agrees(
        "distances", [found],
        lambda cast: [(cast(q)[:, :, None] - cast(k)[which][:, None]).square().sum(-1)],
    )  # fmt: skip


def distance_softmax(draw: Draw) -> None:
    items, rows, keys, size, wide = draw.some(5)
    of_keys, of_values = max(1, items - 1), max(1, items // 2)
    q, k = draw.strided(items, rows, size), draw.strided(of_keys, keys, size)
    v = draw.strided(of_values, keys, wide)
    which = draw.index(of_keys, items), draw.index(of_values, items)
    kind = draw.random.choice((distance.GAUSSIAN, distance.INVERSE))
    factor = -0.5 if kind == distance.GAUSSIAN else 0.7
    found = distance.distance_softmax(q, (k, v), which, distance.Pairwise(kind, factor, 0.5))

    def formula(cast: Cast) -> list[Tensor]:
        a, b = cast(q), cast(k)[which[0]]
        square = (a[:, :, None] - b[:, None]).square().sum(-1)
        scores = {
            distance.GAUSSIAN: factor * square,
            distance.INVERSE: factor / square.sqrt().clamp(min=0.5),
        }[kind]
        return [softmax(scores) @ cast(v)[which[1]]]

    assert_agrees("whole", [found], formula)


def dot_softmax(draw: Draw) -> None:
    """A read of dot products and its gradients, of keys and values that items may share."""
    outer, inner, rows, keys, size, wide = draw.some(6)
    q = draw.strided(outer, inner, rows, size)
    k, v = (
        draw.strided(*(1 if draw.chance(0.3) else each for each in (outer, inner)), keys, width)
        for width in (size, wide)
    )
    q, k, v = (each if each.stride(-1) == 1 else each.contiguous() for each in (q, k, v))
    span = None
    if draw.chance():
        axes = [1 if draw.chance(0.3) else each for each in (outer, inner)]
        first = draw.index(keys + 3, *axes, rows, 1) - 1
        span = first, first + draw.index(keys + 3, *axes, rows, 1)
    given = dots.DotArguments(q, k, v, span, 0.6)
    context, kept = dots.read_and_save(given, weights=draw.chance())
    sent = draw.tensor(*context.shape)
    wanted = tuple(draw.chance(0.8) for _ in range(3))
    found = dots.backward(given, kept, sent, wanted)

    def formula(cast: Cast) -> list[Tensor]:
        inputs = [leaf(cast)(each) for each in (q, k, v)]
        place, allowed = torch.arange(keys), None
        if span is not None:
            allowed = (span[0] <= place) & (place < span[1])
        weights = softmax(inputs[0] @ inputs[1].mT * 0.6, allowed)
        output = weights @ inputs[2]
        grads = sent_to(output, inputs, sent)
        asked = [grad for grad, one in zip(grads, wanted, strict=True) if one]
        return [output.detach(), output.detach(), *asked]

    grads = [each for each in found if each is not None]
    assert_agrees("dots", [context, dots.read(given), *grads], formula)


def gathered(draw: Draw) -> None:
    """Gathered rows."""
    count, width, size, length = draw.some(4)
    width = width if length else 0
    queries, rows = draw.strided(count, size), draw.strided(length, size)
    weights, places = draw.strided(count, width), draw.index(length, count, width)

    def formula(cast: Cast) -> list[Tensor]:
        x, table, w = cast(queries), cast(rows), cast(weights)
        gathered = table[places] if length else table.new_zeros(count, width, size)
        added = (w[..., None] * x[:, None]).reshape(count * width, size)
        return [
            (x[:, None] * gathered).sum(-1),
            (w[..., None] * gathered).sum(1),
            torch.zeros_like(table).index_add(0, places.flatten(), added),
        ]

    found = [
        gathered_matmul.dot(queries, rows, places),
        gathered_matmul.weighted_sum(weights, rows, places),
        gathered_matmul.scatter_add(weights, queries, places, length),
    ]
    assert_agrees("own", found, formula)


def rowwise(draw: Draw) -> None:
    """What goes row by row: unit vectors, a transpose, the greatest, log-probabilities."""
    rows, size = draw.some(2)
    x, bias = draw.tensor(rows, size), draw.tensor(size) if draw.chance() else None
    scores = x.clone()
    log_softmax.log_softmax(scores, bias)
    assert_agrees(
        "rowwise", [l2_normalize(x, 1e-3), transposed(x), scores],
        lambda cast: [
            cast(x) / cast(x).norm(dim=-1, keepdim=True).clamp(min=1e-3), cast(x).mT,
            (cast(x) if bias is None else cast(x) + cast(bias)).log_softmax(-1),
        ],
    )  # fmt: skip
    if size:
        assert torch.equal(log_softmax.argmax(x), x.argmax(-1))


def dropped(draw: Draw) -> None:
    x, rate = draw.strided(*draw.some(2)), draw.random.choice((0.1, 0.5, 0.9))
    found = dropout(x, rate, 7)
    kept = found != 0
    assert_agrees("dropout", [found], lambda cast: [cast(x) * kept / (1 - rate)])


def cross_entropy(draw: Draw) -> None:
    rows, count = draw.some(2)
    count = max(1, count)
    scores, bias, targets = draw.tensor(rows, count), draw.tensor(count), draw.index(count, rows)
    smoothing, grads = draw.random.choice((0.0, 0.1)), scores.clone()
    losses, chosen, to_bias = log_softmax.cross_entropy_with_grad(
        grads, bias, targets, smoothing, 0.5
    )

    def formula(cast: Cast) -> list[Tensor]:
        x, b = leaf(cast)(scores), leaf(cast)(bias)
        each = functional.cross_entropy(x + b, targets, reduction="none", label_smoothing=smoothing)
        own = (x + b).log_softmax(-1).gather(-1, targets[:, None])[:, 0]
        to_x, to_b = sent_to(each.sum(), [x, b], torch.tensor(0.5))
        return [each.detach(), own.detach(), to_x, to_b]

    assert_agrees("cross-entropy", [losses, chosen, grads, to_bias], formula)


def residual_norm(draw: Draw) -> None:
    rows, size = draw.some(2)
    seen, found = draw.tensor(rows, size), draw.tensor(rows, size) if draw.chance(0.8) else None
    bias = draw.tensor(size) if draw.chance() and found is not None else None
    norm = nn.LayerNorm(size)
    after = seen.clone()
    normal = add_layernorm(after, found, bias, norm)

    def formula(cast: Cast) -> list[Tensor]:
        total = cast(seen)
        for more in (found, bias):
            total = total if more is None else total + cast(more)
        return [total, functional.layer_norm(total, (size,), eps=norm.eps) if size else total]

    assert_agrees("residual", [after, normal], formula)


def gru_step(draw: Draw) -> None:
    rows, size = draw.some(2)
    inputs, gates = draw.tensor(rows, 3 * size), draw.tensor(rows, 3 * size)
    hidden, sent = draw.tensor(rows, size), draw.tensor(rows, size)
    after, both, fresh = gru(inputs, gates, hidden, torch.full_like(hidden, torch.nan))
    to = torch.full_like(inputs, torch.nan), torch.full_like(inputs, torch.nan)
    to_hidden = gru_backward(sent, gates, hidden, both, fresh, to)

    def formula(cast: Cast) -> list[Tensor]:
        x, s, h = (leaf(cast)(each) for each in (inputs, gates, hidden))
        (xr, xz, xn), (sr, sz, sn) = (
            x.split(size, -1) if size else [x] * 3,
            s.split(size, -1) if size else [s] * 3,
        )
        r, z = (xr + sr).sigmoid(), (xz + sz).sigmoid()
        new = (xn + r * sn).tanh()
        output = new + z * (h - new)
        return [output.detach(), *sent_to(output, [x, s, h], sent)]

    assert_agrees("gru", [after, *to, to_hidden], formula)


def int8_product(draw: Draw) -> None:
    rows, size, count = draw.some(3)
    x = draw.tensor(rows, size)
    levels, scales = quantize_int8(x)
    before = scales.clone()
    products = draw.index(1000, rows, count).int() - 500
    each, bias = draw.tensor(count), draw.tensor(count) if draw.chance() else None
    whole = products.clone()
    found = dequantize(products, scales, each, bias)
    assert torch.equal(scales, before)
    step = x.abs().amax(-1) / 127 if size else scales
    assert ((levels * scales[:, None] - x).abs() <= 0.5001 * step[:, None] + 1e-30).all()

    def formula(cast: Cast) -> list[Tensor]:
        product = cast(whole) * cast(each) * cast(scales)[:, None]
        return [product if bias is None else product + cast(bias)]

    assert_agrees("int8", [found], formula)


def step_memory(
    keys: Tensor, values: Tensor, items: int, size: int, allowed: Tensor | None, **more: Any
) -> StepMemory:
    count = values.shape[-2]
    return StepMemory(
        keys=keys.data_ptr(), values=values.data_ptr(), items=items, count=count, size=size,
        allowed=None if allowed is None else allowed.data_ptr(),
        width=keys.shape[-1], value_size=values.shape[-1], **more,
    )  # fmt: skip


def single_query(draw: Draw) -> None:
    """One query an item: dot products, forward and backward; neighbours may share a memory."""
    memories, share, count, size, wide = draw.some(5)
    items, share = memories * max(1, share), max(1, share)
    q, k = draw.tensor(items, size), draw.tensor(memories, count, size)
    v, sent = draw.tensor(memories, count, wide), draw.tensor(items, wide)
    allowed = draw.allowed(items, count) if draw.chance() else None
    memory = step_memory(
        k, v, items, size, allowed, items_per_keys=share, items_per_values=share, items_per_v=1
    )
    weights, context = torch.full((items, count), torch.nan), torch.full((items, wide), torch.nan)
    assert single.step(memory, q, None, 0.4, weights, context, 1 << 20)
    to_scores, to_q = torch.full_like(weights, torch.nan), torch.full_like(q, torch.nan)
    single.step_backward(memory, sent, weights, 0.4, to_scores, to_q, 1 << 20)

    def formula(cast: Cast) -> list[Tensor]:
        query, own = leaf(cast)(q), cast(k).repeat_interleave(share, 0)
        read = softmax((own * query[:, None]).sum(-1) * 0.4, allowed)
        output = (read[..., None] * cast(v).repeat_interleave(share, 0)).sum(1)
        return [read.detach(), output.detach(), *sent_to(output, [query], sent)]

    assert_agrees("step", [weights, context, to_q], formula)


def additive_single_query(draw: Draw) -> None:
    """One query an item: additive scores, forward and backward."""
    items, count, size, wide = draw.some(4)
    q, k, values = (
        draw.tensor(items, size),
        draw.tensor(items, count, size),
        draw.tensor(items, count, wide),
    )
    v, sent = draw.tensor(items, size), draw.tensor(items, wide)
    allowed = draw.allowed(items, count) if draw.chance() else None
    made, _ = additive.exponentials(k, -(-size // LANES) * LANES)
    reach = k.abs().amax(-1).contiguous() if size else k.new_zeros(items, count)
    memory = step_memory(
        made, values, items, size, allowed, items_per_keys=1, items_per_values=1, items_per_v=1
    )
    memory.max_abs = reach.data_ptr()
    weights, context = torch.full((items, count), torch.nan), torch.full((items, wide), torch.nan)
    assert single.step(memory, q, v, 0.4, weights, context, 1 << 20)
    to_keys = torch.zeros_like(made)
    to_q, to_v = single.additive_step_backward(memory, (q, v), sent, weights, 0.4, to_keys, 1 << 20)

    def formula(cast: Cast) -> list[Tensor]:
        inputs = query, own, vector = [leaf(cast)(each) for each in (q, k, v)]
        scores = ((query[:, None] + own).tanh() * vector[:, None]).sum(-1)
        read = softmax(scores * 0.4, allowed)
        output = (read[..., None] * cast(values)).sum(1)
        return [read.detach(), output.detach(), *sent_to(output, inputs, sent)]

    found = [weights, context, to_q, to_keys[..., :size], to_v[..., :size]]
    assert_agrees("additive step", found, formula)


def multihead_memory(draw: Draw) -> None:
    """Several heads, of pairs in memories."""
    memories, share, count, known = draw.some(4)
    share, count, size = max(1, share), max(1, min(count, 4)), draw.size(130)
    items, wide = memories * share, count * size
    q = draw.tensor(items, wide + 3)
    pairs = draw.tensor(memories, known, 2 * wide)
    lengths = draw.index(known + 1, memories) if draw.chance() else None
    weights = torch.full((items, count, known), torch.nan) if draw.chance() else None
    found = multihead_step.read_memory(q, pairs, lengths, count, weights)

    def formula(cast: Cast) -> list[Tensor]:
        keys, values = (
            cast(each).repeat_interleave(share, 0).unflatten(-1, (count, size)).transpose(1, 2)
            for each in (pairs[..., :wide], pairs[..., wide:])
        )
        query = cast(q)[:, :wide].reshape(items, count, 1, size)
        allowed = None
        if lengths is not None:
            allowed = torch.arange(known) < lengths.repeat_interleave(share)[:, None, None, None]
        scale = size**-0.5 if size else 1.0
        read = softmax(query @ keys.mT * scale, allowed)
        context = (read @ values).flatten(1) if items else query.new_zeros(items, wide)
        return [context, *([] if weights is None else [read[:, :, 0]])]

    assert_agrees("heads", [found, *([] if weights is None else [weights])], formula)


def multihead_past(draw: Draw) -> None:
    """Several heads, of pairs that lie where they were made."""
    items, steps, count, length = draw.some(4)
    steps, count, length = max(1, steps), max(1, min(count, 4)), max(1, length)
    size = draw.size(130)
    wide = count * size
    apart = draw.tensor(length, steps, 2 * wide)
    past, rows = list(apart.unbind(1)), draw.index(length, items, steps)
    q = draw.tensor(items, wide)
    found = multihead_step.read_past(q, past, rows, count)

    def formula(cast: Cast) -> list[Tensor]:
        pairs = torch.stack([cast(each)[rows[:, n]] for n, each in enumerate(past)], 1)
        keys, values = (
            (each.unflatten(-1, (count, size)) for each in pairs.split(wide, -1))
            if (wide)
            else (pairs.view(items, steps, count, 0),) * 2
        )
        query = cast(q).view(items, 1, count, size)
        read = ((query * keys).sum(-1) * (size**-0.5 if size else 1.0)).softmax(1)
        return [(read[..., None] * values).sum(1).flatten(1)]

    assert_agrees("past heads", [found], formula)


CASES: dict[str, Callable[[Draw], None]] = {
    each.__name__: each
    for each in (
        exponentials, additive_scores, squared_distances, distance_softmax, dot_softmax, gathered,
        rowwise, dropped, cross_entropy, residual_norm, gru_step, int8_product, single_query,
        additive_single_query, multihead_memory, multihead_past,
    )
}  # fmt: skip
