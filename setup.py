"""The C extension. Everything else is in pyproject.toml."""

import os
import platform
import runpy
from pathlib import Path
from types import SimpleNamespace

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

NATIVE = Path("regard/native")
X86 = platform.machine().lower() in ("x86_64", "amd64")

# Optional: without a compiler the installation succeeds and plain PyTorch serves.
REQUIRED = os.environ.get("REGARD_REQUIRE_NATIVE") == "1"
MORE_FLAGS = os.environ.get("REGARD_CFLAGS", "").split()

# By its path: importing it from the package would import torch, which is not installed yet.
abi = SimpleNamespace(**runpy.run_path(str(NATIVE / "abi.py")))


class BuildNative(build_ext):
    """Always builds from scratch, and writes the digest of each library beside it."""

    def run(self) -> None:
        """Delete earlier builds: a failed build must not leave one that would be taken as new."""
        folders = [Path(self.build_lib) / NATIVE, *([NATIVE] if self.inplace else [])]
        for folder in folders:
            for level in abi.LEVELS:
                library = folder / abi.library_path(level).name
                library.unlink(missing_ok=True)
                abi.digest_path(library).unlink(missing_ok=True)
        self.force = True  # modification times do not show objects of other flags
        super().run()

    def build_extension(self, ext: Extension) -> None:
        """Build it, and write its digest beside it."""
        super().build_extension(ext)
        library = Path(self.get_ext_fullpath(ext.name))
        abi.digest_path(library).write_text(abi.digest(library.read_bytes()) + "\n")

    def copy_extensions_to_source(self) -> None:
        """Copy the digests, too: an editable installation loads libraries from the source tree."""
        super().copy_extensions_to_source()
        for ext in self.extensions:
            built = abi.digest_path(Path(self.build_lib) / self.get_ext_filename(ext.name))
            if built.exists():
                self.copy_file(str(built), str(NATIVE / built.name))


setup(
    cmdclass={"build_ext": BuildNative},
    ext_modules=[
        Extension(
            f"regard.native._native_{level}",
            [str(path) for path in abi.sources() if path.suffix == ".c"],
            depends=[str(path) for path in abi.sources() if path.suffix == ".h"],
            include_dirs=[str(NATIVE / "src")],
            define_macros=[("REGARD_ABI", f'"{abi.abi_hash(level)}"')],
            extra_compile_args=[*abi.FLAGS, *flags, *MORE_FLAGS],
            extra_link_args=["-pthread", "-ldl"],
            optional=not REQUIRED,
        )
        for level, flags in abi.LEVELS.items()
        if X86 or not flags
    ],
)
