"""SpeechBrain's content-based attention, which reads one query at a time.

SpeechBrain imports torchaudio, for which not every torch has a build. Its attention does not use
it: where it cannot be imported, an empty module stands in its place.
"""

import importlib.util
import logging
import sys
import types
from collections.abc import Callable
from typing import Any

import torch

from benchmarks.contestants.inputs import drawn, lengths_of
from benchmarks.contestants.stepping import stepped
from benchmarks.steps import FORWARD

if importlib.util.find_spec("torchaudio") is None:
    sys.modules["torchaudio"] = types.ModuleType("torchaudio")
    logging.disable(logging.WARNING)  # it complains of a torchaudio without a version

from speechbrain.nnet.attention import ContentBasedAttention


def additive_whole(case: dict[str, Any]) -> Callable[[], object]:
    """All queries, one after another; it also projects what was read."""
    batch, queries, keys, hidden = case["batch"], case["queries"], case["keys"], case["hidden"]
    shapes = (batch, queries, hidden), (batch, keys, hidden)
    q, k = leaves = drawn(*shapes, step=case["step"])
    attention = ContentBasedAttention(hidden, hidden, hidden, hidden)
    lengths = torch.full((batch,), keys)

    def read() -> torch.Tensor:
        attention.reset()
        steps = [attention(k, lengths, one)[0] for one in q.unbind(1)]
        return torch.stack(steps, 1)

    return stepped(read, [*leaves, *attention.parameters()], case)


def step(case: dict[str, Any]) -> Callable[[], object]:
    """One step; the keys are projected at the first, and kept."""
    batch, keys, size = case["batch"], case["keys"], case["size"]
    q, k = drawn((batch, size), (batch, keys, size))
    attention = ContentBasedAttention(size, size, size, size).eval()
    lengths = torch.tensor(lengths_of(batch, keys) if case["padding"] else [keys] * batch)
    return stepped(lambda: attention(k, lengths, q)[0], [], {"step": FORWARD})
