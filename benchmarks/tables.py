"""Tables of a result's rows, one kind for each kind of row."""

import json
from collections.abc import Callable, Sequence

from benchmarks.limits import LABELS
from benchmarks.results import Result, Row

OURS = "regard"
LONG = 24
"""Tables with more rows are folded."""


def of(result: Result) -> str:
    """The table for these rows."""
    rows = result["rows"]
    if not rows:
        return ""
    if "rate" in rows[0]:
        return _limits(result)
    for mark, made in KINDS.items():
        if mark in rows[0]:
            return made(rows)
    return _race(rows) if rows[0]["case"] else _alone(rows)


def table(names: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A table in Markdown, without columns that are empty, folded if it is long."""
    used = [n for n, name in enumerate(names) if name and any(line[n] for line in lines)]
    written = ["| " + " | ".join(names[n] for n in used) + " |", "|" + "---|" * len(used)]
    written += ["| " + " | ".join(line[n] for n in used) + " |" for line in lines]
    text = "\n".join(written) + "\n"
    if len(lines) <= LONG:
        return text
    return f"<details>\n<summary>All {len(lines)} rows</summary>\n\n{text}\n</details>\n"


def line(rows: Sequence[Row]) -> str:
    """One case in one line: ours, and how many times as long the others took."""
    case = " ".join(_plain(value) for value in rows[0]["case"].values())
    return f"{case}: " + "; ".join(f"{row['who']} {_times(row)}" for row in rows)


def number(value: float) -> str:
    """To three digits, without powers of ten where people do not need them."""
    if value == 0 or 1e-3 <= abs(value) < 1e6:
        digits = f"{value:.3g}"
        return digits if "e" not in digits else f"{value:.0f}"
    return f"{value:.2g}"


def seconds(spread: dict[str, float]) -> str:
    """A time with its spread, in the unit that fits its median."""
    units = (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6))
    name, unit = next((u for u in units if spread["median"] >= u[1]), units[-1])
    return _spread(spread, lambda value: number(value / unit), f" {name}")


def ratio(spread: dict[str, float]) -> str:
    """So many times, with its spread."""
    return _spread(spread, number, " ×")


def size(count: float) -> str:
    """Bytes in the unit that fits."""
    return f"{number(count / 1e9)} GB" if count >= 1e9 else f"{number(count / 1e6)} MB"


def _spread(spread: dict[str, float], shown: Callable[[float], str], unit: str) -> str:
    return f"{shown(spread['median'])}{unit} ({shown(spread['low'])}–{shown(spread['high'])})"


def _race(rows: Sequence[Row]) -> str:
    """One line for each case: ours, how many times as long the others took, and our share."""
    cases: dict[str, dict[str, Row]] = {}
    for row in rows:
        cases.setdefault(json.dumps(row["case"]), {})[row["who"]] = row
    peers = [who for who in dict.fromkeys(row["who"] for row in rows) if who != OURS]
    keys, same = _varying([row["case"] for row in rows])
    limits = list(dict.fromkeys(name for row in rows for name in row.get("share", ())))
    shares = [f"share of the limit: {LABELS.get(name, name)}" for name in limits]
    everyone = [OURS, *peers]
    peaks = [f"peak of {who}" for who in everyone]
    paces = [f"{who}: {_unit(rows)} a CPU second" for who in everyone]
    scores = [f"{who}: BLEU" for who in everyone]
    names = [*keys, OURS, "CPU", *peers, *shares, "against one thread", *peaks, *paces, *scores]
    lines = []
    for sides in cases.values():
        ours = sides.get(OURS, {})
        line = [_plain(next(iter(sides.values()))["case"].get(key)) for key in keys]
        line += [_time(ours), seconds(ours["cpu"]) if "cpu" in ours else ""]
        line += [_times(sides.get(who)) for who in peers]
        line += [_share(ours, name) for name in limits]
        line.append(ratio(ours["over_one"]) if "over_one" in ours else "")
        line += [size(sides[w]["peak"]) if "peak" in sides.get(w, ()) else "" for w in everyone]
        line += [_pace(sides.get(who, {})) for who in everyone]
        line += [f"{sides[w]['bleu']:.2f}" if "bleu" in sides.get(w, ()) else "" for w in everyone]
        lines.append(line)
    constant = ", ".join(f"{name} {_plain(value)}" for name, value in same.items())
    parts = [f"In all rows: {constant}." if constant else "", table(names, lines), _failures(rows)]
    return "\n\n".join(part for part in parts if part)


def _pace(row: Row) -> str:
    return f"{row['pace']['median']:,.0f}" if "pace" in row else ""


def _unit(rows: Sequence[Row]) -> str:
    return next((row["pace"]["unit"] for row in rows if "pace" in row), "")


def _varying(cases: Sequence[Row]) -> tuple[list[str], Row]:
    """Which details of the cases differ, and what all have in common."""
    keys = dict.fromkeys(key for case in cases for key in case)
    values = {key: {json.dumps(case.get(key)) for case in cases} for key in keys}
    same = {key: cases[0][key] for key in keys if len(values[key]) == 1}
    return [key for key in keys if key not in same], same


def _plain(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _time(row: Row) -> str:
    return seconds(row["wall"]) if "wall" in row else "not run" if "failed" in row else ""


def _times(row: Row | None) -> str:
    """How many times as long; the time itself where there is none of ours to compare with."""
    if row is None:
        return ""
    if "times" not in row:
        return _time(row)
    return f"**{ratio(row['times'])}**" if row.get("better") else ratio(row["times"])


def _share(row: Row, limit: str) -> str:
    found = row.get("share", {}).get(limit)
    return "" if found is None else f"{number(100 * found['median'])} %"


def _failures(rows: Sequence[Row]) -> str:
    """Who did not run, and why; once for each reason."""
    reasons: dict[str, list[Row]] = {}
    for row in rows:
        if "failed" in row:
            reasons.setdefault(f"{row['who']}: {row['failed']}", []).append(row)
    return "\n".join(f"- {reason} ({len(same)} rows)" for reason, same in reasons.items())


def _alone(rows: Sequence[Row]) -> str:
    lines = [
        [
            f"`{row['who']}`", _time(row), seconds(row["cpu"]),
            ratio(row["against_torch"]) if "against_torch" in row else "",
        ]
        for row in rows
    ]  # fmt: skip
    return table(["what", "time", "CPU", "against torch"], lines)


def _limits(result: Result) -> str:
    threads = list(dict.fromkeys(row["threads"] for row in result["rows"]))
    found = {(row["label"], row["threads"]): row["rate"] for row in result["rows"]}
    lines = [
        [label, *(_spread(found[label, n], lambda v: number(v / 1e9), " G/s") for n in threads)]
        for label in dict.fromkeys(label for label, _ in found)
    ]
    names = ["a second", *(f"threads: {n}" for n in threads)]
    vectors = result["about"].get("vectors")
    return (f"In {vectors}.\n\n" if vectors else "") + table(names, lines)


def _accuracy(rows: Sequence[Row]) -> str:
    keys = list(rows[0]["case"])
    lines = []
    for row in rows:
        errors = [f"{row[side]:.2g}" for side in ("ours", "plain")]
        case = [_plain(row["case"][key]) for key in keys]
        lines.append([*case, row["of"], *errors, f"{number(row['times_as_wrong'])} ×"])
    sides = ["error of regard", "error of plain code", "times as wrong"]
    return table([*keys, "of", *sides], lines)


def _quality(rows: Sequence[Row]) -> str:
    """What a recipe reached, and at what cost."""
    lines = []
    for row in rows:
        ways = [(row[way]["BLEU"], row[way]["seconds"]) for way in ("scores", "int8", "greedy")]
        values = [f"{score['value']:.2f} ({taken:.0f} s)" for score, taken in ways]
        low, high = row["scores"]["BLEU"]["interval"]
        chrf = f"{row['scores']['chrF2']['value']:.2f}"
        minutes = f"{row['minutes']:.1f}"
        lines.append([row["case"]["recipe"], minutes, *values, f"{low:.2f}–{high:.2f}", chrf])
    beams = ["BLEU, beam (CPU seconds)", "in int8", "greedily"]
    names = ["recipe", "CPU minutes", *beams, "95 % of the first", "chrF"]
    return table(names, lines) + f"\n`{rows[0]['scores']['BLEU']['signature']}`\n"


def _kills(rows: Sequence[Row]) -> str:
    lines = [
        [row["case"]["killed"], *(str(row[name]) for name in ("kills", "lost", "runs", "same"))]
        for row in rows
    ]
    return table(["killed", "times", "most updates lost", "runs", "bit-identical"], lines)


def _aligned(rows: Sequence[Row]) -> str:
    """Precision, recall and AER by each rule that makes links."""
    keys, rules = list(rows[0]["case"]), list(rows[0]["aligned"])
    scores = ("precision", "recall", "AER")
    lines = []
    for row in rows:
        values = [row["aligned"][rule][score]["value"] for rule in rules for score in scores]
        case = [_plain(row["case"][key]) for key in keys]
        lines.append([*case, *(f"{value:.3f}" for value in values)])
    return table([*keys, *(f"{score}, {rule}" for rule in rules for score in scores)], lines)


def _systems(rows: Sequence[Row]) -> str:
    """The alignment error rate of each system by each rule, and what the system cost."""
    rules = list(dict.fromkeys(rule for row in rows for rule in row["errors"]))
    lines = []
    for row in rows:
        values = [f"{row['errors'][rule]:.4f}" if rule in row["errors"] else "" for rule in rules]
        minutes = " + ".join(f"{each:.1f}" for each in row.get("minutes", ()))
        cost = f"{row['seconds']:.0f} s" if "seconds" in row else f"{minutes} min"
        lines.append([row["case"]["system"], *values, cost])
    return table(["system", *rules, "CPU, both ways"], lines)


KINDS = {
    "errors": _systems,
    "minutes": _quality,
    "kills": _kills,
    "times_as_wrong": _accuracy,
    "aligned": _aligned,
}
"""By what only rows of a kind have."""
