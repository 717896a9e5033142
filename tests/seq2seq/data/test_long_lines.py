"""A line without an end is an error in time: it fills neither memory nor disk."""

import gzip
import io
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.seq2seq.data import lines as module
from regard.seq2seq.data import open_sources, read_lines
from regard.seq2seq.errors import DataError
from tests.cli.commands import ENVIRONMENT

MOST = 11


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines of eleven bytes at most, read a few bytes at a time."""
    monkeypatch.setattr(module, "CHUNK", 5)
    monkeypatch.setattr(module, "LINE", MOST)
    monkeypatch.setattr(module, "ENDLESS", 40)


@given(st.lists(st.integers(0, 3 * MOST), min_size=1, max_size=7), st.booleans())
def test_long_lines_keep_their_number_and_their_neighbours(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], ended: bool
) -> None:
    path = tmp_path_factory.mktemp("long") / "text"
    body = [chr(ord("a") + place) * size for place, size in enumerate(sizes)]
    if not body[-1]:
        body[-1] = "z"
    path.write_text("\n".join(body) + "\n" * ended, "utf-8")
    found = read_lines(str(path))
    assert list(found) == [line[:MOST] for line in body]
    for number, line in enumerate(body):
        fault = found.fault(number)
        assert (fault is not None) == (len(line) > MOST)
        if fault is not None:
            assert fault.severe
            assert fault.message == f"has {len(line)} bytes, more than 11: a newline may be missing"


def test_no_more_of_a_line_is_held_than_may_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CHUNK", 1 << 16)
    path = tmp_path / "zeros"
    with path.open("wb") as file:
        file.truncate(1 << 26)
    held: list[int] = []
    take = module._Scan._take
    monkeypatch.setattr(
        module._Scan, "_take",
        lambda self, block, end=b"": held.append(len(block)) or take(self, block, end),
    )  # fmt: skip
    found = read_lines(str(path))
    assert sum(held) <= (1 << 16) + MOST
    fault = found.fault(0)
    assert fault is not None
    assert f"has {1 << 26} bytes" in fault.message


def test_a_line_too_long_is_told_before_any_answer(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("short\n" + "x" * 50 + "\n", "utf-8")
    corpus = open_sources(str(tmp_path / "text.txt"))
    with pytest.raises(DataError, match=r"line 2: has 50 bytes, more than 11"):
        corpus[1]
    assert corpus[0].source == "short"


def test_a_stream_without_an_end_is_left(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    written = []

    def write() -> None:
        with open(pipe, "wb", buffering=0) as file:
            try:
                file.write(b"one\n")
                while True:
                    written.append(file.write(b"x" * 1000))
            except BrokenPipeError:
                return

    writer = threading.Thread(target=write)
    writer.start()
    with pytest.raises(DataError, match=r"pipe, line 2: more than 40 bytes without a newline"):
        read_lines(str(pipe))
    writer.join(timeout=20)
    assert not writer.is_alive()


def test_a_packed_line_without_an_end_is_left(tmp_path: Path) -> None:
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb") as file:
        file.write(b"\0" * 1000)
    (tmp_path / "bomb.gz").write_bytes(packed.getvalue())
    with pytest.raises(DataError, match="more than 40 bytes without a newline"):
        read_lines(str(tmp_path / "bomb.gz"))


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="there is no file that never ends")
def test_predict_leaves_an_endless_input(tmp_path: Path) -> None:
    """Before it loads any weights: there are none."""
    (tmp_path / "run.toml").write_text('task = "translate"\n', encoding="utf-8")
    with open("/dev/zero", "rb") as endless:
        said = subprocess.run(
            [sys.executable, "-m", "regard", "predict", str(tmp_path)],
            stdin=endless, capture_output=True, text=True, env=ENVIRONMENT, timeout=60, check=False,
        )  # fmt: skip
    assert said.returncode == 2
    assert said.stderr == (
        "regard: standard input, line 1: more than 67108864 bytes without a newline. "
        "Give text, one example a line.\n"
    )
