"""What can become of a run's folder: files lost, spoilt, swapped, or put there by somebody."""

import hashlib
import json
import os
import re
import shutil
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import safetensors.torch
import torch

HUGE = 1 << 42
DEEP = 100_000
NUMBERS = (0, -1, 1, 2, 7, 2**31, 2**63, 2**64, 10**30, -(2**63), 0.5, 1e9, 1e308, 5e-324)
TEXTS = ("", "x", "\n", "a\nb", "\x1b[31m", "../..", "/dev/zero", "\u2028", "a" * 5000, "translate")
TOML = (
    "0", "-1", "1", "3", "nan", "inf", "-inf", "1e308", "1e-320", "1000000000", "9" * 5000,
    "0x" + "f" * 9000, "true", "false", '""', '"x"', "[]", "{}", "[[[[[[]]]]]]", "1979-05-27",
    '"\\u001b"', '"../../.."', '"/dev/zero"', '"cuda:99"', '"meta"', "[" * 3000, '{a.b.c = 1}',
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Scene:
    """A run that is damaged, another that things are swapped with, and a folder outside."""

    run: Path
    other: Path
    outside: Path
    draw: Random

    def file(self) -> Path:
        """Any file of the run."""
        return self.draw.choice(self.files())

    def files(self) -> list[Path]:
        return sorted(path for path in self.run.rglob("*") if path.is_file())

    def checkpoints(self) -> list[Path]:
        return sorted((self.run / "checkpoints").iterdir())

    def checkpoint(self) -> Path:
        """Often the last, or the best."""
        return self.draw.choice(self.checkpoints()[-3:])


Damage = Callable[[Scene], str]
"""Does it, and says in a few words what was done; "forged …" where hashes were made to fit."""

DAMAGES: list[Damage] = []


def damage(act: Damage) -> Damage:
    DAMAGES.append(act)
    return act


@damage
def delete(scene: Scene) -> str:
    path = scene.file()
    path.unlink()
    return f"deleted {path.name}"


@damage
def truncate(scene: Scene) -> str:
    path = scene.file()
    os.truncate(path, scene.draw.randrange(path.stat().st_size + 1))
    return f"truncated {path.name}"


@damage
def flip(scene: Scene) -> str:
    path = scene.file()
    content = bytearray(path.read_bytes())
    for _ in range(scene.draw.choice((1, 1, 1, 2, 20))):
        if content:
            content[scene.draw.randrange(len(content))] ^= 1 << scene.draw.randrange(8)
    path.write_bytes(content)
    return f"flipped bits of {path.name}"


@damage
def flip_text(scene: Scene) -> str:
    """The small files that are believed most."""
    path = scene.run / scene.draw.choice(("run.toml", "source.json", "target.json", "log.jsonl"))
    content = bytearray(path.read_bytes())
    content[scene.draw.randrange(len(content))] = scene.draw.randrange(32, 127)
    path.write_bytes(content)
    return f"changed a byte of {path.name}"


@damage
def append(scene: Scene) -> str:
    path = scene.file()
    with path.open("ab") as file:
        file.write(scene.draw.randbytes(scene.draw.choice((1, 100, 10_000))))
    return f"appended to {path.name}"


@damage
def swap_files(scene: Scene) -> str:
    path, other = scene.file(), scene.file()
    first, second = path.read_bytes(), other.read_bytes()
    path.write_bytes(second)
    other.write_bytes(first)
    return f"swapped {path.name} with {other.name}"


@damage
def take_file(scene: Scene) -> str:
    """A file of another run in the place of its own."""
    path = scene.file()
    there = scene.other / path.relative_to(scene.run)
    if there.is_file():
        shutil.copyfile(there, path)
    return f"took {path.name} of another run"


@damage
def take_checkpoint(scene: Scene) -> str:
    path = scene.checkpoint()
    there = scene.other / "checkpoints" / path.name
    if there.is_dir():
        shutil.rmtree(path)
        shutil.copytree(there, path)
    return "took a checkpoint of another run"


@damage
def rename_checkpoint(scene: Scene) -> str:
    path = scene.checkpoint()
    step = scene.draw.choice(("00000000", "00000007", "00000099", "9" * 18, "9" * 30, "٠٠٠٠٠٠٠٩"))
    with suppress(OSError):
        path.rename(path.with_name(f"step-{step}"))
    return f"renamed a checkpoint to {step}"


@damage
def lose_checkpoints(scene: Scene) -> str:
    lost = scene.checkpoints()[-scene.draw.randrange(1, 4) :]
    for path in lost:
        shutil.rmtree(path)
    return f"lost {len(lost)} checkpoints"


def _pipe(path: Path, scene: Scene) -> None:
    os.mkfifo(path)


def _socket(path: Path, scene: Scene) -> None:
    here = os.getcwd()
    with socket.socket(socket.AF_UNIX) as made, suppress(OSError):
        os.chdir(path.parent)  # a socket's path has a hundred characters at most
        try:
            made.bind(path.name)
        finally:
            os.chdir(here)


def _link(path: Path, scene: Scene) -> None:
    names = ["mine.txt", "mine.json", "nothing", "checkpoint", "../..", "pipe"]
    path.symlink_to(scene.outside / scene.draw.choice(names))


def _device(path: Path, scene: Scene) -> None:
    path.symlink_to(scene.draw.choice(("/dev/zero", "/dev/null", "/dev/random", "/dev/stdin")))


def _folder(path: Path, scene: Scene) -> None:
    path.mkdir()
    if scene.draw.random() < 0.5:
        (path / "mine.txt").write_text("mine")


def _loop(path: Path, scene: Scene) -> None:
    path.symlink_to(path.name)


OTHERS = (_pipe, _socket, _link, _device, _folder, _loop)


@damage
def other_kind(scene: Scene) -> str:
    """Something that is no regular file, under the name of one."""
    path, make = scene.file(), scene.draw.choice(OTHERS)
    path.unlink()
    make(path, scene)
    return f"{make.__name__} as {path.name}"


@damage
def other_kind_of_folder(scene: Scene) -> str:
    path = scene.draw.choice([scene.run / "checkpoints", scene.checkpoint()])
    make = scene.draw.choice(OTHERS)
    shutil.move(path, scene.outside / "moved")
    make(path, scene)
    return f"{make.__name__} as {path.name}"


@damage
def leave_parts(scene: Scene) -> str:
    """Unfinished files, or links of such a name."""
    names = [
        "checkpoints/.step-00000007.part", "checkpoints/.step-00000013.part",
        f".run.toml.{os.getpid()}.part", f".card.md.{os.getpid()}.part", ".source.json.part",
    ]  # fmt: skip
    path, make = scene.run / scene.draw.choice(names), scene.draw.choice(OTHERS)
    make(path, scene)
    return f"{make.__name__} as {path.name}"


@damage
def gigantic(scene: Scene) -> str:
    path = scene.file()
    os.truncate(path, HUGE)
    return f"made {path.name} gigantic"


@damage
def other_content(scene: Scene) -> str:
    path = scene.file()
    content = scene.draw.choice(
        (b"", b"\0" * 100, b"[" * DEEP, b'{"a":' * DEEP, b"a." * 20_000 + b"a = 1", b"null", b"{}",
         b"[]", b"7" * 5000, b"\xff\xfe", b'"x"', b"a = " + b"{b = " * 9000, b"\n" * DEEP)
    )  # fmt: skip
    path.write_bytes(content)
    return f"{content[:8]!r} as {path.name}"


@damage
def edit_configuration(scene: Scene) -> str:
    path = scene.run / "run.toml"
    lines = path.read_text("utf-8").split("\n")
    places = [place for place, line in enumerate(lines) if re.match(r"\w+ = ", line)]
    place = scene.draw.choice(places)
    key, value = lines[place].split(" = ")[0], scene.draw.choice(TOML)
    lines[place] = f"{key} = {value}"
    path.write_text("\n".join(lines), "utf-8")
    return f"{key} = {value[:20]} in run.toml"


@damage
def edit_keys(scene: Scene) -> str:
    path = scene.run / "run.toml"
    lines = path.read_text("utf-8").split("\n")
    line = scene.draw.choice(
        ("[model]", "[decoding]", "new = 1", "[new]", "[model.new]", "", "a.b=1")
    )
    act = scene.draw.choice(("insert", "replace", "delete"))
    place = scene.draw.randrange(len(lines))
    lines[place : place + (act != "insert")] = [] if act == "delete" else [line]
    path.write_text("\n".join(lines), "utf-8")
    return f"{act} {line} in run.toml"


@damage
def edit_json(scene: Scene) -> str:
    """A value somewhere in a file of JSON; its hash no longer fits."""
    names = ["source.json", "target.json"]
    checkpoint = scene.checkpoint()
    paths = [*(scene.run / name for name in names), checkpoint / "record.json",
             checkpoint / "manifest.json", checkpoint / "manifest.json"]  # fmt: skip
    path = scene.draw.choice(paths)
    path.write_text(json.dumps(_mutated(json.loads(path.read_bytes()), scene.draw)))
    return f"edited {path.name}"


@damage
def forge_record(scene: Scene) -> str:
    """A value somewhere in each record, with hashes that fit."""
    chance = scene.draw.getrandbits(64)
    for checkpoint in scene.checkpoints():
        found = json.loads((checkpoint / "record.json").read_bytes())
        forge(checkpoint, "record.json", json.dumps(_mutated(found, Random(chance))).encode())
    return "forged record.json"


@damage
def forge_manifest(scene: Scene) -> str:
    """A manifest with a name that it should not have."""
    checkpoint = scene.checkpoint()
    path = checkpoint / "manifest.json"
    manifest = json.loads(path.read_bytes())
    name = scene.draw.choice(
        ("/dev/zero", "../record.json", "pipe", "", ".", "a/b", "manifest.json", "\0", "a\nb",
         "\udcff", "x" * 9999)
    )  # fmt: skip
    if name == "pipe":
        os.mkfifo(checkpoint / name)
    entry = {"sha256": "0" * 64, "bytes": scene.draw.choice((0, 1, HUGE, -1, 10**30))}
    manifest["files"][name] = entry
    path.write_text(json.dumps(manifest))
    return f"forged manifest.json with {name[:20]!r}"


@damage
def forge_tokenizer(scene: Scene) -> str:
    """A tokenizer with hostile pieces, and records that claim it."""
    name = scene.draw.choice(("source.json", "target.json"))
    path = scene.run / name
    described = json.loads(path.read_bytes())
    if scene.draw.random() < 0.5:
        described["pieces"][0] = scene.draw.choice(["a\nb", "\r", "\u2028", "\x1b[2J", "", "\ud800",
                                                    "<no token>", 7, None, ["a"]])  # fmt: skip
    else:
        described = _mutated(described, scene.draw)
    path.write_text(json.dumps(described))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    for checkpoint in scene.checkpoints():
        record = json.loads((checkpoint / "record.json").read_bytes())
        record["identity"]["data"][name] = digest
        forge(checkpoint, "record.json", json.dumps(record).encode())
    return f"forged {name}"


@damage
def forge_tensors(scene: Scene) -> str:
    """Tensors of other names, shapes, dtypes or values, with hashes that fit."""
    name = scene.draw.choice(("model.safetensors", "average.safetensors", "optimiser.safetensors"))
    how = scene.draw.choice(("extra", "missing", "renamed", "dtype", "shape", "empty", "nan"))
    for checkpoint in scene.checkpoints():
        if not (checkpoint / name).exists():
            return f"forged nothing: there is no {name}"
        tensors = safetensors.torch.load((checkpoint / name).read_bytes())
        key = scene.draw.choice(sorted(tensors))
        old = tensors[key]
        match how:
            case "extra":
                tensors["new"] = torch.ones(3)
            case "missing":
                del tensors[key]
            case "renamed":
                tensors["new"] = tensors.pop(key)
            case "dtype":
                tensors[key] = old.to(torch.float16)
            case "shape":
                tensors[key] = old[None].contiguous()
            case "empty":
                tensors.clear()
            case _:
                tensors[key] = (
                    torch.full_like(old, float("nan")) if old.is_floating_point() else old
                )
        forge(checkpoint, name, safetensors.torch.save(tensors))
    return f"forged {name}: {how}"


@damage
def forge_header(scene: Scene) -> str:
    """A safetensors file with an absurd header, and a hash that fits."""
    entry: dict[str, Any] = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}
    entry |= scene.draw.choice(
        ({"shape": [0, 1 << 62]}, {"shape": [1 << 40, 1 << 40]}, {"dtype": "F4"}, {"dtype": "F99"},
         {"shape": [-1]}, {"shape": []}, {"data_offsets": [4, 0]}, {"data_offsets": [0, 1 << 62]},
         {"shape": "x"}, {"dtype": None}, {"shape": [1] * 10_000})
    )  # fmt: skip
    header = json.dumps({"a": entry}).encode()
    length = scene.draw.choice((len(header), len(header), 0, 1 << 62, 7))
    content = length.to_bytes(8, "little") + header + b"\0" * 4
    for checkpoint in scene.checkpoints():
        forge(checkpoint, "model.safetensors", content)
    return "forged the header of model.safetensors"


def forge(checkpoint: Path, name: str, content: bytes) -> None:
    """Another file in a checkpoint, with its hash and size in the manifest."""
    (checkpoint / name).write_bytes(content)
    manifest = json.loads((checkpoint / "manifest.json").read_bytes())
    entry = {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    manifest["files"][name] = entry
    (checkpoint / "manifest.json").write_text(json.dumps(manifest))


def _mutated(value: Any, draw: Random) -> Any:
    """The same with one value in it, at any depth, put in another's place, taken out or added."""
    if isinstance(value, dict) and value and draw.random() < 0.85:
        key = draw.choice(sorted(value))
        act = draw.random()
        if act < 0.1:
            return {name: inner for name, inner in value.items() if name != key}
        if act < 0.15:
            return value | {draw.choice(TEXTS): draw.choice(NUMBERS)}
        return value | {key: _mutated(value[key], draw)}
    if isinstance(value, list) and value and draw.random() < 0.7:
        place = draw.randrange(len(value))
        return [*value[:place], _mutated(value[place], draw), *value[place + 1 :]]
    nested: list[Any] = []
    for _ in range(500):
        nested = [nested]
    others = [None, True, [], {}, nested, float("nan"), [1, 2], {"a": 1}]
    return draw.choice([*NUMBERS, *TEXTS, *others])
