"""The C kernels, if the installation could build them."""

import ctypes
import math
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor, nn

from regard.attention.core.errors import KernelError
from regard.attention.kernels import loader, signatures

LEVELS = ("plain C", "AVX2", "AVX-512")
SUFFIXES = ("any", "avx2", "avx512")
WORK = 1 << 18
"""How many elements are worth a thread of their own."""

DONE, NO_MEMORY = 0, 2
VECTORS = -1.0
PRODUCTS, SUMS, SPREAD = range(3)
DOT, GAUSS, INVERSE = range(3)


def library() -> ctypes.CDLL | None:
    """The kernels compiled for this processor; None if they were not built, or are refused."""
    return _compiled(level())


@cache
def level() -> int:
    """What this processor has of `LEVELS`, and was compiled."""
    least = _compiled(0)
    most = 0 if least is None else int(least.regard_level())
    return next(level for level in range(most, -1, -1) if level == 0 or _compiled(level))


@cache
def _compiled(level: int) -> ctypes.CDLL | None:
    found = loader.opened(SUFFIXES[level])
    if isinstance(found, str):
        loader.warn_once(found)
        return None
    return found


def refusals() -> list[str]:
    """Why libraries that were built are not used, from the lowest level up."""
    found = (loader.opened(suffix) for suffix in SUFFIXES)
    return [reason for reason in found if isinstance(reason, str)]


def reciprocal_group(reach: float) -> int:
    """How many elements share a reciprocal, if vectors reach so far; 0 if e^2x leaves float."""
    return int(built().regard_together(reach))


@cache
def amd() -> bool:
    """Is the processor one of AMD's?

    They have units that add beside those that multiply, for vectors of any width; and products of
    matrices by torch run below their pace.
    """
    return bool(built().regard_amd())


def exponentials(vectors: Tensor, width: int) -> tuple[Tensor, float]:
    """e^2x, padded with zeros to the width, and the largest |x|; NaN if there is one."""
    size = vectors.shape[-1]
    vectors = vectors.contiguous()
    found = vectors.new_empty(*vectors.shape[:-1], width)
    rows = vectors.numel() // max(1, size)
    running = threads(vectors.numel())
    largest = built().regard_exponentials(
        vectors.data_ptr(), found.data_ptr(), rows, size, width, running
    )
    return found, float(largest)


class AdditiveMethod(NamedTuple):
    """What additive scores are made of, and how the sums of their way back are made."""

    max_abs: float
    """Of exponentials: how far the vectors reach that they are of, max |a| + max |b|.

    Or `VECTORS`: what is given are vectors, and C makes the exponentials.
    """

    separate_adds: bool
    """Are sums of the way back better added than multiplied and added? On AMD's processors."""


def additive_scores(
    queries: Tensor, keys: Tensor, v: Tensor, which: Tensor, scores: Tensor, how: AdditiveMethod
) -> bool:
    """Fill `scores`, `(items, rows, keys)`; False if vectors were given and are out of range.

    Queries are `(items, rows, width)`, a block of the rows of a contiguous tensor.
    """
    items, rows, width = queries.shape
    result = built().regard_additive_scores(
        queries.data_ptr(), keys.data_ptr(), v.data_ptr(), which.data_ptr(), scores.data_ptr(),
        items, rows, keys.shape[-2], width, queries.stride(0), how.max_abs,
        threads(scores.numel() * width)
    )  # fmt: skip
    return _in_range(queries, result)


def additive_backward(
    queries: Tensor, keys: Tensor, v: Tensor, which: Tensor, sent: Tensor,
    sums: tuple[Tensor, Tensor, Tensor], how: AdditiveMethod, *, fresh: bool,
) -> bool:  # fmt: skip
    """Set what this gradient sends to these queries, and what it sends to all keys and v.

    The latter two are added to, unless they are fresh: then they hold nothing yet. False if vectors
    were given and are out of range; then the sums are nothing.
    """
    items, rows, width = queries.shape
    result = built().regard_additive_backward(
        queries.data_ptr(), keys.data_ptr(), v.data_ptr(), which.data_ptr(), sent.data_ptr(),
        *(each.data_ptr() for each in sums),
        items, rows, keys.shape[-2], width, queries.stride(0), how.max_abs,
        int(how.separate_adds), int(fresh), threads(sent.numel() * width)
    )  # fmt: skip
    return _in_range(queries, result)


def _in_range(queries: Tensor, result: int) -> bool:
    if result == NO_MEMORY:
        items, rows, _ = queries.shape
        raise KernelError(
            f"there was no memory for {items} × {rows} queries on so many threads. "
            "Use fewer: torch.set_num_threads(1)."
        )
    return result == DONE


def squared_distances(queries: Tensor, keys: Tensor, which: Tensor) -> Tensor:
    """‖q − k‖² of `(item, query, size)` and `(memory, key, size)`; item n has memory `which[n]`."""
    queries, keys = queries.contiguous(), keys.contiguous()
    (items, rows, size), count = queries.shape, keys.shape[-2]
    found = queries.new_empty(items, rows, count)
    if built().regard_distances(
        queries.data_ptr(), keys.data_ptr(), which.data_ptr(), found.data_ptr(),
        items, rows, count, size, threads(found.numel() * size)
    ):  # fmt: skip
        raise KernelError(f"there was no memory to compare {count} keys with. Free some.")
    return found


class Pairwise(NamedTuple):
    """How a query and a key are compared: `DOT`, `GAUSS` or `INVERSE`, and its two numbers."""

    kind: int
    factor: float
    floor: float = 0.0


def distance_softmax(
    queries: Tensor, pairs: tuple[Tensor, Tensor], which: tuple[Tensor, Tensor], how: Pairwise
) -> Tensor:
    """What `(item, query, size)` read by softmax: `(item, query, value_size)`.

    Args:
        queries: The queries of each item.
        pairs: Keys and values, each `(memory, key, …)`.
        which: Whose keys and whose values each item reads.
        how: How they are compared.
    """
    queries, keys, values = (each.contiguous() for each in (queries, *pairs))
    (items, rows, size), (count, wide) = queries.shape, values.shape[-2:]
    context = queries.new_empty(items, rows, wide)
    told = signatures.DistanceArguments(
        *(each.data_ptr() for each in (queries, keys, values, *which, context)),
        items, rows, count, size, wide, how.factor, how.floor, how.kind,
    )  # fmt: skip
    running = threads(items * rows * count * (size + wide))
    if built().regard_whole(ctypes.addressof(told), running):
        raise KernelError(f"there was no memory to read {count} keys with. Free some.")
    return context


def l2_normalize(vectors: Tensor, least: float) -> Tensor:
    """The vectors divided by their lengths, or by the least length if they are shorter."""
    vectors = vectors.contiguous()
    found, size = torch.empty_like(vectors), vectors.shape[-1]
    built().regard_unit(
        vectors.data_ptr(), found.data_ptr(), least, vectors.numel() // max(1, size), size,
        threads(vectors.numel())
    )  # fmt: skip
    return found


def transposed(matrix: Tensor) -> Tensor:
    """A contiguous matrix of floats with rows for columns, contiguous, too."""
    rows, columns = matrix.shape
    found = matrix.new_empty(columns, rows)
    built().regard_turned(
        matrix.data_ptr(), found.data_ptr(), rows, columns, threads(matrix.numel())
    )
    return found


def gathered_dot(queries: Tensor, rows: Tensor, places: Tensor) -> Tensor:
    """q_t · row of `(query, size)` with the rows, `(row, size)`, at `(query, column)` places."""
    found = queries.new_empty(places.shape)
    _gathered(PRODUCTS, queries, rows, places, found)
    return found


def gathered_weighted_sum(weights: Tensor, rows: Tensor, places: Tensor) -> Tensor:
    """Σ_j w_tj · row of `(query, column)` weights with the rows at as many places."""
    found = rows.new_empty(len(places), rows.shape[-1])
    _gathered(SUMS, weights, rows, places, found)
    return found


def gathered_scatter_add(weights: Tensor, queries: Tensor, places: Tensor, rows: int) -> Tensor:
    """Each query added to the rows at its places, by its weights: `(row, size)`."""
    found = queries.new_zeros(rows, queries.shape[-1])
    _gathered(SPREAD, weights, queries, places, found)
    return found


def _gathered(what: int, left: Tensor, right: Tensor, places: Tensor, found: Tensor) -> None:
    left, right, places = left.contiguous(), right.contiguous(), places.contiguous()
    (count, width), size = places.shape, right.shape[-1]
    built().regard_own(
        what, left.data_ptr(), right.data_ptr(), places.data_ptr(), found.data_ptr(),
        count, width, size, threads(places.numel() * size)
    )  # fmt: skip


def dropout(inputs: Tensor, rate: float, seed: int, *, first: int = 0) -> Tensor:
    """The inputs without a share of them, the others larger by as much; by a seed below 2³².

    What becomes of an element is a matter of its place. `first` is that of the first, for inputs
    that are a part of something larger.
    """
    inputs = inputs.contiguous()
    outputs = torch.empty_like(inputs)
    keep = min(round((1 - rate) * 2**32), 2**32 - 1)
    count = inputs.numel()
    built().regard_dropped(
        inputs.data_ptr(), outputs.data_ptr(), first, count, seed, keep, 1 / (1 - rate),
        threads(count)
    )  # fmt: skip
    return outputs


def log_softmax(scores: Tensor, bias: Tensor | None) -> None:
    """Turn scores, `(row, token)`, contiguous, into log-probabilities, in place."""
    rows, count = scores.shape
    built().regard_tokens(
        scores.data_ptr(), None if bias is None else bias.data_ptr(), None, 0.0, 1.0,
        None, None, None, count, rows, threads(scores.numel())
    )  # fmt: skip


def cross_entropy_with_grad(
    scores: Tensor, bias: Tensor, targets: Tensor, smoothing: float, factor: float
) -> tuple[Tensor, Tensor, Tensor]:
    """The loss of each row, its target's log-probability, and the gradient of the bias.

    Scores become their gradients, times the factor, as the bias's is.
    """
    rows, count = scores.shape
    _check_targets(targets, count)
    chosen, losses = scores.new_empty(rows), scores.new_empty(rows)
    targets, running = targets.contiguous(), threads(scores.numel())
    sums = scores.new_zeros(running, count)
    built().regard_tokens(
        scores.data_ptr(), bias.data_ptr(), targets.data_ptr(), smoothing, factor,
        chosen.data_ptr(), losses.data_ptr(), sums.data_ptr(), count, rows, running
    )  # fmt: skip
    return losses, chosen, sums.sum(0)


def _check_targets(targets: Tensor, count: int) -> None:
    """C reads and writes a row where its target says, wherever that is."""
    if not len(targets):
        return
    least, most = (int(each) for each in targets.aminmax())
    if least < 0 or most >= count:
        raise KernelError(
            f"a target is {least if least < 0 else most} but there are {count} tokens. "
            f"Targets are from 0 to {count - 1}."
        )


def argmax(scores: Tensor) -> Tensor:
    """The place of the greatest of each row of contiguous floats, the first of equals."""
    *batch, count = scores.shape
    found = torch.empty(*batch, dtype=torch.int64)
    rows = found.numel()
    built().regard_best(scores.data_ptr(), found.data_ptr(), count, rows, threads(scores.numel()))
    return found


def add_layernorm(
    seen: Tensor, found: Tensor | None, bias: Tensor | None, norm: nn.LayerNorm
) -> Tensor:
    """Add found and bias to rows of seen, in place; what the norm makes of them."""
    rows, size = seen.shape
    normal = torch.empty_like(seen)
    built().regard_residual(
        seen.data_ptr(), *(None if each is None else each.data_ptr() for each in (found, bias)),
        norm.weight.data_ptr(), norm.bias.data_ptr(), norm.eps, normal.data_ptr(), rows, size,
        threads(seen.numel())
    )  # fmt: skip
    return normal


def gru(
    inputs: Tensor, gates: Tensor, hidden: Tensor, after: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """The next state of a GRU; its reset and update gates side by side, and what is new in it.

    All are contiguous: inputs and gates `(*batch, 3 · size)`, hidden and after, which is to be the
    next state, `(*batch, size)`.
    """
    *batch, size = hidden.shape
    both = hidden.new_empty(*batch, 2 * size)
    fresh = torch.empty_like(hidden)
    given = (inputs, gates, hidden, both, fresh, after)
    told = signatures.GruArguments(
        *(each.data_ptr() for each in given), rows=math.prod(batch), size=size
    )
    built().regard_gru(ctypes.addressof(told), threads(inputs.numel()))
    return after, both, fresh


def gru_backward(
    sent: Tensor, gates: Tensor, hidden: Tensor, both: Tensor, fresh: Tensor,
    to: tuple[Tensor, Tensor],
) -> Tensor:  # fmt: skip
    """What the gradient of a GRU's next state sends to the state before it.

    What it sends to inputs and to gates is written to two tensors of their shape, contiguous, too.
    """
    size, sent, (to_inputs, to_gates) = hidden.shape[-1], sent.contiguous(), to
    to_hidden = torch.empty_like(hidden)
    told = signatures.GruArguments(
        None, gates.data_ptr(), hidden.data_ptr(), both.data_ptr(), fresh.data_ptr(), None,
        sent.data_ptr(), to_inputs.data_ptr(), to_gates.data_ptr(), to_hidden.data_ptr(),
        hidden.shape[:-1].numel(), size,
    )  # fmt: skip
    built().regard_gru(ctypes.addressof(told), threads(gates.numel()))
    return to_hidden


def quantize_int8(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Rows of contiguous floats as int8, and what one of each row's levels is worth."""
    count, size = rows.shape
    levels, scales = rows.new_empty(count, size, dtype=torch.int8), rows.new_empty(count)
    built().regard_rounded(
        rows.data_ptr(), levels.data_ptr(), scales.data_ptr(), count, size,
        threads(rows.numel())
    )  # fmt: skip
    return levels, scales


def dequantize(products: Tensor, scales: Tensor, each: Tensor, bias: Tensor | None) -> Tensor:
    """Products of whole numbers, `(row, column)`, times a scale a row and one a column, and a bias.

    The products are overwritten.
    """
    rows, count = products.shape
    built().regard_unrounded(
        products.data_ptr(), scales.data_ptr(), each.data_ptr(),
        None if bias is None else bias.data_ptr(), rows, count,
        threads(products.numel())
    )  # fmt: skip
    return products.view(torch.float32)


def flush(on: bool, threads: int) -> bool:
    """Have denormals taken as zero, or not, by this thread and so many in all; how it was here."""
    return bool(built().regard_flush(int(on), threads))


def threads(work: int) -> int:
    """As many as torch uses, but none for work that is done before it has started."""
    return 1 if work < 2 * WORK else min(torch.get_num_threads(), work // WORK)


def built() -> ctypes.CDLL:
    """The compiled kernels, for whoever has made sure that there are any."""
    found = library()
    assert found is not None, "asked for the C kernels, which were not built"
    return found
