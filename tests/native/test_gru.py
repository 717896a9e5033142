"""A GRU step in C, forward and backward: as exact as plain code, at every CPU level."""

import pytest
import torch
from torch import Tensor

from regard.native import loader, parallel
from regard.native.eligibility import usable
from regard.seq2seq.nn.rnn_cells import GRUCell

pytestmark = pytest.mark.skipif(not usable(), reason="the C extension was not built")
BATCH, SIZE = (2, 5), 37


def _step(kind: torch.dtype, spread: float) -> list[Tensor]:
    """The next state, then the gradients of both parts of the gates and of the last state."""
    torch.manual_seed(3)
    inputs, gates = ((spread * torch.randn(*BATCH, 3 * SIZE)).to(kind) for _ in range(2))
    hidden, grad = (torch.randn(*BATCH, SIZE).to(kind) for _ in range(2))
    cell = GRUCell()
    after, saved = cell.forward(inputs, gates, (hidden,), torch.empty_like(hidden))
    grads = torch.empty_like(inputs), torch.empty_like(gates)
    return [*after, *grads, *cell.backward([grad], saved, (hidden,), grads)]


@pytest.fixture(params=range(loader.level() + 1), autouse=True)
def _level(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loader, "level", lambda: request.param)


@pytest.mark.parametrize("spread", [1e-4, 0.3, 1.0, 40.0])
@pytest.mark.parametrize("threads", [1, 3])
def test_it_is_as_exact_as_plain_code(
    spread: float, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parallel, "threads", lambda _: threads)
    found, truth = _step(torch.float32, spread), _step(torch.float64, spread)
    monkeypatch.setattr(loader, "library", lambda: None)
    plain = _step(torch.float32, spread)
    for ours, theirs, exact in zip(found, plain, truth, strict=True):
        usual = (theirs - exact).norm()
        assert (ours - exact).norm() <= 2 * usual + 1e-7 * exact.norm()


def test_what_is_no_number_stays_none() -> None:
    inputs, hidden = torch.zeros(3, 6), torch.zeros(3, 2)
    inputs[0, 0], inputs[1, 3], inputs[2, 4] = torch.nan, torch.inf, torch.nan
    (after,), _ = GRUCell().forward(inputs, torch.zeros(3, 6), (hidden,), torch.empty(3, 2))
    assert after.isnan().tolist() == [[True, False], [False, False], [True, False]]
