"""Places beyond 2³² in dropout, without the memory for so many numbers."""

import ctypes
import mmap
import os

import pytest
import torch

from regard.native import dropout, loader, parallel
from regard.native.eligibility import usable

pytestmark = pytest.mark.skipif(not usable(), reason="the C extension was not built")

FAR, M = 1 << 32, (1 << 32) - 1


@pytest.fixture(params=range(loader.level() + 1), autouse=True)
def _level(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loader, "level", lambda: request.param)


def mixed(h: int) -> int:
    """MurmurHash3's finaliser."""
    h ^= h >> 16
    h = h * 0x85EBCA6B & M
    h ^= h >> 13
    h = h * 0xC2B2AE35 & M
    return h ^ h >> 16


def kept(place: int, seed: int, rate: float) -> bool:
    """What becomes of an element, by the formula."""
    own = seed + mixed(place >> 32)
    return mixed((place * 0x9E3779B9 + own) & M) < round((1 - rate) * 2**32)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("first", [0, FAR // 4 - 20, FAR - 20, FAR, 3 * FAR - 20, 1 << 60])
def test_the_draw_goes_by_the_whole_place(
    first: int, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parallel, "threads", lambda _: threads)
    found = dropout.dropout(torch.ones(67), 0.4, 12345, first=first)
    assert (found != 0).tolist() == [kept(first + n, 12345, 0.4) for n in range(67)]


def test_places_so_far_apart_know_nothing_of_each_other() -> None:
    """The draw does not begin again after 2³² elements."""
    ones = torch.ones(1 << 18)
    drawn = [dropout.dropout(ones, 0.5, 7, first=turn * FAR) != 0 for turn in range(3)]
    for one, other in ((0, 1), (1, 2), (0, 2)):
        same = int((drawn[one] == drawn[other]).sum())
        assert abs(same - len(ones) / 2) < 5.4 * (len(ones) / 4) ** 0.5


PART = 1 << 24
"""Bytes that stand for all of a tensor, again and again."""


class _Repeated:
    """Addresses of many numbers that all lie in the same few pages."""

    def __init__(self, count: int) -> None:
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.libc.mmap.restype = ctypes.c_void_p
        self.libc.mmap.argtypes = [
            ctypes.c_void_p,
            ctypes.c_size_t,
            *[ctypes.c_int] * 3,
            ctypes.c_long,
        ]
        self.libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
        self.bytes, file = 4 * count, os.memfd_create("repeated")
        os.ftruncate(file, PART)
        self.one = torch.frombuffer(mmap.mmap(file, PART), dtype=torch.float32)
        both = mmap.PROT_READ | mmap.PROT_WRITE
        self.start = self._mapped(None, self.bytes, 0, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1)
        for at in range(0, self.bytes, PART):
            self._mapped(self.start + at, PART, both, mmap.MAP_SHARED | 0x10, file)  # MAP_FIXED
        os.close(file)

    def _mapped(self, *given: int | None) -> int:
        found = self.libc.mmap(*given, 0)
        assert found != ctypes.c_void_p(-1).value, os.strerror(ctypes.get_errno())
        return found

    def close(self) -> None:
        self.libc.munmap(self.start, self.bytes)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="memory like this is Linux's")
def test_as_many_elements_as_32_bits_can_count() -> None:
    """Each run of the result overwrites the one before: what is left is the last one's."""
    inputs, outputs = _Repeated(FAR), _Repeated(FAR)
    inputs.one.fill_(1.0)
    loader.require().regard_dropout(inputs.start, outputs.start, 0, FAR, 5, 1 << 31, 2.0, 1)
    last = dropout.dropout(torch.ones(PART // 4), 0.5, 5, first=FAR - PART // 4)
    assert torch.equal(outputs.one, last)
    inputs.close()
    outputs.close()
