"""A file that holds no memory is refused by name, and a save that fails leaves what was there."""

from pathlib import Path

import pytest
import safetensors
import safetensors.torch
import torch

from regard import Attention, Memory, masks
from regard.attention.core.errors import MemoryFileError
from regard.attention.masks import Mask, PairIndex
from tests.attention.memory_cases import ALONE, KEYS


def memory() -> Memory:
    return Attention().prepare(*ALONE.content().pairs, masks.Lengths([3, KEYS]))


def assert_refused(path: Path) -> None:
    with pytest.raises(MemoryFileError) as caught:
        Memory.load(path, Attention())
    assert str(path) in str(caught.value)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.safetensors"


@pytest.mark.parametrize("share", [0.0, 0.001, 0.2, 0.5, 0.999])
def test_a_file_that_was_cut_off(share: float, path: Path) -> None:
    memory().save(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * share)])
    assert_refused(path)


@pytest.mark.parametrize("metadata", [None, {"format": "pt"}, {"made": "elsewhere"}], ids=str)
def test_tensors_that_are_no_memory(metadata, path: Path) -> None:
    content = {"values": torch.zeros(3, 5), "prepared/keys": torch.zeros(3, 5)}
    safetensors.torch.save_file(content, path, metadata)
    assert_refused(path)


@pytest.mark.parametrize("lost", ["values", "prepared/keys", "mask.limits"])
def test_a_memory_that_lost_a_tensor(lost: str, path: Path) -> None:
    memory().save(path)
    with safetensors.safe_open(path, framework="pt") as file:
        metadata = file.metadata()
        left = {name: file.get_tensor(name) for name in file.keys() if name != lost}  # noqa: SIM118
    safetensors.torch.save_file(left, path, metadata)
    assert_refused(path)


@pytest.mark.parametrize("name", ["fingerprint", "mask"])
def test_a_memory_that_lost_what_it_says(name: str, path: Path) -> None:
    memory().save(path)
    with safetensors.safe_open(path, framework="pt") as file:
        metadata = {key: text for key, text in file.metadata().items() if key != name}
        content = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    safetensors.torch.save_file(content, path, metadata)
    assert_refused(path)


def test_other_things_that_a_path_may_lead_to(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("attention is all you read\n" * 99)
    for path in (text, tmp_path, tmp_path / "nothing", tmp_path / "no" / "where"):
        assert_refused(path)


class Even(Mask):
    """A mask that somebody wrote: the even keys."""

    def allows(self, pairs: PairIndex) -> torch.Tensor:
        return pairs.column_index() % 2 == 0

    def remap_keys(self, source: torch.Tensor, keys: int, fresh: bool = True) -> Mask:
        return self

    def check(self, shape: tuple[int, ...], device: torch.device) -> None:
        pass


def test_a_mask_of_ones_own_is_refused_by_its_name(path: Path) -> None:
    own = Attention().prepare(*ALONE.content().pairs, ~Even())
    with pytest.raises(MemoryFileError, match="Even"):
        own.save(path)
    assert not path.exists()


ENDS = [OSError("no space left"), safetensors.SafetensorError("no"), KeyboardInterrupt()]


@pytest.fixture(params=ENDS, ids=lambda end: type(end).__name__)
def failing(request, monkeypatch) -> type[BaseException]:
    """From now on a save ends halfway through."""
    whole = safetensors.torch.save_file

    def half(tensors, filename, metadata=None):
        whole(tensors, filename, metadata)
        Path(filename).write_bytes(Path(filename).read_bytes()[:97])
        raise request.param

    monkeypatch.setattr(safetensors.torch, "save_file", half)
    return type(request.param)


def test_a_save_that_fails_leaves_no_file(failing, path: Path) -> None:
    with pytest.raises((failing, MemoryFileError)):
        memory().save(path)
    assert list(path.parent.iterdir()) == []


@pytest.fixture
def saved(path: Path) -> bytes:
    memory().save(path)
    return path.read_bytes()


def test_a_save_that_fails_leaves_the_old_file(saved: bytes, failing, path: Path) -> None:
    with pytest.raises((failing, MemoryFileError)):
        memory().erase([0]).save(path)
    assert path.read_bytes() == saved
    assert list(path.parent.iterdir()) == [path]


def test_a_save_that_cannot_be_put_in_place_leaves_the_old_file(
    saved: bytes, path: Path, monkeypatch
) -> None:
    def refuse(source, target):
        raise PermissionError(f"{source} may not become {target}")

    monkeypatch.setattr("os.replace", refuse)
    with pytest.raises((PermissionError, MemoryFileError)):
        memory().erase([0]).save(path)
    assert path.read_bytes() == saved
    assert list(path.parent.iterdir()) == [path]


def test_a_save_to_nowhere_says_where(tmp_path: Path) -> None:
    for path in (tmp_path / "no" / "where", tmp_path):
        with pytest.raises(MemoryFileError) as caught:
            memory().save(path)
        assert str(path) in str(caught.value)
    assert list(tmp_path.iterdir()) == []
    assert not list(tmp_path.parent.glob(f".{tmp_path.name}*"))
