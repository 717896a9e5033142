"""The Triton kernels are there for a GPU, and nobody else pays for them."""

import os
import subprocess
import sys
from importlib.util import find_spec
from types import SimpleNamespace

import pytest
import torch
from torch._subclasses import FakeTensorMode

from regard import errors, kernels
from regard.attention.kernels import (
    AdditiveComparison,
    Request,
    SoftmaxRule,
    View,
    triton_loader,
)
from regard.attention.masks import PairIndex

READS = """
import sys, torch
from regard import Attention, kernels, scores
attention, words = Attention(scores.Additive(4, 4, 8)), torch.randn(2, 3, 4, requires_grad=True)
attention(words, words, words).context.sum().backward()
attention.read(words, attention.prepare(words, words)).weights
kernels.available()
assert "triton" not in sys.modules
"""

COMPILES = """
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from regard.attention.kernels import additive_triton

KINDS = {"temperature": "fp32", "allowed": "*i1", "hidden": "i32", "size": "i32", "stride": "i32"}

def kind(name):
    if name.startswith("which"):
        return "*i64"
    return KINDS.get(name, "i32" if name.endswith(("_count", "_row", "_column")) else "*fp32")

for name in ("_scores", "_read", "_query_gradients", "_key_gradients"):
    kernel = getattr(additive_triton, name)
    sides = dict(additive_triton.TILE)
    if name == "_read":
        sides["SIZE"] = additive_triton.MAX_VALUE_SIZE
    signature = {each: "constexpr" if each in sides else kind(each) for each in kernel.arg_names}
    fixed = {(kernel.arg_names.index(side),): length for side, length in sides.items()}
    for target in (GPUTarget("cuda", 80, 32), GPUTarget("hip", "gfx942", 64)):
        triton.compile(ASTSource(kernel, signature, fixed), target=target)
"""


def _assert_runs(code: str, **environment: str) -> None:
    kept = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    subprocess.run([sys.executable, "-c", code], check=True, env=kept | environment)


def test_without_a_gpu_triton_is_not_imported() -> None:
    _assert_runs(READS)


@pytest.mark.skipif(find_spec("triton") is None, reason="Triton is for Linux")
def test_the_kernels_compile_for_nvidia_and_amd(tmp_path) -> None:
    """To machine code, which needs no GPU; what it computes is asked of the interpreter."""
    _assert_runs(COMPILES, TRITON_CACHE_DIR=str(tmp_path))


def _request(device: str) -> Request:
    """Of tensors that have a device and a shape, and no numbers."""
    with FakeTensorMode():
        queries, v = torch.empty(2, 3, 5, device=device), torch.empty(1, 1, 5, device=device)
    view = View(PairIndex(3, 3, queries.device))
    return Request(AdditiveComparison(queries, queries, v), SoftmaxRule(), queries, view, {})


def test_on_a_gpu_it_needs_triton(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triton_loader, "FOUND", True)
    assert kernels.AdditiveKernel().refusals(_request("cuda")) == []
    monkeypatch.setattr(triton_loader, "FOUND", False)
    with (
        kernels.using(kernels.AdditiveKernel()),
        pytest.raises(errors.KernelError, match=r"needs Triton, which was not found; it is in reg"),
    ):
        kernels.dispatch(_request("cuda"))


def test_other_devices_are_refused() -> None:
    (reason,) = kernels.AdditiveKernel().refusals(_request("meta"))
    assert reason == "it is for a CPU or a CUDA device, and the keys are on meta"


def test_the_kernels_say_what_serves_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(triton_loader, "FOUND", False)
    assert "; on a GPU, the reference: Triton was not found" in kernels.available()["additive"]
    monkeypatch.setattr(triton_loader, "FOUND", True)
    monkeypatch.setitem(sys.modules, "triton", SimpleNamespace(__version__="3.7.1"))
    assert kernels.available()["additive"].endswith("; on a GPU, Triton 3.7.1")
