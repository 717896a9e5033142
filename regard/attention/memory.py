"""A key–value memory: prepared once, read many times, written to, reordered with the beams."""

from collections.abc import Iterable
from dataclasses import dataclass
from os import PathLike
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Int
from torch import Tensor

from regard.attention import kernels, memory_io
from regard.attention.core.axes import NonFiniteFlags, Prepared, Values
from regard.attention.core.errors import ForeignMemoryError, OptionError, ShapeError, shown
from regard.attention.core.nonfinite import NonFinite, is_huge
from regard.attention.core.numerics import broadcast_batch
from regard.attention.core.records import cache_field, record, replace, static, tree_map
from regard.attention.core.tracing import is_concrete
from regard.attention.core.validation import (
    as_index,
    autocast,
    broadcasts,
    check_added,
    check_pairs,
    copy_parameter,
)
from regard.attention.kernels import View
from regard.attention.masks import Mask
from regard.attention.scores import Score
from regard.attention.selection import Selection
from regard.attention.state import check_beams, reordered


@runtime_checkable
class Owner(Protocol):
    """Who prepares memories and reads them: `Attention` or `MultiHead`."""

    head_shape: tuple[int, ...]
    """The axes of heads in its memories, after the batch."""

    def prepare(self, keys: Tensor, values: Tensor, mask: Mask | Tensor | None = None) -> "Memory":
        """A memory of these pairs."""

    def read(self, queries: Tensor, memory: "Memory") -> Any:
        """What the queries find in it."""

    def fingerprint(self) -> str:
        """What its prepared keys depend on, as a hash."""

    def parameter_version(self) -> int:
        """How often that has been changed in place."""

    def cache(self, prepared: Prepared) -> Prepared:
        """What kernels cache of prepared keys."""


@dataclass(slots=True)
class ReadPlan:
    """How queries of one shape read a memory: checked once, reused at every step of a decoder."""

    view: View
    """Which pairs are compared, under which mask, at step 0; kernels cache what they find in it."""

    shape: tuple[int, ...]
    """`(*batch, query, key)`, without axes of heads."""

    dtype: torch.dtype
    """Of the memory: queries are cast to it."""

    is_vector: bool
    """Is the query a bare vector, answered with a bare vector?"""

    may_have_empty_rows: bool
    """May a query be fully masked?"""

    score: Score | None = None
    select: Selection | None = None
    """Whose next read skips the checks: see `fast_paths.cached_step`."""

    def as_sequence(self, queries: Tensor) -> Tensor:
        """The queries with their axis, in the memory's dtype."""
        queries = queries if queries.dtype == self.dtype else queries.to(self.dtype)
        return queries[None] if self.is_vector else queries


@record
class Memory:
    """Prepared keys with their values, and who prepared them: what `attention.prepare` returns.

    `write` and `erase` change the memory; `reorder` gives another one.

    >>> import torch
    >>> from regard import Attention, scores
    >>> memory = Attention(scores.Cosine(sharpness=50)).prepare(torch.eye(3), torch.eye(3))
    >>> memory.write(torch.tensor([[1.0, 1.0, 0.0]]), torch.tensor([[5.0, 5.0, 5.0]]))
    Memory of 4 keys
    >>> memory.read(torch.tensor([2.0, 2.0, 0.0])).context
    tensor([5.0000, 5.0000, 5.0000])
    """

    prepared: Prepared
    values: Values
    mask: Mask | None
    cached: Prepared
    nonfinite_keys: NonFiniteFlags | None
    nonfinite_values: NonFiniteFlags | None
    owner: Owner | None = static(default=None)
    parameter_version: int = static(default=0)
    """How often the owner's parameters had moved when it prepared the keys."""

    sizes: tuple[int, int] = static(default=(0, 0))
    """Those of a key and of a value before they were prepared."""

    huge: bool = static(default=False)
    """Are some numbers so large that products with them may overflow?"""

    plans: dict[tuple[torch.Size, torch.dtype, torch.layout], ReadPlan] = cache_field(
        default_factory=dict
    )
    """How queries read it one at a time, by their shape, dtype and layout."""

    def __len__(self) -> int:
        return self.values.shape[-2]

    def __repr__(self) -> str:
        batch = f", batch {self.batch}" if self.batch else ""
        return f"Memory of {len(self)} keys{batch}"

    @property
    def batch(self) -> tuple[int, ...]:
        """The batch axes, those of heads included."""
        keys = self.prepared["keys"]
        return broadcast_batch(keys.shape[:-2], self.values.shape[:-2])

    def check(self) -> None:
        """Raise unless there is a value for each key, whatever was done to the tensors since."""
        keys, values = self.prepared["keys"].shape[-2], len(self)
        if keys != values:
            raise ShapeError(
                f"this memory has {keys} keys but {values} values: one of them was replaced. "
                "Prepare the keys and values anew."
            )

    def read(self, queries: Tensor, **options: Any) -> Any:
        """Read by content: `attention.read(queries, memory, …)` by the one that prepared it."""
        return self._owner().read(queries, self, **options)

    def write(
        self, keys: Tensor, values: Tensor, at: Tensor | Iterable[int] | None = None
    ) -> "Memory":
        """Add pairs after the last one, or put them in the place of those `at` some indices.

        Args:
            keys: `(*batch, new, key_size)`, not prepared.
            values: `(*batch, new, value_size)`.
            at: As many places as there are new pairs; all items of the batch have them in common.
        """
        check_added(keys, values, self.values)
        added = self._owner().prepare(keys, values)
        _check_alike(self, added)
        new, old = len(added), len(self)
        if at is None:
            order = torch.arange(old + new, device=self.values.device)
            source = torch.where(order < old, order, -1)
        else:
            places = self._places(at)
            if len(places) != new or (is_concrete(places) and len(places.unique()) != new):
                raise ShapeError(
                    f"{new} pairs cannot be written at the places {places.tolist()}. "
                    f"Give {new} different places, one for each pair."
                )
            order = torch.arange(old, device=self.values.device)
            source = order.index_fill(0, places, -1)
            order = order.index_copy(0, places, torch.arange(new, device=order.device) + old)
        mask = None if self.mask is None else self.mask.remap_keys(source, old)
        self._become(_joined(self, added), order, mask)
        return self

    def erase(self, index: Tensor | Iterable[int]) -> "Memory":
        """Take out the pairs at these places, of all items of the batch; the others close up."""
        gone = self._places(index)
        stays = torch.ones(len(self), dtype=torch.bool, device=gone.device).index_fill(
            0, gone, False
        )
        order = stays.nonzero().flatten()
        mask = None if self.mask is None else self.mask.remap_keys(order, len(self))
        self._become(self, order, mask)
        return self

    def reorder(self, index: Int[Tensor, "..."]) -> "Memory":
        """The memory of other beams.

        An index `(n,)` chooses along the first batch axis, `(batch, n)` along the second, within
        each item of the first. What all share (size 1) stays shared.
        """
        check_beams(index)
        axes = self.values.ndim - 2 - len(self._owner().head_shape)
        if index.ndim > axes:
            raise ShapeError(
                f"an index of shape {tuple(index.shape)} chooses along batch axis {index.ndim} but "
                f"this memory's batch is {self.batch[:axes]}. Prepare it with an axis of beams."
            )
        return tree_map(self, lambda tensor: reordered(tensor, index))

    def save(self, path: str | PathLike[str]) -> None:
        """Write to a safetensors file, with a fingerprint of what prepared the keys."""
        owner = self._owner()
        if owner.parameter_version() != self.parameter_version:
            raise ForeignMemoryError(
                "the parameters have moved since these keys were prepared, so nobody could read "
                "them again. Prepare the keys anew, then save."
            )
        saved = memory_io.SavedMemory(
            self.prepared,
            self.values,
            self.mask,
            self.nonfinite_keys,
            self.nonfinite_values,
            self.sizes,
        )
        memory_io.save(saved, owner.fingerprint(), path)

    @classmethod
    def load(cls, path: str | PathLike[str], owner: Owner) -> "Memory":
        """Read a file that `save` wrote, for the attention that prepared it or one equal to it."""
        if isinstance(owner, type) or not isinstance(owner, Owner):
            raise OptionError(
                f"a memory cannot be loaded for {shown(owner)}. "
                "Pass the attention that prepared it: Memory.load(path, attention)."
            )
        saved = memory_io.load(path, owner)
        return cls(
            saved.prepared,
            saved.values,
            saved.mask,
            owner.cache(saved.prepared),
            saved.nonfinite_keys,
            saved.nonfinite_values,
            owner,
            owner.parameter_version(),
            saved.sizes,
            any(is_huge(tensor) for tensor in (saved.values, *saved.prepared.values())),
        )

    def _places(self, index: Tensor | Iterable[int]) -> Int[Tensor, " place"]:
        return as_index("places", index, len(self), self.values.device)

    def _become(self, source: "Memory", order: Int[Tensor, " key"], mask: Mask | None) -> None:
        """Take on the pairs of `source` in this order."""
        self.prepared = {name: t[..., order, :] for name, t in source.prepared.items()}
        self.cached = {name: t[..., order, :] for name, t in source.cached.items()}
        self.values = source.values[..., order, :]
        for name in ("nonfinite_keys", "nonfinite_values"):
            faulty = getattr(source, name)
            setattr(self, name, None if faulty is None else faulty[..., order])
        self.mask, self.huge = mask, source.huge
        self.plans.clear()

    def _owner(self) -> Owner:
        if self.owner is None:
            raise ForeignMemoryError(
                "this memory was prepared by no attention. Make it by Attention(…).prepare(…)."
            )
        return self.owner


def build_memory(
    score: Score,
    keys: Tensor,
    values: Tensor,
    mask: Mask | None,
    guard: NonFinite | None,
    *,
    once: bool = False,
) -> Memory:
    """A memory of admitted keys and values; it may be for many queries that read it once."""
    prepared = score.prepare(keys)
    if guard is None:
        return Memory(prepared, values, mask, _cached(score, prepared, once=once), None, None)
    # A finite key may overflow as it is prepared.
    prepared = {
        name: each if each is keys else guard.zero_keys(each) for name, each in prepared.items()
    }
    kept = _cached(score, prepared, once=once)
    nonfinite_keys = guard.keys if score.looks_at_keys else None
    memory = Memory(prepared, values, mask, kept, nonfinite_keys, guard.values)
    memory.huge = guard.huge
    return memory


def _cached(score: Score, prepared: Prepared, *, once: bool) -> Prepared:
    return kernels.cache_keys(score.compares, prepared, once=once)


def validate_pairs(
    keys: Tensor, values: Tensor, *, guarded: bool
) -> tuple[Tensor, Tensor, NonFinite | None]:
    """Check keys and values, cast them, and clean them where something may be hidden."""
    check_pairs(keys, values)
    keys, values = copy_parameter(autocast(keys)), copy_parameter(autocast(values))
    if keys.shape[:-2] != values.shape[:-2]:
        keys = keys.expand(*broadcast_batch(keys.shape[:-2], values.shape[:-2]), *keys.shape[-2:])
    if not guarded:
        return keys, values, None
    guard = NonFinite()
    return guard.zero_keys(keys), guard.zero_values(values), guard


def set_owner(owner: Owner, memory: Memory, sizes: tuple[int, int]) -> Memory:
    """The memory, with a note of who prepared it, of keys and values of which sizes."""
    memory.owner, memory.parameter_version, memory.sizes = owner, owner.parameter_version(), sizes
    return memory


def zero_hidden(memory: Memory, allowed: Tensor) -> Memory:
    """The memory as one row of queries sees it: keys and values that are hidden are 0.

    Args:
        memory: Pairs, some of them huge.
        allowed: `(*batch, 1, key)`: which of them this row may read.
    """
    hidden = ~allowed.mT.expand(*allowed.shape[:-2], len(memory), 1)
    return replace(
        memory,
        prepared={name: each.masked_fill(hidden, 0.0) for name, each in memory.prepared.items()},
        values=memory.values.masked_fill(hidden, 0.0),
        cached={},
    )


def _check_alike(old: Memory, new: Memory) -> None:
    """Raise unless the new pairs are as the old ones, but for their number."""
    sizes = [(m.prepared["keys"].shape[-1], m.values.shape[-1]) for m in (old, new)]
    if sizes[0] != sizes[1]:
        raise ShapeError(
            f"the new keys and values have sizes {sizes[1]} but the memory's {sizes[0]}. "
            "Write pairs of the same sizes."
        )
    if not broadcasts(old.batch, new.batch):
        raise ShapeError(
            f"the new pairs are for a batch of {new.batch} but the memory's is {old.batch}. "
            "Give them the same batch axes, or 1 where one serves all."
        )


def _joined(left: Memory, right: Memory) -> Memory:
    """The pairs of both, one after another; masks aside."""

    def join(a: Tensor, b: Tensor, axis: int = -2) -> Tensor:
        batch = broadcast_batch(a.shape[:-2], b.shape[:-2])
        return torch.cat([t.expand(*batch, *t.shape[-2:]) for t in (a, b)], axis)

    def faults(a: Tensor | None, b: Tensor | None) -> Tensor | None:
        if a is None and b is None:
            return None
        return join(
            _all_finite(left) if a is None else a, _all_finite(right) if b is None else b, -1
        )

    return replace(
        left,
        prepared={name: join(t, right.prepared[name]) for name, t in left.prepared.items()},
        cached={name: join(t, right.cached[name]) for name, t in left.cached.items()},
        values=join(left.values, right.values),
        nonfinite_keys=faults(left.nonfinite_keys, right.nonfinite_keys),
        nonfinite_values=faults(left.nonfinite_values, right.nonfinite_values),
        huge=left.huge or right.huge,
    )


def _all_finite(memory: Memory) -> Tensor:
    shape = [1] * len(memory.batch) + [1, len(memory)]
    return torch.zeros(shape, dtype=torch.bool, device=memory.values.device)
