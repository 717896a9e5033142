"""Few keys of whole lanes: C makes their exponentials item by item, with the same answers."""

import pytest
import torch

from regard import selection
from regard.attention.kernels import additive, additive_backends
from regard.native import additive as native_additive
from regard.native import loader, parallel
from tests.attention.additive_cases import (
    BATCH,
    KEYS,
    MASKS,
    SIZE,
    VALUE_SIZE,
    assert_agrees,
    assert_at_most_twice_as_wrong,
    draw_inputs,
    make_attention,
)

HIDDEN = 96


@pytest.fixture
def reaches(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How far what each call of C was given reaches, or that these are vectors."""
    given: list[float] = []
    inner = native_additive.additive_scores

    def watched(*arguments) -> bool:
        given.append(arguments[-1].max_abs)
        return inner(*arguments)

    monkeypatch.setattr(native_additive, "additive_scores", watched)
    return given


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("scale", [1.0, 4.0, 8.0, 100.0])
def test_every_range(scale: float, mask: str, reaches: list[float]) -> None:
    assert_agrees(make_attention(hidden=HIDDEN), draw_inputs(scale), mask=MASKS[mask])
    assert set(reaches) == {native_additive.VECTORS}


@pytest.mark.parametrize("scale", [1.0, 100.0])
def test_another_selection(scale: float) -> None:
    """Backward by a backend that has computed no scores."""
    assert_agrees(make_attention(selection.Sparsemax(), HIDDEN), draw_inputs(scale))


@pytest.mark.parametrize("far", [0, 3, 6])
def test_in_blocks_of_which_one_is_out_of_range(far: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(additive, "BLOCK", 2 * BATCH * KEYS)
    queries, keys, values = draw_inputs()
    queries[1, far] *= 200
    assert_agrees(make_attention(hidden=HIDDEN), [queries, keys, values])


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("threads", [1, 2, 3, 5, 64])
def test_runs_of_rows_on_any_number_of_threads(
    threads: int, shared: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More rows than are taken at once, and threads that begin inside an item."""
    monkeypatch.setattr(parallel, "threads", lambda _: threads)
    torch.manual_seed(5)
    held = 1 if shared else BATCH
    queries = torch.randn(BATCH, 149, SIZE)
    keys, values = torch.randn(held, KEYS, SIZE), torch.randn(held, KEYS, VALUE_SIZE)
    assert_agrees(make_attention(hidden=HIDDEN), [queries, keys, values])


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0, 100.0])
def test_it_is_at_most_twice_as_wrong_as_plain_code(
    scale: float, apart: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loader, "is_amd", lambda: apart)
    assert_at_most_twice_as_wrong(torch.float32, scale, None, (53, 47, 61, HIDDEN))


def test_many_keys_and_odd_sizes_have_theirs_made_before() -> None:
    assert additive_backends.fits_cache(torch.zeros(2, 11, 64))
    assert not additive_backends.fits_cache(torch.zeros(2, 11, 63))
    assert not additive_backends.fits_cache(torch.zeros(2, 11, 64, dtype=torch.float64))
    many = additive_backends.CACHED_ELEMENTS // 64 + 1
    assert not additive_backends.fits_cache(torch.zeros(1, many, 64))
