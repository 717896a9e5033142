"""A build that fails says so where it must not, and never leaves what was built before."""

import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

TOP = Path(__file__).parents[2]
NATIVE = Path("regard/native")
OWN = sysconfig.get_config_var("EXT_SUFFIX")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """What a build needs of the sources, with nothing built."""
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(TOP / name, tmp_path / name)
    built = shutil.ignore_patterns("_native_*.*", "__pycache__")
    shutil.copytree(TOP / NATIVE, tmp_path / NATIVE, ignore=built)
    return tmp_path


def build(tree: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Build in place, with a compiler that is not there."""
    kept = {name: value for name, value in os.environ.items() if name != "REGARD_REQUIRE_NATIVE"}
    return subprocess.run(
        [sys.executable, "setup.py", "build_ext", "--inplace"], cwd=tree,
        env=kept | {"CC": "/no/such/compiler"} | environment,
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_without_a_compiler_the_build_succeeds_with_nothing(tree: Path) -> None:
    done = build(tree)
    assert done.returncode == 0, done.stderr
    assert list(tree.rglob(f"*{OWN}*")) == []


def test_where_kernels_are_required_a_failed_build_is_an_error(tree: Path) -> None:
    done = build(tree, REGARD_REQUIRE_NATIVE="1")
    assert done.returncode != 0
    assert "/no/such/compiler" in done.stdout + done.stderr


def test_a_build_that_fails_leaves_nothing_of_the_one_before(tree: Path) -> None:
    own = tree / NATIVE / f"_native_any{OWN}"
    other = tree / NATIVE / "_native_any.cpython-310-x86_64-linux-gnu.so"
    for library in (own, other):
        library.write_text("a library")
        library.with_name(f"{library.name}.sha256").write_text("its digest")
    assert build(tree).returncode == 0
    assert not own.exists()
    assert not own.with_name(f"{own.name}.sha256").exists()
    assert other.exists()  # of an environment that shares this source tree


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler here")
def test_sources_cannot_be_compiled_without_their_hash(tree: Path) -> None:
    source = str(tree / NATIVE / "src" / "abi.c")
    done = subprocess.run(
        ["cc", "-fsyntax-only", source], capture_output=True, text=True, check=False
    )
    assert "build with setup.py" in done.stderr


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler here")
def test_a_wheel_has_each_library_with_its_digest(tree: Path) -> None:
    (tree / "regard" / "__init__.py").touch()
    variables = {"REGARD_REQUIRE_NATIVE": "1", "REGARD_CFLAGS": "-O0"}
    command = [sys.executable, "setup.py", "-q", "bdist_wheel"]
    subprocess.run(command, cwd=tree, env=os.environ | variables, check=True, capture_output=True)
    (wheel,) = (tree / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as opened:
        libraries = [name for name in opened.namelist() if name.endswith(OWN)]
        assert libraries
        for name in libraries:
            content, noted = opened.read(name), opened.read(f"{name}.sha256").decode()
            assert hashlib.sha256(content).hexdigest() == noted.strip()
            assert b"regard-abi:" in content
