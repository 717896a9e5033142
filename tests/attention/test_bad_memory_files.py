"""A file is a memory that this attention prepared, or it is refused."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import safetensors.torch
import torch

from regard import Attention, Memory, masks, scores
from regard.attention.errors import ForeignMemoryError, MemoryFileError, OptionError
from tests.attention.wrong import (
    BATCH,
    QUERIES,
    SIZE,
    VALUE,
    Wrong,
    assert_refuses,
    keys,
    queries,
    table,
    values,
)

pytestmark = pytest.mark.usefixtures("unchecked")

dot = Attention(scores.Dot())
ownerless = Memory({"keys": keys}, values, None, {}, None, None)


def memory(mask: masks.Mask | None = None) -> Memory:
    return dot.prepare(keys, values, mask)


def moved() -> Memory:
    """A memory whose attention has learned since."""
    learning = Attention(scores.Bilinear(SIZE, SIZE))
    memory = learning.prepare(keys, values)
    with torch.no_grad():
        learning.score.weight.add_(1.0)
    return memory


class Own(masks.Mask):
    """A mask that is none of the library's own."""

    def allows(self, pairs):
        return torch.ones(1, 1, 1, dtype=torch.bool)

    def rewire(self, source, keys, fresh=True):
        return self

    def check(self, shape, device):
        pass


@table(
    ("no such directory", lambda path: memory().save(path / "no" / "memory"), MemoryFileError,
     "cannot be written: ", "Give a file in a directory that exists."),
    ("a directory", lambda path: memory().save(path), MemoryFileError,
     "cannot be written: ", "Give a file in a directory that exists."),
    ("a mask of one's own", lambda path: memory(Own()).save(path / "memory"), MemoryFileError,
     "a mask of kind Own cannot be saved.", "give it with each read."),
    ("after a step of the optimiser", lambda path: moved().save(path / "memory"),
     ForeignMemoryError, "the parameters have moved since these keys were prepared",
     "Prepare the keys anew, then save."),
    ("without an attention", lambda path: ownerless.save(path / "memory"), ForeignMemoryError,
     "this memory was prepared by no attention.", "Make it by Attention(…).prepare(…)."),
)  # fmt: skip
def test_saves(wrong: Wrong, tmp_path: Path) -> None:
    assert_refuses(wrong._replace(do=lambda: wrong.do(tmp_path)))
    assert not list(tmp_path.iterdir())


def load(change: Callable[[bytes], bytes]) -> Callable[[Path], Memory]:
    """Load a memory whose file was changed."""

    def loaded(path: Path) -> Memory:
        memory(masks.Lengths([3, 5])).save(path / "memory")
        (path / "memory").write_bytes(change((path / "memory").read_bytes()))
        return Memory.load(path / "memory", dot)

    return loaded


def foreign(tensors: dict, **metadata: str) -> Callable[[Path], Memory]:
    """Load a file that something else has written."""

    def loaded(path: Path) -> Memory:
        safetensors.torch.save_file(tensors, path / "memory", metadata or None)
        return Memory.load(path / "memory", dot)

    return loaded


MARK = {"format": "regard memory 1", "fingerprint": dot.fingerprint(), "mask": "null"}
PARTS = {"values": values, "prepared/keys": keys}
AGAIN = "Save the memory again."
UNREAD = "cannot be read as safetensors: "
CUT = "It is cut off or of another kind: save the memory again."


def mask_of(kind: str, **fields: object) -> dict[str, str]:
    return {**MARK, "mask": json.dumps({"kind": kind, "fields": fields})}


@table(
    ("nothing there", lambda path: Memory.load(path / "memory", dot), MemoryFileError,
     "there is no file at ", "Write one first: memory.save(path)."),
    ("a directory", lambda path: Memory.load(path, dot), MemoryFileError,
     "there is no file at ", "Write one first: memory.save(path)."),
    ("cut off", load(lambda data: data[:-20]), MemoryFileError, UNREAD, CUT),
    ("cut short", load(lambda data: data[:5]), MemoryFileError, UNREAD, CUT),
    ("empty", load(lambda _: b""), MemoryFileError, UNREAD, CUT),
    ("a text", load(lambda _: b"keys and values " * 7), MemoryFileError, UNREAD, CUT),
    ("a model", foreign({"weight": keys}), MemoryFileError,
     "holds 'other tensors', not 'regard memory 1'.", "Load what memory.save(path) wrote."),
    ("from the future", foreign(PARTS, format="regard memory 7"), MemoryFileError,
     "holds 'regard memory 7', not 'regard memory 1'.", "Load what memory.save(path) wrote."),
    ("no fingerprint", foreign(PARTS, format="regard memory 1"), MemoryFileError,
     "is damaged: KeyError('fingerprint').", AGAIN),
    ("no keys", foreign({"values": values}, **MARK), MemoryFileError,
     "is damaged: KeyError('keys').", AGAIN),
    ("no values", foreign({"prepared/keys": keys}, **MARK), MemoryFileError,
     "is damaged: KeyError('values').", AGAIN),
    ("half a mask", foreign(PARTS, **{**MARK, "mask": "{"}), MemoryFileError,
     "is damaged: JSONDecodeError(", AGAIN),
    ("a mask unheard of", foreign(PARTS, **mask_of("Spiral")), MemoryFileError,
     "is damaged: KeyError('Spiral').", AGAIN),
    ("a mask without its field", foreign(PARTS, **mask_of("Lengths")), MemoryFileError,
     "is damaged: KeyError('limits').", AGAIN),
    ("a mask without its tensor", foreign(PARTS, **mask_of("Lengths", limits={"tensor": "gone"})),
     MemoryFileError, "is damaged: KeyError('gone').", AGAIN),
    ("by other keys", foreign(PARTS, **{**MARK, "fingerprint": "0"}), ForeignMemoryError,
     "were prepared by a score with other options or parameters.", "Load that attention's state"),
    ("for nobody", lambda path: Memory.load(path, None), OptionError,
     "a memory cannot be loaded for None.", "Memory.load(path, attention)."),
    ("for a class", lambda path: Memory.load(path, Attention), OptionError,
     "a memory cannot be loaded for the class Attention.", "Memory.load(path, attention)."),
)  # fmt: skip
def test_loads(wrong: Wrong, tmp_path: Path) -> None:
    assert_refuses(wrong._replace(do=lambda: wrong.do(tmp_path)))


def test_another_attention_cannot_load_it(tmp_path: Path) -> None:
    memory().save(tmp_path / "memory")
    assert_refuses(Wrong(
        "foreign", lambda: Memory.load(tmp_path / "memory", Attention(scores.Cosine())),
        ForeignMemoryError, "were prepared by a score with other options or parameters.",
        "or prepare the keys again with this one.",
    ))  # fmt: skip
    loaded = Memory.load(tmp_path / "memory", Attention(scores.Dot()))
    assert loaded.read(queries).context.shape == (BATCH, QUERIES, VALUE)
