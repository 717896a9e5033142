"""A memory of the target so far: one more pair a token, without a change to the one before."""

import torch
from torch import Tensor

from regard.attention.heads import MultiHead
from regard.attention.kernels.numbers import common
from regard.attention.memory import Memory
from regard.attention.records import changed
from regard.attention.state import LooksBack, State


def grown(reader: MultiHead, memory: Memory | None, pairs: Tensor) -> Memory:
    """The memory with these vectors as keys and values after its last one.

    `memory.write` would change it under whoever still holds it, and copies twice.
    """
    if memory is None:
        return reader.prepare(pairs, pairs)
    added = reader.prepare(pairs, pairs)
    faults = (memory.faulty_keys, memory.faulty_values, added.faulty_keys, added.faulty_values)
    if any(fault is not None for fault in faults):
        return changed(memory).write(pairs, pairs)
    return changed(
        memory,
        prepared={
            name: _joined(old, added.prepared[name]) for name, old in memory.prepared.items()
        },
        kept={name: _joined(old, added.kept[name]) for name, old in memory.kept.items()},
        values=_joined(memory.values, added.values),
    )


def lengthened(reader: MultiHead, memory: Memory, trace: State | None, width: int) -> State | None:
    """What was remembered of fewer keys, for all that there are now: the new ones are untouched."""
    if trace is None or not trace.of:
        return trace
    sentences, _, heads = memory.batch
    shape = (sentences, width, heads, 1, len(memory))
    score, select = reader.attention.score, reader.attention.select
    traces = []
    for part, old in ((score, trace.score), (select, trace.selection)):
        fresh = part.start(memory.prepared, shape) if isinstance(part, LooksBack) else {}
        traces.append({name: _continued(old[name], new) for name, new in fresh.items()})
    return changed(trace, score=traces[0], selection=traces[1])


def _continued(old: Tensor, fresh: Tensor) -> Tensor:
    return _joined(old.mT, fresh[..., old.shape[-1] :].mT).mT


def _joined(old: Tensor, new: Tensor) -> Tensor:
    batch = common(old.shape[:-2], new.shape[:-2])
    return torch.cat([part.expand(*batch, *part.shape[-2:]) for part in (old, new)], -2)
