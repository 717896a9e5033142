"""The C kernels. Everything else is in pyproject.toml."""

from pathlib import Path

from setuptools import Extension, setup

KERNELS = Path("regard/attention/kernels")

# Optional: without a compiler the installation succeeds and plain PyTorch serves. No -ffast-math:
# linked in, it would turn on flush-to-zero for the whole process.
setup(
    ext_modules=[
        Extension(
            "regard.attention.kernels._native",
            sorted(str(path) for path in KERNELS.glob("*.c")),
            depends=sorted(str(path) for path in KERNELS.glob("*.h")),
            extra_compile_args=[
                "-O3", "-std=c11", "-pthread", "-fopenmp-simd",
                "-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math",
            ],
            extra_link_args=["-pthread", "-ldl"],
            optional=True,
        )
    ]
)  # fmt: skip
