"""Beams: many read one memory, and memory and state are reordered together."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from regard import Attention, attend, kernels, masks, scores, selection
from regard.attention.masks import Mask
from tests.attention.memory_cases import (
    ALONE,
    BATCH,
    EXACT,
    GROUPED,
    HEADS,
    KEYS,
    Kind,
    assert_agrees,
    assert_read_alike,
    every_kind,
    every_score,
)
from tests.catalogue import SCORES, SELECTIONS, SIZE, Mechanism

WIDTH = 5
SCALED = next(score for score in SCORES if score.name == "ScaledDot")
FLAT = torch.tensor([1, 1, 0])
"""Items chosen along the first axis."""
BEAMS = torch.tensor([[4, 0, 0], [2, 2, 3]])
"""Beams chosen along the second axis, for each item."""
either_index = pytest.mark.parametrize("index", [FLAT, BEAMS], ids=["items", "beams"])


def chosen(tensor: Tensor, index: Tensor) -> Tensor:
    """The items, or the beams of each item, by plain Python."""
    if index.ndim == 1:
        return torch.stack([tensor[n] for n in index.tolist()])
    return torch.stack([tensor[item][row.tolist()] for item, row in enumerate(index)])


SHARED_MASKS: dict[str, Callable[[], Mask | None]] = {
    "none": lambda: None,
    "lengths": lambda: masks.Lengths(torch.tensor([[3], [KEYS]])),
    "beams apart": lambda: masks.Dense(
        torch.arange(BATCH * WIDTH * KEYS).reshape(BATCH, WIDTH, 1, KEYS) % 3 > 0
    ),
}


@pytest.mark.parametrize(
    ("kind", "mask"),
    [*((ALONE, mask) for mask in SHARED_MASKS), (HEADS, "lengths"), (GROUPED, "beams apart")],
    ids=str,
)
@every_score
def test_one_memory_serves_all_beams(kind: Kind, score: Mechanism, mask: str) -> None:
    owner, asking, content = kind.owner(score), kind.content(BATCH, WIDTH), kind.content(BATCH, 1)
    queries = asking.queries[..., :2, :]
    own = owner.prepare(*(t.expand(-1, WIDTH, -1, -1).clone() for t in content.pairs))
    shared = owner.prepare(*content.pairs)
    hidden = SHARED_MASKS[mask]()
    assert_agrees(shared.read(queries, mask=hidden), own.read(queries, mask=hidden))


@pytest.mark.parametrize("select", SELECTIONS, ids=str)
def test_one_memory_serves_all_beams_of_a_selection(select: Mechanism) -> None:
    owner, content = ALONE.owner(SCALED, select), ALONE.content(BATCH, 1)
    queries = ALONE.content(BATCH, WIDTH).queries[..., :1, :]
    expanded = [t.expand(-1, WIDTH, -1, -1).clone() for t in content.pairs]
    assert_agrees(
        owner.prepare(*content.pairs).read(queries), owner.prepare(*expanded).read(queries)
    )


@every_score
def test_one_memory_serves_all_beams_of_a_fused_kernel(score: Mechanism) -> None:
    owner, content = ALONE.owner(score), ALONE.content(BATCH, 1)
    queries = ALONE.content(BATCH, WIDTH).queries
    expanded = [t.expand(-1, WIDTH, -1, -1).clone() for t in content.pairs]
    with kernels.using(kernels.Sdpa(), kernels.Reference()), torch.no_grad():
        assert_agrees(owner(queries, *content.pairs), owner(queries, *expanded))


@every_kind
@either_index
def test_a_reordered_memory_is_one_of_the_chosen(kind: Kind, index: Tensor) -> None:
    owner, content = kind.owner(SCALED), kind.content(BATCH, WIDTH)
    for spoilt in content.pairs:
        spoilt[1, 2, 3, 1] = torch.nan
    memory = owner.prepare(*content.pairs)
    expected = owner.prepare(*(chosen(t, index) for t in content.pairs))
    assert_read_alike(chosen(content.queries, index), memory.reorder(index), expected)
    assert_read_alike(
        content.queries, memory, owner.prepare(*content.pairs)
    )  # the first is untouched


MASKS: dict[str, Callable[[], Mask]] = {
    "lengths": lambda: masks.Lengths(torch.arange(BATCH * WIDTH).reshape(BATCH, WIDTH) + 1),
    "one length an item": lambda: ~masks.Lengths(torch.tensor([[3], [7]])),
    "one length a beam": lambda: masks.Lengths(torch.tensor([[1, 2, 3, 5, 7]])),
    "one length for all": lambda: masks.Lengths(torch.tensor([[7]])),
    "dense": lambda: masks.Dense(
        torch.arange(BATCH * WIDTH * 3 * KEYS).reshape(BATCH, WIDTH, 3, KEYS) % 7 > 2
    ),
    "blocks": lambda: masks.Blocks(
        torch.arange(BATCH * WIDTH * KEYS).reshape(BATCH, WIDTH, KEYS) % 3,
        torch.arange(BATCH * WIDTH * 3).reshape(BATCH, WIDTH, 3) % 3,
    ),
    "positions": lambda: masks.Causal() & masks.Window(5),
}


@pytest.mark.parametrize("edited", [False, True], ids=["as prepared", "edited"])
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("kind", [ALONE, GROUPED], ids=str)
@either_index
def test_a_mask_is_reordered_with_its_memory(
    kind: Kind, index: Tensor, mask: str, edited: bool
) -> None:
    owner, content = kind.owner(SCALED), kind.content(BATCH, WIDTH)
    memory = owner.prepare(*content.pairs, MASKS[mask]())
    if edited:
        memory.erase([4, 6]).write(*content.part([0]))
    before = memory.read(content.queries)
    after = memory.reorder(index).read(chosen(content.queries, index))
    torch.testing.assert_close(after.context, chosen(before.context, index), **EXACT)
    torch.testing.assert_close(after.weights, chosen(before.weights, index), **EXACT)


@every_kind
@either_index
def test_what_all_share_is_not_copied(kind: Kind, index: Tensor) -> None:
    owner = kind.owner(SCALED)
    content = kind.content(*([1, WIDTH] if index.ndim == 1 else [BATCH, 1]))
    memory = owner.prepare(*content.pairs, masks.Lengths(torch.tensor([[7]])))
    after = memory.reorder(index)
    assert after.values.data_ptr() == memory.values.data_ptr()
    assert after.prepared["keys"].data_ptr() == memory.prepared["keys"].data_ptr()


STATEFUL: dict[str, Callable[[], Attention]] = {
    **{
        f"{score}": lambda score=score: Attention(score.make())
        for score in SCORES
        if score.is_stateful
    },
    "Monotonic": lambda: Attention(scores.Dot(), selection.Monotonic()),
    "Monotonic, expected": lambda: Attention(scores.Dot(), selection.Monotonic(noise=0.0)).train(),
    "both": lambda: Attention(
        scores.Coverage(scores.Additive(SIZE, SIZE, 7)), selection.Monotonic()
    ),
}


def stateful(name: str) -> Attention:
    torch.manual_seed(0)
    attention = STATEFUL[name]().double()
    return attention if "expected" in name else attention.eval()


@pytest.mark.parametrize("shared", [False, True], ids=["own memory", "shared memory"])
@pytest.mark.parametrize("name", STATEFUL)
@either_index
def test_reordered_memory_and_state_read_what_the_beams_would(
    name: str, index: Tensor, shared: bool
) -> None:
    attention, asking = stateful(name), ALONE.content(BATCH, WIDTH)
    content = ALONE.content(BATCH, 1 if shared else WIDTH)
    memory, state = (
        attention.prepare(*content.pairs, masks.Lengths(torch.tensor([[7], [KEYS]]))),
        None,
    )
    first, second, third = asking.queries.split(1, -2)
    for queries in (first, second):
        state = attention.read(queries, memory, state=state).state
    direct = attention.read(third, memory, state=state)
    reordered = attention.read(
        chosen(third, index), memory.reorder(index), state=state.reorder(index)
    )
    torch.testing.assert_close(reordered.context, chosen(direct.context, index), **EXACT)
    torch.testing.assert_close(reordered.weights, chosen(direct.weights, index), **EXACT)
    begun = attention.read(third, memory)
    assert not torch.allclose(begun.weights, direct.weights)  # the state does matter


@pytest.mark.parametrize("name", STATEFUL)
def test_states_go_their_own_ways_after_the_reorder(name: str) -> None:
    attention, content = stateful(name), ALONE.content(BATCH, WIDTH)
    memory = attention.prepare(*content.pairs)
    first, second, third = content.queries.split(1, -2)
    for index in (BEAMS, FLAT):
        state = attention.read(first, memory).state.reorder(index)
        reordered, pairs = memory.reorder(index), [chosen(t, index) for t in content.pairs]
        second_reading = attention.read(chosen(second, index), reordered, state=state)
        third_reading = attention.read(chosen(third, index), reordered, state=second_reading.state)
        whole = attend(
            chosen(content.queries, index), *pairs, score=attention.score, select=attention.select
        )
        found = torch.cat([second_reading.weights, third_reading.weights], -2)
        torch.testing.assert_close(found, whole.weights[..., 1:, :], **EXACT)
