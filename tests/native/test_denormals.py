"""Numbers too small to be normal are zero while that is asked for, on all threads."""

import platform

import pytest
import torch

from regard import kernels
from regard.native.eligibility import usable

TINY = 1e-40
built = pytest.mark.skipif(
    not usable() or platform.machine() != "x86_64", reason="needs C, and x86"
)


def _kept(count: int = 1 << 18) -> int:
    """How many of so many tiny numbers are still there when multiplied by 1: enough for threads."""
    return int((torch.full((count,), TINY) * 1.0).view(torch.int32).count_nonzero())


@built
@pytest.mark.parametrize("threads", [1, 2])
def test_they_are_zero_for_a_while(threads: int) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        assert _kept() == 1 << 18
        with kernels.flush_denormals() as can:
            assert can
            assert _kept() == 0
            with kernels.flush_denormals():
                pass
            assert _kept() == 0
        assert _kept() == 1 << 18
    finally:
        torch.set_num_threads(before)


@built
@pytest.mark.parametrize("inside", [1, 4])
def test_all_threads_are_as_they_were_though_their_number_changed(inside: int) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        assert _kept() == 1 << 18
        with kernels.flush_denormals():
            torch.set_num_threads(inside)
        torch.set_num_threads(4)
        assert _kept() == 1 << 18
    finally:
        torch.set_num_threads(before)


@built
def test_an_error_leaves_them_as_they_were() -> None:
    with pytest.raises(ZeroDivisionError), kernels.flush_denormals():
        _ = 1 / 0
    assert _kept() == 1 << 18


def test_without_c_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.native.loader.library", lambda: None)
    with kernels.flush_denormals() as can:
        assert not can
