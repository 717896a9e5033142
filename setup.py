"""The C kernels. Everything else is in pyproject.toml."""

from setuptools import Extension, setup

# Optional: without a compiler the installation succeeds and plain PyTorch serves. No -ffast-math:
# linked in, it would turn on flush-to-zero for the whole process.
setup(
    ext_modules=[
        Extension(
            "regard.attention.kernels._native",
            [
                "regard/attention/kernels/additive.c",
                "regard/attention/kernels/distances.c",
                "regard/attention/kernels/dropped.c",
                "regard/attention/kernels/gru.c",
                "regard/attention/kernels/heads.c",
                "regard/attention/kernels/own.c",
                "regard/attention/kernels/rounded.c",
                "regard/attention/kernels/step.c",
                "regard/attention/kernels/threads.c",
                "regard/attention/kernels/tokens.c",
            ],
            extra_compile_args=[
                "-O3", "-std=c11", "-pthread", "-fopenmp-simd",
                "-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math",
            ],
            extra_link_args=["-pthread", "-ldl"],
            optional=True,
        )
    ]
)  # fmt: skip
