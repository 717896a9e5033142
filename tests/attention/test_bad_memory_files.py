"""A file is a memory that this attention prepared, or it is refused."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import safetensors.torch
import torch

from regard import Attention, Memory, masks, scores
from regard.attention.core.errors import ForeignMemoryError, MemoryFileError, OptionError
from regard.attention.memory_io import _digest
from tests.attention.error_cases import (
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

    def remap_keys(self, source, keys, fresh=True):
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
     ForeignMemoryError, "the parameters were updated since these keys were prepared",
     "Prepare the keys again, then save."),
    ("without an attention", lambda path: ownerless.save(path / "memory"), ForeignMemoryError,
     "this memory was prepared by no attention.", "Make one: Attention(…).prepare(…)."),
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


FORMAT = "regard memory 2"
MARK = {
    "format": FORMAT,
    "fingerprint": dot.fingerprint(),
    "mask": "null",
    "sizes": json.dumps([SIZE, VALUE]),
}
PARTS = {"values": values, "prepared/keys": keys}
LOAD = "Load what memory.save(path) of this version wrote."
AGAIN = "Save the memory again."
UNREAD = "cannot be read as safetensors: "
CUT = "It is truncated or of another kind: save the memory again."


def forged(change: dict | None = None, lost: str = "", **metadata: str) -> Callable[[Path], Memory]:
    """Load a file that somebody made, with a digest that is right."""
    # Cloned: safetensors refuses tensors that share storage, and such as do not lie in line.
    tensors = {name: each.clone().contiguous() for name, each in (PARTS | (change or {})).items()}
    tensors.pop(lost, None)
    texts = {name: text for name, text in {**MARK, **metadata}.items() if name != lost}
    return foreign(tensors, **texts, digest=_digest(texts, tensors))


def mask_of(kind: str, change: dict | None = None, **fields: object) -> Callable[[Path], Memory]:
    return forged(change, mask=json.dumps({"kind": kind, "fields": fields}))


def tensor(name: str) -> dict[str, str]:
    return {"tensor": name}


DEEP = "[" * 100_000
NEGATIVE = {"limits": torch.tensor([-3, 5])[:, None, None]}
OUTSIDE = {"source": torch.tensor([[0, 99]])}
CAUSAL = {"kind": "Causal", "fields": {}}


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
     f"holds 'other tensors', not '{FORMAT}'.", LOAD),
    ("from the future", foreign(PARTS, format="regard memory 7"), MemoryFileError,
     f"holds 'regard memory 7', not '{FORMAT}'.", LOAD),
    ("before this version", foreign(PARTS, format="regard memory 1"), MemoryFileError,
     f"holds 'regard memory 1', not '{FORMAT}'.", LOAD),
    ("no digest", foreign(PARTS, **MARK), MemoryFileError,
     "is damaged: KeyError('digest').", AGAIN),
    ("another digest", foreign(PARTS, **MARK, digest="0"), MemoryFileError,
     "its content has another SHA-256 than when it was saved", AGAIN),
    ("no fingerprint", forged(lost="fingerprint"), MemoryFileError,
     "is damaged: KeyError('fingerprint').", AGAIN),
    ("no keys", forged(lost="prepared/keys"), MemoryFileError, "it has nothing of the keys", AGAIN),
    ("no values", forged(lost="values"), MemoryFileError,
     "is damaged: KeyError('values').", AGAIN),
    ("a name too many", forged({"prepared/room": keys}), MemoryFileError,
     "it has keys, room of the keys", AGAIN),
    ("what was once cached", forged({"kept/e^2k": keys}), MemoryFileError,
     "it holds kept/e^2k, which belong to no memory", AGAIN),
    ("fewer values than keys", forged({"values": values[:, :2]}), MemoryFileError,
     "its keys have shape", AGAIN),
    ("another batch", forged({"prepared/keys": keys[:1].repeat(7, 1, 1)}), MemoryFileError,
     "its keys have shape", AGAIN),
    ("one axis", forged({"values": values[0, 0]}), MemoryFileError, "its values have shape", AGAIN),
    ("other sizes", forged(sizes="[3, 4]"), MemoryFileError, "its values have shape", AGAIN),
    ("sizes of no machine", forged(sizes=f"[{10**30}, 4]"), MemoryFileError, "a size is ", AGAIN),
    ("sizes in words", forged(sizes='["a", 4]'), MemoryFileError, "a size is 'a'", AGAIN),
    ("whole numbers", forged({"values": values.long()}), MemoryFileError, "is damaged", AGAIN),
    ("keys in float64", forged({"prepared/keys": keys.double()}), MemoryFileError,
     "its keys have shape", AGAIN),
    ("faults of another length", forged({"nonfinite_keys": torch.ones(2, 1, 3, dtype=torch.bool)}),
     MemoryFileError, "its flags of non-finite pairs have shape (2, 1, 3)", AGAIN),
    ("faults that are numbers", forged({"nonfinite_values": torch.ones(2, 1, 5)}),
     MemoryFileError, "its flags of non-finite pairs have shape", AGAIN),
    ("half a mask", forged(mask="{"), MemoryFileError, "is damaged: JSONDecodeError(", AGAIN),
    ("a deep mask", forged(mask=DEEP), MemoryFileError, "is damaged: RecursionError(", AGAIN),
    ("a list for a mask", forged(mask="[1]"), MemoryFileError, "is damaged: TypeError(", AGAIN),
    ("a mask unheard of", mask_of("Spiral"), MemoryFileError,
     "is damaged: KeyError('Spiral').", AGAIN),
    ("a mask without its field", mask_of("Lengths"), MemoryFileError, "'limits'", AGAIN),
    ("a mask without its tensor", mask_of("Lengths", limits=tensor("gone")),
     MemoryFileError, "is damaged: KeyError('gone').", AGAIN),
    ("negative lengths", mask_of("Lengths", NEGATIVE, limits=tensor("limits")), MemoryFileError,
     "lengths go down to -3", AGAIN),
    ("lengths that are no tensor", mask_of("Lengths", limits=3), MemoryFileError,
     "is damaged", AGAIN),
    ("a window in words", mask_of("Window", before="two", after=1), MemoryFileError,
     "before", AGAIN),
    ("a negative prefix", mask_of("Prefix", size=-1), MemoryFileError, "size", AGAIN),
    ("half of an and", mask_of("And", left=CAUSAL, right=7), MemoryFileError,
     "7 is in the place of a mask", AGAIN),
    ("moved from nowhere",
     mask_of("RemappedMask", OUTSIDE, inner=CAUSAL, source=tensor("source"), keys=2, fresh=True),
     MemoryFileError, "a mask has key 99 of 2", AGAIN),
    ("by other keys", forged(fingerprint="0"), ForeignMemoryError,
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
