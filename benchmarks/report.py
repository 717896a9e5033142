"""The page that people read: tables and pictures made of the JSON, and of nothing else."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks import plots, tables
from benchmarks.results import Result, Row
from benchmarks.suite import NAMES, TOOLKIT
from benchmarks.tables import number

HEADER = """# Benchmarks

`make bench` runs these measurements and writes this page from what they found, which is kept as
JSON in `benchmarks/results`. No figure here comes from elsewhere. `python -m benchmarks --list`
names the single ones, and `python -m benchmarks NAME` runs one. Other machines have pages of their
own, in folders of `benchmarks/results`.

How to read the tables. Contestants take turns, round after round, so that whatever slows the
machine slows all of them. A time is the median of all rounds; in parentheses, a tenth of the rounds
lies below the first number and a tenth above the second. Under a peer's name stands how many times
as long as regard it took in the same round: above one, regard is quicker. Where one of several
peers is bold, it is the quickest of them, and the one that regard is held to. CPU time is that of
all threads together. *Share of the limit* is the time that the bare arithmetic of a case takes at
the machine's own limit, which is measured in the same rounds, over the time that it took.
"""

QUICK = (
    "**This is a quick run of small cases**, made to see that everything works. "
    "Its figures say nothing."
)


def write(results: Mapping[str, Result], docs: Path) -> Path:
    """The page, and its pictures beside it in `images`."""
    pictures = plots.draw(results, docs / "images")
    docs.mkdir(parents=True, exist_ok=True)
    page, temporary = docs / "benchmarks.md", docs / ".benchmarks.md"
    temporary.write_text(text(results, pictures))
    os.replace(temporary, page)
    return page


def text(results: Mapping[str, Result], pictures: Mapping[str, Sequence[str]]) -> str:
    """All of the page."""
    known = [results[name] for name in (*NAMES, *TOOLKIT) if name in results]
    parts = [HEADER]
    if any(result["quick"] for result in known):
        parts.append(QUICK + "\n")
    machines = {json.dumps(_lasting(result), sort_keys=True): result for result in known}
    if machines:
        parts.append("## The machine\n\n" + "\n".join(map(_machine, machines.values())) + "\n")
    held = [promise for result in known for promise in result["promises"]]
    if held:
        parts.append("## What was promised\n\n" + _promises(held))
    several = len({result["machine"]["cpu"] for result in known}) > 1
    parts += [_section(result, pictures.get(result["name"], ()), several) for result in known]
    return "\n".join(parts)


def told(promise: Row) -> str:
    """One promise in one line."""
    bound = promise["bound"].replace("_", " ")
    wanted = f"{promise['what']}: {bound} {number(promise['needed'])}"
    if promise["worst"] is None:
        return f"{wanted}; not measured"
    verdict = "holds" if promise["met"] else "MISSED"
    return f"{wanted}; worst of {promise['rows']} rows {number(promise['worst'])}; {verdict}"


def _promises(promises: Sequence[Row]) -> str:
    lines = []
    for promise in promises:
        bound = {"at_least": "≥", "at_most": "≤"}[promise["bound"]]
        worst, verdict = "not measured", "–"
        if promise["worst"] is not None:
            worst, verdict = number(promise["worst"]), "yes" if promise["met"] else "**no**"
        needed = f"{bound} {number(promise['needed'])}"
        lines.append([promise["what"], needed, worst, str(promise["rows"]), verdict])
    return tables.table(["what", "needed", "worst row", "rows", "holds"], lines)


def _section(result: Result, pictures: Sequence[str], several: bool) -> str:
    shown = [f"![{result['title']}](images/{picture})" for picture in pictures]
    parts = [f"## {result['title']}", result["text"], *shown, tables.of(result)]
    parts.append(_signature(result, several))
    return "\n\n".join(part.strip() for part in parts if part) + "\n"


def _signature(result: Result, several: bool) -> str:
    """When, what and with whom; and on which machine, if the page has several."""
    sides = dict(result["versions"])
    names = [f"Python {sides['here']['python']}"] if "here" in sides else []
    sides.pop("regard", None)  # the environment that this ran from
    for side, versions in sides.items():
        found = ", ".join(f"{name} {v}" for name, v in versions.items() if name != "python")
        names.append(found if side == "here" else f"{side}: {found}")
    load = result["machine"].get("load")
    return (
        f"*{result['date']}, "
        + (f"{result['machine']['cpu']}, " if several else "")
        + f"commit {result['commit']}"
        + (", quick" if result["quick"] else "")
        + (f", load before {number(load[0])}" if load else "")
        + f". {'; '.join(dict.fromkeys(names))}.*"
    )


def _lasting(result: Result) -> Row:
    return {name: value for name, value in result["machine"].items() if name != "load"}


def _machine(result: Result) -> str:
    found = result["machine"]
    memory = f"{found['memory'] / 2**30:.0f} GiB of memory"
    flags = ", ".join(found["flags"]) or "no vector units that we look for"
    return (
        f"- {found['cpu']}, {found['cores']} cores ({flags}), {memory}, {found['system']}, "
        f"{found['libc']}"
    )
