"""Files of a folder that somebody else may have put there."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from regard.seq2seq.system.files import (
    list_folder,
    open_regular,
    parse_json,
    read_regular,
    write_atomic,
)


def pipe(path: Path) -> None:
    os.mkfifo(path)


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def folder(path: Path) -> None:
    path.mkdir()


def link(path: Path) -> None:
    (path.parent / "there").write_bytes(b"mine")
    path.symlink_to(path.parent / "there")


def loop(path: Path) -> None:
    path.symlink_to(path.name)


KINDS = pytest.mark.parametrize("make", [pipe, device, folder, link, loop])


@KINDS
@pytest.mark.parametrize("flags", [os.O_RDONLY, os.O_WRONLY | os.O_CREAT, os.O_RDWR | os.O_TRUNC])
def test_only_regular_files_are_opened(
    tmp_path: Path, make: Callable[[Path], None], flags: int
) -> None:
    make(tmp_path / "file")
    with pytest.raises(OSError, match=r"it is a .*, not a file of the run's own") as caught:
        open_regular(tmp_path, "file", flags=flags)
    assert caught.value.filename == str(tmp_path / "file")
    there = tmp_path / "there"
    assert not there.exists() or there.read_bytes() == b"mine"


@KINDS
def test_what_takes_a_files_place_in_time_is_not_opened(
    tmp_path: Path, make: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look and the opening: neither followed nor waited for."""
    (tmp_path / "file").write_bytes(b"")
    before = os.stat_result(os.stat(tmp_path / "file"))
    (tmp_path / "file").unlink()
    make(tmp_path / "file")
    with monkeypatch.context() as patch:
        patch.setattr(os, "stat", lambda *_, **__: before)
        with pytest.raises(OSError, match=r"not a file of the run's own|symbolic links"):
            open_regular(tmp_path, "file")


@pytest.mark.parametrize("make", [pipe, device, link, loop])
def test_only_folders_are_gone_through(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "inner")
    with pytest.raises(OSError, match="inner"):
        read_regular(tmp_path, "inner", "file", limit=9)
    with pytest.raises(OSError, match="not a folder of the run's own"):
        list_folder(tmp_path, "inner")


def test_a_file_has_at_most_so_many_bytes(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"12345")
    assert read_regular(tmp_path, "file", limit=5) == b"12345"
    with pytest.raises(OSError, match="5 bytes; the limit is 4"):
        read_regular(tmp_path, "file", limit=4)
    with pytest.raises(FileNotFoundError):
        read_regular(tmp_path, "none", limit=4)


def test_the_folder_itself_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "real" / "inner").mkdir(parents=True)
    (tmp_path / "real" / "inner" / "file").write_bytes(b"1")
    (tmp_path / "linked").symlink_to(tmp_path / "real")
    assert read_regular(tmp_path / "linked", "inner", "file", limit=1) == b"1"
    assert list_folder(tmp_path / "linked", "inner") == ["file"]
    assert list_folder(tmp_path, "none") == []


def test_a_file_is_written_whole_or_not(tmp_path: Path) -> None:
    write_atomic(tmp_path, "file", b"new")
    assert read_regular(tmp_path, "file", limit=9) == b"new"
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="directory"):
        write_atomic(tmp_path, "folder", b"new")
    assert sorted(os.listdir(tmp_path)) == ["file", "folder"]


def test_descriptors_are_closed(tmp_path: Path) -> None:
    pipe(tmp_path / "pipe")
    (tmp_path / "file").write_bytes(b"123")
    before = os.listdir("/proc/self/fd")
    for name in ("pipe", "none", "file"):
        with pytest.raises(OSError, match=r"."):
            read_regular(tmp_path, name, limit=2)
    list_folder(tmp_path)
    assert os.listdir("/proc/self/fd") == before


@pytest.mark.parametrize("content", ["[" * 100_000, "9" * 5000, "NaN", "[-Infinity]", "{", ""])
def test_whatever_is_wrong_with_json_is_a_value_error(content: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_json(content.encode())
    assert parse_json(json.dumps({"a": [1.5]}).encode()) == {"a": [1.5]}
