"""The command: `python -m benchmarks [NAME …]`, `--list`, `report`."""

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks import report, results, suite
from benchmarks.measure import FailedError
from benchmarks.settings import Settings

DOCS = Path(__file__).parents[1] / "docs"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what was named, or everything; then write the pages."""
    options = parsed(arguments)
    if options.list:
        for name in (*suite.NAMES, *suite.TOOLKIT):
            print(f"{name:<16} {suite.title_of(name)}")
        return 0
    folder = Path(options.out) if options.out else None
    if folder is None:
        quick = options.quick and options.names != ["report"]
        folder = Path(tempfile.mkdtemp(prefix="regard-bench-")) if quick else results.RESULTS
    data = Path(options.data) if options.data else None
    settings = Settings(options.quick, options.threads, not options.no_peers, data)
    for name in options.names or suite.NAMES:
        try:
            if name != "report":
                ran(name, settings, folder, Path(options.raw) if options.raw else None)
        except FailedError as error:
            print(f"{name}: {error}", file=sys.stderr)
            return 2
    if not options.names or "report" in options.names:
        docs = DOCS if folder == results.RESULTS else folder
        print(f"wrote {shown(pages(folder, docs))}")
    return 0


def pages(folder: Path, docs: Path) -> Path:
    """The pages of a folder's results, without pictures for this repository's other machines."""
    others = {
        other.name: f"../benchmarks/results/{other.name}/benchmarks.md"
        for other in sorted(folder.iterdir())
        if folder == results.RESULTS and other.is_dir()
    }
    pictures = results.RESULTS not in folder.resolve().parents
    return report.write(results.read(folder), docs, others, pictures=pictures)


def ran(name: str, settings: Settings, folder: Path, raw: Path | None) -> None:
    """Run one benchmark, and write its file."""
    print(f"{name}: {suite.title_of(name)}", file=sys.stderr, flush=True)
    began = time.perf_counter()
    result = suite.measured(name, settings)
    path = results.write(folder, result)
    if raw is not None:
        results.write_raw(raw, result)
    print(f"{name}: {time.perf_counter() - began:.0f} s, wrote {shown(path)}", flush=True)
    for held in result["promises"]:
        print("  " + report.format_promise(held))


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options; the error for a wrong name lists the right ones."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    known = (*suite.NAMES, *suite.TOOLKIT, "report")
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="which to run; those of attention if none"
    )
    parser.add_argument("--list", action="store_true", help="say which there are")
    parser.add_argument(
        "--quick", action="store_true",
        help="few repetitions of small cases, written to a temporary folder: to see that all runs",
    )  # fmt: skip
    parser.add_argument("--threads", type=_counts, default=(1, 2), help="such as 1,2")
    parser.add_argument("--no-peers", action="store_true", help="install and start no peer")
    parser.add_argument("--data", metavar="FOLDER", help="Multi30k, for those of the toolkit")
    parser.add_argument("--out", metavar="FOLDER", help="where to write, instead")
    parser.add_argument("--raw", metavar="FOLDER", help="write every round there, too")
    options = parser.parse_args(arguments)
    for name in options.names:
        if name not in known:
            parser.error(f"there is no benchmark {name!r}; there are {', '.join(known)}")
    return options


def shown(path: Path) -> str:
    """A path, relative if it is below the working directory."""
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


def _counts(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))


if __name__ == "__main__":
    sys.exit(main())
