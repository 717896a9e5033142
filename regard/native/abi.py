"""What a compiled library was built from: a hash that the build puts in and the loader checks.

It covers the C sources, the flags they are compiled with, and `signatures.py`, which declares how
they are called. Standard library only: setup.py runs this file by its path, without torch.
"""

import hashlib
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

FOLDER = Path(__file__).parent
SOURCE = FOLDER / "src"

# No -ffast-math: linked in, it would turn on flush-to-zero for the whole process. No -g: a library
# is read whole before it is loaded.
FLAGS = (
    "-O3", "-g0", "-std=c11", "-pthread", "-fopenmp-simd",
    "-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math",
)  # fmt: skip
LEVELS = {"any": (), "avx2": ("-mavx2", "-mfma"), "avx512": ("-mavx512f", "-mfma")}
"""The same sources for each instruction set: the flags that let the compiler use it."""

MARKER = "regard-abi:"
"""What precedes the hash in a library: see abi.c."""


def sources() -> list[Path]:
    """The C files and their headers."""
    return sorted(SOURCE.rglob("[!.]*.[ch]"))


def abi_hash(level: str) -> str:
    """The hash of a library of this level that is built from what is installed."""
    return hashlib.sha256(repr((_contents(), FLAGS, LEVELS[level])).encode()).hexdigest()


@cache
def _contents() -> list[tuple[str, str]]:
    """Each file's path and digest."""
    files = [*sources(), FOLDER / "signatures.py"]
    return [
        (path.relative_to(FOLDER).as_posix(), hashlib.sha256(path.read_bytes()).hexdigest())
        for path in files
    ]


def library_path(level: str) -> Path:
    """Where a library for this interpreter is, if it was built; another's is never taken."""
    return FOLDER / f"_native_{level}{EXTENSION_SUFFIXES[0]}"


def digest_path(library: Path) -> Path:
    """The file beside a library with the SHA-256 of its bytes, which shows damage."""
    return library.with_name(f"{library.name}.sha256")


def digest(content: bytes) -> str:
    """The SHA-256 of a library's bytes."""
    return hashlib.sha256(content).hexdigest()
