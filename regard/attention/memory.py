"""A key–value memory: prepared once, read often, written to, reordered with the beams, saved."""

from collections.abc import Iterable
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
    broadcasts,
    check_new_pairs,
)
from regard.attention.masks import Mask
from regard.attention.scores import Score
from regard.attention.state import ReadPlan, check_beams, reorder_batch


@runtime_checkable
class Owner(Protocol):
    """What prepares and reads memories: `Attention` or `MultiHead`."""

    head_shape: tuple[int, ...]
    """The axes of heads in its memories, after the batch."""

    def prepare(self, keys: Tensor, values: Tensor, mask: Mask | Tensor | None = None) -> "Memory":
        """A memory of these pairs."""

    def read(self, queries: Tensor, memory: "Memory") -> Any:
        """Read a memory that it prepared."""

    def fingerprint(self) -> str:
        """A hash of what its prepared keys depend on."""

    def parameter_version(self) -> int:
        """How often the parameters of these were changed in place."""

    def cache(self, prepared: Prepared) -> Prepared:
        """What kernels cache of prepared keys."""


@record
class Memory:
    """Prepared keys with their values and their owner: what `attention.prepare` returns.

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
    """The owner's `parameter_version()` when it prepared the keys."""

    sizes: tuple[int, int] = static(default=(0, 0))
    """Of a key and of a value, before they were prepared."""

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
        """The batch axes, axes of heads included."""
        keys = self.prepared["keys"]
        return broadcast_batch(keys.shape[:-2], self.values.shape[:-2])

    def check(self) -> None:
        """Raise unless there is a value for each key: somebody may have replaced a tensor."""
        keys, values = self.prepared["keys"].shape[-2], len(self)
        if keys != values:
            raise ShapeError(
                f"this memory has {keys} keys but {values} values: one of them was replaced. "
                "Prepare the keys and values again."
            )

    def read(self, queries: Tensor, **options: Any) -> Any:
        """Read it: `attention.read(queries, memory, …)` of the attention that prepared it."""
        return self._owner().read(queries, self, **options)

    def write(
        self, keys: Tensor, values: Tensor, at: Tensor | Iterable[int] | None = None
    ) -> "Memory":
        """Append pairs, or replace those `at` some indices.

        Args:
            keys: `(*batch, new, key_size)`, not prepared.
            values: `(*batch, new, value_size)`.
            at: An index for each new pair, the same for all items of the batch.
        """
        check_new_pairs(keys, values, self.values)
        added = self._owner().prepare(keys, values)
        _check_sizes(self, added)
        new, old = len(added), len(self)
        if at is None:
            order = torch.arange(old + new, device=self.values.device)
            source = torch.where(order < old, order, -1)
        else:
            index = self._index(at)
            if len(index) != new or (is_concrete(index) and len(index.unique()) != new):
                raise ShapeError(
                    f"{new} pairs cannot be written at the indices {index.tolist()}. "
                    f"Give {new} different indices, one for each pair."
                )
            order = torch.arange(old, device=self.values.device)
            source = order.index_fill(0, index, -1)
            order = order.index_copy(0, index, torch.arange(new, device=order.device) + old)
        mask = None if self.mask is None else self.mask.remap_keys(source, old)
        self._take_pairs(_concat(self, added), order, mask)
        return self

    def erase(self, index: Tensor | Iterable[int]) -> "Memory":
        """Remove the pairs at these indices, from all items of the batch."""
        erased = self._index(index)
        stays = torch.ones(len(self), dtype=torch.bool, device=erased.device)
        order = stays.index_fill(0, erased, False).nonzero().flatten()
        mask = None if self.mask is None else self.mask.remap_keys(order, len(self))
        self._take_pairs(self, order, mask)
        return self

    def reorder(self, index: Int[Tensor, "..."]) -> "Memory":
        """The memory of other beams.

        An index `(n,)` selects along the first batch axis, `(batch, n)` along the second, within
        each item of the first. An axis that broadcasts (size 1) stays.
        """
        check_beams(index)
        axes = self.values.ndim - 2 - len(self._owner().head_shape)
        if index.ndim > axes:
            raise ShapeError(
                f"an index of shape {tuple(index.shape)} selects along batch axis {index.ndim} but "
                f"this memory's batch is {self.batch[:axes]}. Prepare it with an axis of beams."
            )
        return tree_map(self, lambda tensor: reorder_batch(tensor, index))

    def save(self, path: str | PathLike[str]) -> None:
        """Write to a safetensors file, with a fingerprint of what prepared the keys."""
        owner = self._owner()
        if owner.parameter_version() != self.parameter_version:
            raise ForeignMemoryError(
                "the parameters were updated since these keys were prepared, so the file could not "
                "be read again. Prepare the keys again, then save."
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

    def _index(self, index: Tensor | Iterable[int]) -> Int[Tensor, " index"]:
        return as_index("indices", index, len(self), self.values.device)

    def _take_pairs(self, source: "Memory", order: Int[Tensor, " key"], mask: Mask | None) -> None:
        """Replace all pairs by those of `source`, in this order."""
        self.prepared = {name: t[..., order, :] for name, t in source.prepared.items()}
        self.cached = {name: t[..., order, :] for name, t in source.cached.items()}
        self.values = source.values[..., order, :]
        for name in ("nonfinite_keys", "nonfinite_values"):
            flags = getattr(source, name)
            setattr(self, name, None if flags is None else flags[..., order])
        self.mask, self.huge = mask, source.huge
        self.plans.clear()

    def _owner(self) -> Owner:
        if self.owner is None:
            raise ForeignMemoryError(
                "this memory was prepared by no attention. Make one: Attention(…).prepare(…)."
            )
        return self.owner


def build_memory(
    score: Score,
    keys: Tensor,
    values: Tensor,
    mask: Mask | None,
    nonfinite: NonFinite | None,
    *,
    once: bool = False,
) -> Memory:
    """A memory of validated keys and values; `once` if many queries read it once, together."""
    prepared = score.prepare(keys)
    if nonfinite is None:
        return Memory(prepared, values, mask, _cached(score, prepared, once=once), None, None)
    # A finite key may overflow as it is prepared.
    prepared = {
        name: each if each is keys else nonfinite.zero_keys(each) for name, each in prepared.items()
    }
    cached = _cached(score, prepared, once=once)
    nonfinite_keys = nonfinite.keys if score.uses_keys else None
    memory = Memory(prepared, values, mask, cached, nonfinite_keys, nonfinite.values)
    memory.huge = nonfinite.huge
    return memory


def _cached(score: Score, prepared: Prepared, *, once: bool) -> Prepared:
    return kernels.cache_keys(score.compares, prepared, once=once)


def set_owner(owner: Owner, memory: Memory, sizes: tuple[int, int]) -> Memory:
    """The memory, with its owner and the sizes of its keys and values before preparation."""
    memory.owner, memory.parameter_version, memory.sizes = owner, owner.parameter_version(), sizes
    return memory


def _check_sizes(old: Memory, new: Memory) -> None:
    """Raise unless the new pairs have the sizes and the batch of the old ones."""
    sizes = [(m.prepared["keys"].shape[-1], m.values.shape[-1]) for m in (old, new)]
    if sizes[0] != sizes[1]:
        raise ShapeError(
            f"the new keys and values have sizes {sizes[1]} but the memory's {sizes[0]}. "
            "Write pairs of the same sizes."
        )
    if not broadcasts(old.batch, new.batch):
        raise ShapeError(
            f"the new pairs are for a batch of {new.batch} but the memory's is {old.batch}. "
            "Give them the same batch axes, or 1 to broadcast."
        )


def _concat(left: Memory, right: Memory) -> Memory:
    """The pairs of both, with the mask of the left."""

    def cat(a: Tensor, b: Tensor, axis: int = -2) -> Tensor:
        batch = broadcast_batch(a.shape[:-2], b.shape[:-2])
        return torch.cat([t.expand(*batch, *t.shape[-2:]) for t in (a, b)], axis)

    def cat_flags(a: Tensor | None, b: Tensor | None) -> Tensor | None:
        if a is None and b is None:
            return None
        return cat(_no_flags(left) if a is None else a, _no_flags(right) if b is None else b, -1)

    return replace(
        left,
        prepared={name: cat(t, right.prepared[name]) for name, t in left.prepared.items()},
        cached={name: cat(t, right.cached[name]) for name, t in left.cached.items()},
        values=cat(left.values, right.values),
        nonfinite_keys=cat_flags(left.nonfinite_keys, right.nonfinite_keys),
        nonfinite_values=cat_flags(left.nonfinite_values, right.nonfinite_values),
        huge=left.huge or right.huge,
    )


def _no_flags(memory: Memory) -> Tensor:
    shape = [1] * len(memory.batch) + [1, len(memory)]
    return torch.zeros(shape, dtype=torch.bool, device=memory.values.device)
