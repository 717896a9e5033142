"""A sum and its norm in one call of C: what torch makes of it in four."""

import pytest
import torch
from torch import nn

from regard.native import layer_norm, loader
from regard.native.eligibility import usable

pytestmark = pytest.mark.skipif(not usable(), reason="the C extension was not built")


@pytest.mark.parametrize("level", range(loader.level() + 1))
@pytest.mark.parametrize("size", [1, 3, 16, 37, 512])
@pytest.mark.parametrize(("found", "bias"), [(False, False), (True, False), (True, True)])
def test_it_is_a_sum_and_its_norm(
    found: bool, bias: bool, size: int, level: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loader, "level", lambda: level)
    torch.manual_seed(1)
    norm = nn.LayerNorm(size).requires_grad_(False)
    nn.init.normal_(norm.weight)
    nn.init.normal_(norm.bias)
    seen, more, one = 5 + 3 * torch.randn(7, size), torch.randn(7, size), torch.randn(size)
    total = seen.double() + (more if found else 0) + (one if bias else 0)
    normal = layer_norm.add_layernorm(seen, more if found else None, one if bias else None, norm)
    torch.testing.assert_close(seen, total.float(), rtol=1e-6, atol=1e-6)
    expected = norm.double()(total).float()
    torch.testing.assert_close(normal, expected, rtol=1e-4, atol=1e-5)


def test_what_is_no_number_stays_in_its_row() -> None:
    seen = torch.ones(2, 16).index_fill(0, torch.tensor([1]), torch.nan)
    normal = layer_norm.add_layernorm(seen, None, None, nn.LayerNorm(16).requires_grad_(False))
    assert normal[0].isfinite().all()
    assert normal[1].isnan().all()
