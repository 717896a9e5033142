"""The key–value cache: appending equals preparing at once, and leaves the memory before alone."""

import pytest
import torch

from regard import MultiHead
from regard.seq2seq.decoders.kv_cache import append
from tests.seq2seq.model_cases import HEAD, HEADS, WIDE, by_additive


@pytest.mark.parametrize("bad", [None, 0, 2])
@torch.no_grad()
def test_it_is_the_memory_prepared_at_once(bad: int | None) -> None:
    torch.manual_seed(1)
    attention = MultiHead(by_additive, HEADS, WIDE, WIDE, HEAD).double()
    pairs = torch.randn(2, 3, 4, WIDE, dtype=torch.float64)
    if bad is not None:
        pairs[1, 2, bad] = torch.nan
    memory, before = None, []
    for pair in pairs.split(1, -2):
        memory = append(attention, memory, pair)
        before.append(memory)
    queries = torch.randn(2, 3, 1, WIDE, dtype=torch.float64)
    for length, own in enumerate(before, 1):
        whole = attention.prepare(pairs[..., :length, :], pairs[..., :length, :])
        assert len(own) == length
        found, expected = attention.read(queries, own), attention.read(queries, whole)
        torch.testing.assert_close(found.context, expected.context, equal_nan=True)
        nonfinite = found.context.isnan().any(-1).any(-1)
        assert int(nonfinite.sum()) == (bad is not None and length > bad)
