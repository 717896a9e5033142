"""What was measured where and when: a result without these says nothing."""

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).parents[1]
FLAGS = ("avx2", "fma", "avx512f", "avx512bw", "avx512_bf16", "amx_tile", "asimd", "sve")
"""What a CPU can do that kernels look at."""


def machine() -> dict[str, object]:
    """The hardware and the system, without names of hosts or people."""
    flags = set(_cpu_line("flags").split() or _cpu_line("Features").split())
    return {
        "cpu": _cpu_line("model name") or platform.processor() or platform.machine(),
        "cores": _cores(),
        "flags": [flag for flag in FLAGS if flag in flags],
        "memory": _memory("MemTotal"),
        "system": f"{platform.system()} {platform.release().split('-')[0]}",
        "libc": " ".join(platform.libc_ver()).strip(),
        "load": [round(load, 2) for load in os.getloadavg()],
    }


def versions() -> dict[str, str]:
    """Of everything that runs in this environment."""
    found = {name: metadata.version(name) for name in ("regard", "torch", "numpy")}
    return {"python": platform.python_version(), **found}


def date() -> str:
    """Now, in UTC, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def commit() -> str:
    """Which state of the code; says so if the library differs from it."""
    head = _git("rev-parse", "--short=12", "HEAD")
    changed = _git("status", "--porcelain", "--", "regard", "benchmarks/*.py", "benchmarks/*.c")
    return f"{head or 'unknown'}{' with changes' if changed else ''}"


def free_memory() -> int:
    """Bytes that can be had without pushing anyone out."""
    return _memory("MemAvailable")


def _cores() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def _cpu_line(name: str) -> str:
    info = Path("/proc/cpuinfo")
    for line in info.read_text().splitlines() if info.exists() else []:
        if line.split(":")[0].strip() == name:
            return line.split(":", 1)[1].strip()
    return ""


def _memory(name: str) -> int:
    info = Path("/proc/meminfo")
    for line in info.read_text().splitlines() if info.exists() else []:
        if line.startswith(name + ":"):
            return int(line.split()[1]) * 1024
    return 0


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(ROOT), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
