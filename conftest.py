"""Shapes are types: in the tests every call is checked against its annotations."""

import os
import signal
from collections.abc import Iterator

import jaxtyping
import pytest

import tests.checker  # noqa: F401  # the hook finds it by name

os.environ.setdefault("KERAS_BACKEND", "torch")
# Plain bfloat16 code is a yardstick here. Some virtual machines advertise AMX and die of it.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")
if os.environ.get("REGARD_SHAPES") == "off":
    collect_ignore: list[str] = []
else:
    jaxtyping.install_import_hook("regard", "tests.checker.check")
    collect_ignore = ["tests/compiled"]  # torch.compile cannot look through the checks
# Importing it imports Triton, which must be told before whether to interpret its kernels.
collect_ignore.append("regard/attention/kernels/additive_triton.py")
if os.environ.get("TRITON_INTERPRET") != "1":
    collect_ignore.append("tests/interpreted")


@pytest.fixture
def unchecked() -> Iterator[None]:
    """Switch the checks off, for what calls a function thousands of times."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


# What a shell starts in the background does not hear Ctrl-C, nor does what that starts; tests of
# interrupts must, wherever they run.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
