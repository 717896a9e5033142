"""The C kernels. Everything else is in pyproject.toml."""

import platform
from pathlib import Path

from setuptools import Extension, setup

KERNELS = Path("regard/attention/kernels")
X86 = platform.machine().lower() in ("x86_64", "amd64")
LEVELS = {"any": [], "avx2": ["-mavx2", "-mfma"], "avx512": ["-mavx512f", "-mfma"]}
"""The same sources for each kind of processor; `kernels/native.py` picks one when it is needed."""

# Optional: without a compiler the installation succeeds and plain PyTorch serves. No -ffast-math:
# linked in, it would turn on flush-to-zero for the whole process.
setup(
    ext_modules=[
        Extension(
            f"regard.attention.kernels._native_{level}",
            sorted(str(path) for path in KERNELS.glob("*.c")),
            depends=sorted(str(path) for path in KERNELS.glob("*.h")),
            extra_compile_args=[
                "-O3", "-std=c11", "-pthread", "-fopenmp-simd",
                "-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math", *flags,
            ],
            extra_link_args=["-pthread", "-ldl"],
            optional=True,
        )
        for level, flags in LEVELS.items()
        if X86 or not flags
    ]
)  # fmt: skip
