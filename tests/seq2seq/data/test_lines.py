r"""A line ends at `\n` and nowhere else; invalid bytes are faults, never fatal."""

import gzip
import hashlib
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.seq2seq.data import lines as module
from regard.seq2seq.data import read_lines
from regard.seq2seq.errors import DataError

ODD_ENDS = "\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
bodies = st.lists(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\0\r\ufeff")), max_size=9
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "text.txt"


@given(bodies, st.booleans())
def test_lines_are_what_stands_between_newlines(
    tmp_path_factory: pytest.TempPathFactory, body: list[str], ended: bool
) -> None:
    path = tmp_path_factory.mktemp("lines") / "text"
    text = "\n".join(body) + ("\n" if ended and body else "")
    path.write_bytes(text.encode())
    found = read_lines(str(path))
    assert list(found) == text.split("\n")[: None if not text.endswith("\n") and text else -1]
    assert found.digest == hashlib.sha256(text.encode()).hexdigest()
    assert not list(found.notes())


def test_odd_line_ends_are_text(path: Path) -> None:
    path.write_text(f"a{ODD_ENDS}b\nc", "utf-8")
    assert list(read_lines(str(path))) == [f"a{ODD_ENDS}b", "c"]


def test_lines_longer_than_a_chunk(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHUNK", 7)
    body = ["é" * 40, "", "x", "日本" * 9, "\x80".encode().decode(), "end"]
    path.write_text("\n".join(body), "utf-8")
    found = read_lines(str(path))
    assert list(found) == body
    assert not any(found.fault(number) for number in range(len(found)))


def test_mark_and_returns_are_taken_off_and_noted_once(path: Path) -> None:
    path.write_bytes(b"\xef\xbb\xbfone\r\ntwo\nthr\ree\r\n\r\nfive\r")
    found = read_lines(str(path))
    assert list(found) == ["one", "two", "thr\ree", "", "five\r"]
    notes = list(found.notes())
    assert [note.kind for note in notes] == ["byte order mark", "carriage return"]
    assert "3 of 5 lines" in notes[1].message
    assert not any(note.severe for note in notes)


def test_returns_are_counted_across_chunks(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHUNK", 2)
    path.write_bytes(b"a\r\n" * 5)
    assert "5 of 5 lines" in next(iter(read_lines(str(path)).notes())).message


@pytest.mark.parametrize(
    ("content", "count"), [(b"", 0), (b"\xef\xbb\xbf", 0), (b"\n", 1), (b"\xef\xbb\xbf\n", 1)]
)
def test_nothing_and_next_to_nothing(path: Path, content: bytes, count: int) -> None:
    path.write_bytes(content)
    assert list(read_lines(str(path))) == [""] * count


def test_wrong_bytes_are_told_with_their_lines(path: Path) -> None:
    path.write_bytes(b"fine\ncaf" + b"\xe9 noir\nn\0l\nfine\nlast \xff")
    found = read_lines(str(path))
    faults = {number: found.fault(number) for number in range(5)}
    assert [number for number, fault in faults.items() if fault] == [1, 2, 4]
    invalid, nul, last = faults[1], faults[2], faults[4]
    assert invalid
    assert nul
    assert last
    assert (invalid.kind, invalid.line) == ("invalid UTF-8", 2)
    assert "byte 4" in invalid.message
    assert "caf" in invalid.message
    assert (nul.kind, nul.line) == ("NUL", 3)
    assert (last.kind, last.line) == ("invalid UTF-8", 5)
    assert found[1] == "caf\ufffd noir"


def test_utf16_is_recognised(path: Path) -> None:
    path.write_bytes("ab\n".encode("utf-16"))
    fault = read_lines(str(path)).fault(0)
    assert fault
    assert "iconv" in fault.message


def test_what_is_added_later_is_not_read(path: Path) -> None:
    path.write_text("a\nlast")
    found = read_lines(str(path))
    with path.open("a") as file:
        file.write("ing\nmore\n")
    assert list(found) == ["a", "last"]


def test_slices_and_numbers_from_the_end(path: Path) -> None:
    path.write_text("a\nb\nc\n")
    found = read_lines(str(path))
    assert found[1:] == ["b", "c"]
    assert found[-1] == "c"
    with pytest.raises(IndexError, match="3 lines"):
        found[3]


@pytest.mark.parametrize("name", ["text.gz", "text"])
def test_gzip_is_known_by_its_bytes(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(gzip.compress("a\r\né\n".encode()))
    found = read_lines(str(path))
    path.unlink()  # it was read once, and is not needed any more
    assert list(found) == ["a", "é"]
    assert found.digest == hashlib.sha256("a\r\né\n".encode()).hexdigest()


def test_plain_text_named_gz(tmp_path: Path) -> None:
    (tmp_path / "a.gz").write_text("plain\n")
    assert list(read_lines(str(tmp_path / "a.gz"))) == ["plain"]


def test_gzip_cut_off_or_flipped(tmp_path: Path) -> None:
    complete = gzip.compress(os.urandom(5000))
    for broken in (complete[:-900], complete[:3], complete[:-8] + bytes(8)):
        (tmp_path / "a.gz").write_bytes(broken)
        with pytest.raises(DataError, match=r"a\.gz cannot be decompressed"):
            read_lines(str(tmp_path / "a.gz"))


def test_standard_input_is_spooled() -> None:
    code = (
        "from regard.seq2seq.data import read_lines\n"
        "found = read_lines('-')\n"
        "print(ascii([found.path, found[2], found[0], found[1], len(found)]))"
    )
    text = "één\r\ntwo\u2028\nthree".encode()
    done = subprocess.run([sys.executable, "-c", code], input=text, capture_output=True, check=True)
    assert done.stdout.decode().strip() == ascii(["standard input", "three", "één", "two\u2028", 3])


@pytest.mark.parametrize("packed", [False, True])
def test_pipes_are_spooled(path: Path, packed: bool) -> None:
    text = b"a\nb\n" * 40_000
    os.mkfifo(path)
    writer = threading.Thread(
        target=path.write_bytes, args=(gzip.compress(text) if packed else text,)
    )
    writer.start()
    found = read_lines(str(path))
    writer.join()
    assert len(found) == 80_000
    assert found[79_998:] == ["a", "b"]


def test_missing_files_name_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "train.tsv").touch()
    with pytest.raises(DataError, match=r"trian\.tsv.*Did you mean .*train\.tsv\?"):
        read_lines(str(tmp_path / "trian.tsv"))
    with pytest.raises(DataError, match="Check the path"):
        read_lines(str(tmp_path / "zzz"))
    (tmp_path / "corpus").mkdir()
    with pytest.raises(DataError, match=r"corpsu does not exist.*Did you mean .*corpus\?"):
        read_lines(str(tmp_path / "corpsu" / "train.tsv"))
    with pytest.raises(DataError, match="is a folder"):
        read_lines(str(tmp_path))


def test_files_are_closed_when_forgotten(path: Path) -> None:
    path.write_text("a\n")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        read_lines(str(path))
    assert len(os.listdir("/proc/self/fd")) <= before
