"""Run the kernels' tests and the fuzz with C that reports what it must not do.

    make sanitize

The C sources are built for AVX-512, AVX2 and any processor with AddressSanitizer and
UndefinedBehaviorSanitizer, in a copy of the package, so that nothing of it is left behind. First
two faults are made on purpose: a run that would not report them proves nothing.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).parents[2]
FOLDER = TOP / "build" / "sanitize"
COPIED = ("regard", "tests", "conftest.py", "pyproject.toml", "setup.py", "README.md", "LICENSE")
CHECKS = "-fsanitize=address,undefined"
FUZZ = ["tests/fuzz/test_direct.py", "tests/fuzz/test_reads.py"]
CASES = "150"
FAULTS = """
import torch
from regard.native import loader
assert loader.level() == {level}, loader.level()
held = torch.ones(64)
loader.require().regard_l2_normalize(held.data_ptr(), held.data_ptr(), 1.0, 9, 8, 1)
loader.require().regard_l2_normalize(held.data_ptr() + 2, held.data_ptr(), 1.0, 1, 8, 1)
"""
REPORT = re.compile(r"runtime error:.*|ERROR: AddressSanitizer.*")


def main() -> int:
    """0 if everything passed, and nothing was reported."""
    build()
    if len(kinds := reports_of([sys.executable, "-c", FAULTS.format(level=best())], "faults")) < 2:
        print(f"faults made on purpose were not reported: {kinds}")
        return 1
    (FOLDER / "counted").unlink(missing_ok=True)
    pytest = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow"]
    failed, found = [], []
    for name, arguments in (("kernels", ["-n", "2", *kernel_tests()]), ("fuzz", FUZZ)):
        found += reports_of([*pytest, *arguments], name, failed)
    for report in sorted(set(found))[:20]:
        print(report)
    counted = (FOLDER / "counted").read_text()
    print(
        f"{counted} comparisons with float64, {len(found)} reports, failed: {failed or 'nothing'}"
    )
    return int(bool(found or failed or int(counted) < 10_000))


def build() -> None:
    """The libraries, in a copy of what they need."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    left_out = shutil.ignore_patterns("_native_*.so*", "__pycache__")
    for name in COPIED:
        if (TOP / name).is_dir():
            shutil.copytree(TOP / name, FOLDER / name, ignore=left_out)
        else:
            shutil.copy(TOP / name, FOLDER / name)
    flags = f"-g -O1 -fno-omit-frame-pointer {CHECKS} -fsanitize-recover=all"
    variables = {"REGARD_REQUIRE_NATIVE": "1", "REGARD_CFLAGS": flags, "LDFLAGS": CHECKS}
    command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
    subprocess.run(command, cwd=FOLDER, env=os.environ | variables, check=True)


def kernel_tests() -> list[str]:
    """The tests that ask whether there is C; those of the loader load libraries of their own."""
    files = (path.relative_to(TOP) for path in sorted((TOP / "tests").rglob("test_*.py")))
    others = ("tests/fuzz", "tests/native/test_loader.py")
    return [
        str(path)
        for path in files
        if "usable()" in (TOP / path).read_text()
        and not any(path.is_relative_to(other) for other in others)
    ]


def best() -> int:
    """The level of this processor, by the package as it is."""
    asked = "from regard.native import loader; print(loader.level())"
    return int(subprocess.check_output([sys.executable, "-c", asked], cwd=TOP))


def reports_of(command: list[str], name: str, failed: list[str] | None = None) -> list[str]:
    """What is reported while a command runs; it is noted if the command fails."""
    logs = FOLDER / "reports" / name
    logs.mkdir(parents=True)
    # With C++'s own library, so that the sanitizer finds what throws torch's exceptions.
    libraries = " ".join(_found(name) for name in ("libasan.so", "libstdc++.so"))
    options = f"halt_on_error=0:log_path={logs}/report"
    variables = {
        "LD_PRELOAD": libraries, "ASAN_OPTIONS": f"detect_leaks=0:{options}",
        "UBSAN_OPTIONS": f"print_stacktrace=1:{options}",
        "OMP_NUM_THREADS": "1", "REGARD_FUZZ": CASES, "REGARD_FUZZ_COUNT": str(FOLDER / "counted"),
    }  # fmt: skip
    done = subprocess.run(command, cwd=FOLDER, env=os.environ | variables, check=False)
    if done.returncode and failed is not None:
        failed.append(name)
    return [line for log in logs.iterdir() for line in REPORT.findall(log.read_text())]


def _found(library: str) -> str:
    return subprocess.check_output(["cc", f"-print-file-name={library}"], text=True).strip()


if __name__ == "__main__":
    sys.exit(main())
