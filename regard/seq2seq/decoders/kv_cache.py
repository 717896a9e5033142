"""The key–value cache of a self-attention: one more pair a token, the one before unchanged."""

import torch
from torch import Tensor

from regard.attention.core.numerics import broadcast_batch
from regard.attention.core.records import replace
from regard.attention.memory import Memory
from regard.attention.multihead import MultiHead
from regard.attention.state import State, Stateful


def append(attention: MultiHead, memory: Memory | None, pairs: Tensor) -> Memory:
    """The memory with these vectors as keys and values at its end.

    `memory.write` would change it under whoever still holds it, and copies twice.
    """
    added = attention.prepare(pairs, pairs)
    if memory is None:
        return added
    nonfinite = (
        memory.nonfinite_keys,
        memory.nonfinite_values,
        added.nonfinite_keys,
        added.nonfinite_values,
    )
    if any(each is not None for each in nonfinite):
        return replace(memory).write(pairs, pairs)
    return replace(
        memory,
        prepared={
            name: _concat(old, added.prepared[name]) for name, old in memory.prepared.items()
        },
        cached={name: _concat(old, added.cached[name]) for name, old in memory.cached.items()},
        values=_concat(memory.values, added.values),
        huge=memory.huge or added.huge,
    )


def extend_state(
    attention: MultiHead, memory: Memory, state: State | None, width: int
) -> State | None:
    """A state over fewer keys, for all of the memory's: the new ones as at the start."""
    if state is None or not state.owners:
        return state
    sentences, _, heads = memory.batch
    shape = (sentences, width, heads, 1, len(memory))
    score, select = attention.attention.score, attention.attention.select
    extended = []
    for part, old in ((score, state.score), (select, state.selection)):
        fresh = part.start(memory.prepared, shape) if isinstance(part, Stateful) else {}
        extended.append({name: _extend(old[name], new) for name, new in fresh.items()})
    return replace(state, score=extended[0], selection=extended[1])


def _extend(old: Tensor, fresh: Tensor) -> Tensor:
    return _concat(old.mT, fresh[..., old.shape[-1] :].mT).mT


def _concat(old: Tensor, new: Tensor) -> Tensor:
    batch = broadcast_batch(old.shape[:-2], new.shape[:-2])
    return torch.cat([part.expand(*batch, *part.shape[-2:]) for part in (old, new)], -2)
