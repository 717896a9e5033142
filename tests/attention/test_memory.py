"""A memory that was written to and erased from reads like one prepared of what is left."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from regard import Attention, Memory, attend, masks, scores
from regard.attention.core.errors import ForeignMemoryError, MaskError
from regard.attention.masks import Mask
from tests.attention.memory_cases import (
    ALONE,
    BATCH,
    EXACT,
    GROUPED,
    HEADS,
    KEYS,
    QUERIES,
    Content,
    Kind,
    assert_agrees,
    assert_read_alike,
    every_kind,
    every_score,
)
from tests.catalogue import SCORES, Mechanism

SCALED = next(score for score in SCORES if score.name == "ScaledDot")
LENGTHS = [5, 8]
MASKS = {
    "lengths": lambda: masks.Lengths(LENGTHS),
    "not lengths": lambda: ~masks.Lengths(LENGTHS),
    "dense": lambda: masks.Dense(torch.arange(BATCH * KEYS).reshape(BATCH, 1, KEYS) % 3 > 0),
    "dense by query": lambda: masks.Dense(
        torch.arange(BATCH * QUERIES * KEYS).reshape(BATCH, QUERIES, KEYS) % 5 > 1
    ),
    "blocks": lambda: masks.Blocks(
        torch.arange(BATCH * KEYS).reshape(BATCH, KEYS) % 2, torch.tensor([[0, 1, 0], [1, 1, 0]])
    ),
    "prefix and not dense": lambda: (
        masks.Prefix(7) & ~masks.Dense(torch.arange(KEYS).reshape(1, 1, KEYS) % 3 == 1)
    ),
}
every_mask = pytest.mark.parametrize("mask", [make() for make in MASKS.values()], ids=MASKS)


@every_score
def test_pairs_written_one_by_one_are_prepared_at_once(score: Mechanism) -> None:
    owner, content = ALONE.owner(score), ALONE.content()
    memory = owner.prepare(*content.part(slice(0, 0)))
    for position in range(KEYS):
        assert memory.write(*content.part([position])) is memory
    assert_read_alike(content.queries, memory, owner.prepare(*content.pairs))


@pytest.mark.parametrize("kind", [HEADS, GROUPED], ids=str)
@every_score
def test_pairs_written_in_two_chunks_are_prepared_at_once(kind: Kind, score: Mechanism) -> None:
    owner, content = kind.owner(score), kind.content()
    memory = owner.prepare(*content.part(slice(0, 4))).write(*content.part(slice(4, KEYS)))
    assert_read_alike(content.queries, memory, owner.prepare(*content.pairs))


@every_kind
@every_score
def test_erased_pairs_were_never_there(kind: Kind, score: Mechanism) -> None:
    owner, content = kind.owner(score), kind.content()
    memory = owner.prepare(*content.pairs).erase([4, 0, -1])
    left = [position for position in range(KEYS) if position not in (4, 0, KEYS - 1)]
    assert_read_alike(content.queries, memory, owner.prepare(*content.part(left)))


@every_kind
@every_score
def test_pairs_are_replaced_in_their_places(kind: Kind, score: Mechanism) -> None:
    owner, content, other = kind.owner(score), kind.content(), kind.content(keys=3, seed=7)
    memory = owner.prepare(*content.pairs).write(*other.pairs, at=[7, 0, -2])
    keys, values = content.keys.clone(), content.values.clone()
    keys[:, [7, 0, KEYS - 2]], values[:, [7, 0, KEYS - 2]] = other.keys, other.values
    assert_read_alike(content.queries, memory, owner.prepare(keys, values))


@every_kind
def test_places_may_be_a_tensor_or_a_range(kind: Kind) -> None:
    owner, content = kind.owner(SCALED), kind.content()
    listed = owner.prepare(*content.pairs).erase([1, 2, 3])
    for positions in (torch.tensor([3, 1, 2]), range(1, 4), [1, 1, 2, 3]):
        assert_read_alike(content.queries, owner.prepare(*content.pairs).erase(positions), listed)


@every_kind
@every_mask
@pytest.mark.parametrize("score", SCORES[::5], ids=str)
def test_what_is_hidden_stays_hidden_and_what_is_new_is_seen(
    kind: Kind, score: Mechanism, mask: Mask
) -> None:
    owner, content, other = kind.owner(score), kind.content(), kind.content(keys=5, seed=7)
    memory = owner.prepare(*content.pairs, mask).erase([3, 9, 10])
    memory.write(*other.part(slice(0, 2))).write(*other.part(slice(2, 5)), at=[0, 4, -1])
    keys, values = (torch.cat(both, -2) for both in zip(content.pairs, other.pairs, strict=True))
    order = [13, 1, 2, 4, 14, 6, 7, 8, 11, 15]  # from 11 on, those that are new
    new = torch.ones(BATCH, QUERIES, len(other.values[0]), dtype=torch.bool)
    seen = torch.cat([mask.dense(QUERIES, KEYS).expand(BATCH, -1, -1), new], -1)
    expected = owner.prepare(keys[:, order], values[:, order], seen[..., order])
    assert_read_alike(content.queries, memory, expected)


def edited(memory: Memory, edits, spare: Content) -> list[int]:
    """Edit a memory of `KEYS` pairs, and a list of pairs in the same way; from `KEYS` on, spare."""
    left, used = list(range(KEYS)), KEYS
    for what, bits in edits:
        chosen = [position for position in range(len(left)) if bits >> position & 1]
        if what == "erase":
            memory.erase(chosen)
            left = [pair for position, pair in enumerate(left) if position not in chosen]
            continue
        fresh = range(used, used + (2 if what == "append" else len(chosen)))
        new, used = spare.part([pair - KEYS for pair in fresh]), fresh.stop
        if what == "append":
            memory.write(*new)
            left += fresh
        else:
            memory.write(*new, at=chosen)
            replaced = dict(zip(chosen, fresh, strict=True))
            left = [replaced.get(position, pair) for position, pair in enumerate(left)]
    return left


@pytest.mark.parametrize("kind", [ALONE, GROUPED], ids=str)
@settings(max_examples=20, deadline=None, derandomize=True)
@given(
    edits=st.lists(
        st.tuples(st.sampled_from(["append", "erase", "replace"]), st.integers(0, 2**KEYS - 1)),
        max_size=5,
    ),
    mask=st.sampled_from(sorted(MASKS)),
)
def test_any_edits_read_like_what_is_left(kind: Kind, edits, mask: str) -> None:
    owner, content, spare = kind.owner(SCALED), kind.content(), kind.content(keys=97, seed=7)
    memory = owner.prepare(*content.pairs, MASKS[mask]())
    left = edited(memory, edits, spare)
    keys, values = (torch.cat(both, -2) for both in zip(content.pairs, spare.pairs, strict=True))
    seen = MASKS[mask]().dense(QUERIES, KEYS).expand(BATCH, -1, -1)
    seen = torch.cat([seen, torch.ones(BATCH, QUERIES, 97, dtype=torch.bool)], -1)
    expected = owner.prepare(keys[:, left], values[:, left], seen[..., left])
    assert_read_alike(content.queries, memory, expected)


@every_score
def test_gradients_pass_through_a_write(score: Mechanism) -> None:
    owner, content = ALONE.owner(score), ALONE.content()

    def gradients(written: bool) -> list[Tensor]:
        leaves = [tensor.clone().requires_grad_() for tensor in content.pairs]
        keys, values = leaves
        first = slice(0, 4) if written else slice(None)
        memory = owner.prepare(keys[:, first], values[:, first])
        if written:
            memory.write(keys[:, 4:], values[:, 4:])
        loss = owner.read(content.queries, memory).context.square().sum()
        return list(torch.autograd.grad(loss, leaves, materialize_grads=True))

    for found, expected in zip(gradients(True), gradients(False), strict=True):
        torch.testing.assert_close(found, expected, **EXACT)


@every_kind
def test_a_memory_is_read_by_who_prepared_it(kind: Kind) -> None:
    owner, other, content = kind.owner(SCALED), kind.owner(SCALED), kind.content()
    memory = owner.prepare(*content.pairs)
    mask = torch.arange(KEYS) % 3 > 0
    options = {"mask": mask[None, None, :], "bias": content.keys[..., None, :, 0]}
    found = memory.read(content.queries, **options)
    expected = owner.read(content.queries, memory, **options)
    assert torch.equal(found.context, expected.context)
    assert torch.equal(found.weights, expected.weights)
    with pytest.raises(ForeignMemoryError):
        other.read(content.queries, memory)


SHARP = [scores.Cosine(1e4), scores.Gaussian(1e-3), scores.InverseDistance(1e-3)]


@pytest.mark.parametrize("score", SHARP, ids=lambda score: type(score).__name__)
def test_what_was_written_is_found_by_its_content(score) -> None:
    content, other = ALONE.content(), ALONE.content(keys=1, seed=7)
    memory = Attention(score).prepare(*content.pairs)
    torch.testing.assert_close(memory.read(content.keys).context, content.values)
    memory.write(*other.pairs)
    torch.testing.assert_close(memory.read(other.keys).context, other.values)
    memory.write(content.keys[:, :1], other.values, at=[0])
    torch.testing.assert_close(memory.read(content.keys[:, :1]).context, other.values)
    memory.erase([0, -1])
    assert (memory.read(other.keys).weights.sum(-1) - 1).abs().max() < 1e-9
    assert not torch.isclose(memory.read(other.keys).context, other.values).all()


@every_kind
@pytest.mark.parametrize("plant", [torch.nan, torch.inf], ids=str)
@pytest.mark.parametrize("where", ["keys", "values"])
def test_what_is_not_finite_moves_with_its_pair(kind: Kind, plant: float, where: str) -> None:
    owner, content = kind.owner(SCALED), kind.content()
    for item, position in ((0, 5), (1, 6)):
        getattr(content, where)[item, position, 2] = plant
    memory = owner.prepare(*content.part(slice(0, 6))).write(*content.part(slice(6, KEYS)))
    assert memory.read(content.queries).context.isnan().all()
    memory.erase([5])
    left = [position for position in range(KEYS) if position != 5]
    assert_read_alike(content.queries, memory, owner.prepare(*content.part(left)))
    assert memory.read(content.queries).context.isfinite().flatten(1).all(1).tolist() == [
        True,
        False,
    ]
    memory.write(*content.part([0]), at=[5])  # where the other one stands now
    assert memory.read(content.queries).context.isfinite().all()


def test_a_write_that_is_refused_leaves_the_memory_as_it_was() -> None:
    content, attention = ALONE.content(), Attention()
    memory = attention.prepare(*content.pairs, masks.Blocks(torch.zeros(BATCH, KEYS).long()))
    before = memory.read(content.queries)
    for change in (lambda: memory.write(*content.part([0])), lambda: memory.erase([0])):
        with pytest.raises(MaskError, match="Blocks"):
            change()
    assert_agrees(memory.read(content.queries), before)


def test_a_memory_is_written_to_for_as_long_as_one_likes() -> None:
    attention, content = Attention(), ALONE.content(keys=2)
    memory = attention.prepare(*content.pairs, masks.Lengths([1, 2]))
    pair = ALONE.content(keys=1, seed=7)
    for _ in range(401):
        memory.write(*pair.pairs).erase([-1])
    memory.write(*pair.pairs)
    keys, values = (torch.cat(both, -2) for both in zip(content.pairs, pair.pairs, strict=True))
    seen = torch.tensor([[True, False, True], [True, True, True]])[:, None, :]
    assert_agrees(memory.read(content.queries), attend(content.queries, keys, values, mask=seen))


@every_kind
def test_a_memory_from_which_all_is_erased_says_nothing(kind: Kind) -> None:
    owner, content = kind.owner(SCALED), kind.content()
    memory = owner.prepare(*content.pairs).erase(range(KEYS))
    reading = memory.read(content.queries)
    assert len(memory) == 0
    assert reading.weights.shape[-1] == 0
    empty = owner.prepare(*content.part(slice(0, 0)))
    assert_agrees(reading, empty.read(content.queries))


@every_kind
def test_a_shared_memory_is_written_to_by_each_item(kind: Kind) -> None:
    owner, content, other = kind.owner(SCALED), kind.content(1), kind.content(keys=3, seed=7)
    memory = owner.prepare(*content.pairs).write(*other.pairs)
    keys, values = (
        torch.cat([one.expand(BATCH, -1, -1), each], -2)
        for one, each in zip(content.pairs, other.pairs, strict=True)
    )
    assert_read_alike(other.queries, memory, owner.prepare(keys, values))
