"""Only a library that is whole, of this interpreter and of these sources is ever loaded.

Each case runs in a process of its own: to load a damaged library may end it by a signal.
"""

import hashlib
import json
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import regard
from regard.native import loader
from regard.native.eligibility import usable

pytestmark = pytest.mark.skipif(not usable(), reason="the C extension was not built")

OWN = sysconfig.get_config_var("EXT_SUFFIX")
READS = """
import json, warnings
import torch, regard
from regard import Attention, attend, kernels, scores

def reads():
    torch.manual_seed(3)
    queries, keys, values = (torch.randn(2, 3, 37, 8, requires_grad=True) for _ in range(3))
    for score in (scores.ScaledDot(), scores.Gaussian(), scores.Additive(8, 8, 16)):
        context = Attention(score)(queries, keys, values).context
        yield from (context.detach(), *torch.autograd.grad(context.square().sum(), queries))
        with torch.no_grad():
            yield Attention(score)(queries[..., :1, :], keys, values).context

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    found, _ = list(reads()), list(reads())
    with kernels.using(kernels.Reference()):
        truth = list(reads())
print(json.dumps({
    "from": regard.__file__,
    "error": max(float((a - b).abs().max()) for a, b in zip(found, truth)),
    "warnings": [f"{each.category.__name__}: {each.message}" for each in caught],
    "available": kernels.available(),
}))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The compiled code of a copy of the package, its libraries included."""
    left_out = shutil.ignore_patterns("__pycache__", "seq2seq", "tasks", "cli")
    shutil.copytree(Path(regard.__file__).parent, tmp_path / "regard", ignore=left_out)
    return tmp_path / "regard" / "native"


def libraries(folder: Path) -> Iterator[Path]:
    found = sorted(folder.glob(f"_native_*{OWN}"))
    assert found
    yield from found


def read_with(folder: Path) -> dict[str, Any]:
    """What reads give, by the copy of the package; they are right, whatever was done to it."""
    top = folder.parents[1]
    command = [sys.executable, "-c", READS]
    done = subprocess.run(command, cwd=top, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"ended by {done.returncode}: {done.stderr[-2000:]}"
    report = json.loads(done.stdout)
    assert Path(report["from"]).is_relative_to(top)
    assert report["error"] < 1e-4
    return report


def assert_refused(folder: Path, reason: str) -> None:
    report = read_with(folder)
    (warning,) = report["warnings"]
    assert warning.startswith("NativeLibraryWarning: ")
    assert reason in warning
    assert "pip install --force-reinstall --no-deps" in warning
    assert reason in report["available"]["additive"]
    assert reason in report["available"]["dot_softmax"]


def sealed(library: Path) -> None:
    """Note what the library holds, as the build would."""
    digest = hashlib.sha256(library.read_bytes()).hexdigest()
    library.with_name(f"{library.name}.sha256").write_text(digest)


def test_as_built_it_is_loaded_without_a_warning(folder: Path) -> None:
    report = read_with(folder)
    assert report["warnings"] == []
    assert report["available"]["dot_softmax"] == f"C, {loader.LEVELS[loader.level()]}"


@pytest.mark.parametrize("share", [0.0, 0.0002, 0.1, 0.5, 0.9, 0.9999])
def test_a_truncated_library_is_refused(folder: Path, share: float) -> None:
    for library in libraries(folder):
        content = library.read_bytes()
        library.write_bytes(content[: int(share * len(content))])
    assert_refused(folder, "is damaged")


def test_a_library_of_the_right_length_that_was_not_written_whole_is_refused(folder: Path) -> None:
    for library in libraries(folder):
        content = library.read_bytes()
        half = len(content) // 2
        library.write_bytes(content[:half] + bytes(len(content) - half))
    assert_refused(folder, "is damaged")


def test_one_damaged_level_leaves_the_next_lower_one(folder: Path) -> None:
    *_, best = (library for library in libraries(folder))
    if len(list(libraries(folder))) == 1 or loader.level() < 2:
        pytest.skip("this processor has but one")
    best.write_bytes(best.read_bytes()[:-1])
    report = read_with(folder)
    assert len(report["warnings"]) == 1
    assert report["available"]["dot_softmax"].startswith(
        f"C, {loader.LEVELS[loader.level() - 1]}; "
    )
    assert "is damaged" in report["available"]["dot_softmax"]


def append(folder: Path, name: str, text: str) -> None:
    with (folder / name).open("a") as file:
        file.write(text)


def other_abi(folder: Path) -> None:
    """Libraries whose own build noted another hash: of other sources, by any compiler."""
    for library in libraries(folder):
        content = library.read_bytes()
        at = content.index(b"regard-abi:") + len(b"regard-abi:")
        library.write_bytes(content[:at] + bytes(content[at : at + 8][::-1]) + content[at + 8 :])
        sealed(library)


TAMPERED: dict[str, Callable[[Path], None]] = {
    "another hash": other_abi,
    "a changed source": lambda folder: append(
        folder, "src/attention/distance_softmax.c", "/* changed */\n"
    ),
    "a changed header": lambda folder: append(folder, "src/simd.h", "/* changed */\n"),
    "one more source": lambda folder: append(folder, "src/another.c", "int another;\n"),
    "one source less": lambda folder: (folder / "src/nn/l2_normalize.c").unlink(),
    "changed signatures": lambda folder: append(folder, "signatures.py", "# changed\n"),
    "changed flags": lambda folder: append(folder, "abi.py", "FLAGS = (*FLAGS, '-O1')\n"),
}


@pytest.mark.parametrize("how", TAMPERED)
def test_a_library_of_other_sources_is_refused(folder: Path, how: str) -> None:
    TAMPERED[how](folder)
    assert_refused(folder, "was built from other sources")


def test_without_sources_nothing_vouches_for_a_library(folder: Path) -> None:
    for source in folder.rglob("*.[ch]"):
        source.unlink()
    assert_refused(folder, "the C sources that it is compared with are not installed")


def test_without_its_digest_a_library_is_refused(folder: Path) -> None:
    for library in libraries(folder):
        library.with_name(f"{library.name}.sha256").unlink(missing_ok=True)
    assert_refused(folder, "cannot be read")


@pytest.mark.parametrize(
    "digest", [b"", b"\xff\x00\xfe", b"0" * 64], ids=["empty", "bytes", "other"]
)
def test_with_a_damaged_digest_a_library_is_refused(folder: Path, digest: bytes) -> None:
    for library in libraries(folder):
        library.with_name(f"{library.name}.sha256").write_bytes(digest)
    assert_refused(folder, "is damaged")


RAISES = """
import torch, warnings
from regard import attend, kernels
warnings.simplefilter("error")
words = torch.randn(3, 4)
try:
    attend(words, words, words)
except kernels.NativeLibraryWarning:
    attend(words, words, words)
else:
    raise SystemExit("there was no warning")
"""


def test_where_warnings_are_errors_the_first_read_raises_and_others_are_served(
    folder: Path,
) -> None:
    append(folder, "src/attention/distance_softmax.c", "/* changed */\n")
    subprocess.run([sys.executable, "-c", RAISES], cwd=folder.parents[1], check=True)


def test_libraries_of_other_interpreters_are_not_looked_at(folder: Path) -> None:
    for library in libraries(folder):
        other = library.with_name(library.name.replace(OWN, ".cpython-310-x86_64-linux-gnu.so"))
        other.write_bytes(library.read_bytes()[:4096])
        library.with_name(library.name.replace(OWN, ".a.so")).write_bytes(b"")
    report = read_with(folder)
    assert report["warnings"] == []
    assert report["available"]["dot_softmax"].startswith("C, ")


def test_what_was_not_built_is_no_reason_for_a_warning(folder: Path) -> None:
    for library in libraries(folder):
        library.rename(library.with_name(library.name.replace(OWN, ".cpython-310.so")))
    report = read_with(folder)
    assert report["warnings"] == []
    assert "not built" in report["available"]["dot_softmax"]
