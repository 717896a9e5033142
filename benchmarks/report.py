"""The pages that people read: made of the JSON and the benchmarks' docstrings, and nothing else."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks import headlines, plots, suite, tables
from benchmarks.results import Result, Row
from benchmarks.tables import number

HEADER = """# Benchmarks

`make bench` measures, and writes these pages from `benchmarks/results`. No figure is written by
hand. All on a CPU; medians.
"""

READING = """## How to read the tables

Contestants take turns, round after round, so that whatever slows the machine slows all of them. A
time is the median of all rounds; in parentheses are the 10th and the 90th percentile. Under a
peer's name stands how many times as long as regard it took in the same round: above 1, regard is
faster. Where one of several peers is bold, it is the fastest of them, and the one that regard is
compared with. CPU time sums all threads. *Share of the limit* is the time that the bare arithmetic
of a case takes at the machine's measured limit, divided by the time that the case took.

`python -m benchmarks --list` names the benchmarks, and `python -m benchmarks NAME` runs one. The
JSON has one row a case, with machine, versions and commit; `--raw FOLDER` keeps every round, too.
"""

QUICK = (
    "**This is a quick run of small cases**, made to see that everything works. "
    "Its figures say nothing."
)


def write(
    results: Mapping[str, Result],
    docs: Path,
    others: Mapping[str, str] | None = None,
    *,
    pictures: bool = True,
) -> Path:
    """The front page, and a page a topic in the folder `benchmarks` beside it.

    Args:
        results: By name.
        docs: The folder of the front page; pictures go to its folder `images`.
        others: Front pages of other machines: links by name.
        pictures: Draw them, too.
    """
    drawn = plots.draw(results, docs / "images") if pictures else {}
    written = {"benchmarks.md": front(results, others or {})}
    for topic in suite.TOPICS:
        if text := page(topic, results, drawn):
            written[f"benchmarks/{topic}.md"] = text
    for old in (docs / "benchmarks").glob("*.md"):
        if f"benchmarks/{old.name}" not in written:
            old.unlink()
    (docs / "benchmarks").mkdir(parents=True, exist_ok=True)
    for name, text in written.items():
        temporary = docs / f"{name}.part"
        temporary.write_text(text)
        os.replace(temporary, docs / name)
    return docs / "benchmarks.md"


def front(results: Mapping[str, Result], others: Mapping[str, str]) -> str:
    """The front page: a line a topic, the machines, what was missed, how to read the rest."""
    found = [results[n] for _, names in suite.TOPICS.values() for n in names if n in results]
    parts = [HEADER]
    if any(result["quick"] for result in found):
        parts.append(QUICK + "\n")
    if found:
        parts.append(_headlines(results))
    machines = {json.dumps(_lasting(result), sort_keys=True): result for result in found}
    if machines:
        parts.append("## Machines\n\n" + "\n".join(map(_machine, machines.values())) + "\n")
    if others:
        links = ", ".join(f"[{name}]({link})" for name, link in others.items())
        parts.append(f"The same attention benchmarks on other processors: {links}.\n")
    held = [promise for result in found for promise in result["promises"]]
    if held:
        parts.append("## Targets\n\n" + _missed(held))
    return "\n".join([*parts, READING])


def page(topic: str, results: Mapping[str, Result], pictures: Mapping[str, Sequence[str]]) -> str:
    """The page of a topic; empty if nothing was measured for it."""
    title, names = suite.TOPICS[topic]
    found = [results[name] for name in names if name in results]
    if not found:
        return ""
    parts = [f"# {title}\n\n[All benchmarks, and how to read the tables](../benchmarks.md)\n"]
    if any(result["quick"] for result in found):
        parts.append(QUICK + "\n")
    parts += [f"- {line}" for line in headlines.of(results).get(topic, ())]
    parts += [""] if len(parts) > 1 else []
    several = len({result["machine"]["cpu"] for result in results.values()}) > 1
    parts += [_section(result, pictures.get(result["name"], ()), several) for result in found]
    return "\n".join(parts)


def format_promise(promise: Row) -> str:
    """One promise as one line."""
    bound = promise["bound"].replace("_", " ")
    wanted = f"{promise['what']}: {bound} {number(promise['needed'])}"
    if promise["worst"] is None:
        return f"{wanted}; not measured"
    verdict = "met" if promise["met"] else "MISSED"
    return f"{wanted}; worst of {promise['rows']} rows {number(promise['worst'])}; {verdict}"


def _headlines(results: Mapping[str, Result]) -> str:
    lines = headlines.of(results)
    rows = [
        [f"[{title}](benchmarks/{topic}.md)", "; ".join(lines.get(topic, ()))]
        for topic, (title, names) in suite.TOPICS.items()
        if any(name in results for name in names)
    ]
    rows.sort(key=lambda row: not row[1])  # those without a line last
    return tables.table(["topic", "result"], rows)


def _missed(promises: Sequence[Row]) -> str:
    met = sum(promise["met"] for promise in promises)
    text = f"{met} of {len(promises)} targets are met; each topic's page has its own.\n"
    missed = [promise for promise in promises if not promise["met"]]
    return text + ("\n" + _promises(missed) if missed else "")


def _promises(promises: Sequence[Row]) -> str:
    lines = []
    for promise in promises:
        bound = {"at_least": "≥", "at_most": "≤"}[promise["bound"]]
        worst, verdict = "not measured", "–"
        if promise["worst"] is not None:
            worst, verdict = number(promise["worst"]), "yes" if promise["met"] else "**no**"
        needed = f"{bound} {number(promise['needed'])}"
        lines.append([promise["what"], needed, worst, str(promise["rows"]), verdict])
    return tables.table(["target", "needed", "worst row", "rows", "met"], lines)


def _section(result: Result, pictures: Sequence[str], several: bool) -> str:
    title = suite.title_of(result["name"]).rstrip(".")
    shown = [f"![{title}](../images/{picture})" for picture in pictures]
    parts = [f"## {title}", suite.text_of(result["name"]), *shown, tables.of(result)]
    if result["promises"]:
        parts.append(_promises(result["promises"]))
    parts.append(_signature(result, several))
    return "\n\n".join(part.strip() for part in parts if part) + "\n"


def _signature(result: Result, several: bool) -> str:
    """Date, commit and versions; and the machine, if there are results of several."""
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
