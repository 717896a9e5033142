"""A memory of the target so far: one more pair a token, without a change to the one before."""

import torch
from torch import Tensor

from regard.attention.core.numerics import broadcast_batch
from regard.attention.core.records import replace
from regard.attention.memory import Memory
from regard.attention.multihead import MultiHead
from regard.attention.state import State, Stateful


def append(reader: MultiHead, memory: Memory | None, pairs: Tensor) -> Memory:
    """The memory with these vectors as keys and values after its last one.

    `memory.write` would change it under whoever still holds it, and copies twice.
    """
    if memory is None:
        return reader.prepare(pairs, pairs)
    added = reader.prepare(pairs, pairs)
    faults = (
        memory.nonfinite_keys,
        memory.nonfinite_values,
        added.nonfinite_keys,
        added.nonfinite_values,
    )
    if any(fault is not None for fault in faults):
        return replace(memory).write(pairs, pairs)
    return replace(
        memory,
        prepared={
            name: _joined(old, added.prepared[name]) for name, old in memory.prepared.items()
        },
        cached={name: _joined(old, added.cached[name]) for name, old in memory.cached.items()},
        values=_joined(memory.values, added.values),
        huge=memory.huge or added.huge,
    )


def extend_state(
    reader: MultiHead, memory: Memory, trace: State | None, width: int
) -> State | None:
    """What was remembered of fewer keys, for all that there are now: the new ones are untouched."""
    if trace is None or not trace.owners:
        return trace
    sentences, _, heads = memory.batch
    shape = (sentences, width, heads, 1, len(memory))
    score, select = reader.attention.score, reader.attention.select
    traces = []
    for part, old in ((score, trace.score), (select, trace.selection)):
        fresh = part.start(memory.prepared, shape) if isinstance(part, Stateful) else {}
        traces.append({name: _continued(old[name], new) for name, new in fresh.items()})
    return replace(trace, score=traces[0], selection=traces[1])


def _continued(old: Tensor, fresh: Tensor) -> Tensor:
    return _joined(old.mT, fresh[..., old.shape[-1] :].mT).mT


def _joined(old: Tensor, new: Tensor) -> Tensor:
    batch = broadcast_batch(old.shape[:-2], new.shape[:-2])
    return torch.cat([part.expand(*batch, *part.shape[-2:]) for part in (old, new)], -2)
