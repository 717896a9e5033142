"""A memory saved to a file comes back bit by bit, for an equal attention and for no other."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from regard import Attention, Memory, MultiHead, scores
from regard.attention.core.errors import ForeignMemoryError
from regard.attention.core.records import tree_map
from tests.attention.mask_trees import LEAVES, MOVABLE, Sizes, grow
from tests.attention.memory_cases import (
    ALONE,
    BATCH,
    HEADS,
    KEYS,
    QUERIES,
    Kind,
    every_kind,
    every_score,
)
from tests.catalogue import SCORES, SIZE, Mechanism

SCALED, ADDITIVE = SCORES[1], SCORES[5]
OF = Sizes(BATCH, QUERIES, KEYS)
COMPOSITES = {
    "not": ("not", ("lengths", 1)),
    "and": ("and", ("causal", 1), ("lengths", 2)),
    "or": ("or", ("prefix", 1), ("dense", 2)),
    "deep": ("not", ("and", ("or", ("blocks", 1), ("window", 2)), ("not", ("dense", 3)))),
}
TREES = {**{leaf: (leaf, 5) for leaf in LEAVES}, **COMPOSITES}
every_mask = pytest.mark.parametrize("mask", TREES)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.safetensors"


def tensors(memory: Memory) -> list[Tensor]:
    """All that a memory holds, its mask included."""
    found: list[Tensor] = []

    def note(tensor: Tensor) -> Tensor:
        found.append(tensor)
        return tensor

    tree_map(memory, note)
    return found


def assert_same_bits(found: Memory, expected: Memory) -> None:
    for one, other in zip(tensors(found), tensors(expected), strict=True):
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        assert torch.equal(bits(one), bits(other))


def bits(tensor: Tensor) -> Tensor:
    return tensor.detach().contiguous().view(torch.uint8)


def assert_comes_back(memory: Memory, queries: Tensor, path: Path) -> Memory:
    """The memory as it came back, after a look at every bit and at what it answers."""
    memory.save(path)
    loaded = Memory.load(path, memory.owner)
    assert_same_bits(loaded, memory)
    found, expected = loaded.read(queries), memory.read(queries)
    assert torch.equal(bits(found.context), bits(expected.context))
    assert torch.equal(bits(found.weights), bits(expected.weights))
    return loaded


@every_kind
@every_score
def test_a_memory_comes_back_bit_by_bit(kind: Kind, score: Mechanism, path: Path) -> None:
    owner, content = kind.owner(score), kind.content()
    assert_comes_back(owner.prepare(*content.pairs), content.queries, path)


@every_mask
def test_a_mask_comes_back(mask: str, path: Path) -> None:
    content, masked = ALONE.content(), grow(TREES[mask], OF).mask
    loaded = assert_comes_back(Attention().prepare(*content.pairs, masked), content.queries, path)
    assert repr(loaded.mask) == repr(masked)
    assert torch.equal(loaded.mask.dense(QUERIES, KEYS), masked.dense(QUERIES, KEYS))


@pytest.mark.parametrize("mask", sorted({*MOVABLE, *COMPOSITES}))
@pytest.mark.parametrize("kind", [ALONE, HEADS], ids=str)
def test_a_memory_comes_back_after_it_was_edited(kind: Kind, mask: str, path: Path) -> None:
    owner, content = kind.owner(SCALED), kind.content()
    memory = owner.prepare(*content.pairs, grow(TREES[mask], OF).mask)
    memory.erase([0, 7]).write(*content.part([1, 2])).write(*content.part([0]), at=[3])
    loaded = assert_comes_back(memory, content.queries, path)
    loaded.write(*content.part([5])).erase([2])
    memory.write(*content.part([5])).erase([2])
    assert_same_bits(loaded, memory)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32], ids=str)
@every_kind
def test_precision_and_faults_come_back(kind: Kind, dtype: torch.dtype, path: Path) -> None:
    owner, content = kind.owner(ADDITIVE).to(dtype), kind.content()
    for spoilt in content.pairs:
        spoilt[0, 3, 1], spoilt[1, 4, 2] = torch.nan, torch.inf
    keys, values, queries = (t.to(dtype) for t in (*content.pairs, content.queries))
    loaded = assert_comes_back(owner.prepare(keys, values), queries, path)
    assert loaded.values.dtype == dtype
    assert loaded.read(queries).context.isnan().all()
    position = torch.arange(KEYS)[None, None, :]
    seen = (position != 3) & (position != 4)
    assert loaded.read(queries, mask=seen).context.isfinite().all()


@pytest.mark.parametrize("keys", [0, 1])
def test_the_smallest_memories_come_back(keys: int, path: Path) -> None:
    content = ALONE.content(keys=keys)
    assert_comes_back(Attention().prepare(*content.pairs), content.queries, path)


def test_keys_that_are_values_or_views_come_back(path: Path) -> None:
    content, attention = ALONE.content(), Attention()
    assert_comes_back(attention.prepare(content.keys, content.keys), content.queries, path)
    views = content.keys.mT.contiguous().mT, content.values[:1].expand(BATCH, -1, -1)
    assert_comes_back(attention.prepare(*views), content.queries, path)


def test_what_learns_is_saved_as_it_is_now(path: Path) -> None:
    owner, content = ALONE.owner(ADDITIVE), ALONE.content()
    memory = owner.prepare(content.keys.requires_grad_(), content.values)
    loaded = assert_comes_back(memory, content.queries, path)
    assert not any(tensor.requires_grad for tensor in tensors(loaded))


def test_the_last_one_saved_is_what_is_there(tmp_path: Path) -> None:
    path, content = tmp_path / "memory", ALONE.content()
    memory = Attention().prepare(*content.pairs)
    memory.save(str(path))
    assert_comes_back(memory.erase([0]), content.queries, path)
    assert [file.name for file in tmp_path.iterdir()] == ["memory"]


@every_kind
@every_score
def test_an_equal_attention_reads_it_and_one_that_moved_does_not(
    kind: Kind, score: Mechanism, path: Path
) -> None:
    owner, content = kind.owner(score), kind.content()
    memory = owner.prepare(*content.pairs)
    memory.save(path)
    torch.manual_seed(7)
    equal = kind.own(lambda: Attention(score.make())).double().eval()
    equal.load_state_dict(owner.state_dict())
    found, expected = Memory.load(path, equal).read(content.queries), memory.read(content.queries)
    assert torch.equal(bits(found.context), bits(expected.context))
    for parameter in (equal if kind is ALONE else equal.attention).score.parameters():
        with torch.no_grad():
            parameter[..., :1, :1] += 1e-12
        with pytest.raises(ForeignMemoryError):
            Memory.load(path, equal)
        equal.load_state_dict(owner.state_dict())


@pytest.mark.parametrize(("name", "foreign"), [("key", 1), ("value", 1), ("query", 0), ("out", 0)])
def test_heads_that_projected_otherwise_are_foreign(name: str, foreign: int, path: Path) -> None:
    owner, content = HEADS.owner(SCALED), HEADS.content()
    owner.prepare(*content.pairs).save(path)
    with torch.no_grad():
        getattr(owner, name).bias[0] += 1e-12
    if not foreign:  # its queries and its context do not lie in the memory
        Memory.load(path, owner)
        return
    with pytest.raises(ForeignMemoryError):
        Memory.load(path, owner)


@pytest.mark.parametrize(
    ("score", "other"), list(zip(SCORES, SCORES[1:] + SCORES[:1], strict=True)), ids=str
)
def test_another_score_is_foreign(score: Mechanism, other: Mechanism, path: Path) -> None:
    ALONE.owner(score).prepare(*ALONE.content().pairs).save(path)
    with pytest.raises(ForeignMemoryError):
        Memory.load(path, ALONE.owner(other))


def _multi(heads: int, size: int, key_heads: int | None = None) -> MultiHead:
    return MultiHead(Attention, heads, SIZE, SIZE, size, key_heads, value_size=13)


OPTIONS: dict[str, tuple[Callable[[], Attention | MultiHead], Callable[[], Attention | MultiHead]]]
OPTIONS = {
    "scale": (lambda: Attention(scores.ScaledDot(0.5)), lambda: Attention(scores.ScaledDot(0.7))),
    "sharpness": (lambda: Attention(scores.Cosine(2.0)), lambda: Attention(scores.Cosine(3.0))),
    "sigma": (lambda: Attention(scores.Gaussian(2.0)), lambda: Attention(scores.Gaussian(3.0))),
    "floor": (
        lambda: Attention(scores.InverseDistance(0.1)),
        lambda: Attention(scores.InverseDistance(0.2)),
    ),
    "fertility": (
        lambda: Attention(scores.Coverage(scores.Dot(), fertility=2.0, key_size=SIZE)),
        lambda: Attention(scores.Coverage(scores.Dot(), fertility=3.0, key_size=SIZE)),
    ),
    "inner score": (
        lambda: Attention(scores.Coverage(scores.Dot())),
        lambda: Attention(scores.Coverage(scores.Cosine())),
    ),
    "heads": (lambda: _multi(2, 3), lambda: _multi(3, 2)),
    "groups": (lambda: _multi(2, 3), lambda: _multi(4, 3, 2)),
}


@pytest.mark.parametrize("option", OPTIONS)
def test_another_option_is_foreign_though_all_parameters_agree(option: str, path: Path) -> None:
    one, other = (make().double() for make in OPTIONS[option])
    with torch.no_grad():
        for parameter in (*one.parameters(), *other.parameters()):
            parameter.fill_(0.3)
    one.prepare(*ALONE.content().pairs).save(path)
    with pytest.raises(ForeignMemoryError):
        Memory.load(path, other)


def test_keys_from_before_the_optimiser_stepped_are_foreign_after_it(path: Path) -> None:
    owner = ALONE.owner(ADDITIVE)
    memory = owner.prepare(*ALONE.content().pairs)
    with torch.no_grad():
        owner.score.key_weight.add_(1.0)

    def save_and_load() -> None:
        memory.save(path)
        Memory.load(path, owner)

    with pytest.raises(ForeignMemoryError):
        save_and_load()


class Sharpened(nn.Module):
    """A callable score with a bare number to learn."""

    def __init__(self) -> None:
        super().__init__()
        self.sharpness = nn.Parameter(torch.tensor(2.0, dtype=torch.float64))

    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        return queries @ keys.mT * self.sharpness


def test_a_callable_with_a_bare_number_is_saved_too(path: Path) -> None:
    attention, content = Attention(Sharpened()), ALONE.content()
    assert_comes_back(attention.prepare(*content.pairs), content.queries, path)
    with torch.no_grad():
        attention.score.function.sharpness.add_(1.0)
    with pytest.raises(ForeignMemoryError):
        Memory.load(path, attention)
