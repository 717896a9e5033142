"""Pictures of results: logarithmic axes, colours that everyone can tell apart."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter

from benchmarks.results import Result, Row
from benchmarks.tables import number, seconds

INK, FAINT = "#222222", "#d9d9d9"
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's: distinct for any kind of colour vision."""

MARKERS = "osD^vPX"
ALWAYS = ("regard", "PyTorch by hand", "Keras 3, torch", "Keras 3, JAX jitted")
"""Who has the same colour in every picture."""

Lines = dict[str, list[tuple[float, float]]]


def draw(results: Mapping[str, Result], folder: Path) -> dict[str, list[str]]:
    """All pictures that these results allow; their names, for each benchmark."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn: dict[str, list[str]] = {}
    for name, pictures in PICTURES.items():
        rows = _of_fewest_threads(results[name]["rows"]) if name in results else []
        for file, picture in pictures.items():
            figure = picture(rows) if rows else None
            if figure is not None:
                figure.savefig(folder / file, dpi=150)
                drawn.setdefault(name, []).append(file)
    return drawn


def length_time(rows: Sequence[Row]) -> Figure | None:
    """Seconds a call against length."""
    return _against_length(rows, lambda row: row.get("wall", {}).get("median"), "seconds")


def length_memory(rows: Sequence[Row]) -> Figure | None:
    """Peak extra memory against length."""
    return _against_length(rows, lambda row: row["peak"] / 1e6 if row.get("peak") else None, "MB")


def dot_ratio(rows: Sequence[Row]) -> Figure | None:
    """How many times as fast as the better of two, against length, for each score."""
    found: dict[str, Lines] = {}
    for row in rows:
        if row.get("better") and "times" in row:
            case = row["case"]
            lines = found.setdefault(_step(case), {})
            point = case["length"], row["times"]["median"]
            lines.setdefault(case["score"], []).append(point)
    figure = _panels(found, "queries and keys", "times the better of matmul and SDPA")
    for axes in figure.axes if figure else ():
        axes.axhline(1.0, color=INK, linewidth=1, zorder=1.5)
        axes.set_ylim(bottom=min(0.5, axes.get_ylim()[0]), top=max(2.0, axes.get_ylim()[1]))
        _few_ticks(axes)
    return figure


def additive_bars(rows: Sequence[Row]) -> Figure | None:
    """Time of everyone, one panel a shape and step."""
    panels: dict[str, list[Row]] = {}
    for row in rows:
        case = row["case"]
        if case["what"] == "projected" and "wall" in row:
            sizes = (case[name] for name in ("batch", "queries", "keys", "hidden"))
            title = f"{' × '.join(map(str, sizes))}\n{_step(case)}"
            panels.setdefault(title, []).append(row)
    if not panels:
        return None
    figure = Figure(figsize=(10, 1.6 + 1.1 * len(panels)), layout="constrained")
    grid = figure.subplots((len(panels) + 1) // 2, 2, squeeze=False)
    for axes in grid.flat[len(panels) :]:
        axes.set_visible(False)
    for axes, (title, same) in zip(grid.flat, panels.items(), strict=False):
        _bars(axes, title, same)
    return figure


def _bars(axes: Any, title: str, rows: Sequence[Row]) -> None:
    times = [row["wall"]["median"] for row in rows]
    colours = [COLOURS[_place(row["who"], ())] for row in rows]
    axes.barh([row["who"] for row in rows], times, color=colours)
    for place, row in enumerate(rows):
        label = seconds(row["wall"]).split(" (")[0]
        if "times" in row:
            label += f", {number(row['times']['median'])} ×"
        axes.text(row["wall"]["median"], place, "  " + label, va="center", color=INK, fontsize=9)
    axes.set_xlim(0, max(times) * 1.4)
    axes.set_xlabel("seconds")
    axes.invert_yaxis()
    axes.set_title(title, fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)


def _against_length(
    rows: Sequence[Row], value: Callable[[Row], float | None], unit: str
) -> Figure | None:
    found: dict[str, Lines] = {}
    for row in rows:
        y = value(row)
        if y:
            lines = found.setdefault(_step(row["case"]), {})
            lines.setdefault(row["who"], []).append((row["case"]["keys"], y))
    return _panels(found, "queries and keys", unit)


def _panels(found: Mapping[str, Lines], x_name: str, y_name: str) -> Figure | None:
    """One panel for each kind of step, one line for each name."""
    if not found:
        return None
    figure = Figure(figsize=(10, 4.2), layout="constrained")
    grid = figure.subplots(1, len(found), sharey=True, squeeze=False)[0]
    names = list(dict.fromkeys(name for lines in found.values() for name in lines))
    for axes, (title, lines) in zip(grid, found.items(), strict=True):
        for name, points in lines.items():
            which = _place(name, names)
            x, y = zip(*sorted(points), strict=True)
            axes.plot(
                x, y, label=name, color=COLOURS[which], marker=MARKERS[which], markersize=5,
                linewidth=2,
            )  # fmt: skip
        axes.set(title=title, xlabel=f"{x_name}, logarithmic", xscale="log", yscale="log")
        axes.xaxis.set_major_locator(
            FixedLocator(sorted({x for p in lines.values() for x, _ in p}))
        )
        axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}"))
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.tick_params(axis="x", labelrotation=45)
        axes.tick_params(axis="x", which="minor", length=0)
        axes.grid(color=FAINT, linewidth=0.8)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
    grid[0].set_ylabel(f"{y_name}, logarithmic")
    grid[0].legend(frameon=False)
    return figure


def _step(case: Row) -> str:
    return f"{case['step']}, threads: {case['threads']}"


def _place(name: str, names: Sequence[str]) -> int:
    return ALWAYS.index(name) if name in ALWAYS else names.index(name) % len(COLOURS)


def _few_ticks(axes: Any) -> None:
    low, high = axes.get_ylim()
    steps = [0.25, 0.5, 0.7, 0.8, 0.9, 1.0, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0]
    axes.yaxis.set_major_locator(FixedLocator([step for step in steps if low <= step <= high]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g} ×"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def _of_fewest_threads(rows: Sequence[Row]) -> list[Row]:
    fewest = min((row["case"].get("threads", 1) for row in rows if "case" in row), default=1)
    return [row for row in rows if row.get("case", {}).get("threads", 1) == fewest]


PICTURES: dict[str, dict[str, Callable[[Sequence[Row]], Figure | None]]] = {
    "additive": {"bench-additive.png": additive_bars},
    "additive_length": {
        "bench-length-time.png": length_time,
        "bench-length-memory.png": length_memory,
    },
    "dot": {"bench-dot.png": dot_ratio},
}
