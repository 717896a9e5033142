"""Damaged and forged files of memories: loaded as they were, or refused in one line.

    python -m tests.fuzz.memory_files 2000

Damage is what disks and people do: bytes cut off, flipped, swapped with another file's. A forgery
has a digest that is right, and names, shapes, dtypes or numbers that are not.
"""

import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from regard import Attention, Memory, MultiHead, masks, scores
from regard.attention.core.errors import MemoryFileError, RegardError
from regard.attention.memory_io import _digest

BATCH, KEYS, SIZE = 2, 5, 7
SECONDS = 10.0
"""What takes longer hangs."""


def owners() -> dict[str, Any]:
    torch.manual_seed(0)
    return {
        "dot": Attention(scores.Dot()),
        "additive": Attention(scores.Additive(SIZE, SIZE, 11)),
        "bilinear": Attention(scores.Bilinear(SIZE, SIZE)),
        "fertility": Attention(
            scores.Coverage(scores.LocationAware(SIZE, SIZE, 11), fertility=2.0, key_size=SIZE)
        ),
        "heads": MultiHead(lambda: Attention(scores.Additive(2, 2, 3)), 4, SIZE, SIZE, 2),
        "groups": MultiHead(Attention, 4, SIZE, SIZE, 2, 2),
    }


MASKS: list[Callable[[], masks.Mask | None]] = [
    lambda: None,
    lambda: masks.Lengths([3, KEYS]),
    lambda: masks.Causal() | masks.Prefix(2),
    lambda: ~masks.Window(1) & masks.Lengths([3, KEYS]),
    lambda: masks.Blocks([[0, 0, 1, 1, 1]] * BATCH, [[0, 1, 1]] * BATCH),
    lambda: masks.Dense(torch.tensor([[[True, True, False, True, True]]])),
]


class Case:
    """A file and the answer that it gives."""

    def __init__(self, owner: Any, mask: masks.Mask | None, path: Path, seed: int) -> None:
        torch.manual_seed(seed)
        self.owner, self.path = owner, path
        self.queries = torch.randn(BATCH, 3, SIZE)
        keys = torch.randn(BATCH, KEYS, SIZE)
        keys[0, -1, 0] = torch.nan if seed % 5 == 0 else 1.0
        memory = owner.prepare(keys, torch.randn(BATCH, KEYS, SIZE), mask)
        if seed % 3 == 0 and mask is not None:
            memory.erase([1])
        memory.save(path)
        self.answer = self.read()

    def read(self) -> Tensor:
        with torch.no_grad():
            return self.owner.read(self.queries, Memory.load(self.path, self.owner)).context


def damage(case: Case, other: Case, draw: random.Random) -> str:
    """Do to a file what happens to files; what it was."""
    content = bytearray(case.path.read_bytes())
    kind = draw.choice(["cut", "flip", "header", "zero", "insert", "swap", "empty", "half swapped"])
    place = draw.randrange(len(content))
    if kind == "cut":
        content = content[:place]
    elif kind == "flip":
        content[place] ^= 1 << draw.randrange(8)
    elif kind == "header":
        content[draw.randrange(min(len(content), 600))] = draw.randrange(256)
    elif kind == "zero":
        content[place : place + 64] = bytes(len(content[place : place + 64]))
    elif kind == "insert":
        content[place:place] = draw.randbytes(draw.randrange(1, 40))
    elif kind == "swap":
        content = bytearray(other.path.read_bytes())
    elif kind == "empty":
        content = bytearray()
    else:
        content[place:] = other.path.read_bytes()[place:]
    case.path.write_bytes(content)
    return "swap" if content == other.path.read_bytes() else kind


def forge(case: Case, draw: random.Random) -> str:
    """Write a file with a digest that is right and something in it that is not."""
    with safetensors.safe_open(case.path, framework="pt") as file:
        metadata = file.metadata()
        tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
    kind = draw.choice(["lose", "shape", "dtype", "rename", "add", "number", "mask", "sizes"])
    name = draw.choice(sorted(tensors))
    if kind == "lose":
        del tensors[name]
    elif kind == "shape":
        tensors[name] = reshaped(tensors[name], draw)
    elif kind == "dtype":
        dtypes = [torch.int64, torch.bool, torch.float64, torch.bfloat16, torch.uint8]
        tensors[name] = tensors[name].to(draw.choice(dtypes))
    elif kind == "rename":
        tensors[draw.choice(["kept/e^2k", "prepared/../x", "mask", "", "a\x1b"])] = tensors.pop(
            name
        )
    elif kind == "add":
        tensors[draw.choice(["kept/reach", "prepared/more", "values2"])] = torch.zeros(3)
    elif kind == "number":
        flat = tensors[name].reshape(-1)
        if flat.numel():
            flat[draw.randrange(flat.numel())] = 1 if flat.dtype == torch.bool else -99
    elif kind == "mask":
        metadata["mask"] = draw.choice(HOSTILE)
    else:
        metadata["sizes"] = draw.choice(["[]", "[1,2,3]", "{}", "[-1, 7]", "[1e9, 7]", "null", "["])
    del metadata["digest"]
    whole = {name: tensor.contiguous().clone() for name, tensor in tensors.items()}
    metadata["digest"] = _digest(metadata, whole)
    safetensors.torch.save_file(whole, case.path, metadata)
    return f"forged {kind}"


HOSTILE = [
    "[" * 50_000,
    '{"kind":' * 30_000,
    "1e999",
    "NaN",
    '"Causal"',
    json.dumps({"kind": ["Causal"], "fields": {}}),
    json.dumps({"kind": "Causal", "fields": {"x": 1}}),
    json.dumps({"kind": "Window", "fields": {"before": 10**30, "after": -1}}),
    json.dumps({"kind": "Prefix", "fields": {"size": 10**30}}),
    json.dumps({"kind": "Prefix", "fields": {"size": True}}),
    json.dumps({"kind": "Lengths", "fields": {"limits": {"tensor": "values"}}}),
    json.dumps({"kind": "Dense", "fields": {"allowed": {"tensor": "prepared/keys"}}}),
    json.dumps({"kind": "Not", "fields": {"inner": None}}),
    json.dumps({"kind": "__class__", "fields": {}}),
]


def reshaped(tensor: Tensor, draw: random.Random) -> Tensor:
    how = draw.choice(["shorter", "longer", "flat", "axis", "empty", "wider"])
    if how == "flat" or not tensor.ndim:
        return tensor.reshape(-1)
    axis = draw.randrange(tensor.ndim)
    if how == "shorter":
        return tensor.narrow(axis, 0, tensor.shape[axis] // 2)
    if how in ("longer", "wider"):
        return torch.cat([tensor, tensor], -1 if how == "wider" else axis)
    return tensor[None] if how == "axis" else tensor.narrow(axis, 0, 0)


def outcome(case: Case, kind: str) -> str:
    """`refused`, `as it was`, or `read`: another answer, of a file that somebody forged."""
    start, message = time.monotonic(), ""
    try:
        found = case.read()
        same = torch.equal(found.nan_to_num(7.5), case.answer.nan_to_num(7.5))
        result = "as it was" if same else "read"
    except RegardError as error:
        result = "refused" if isinstance(error, MemoryFileError) else type(error).__name__
        message = str(error)
    assert "\n" not in message, (kind, message)
    assert time.monotonic() - start < SECONDS, kind
    # Who forges a mask of other lengths is told when it is read; damage is told at once.
    assert kind.startswith("forged") or result in ("refused", "as it was", "ForeignMemoryError"), (
        kind, result,
    )  # fmt: skip
    return result


def run(count: int, directory: Path, seed: int = 0) -> Counter[tuple[str, str]]:
    """So many files, each damaged or forged; how often which outcome."""
    draw, seen = random.Random(seed), Counter[tuple[str, str]]()
    makers = sorted(owners().items())
    for number in range(count):
        _, owner = draw.choice(makers)
        mask = draw.choice(MASKS)()
        case = Case(owner, mask, directory / "memory", number)
        other = Case(owner, mask, directory / "other", number + 1)
        kind = damage(case, other, draw) if number % 2 else forge(case, draw)
        if kind == "swap":
            case.answer = other.answer  # a whole file of another memory is that memory
        case.queries = other.queries if kind == "swap" else case.queries
        seen[kind, outcome(case, kind)] += 1
    return seen


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    with TemporaryDirectory() as directory:
        seen = run(count, Path(directory))
    for (kind, result), number in sorted(seen.items()):
        print(f"{number:6}  {kind:16} {result}")  # noqa: T201
    print(f"{count} files: no traceback, none over {SECONDS:g} s, no damage unnoticed")  # noqa: T201


if __name__ == "__main__":
    main()
