"""A tour of the library in two scenes: a weather map, and a memory that is read by content.

    python docs/tour.py --out DIR

It prints what it does, draws `weather.png` and `memory.png` into DIR, and takes a few seconds.
"""

import argparse
import math
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from regard import Attention, Memory, Reading, attend, scores, selection

try:
    import matplotlib as mpl

    mpl.use("Agg")  # no screen is needed
    from matplotlib import pyplot as plt
    from matplotlib.axes import Axes
except ImportError:
    sys.stderr.write("The tour draws with matplotlib. Install it: pip install '.[plot]'\n")
    raise SystemExit(2) from None

STYLE = {"font.size": 11, "axes.titlesize": 12, "figure.dpi": 100}
BLUE, ORANGE, GREEN = "#0072B2", "#D55E00", "#009E73"  # for any colour vision

# Scene one. A place, and six stations around it, so far away that 1 / distance is 6.5, 6.1, …
# Lengths are in units of 100 km.
PLACE = torch.tensor([0.50, 0.45])
STATIONS = "ABCDEF"
INVERSE_DISTANCES = (6.5, 6.1, 4.45, 3.5, 2.8, 1.9)
DIRECTIONS = (150, 20, 265, 100, 325, 200)  # degrees, counted from the east
READINGS = torch.tensor([(30, 48), (31, 49), (37, 44), (33, 45), (34, 50), (32, 45)]).float()
SIGMA = 0.12

# Scene two. Animals, each a key made by hand: 1 is yes, −1 is no, 0 is neither. The value is the
# number of legs.
FEATURES = ("flies", "swims", "fur", "feathers", "big", "tame")
ANIMALS = {
    "eagle": ((1, -1, -1, 1, 0, -1), 2),
    "duck": ((1, 1, -1, 1, -1, 0), 2),
    "bat": ((1, -1, 1, -1, -1, -1), 2),
    "salmon": ((-1, 1, -1, -1, -1, -1), 0),
    "whale": ((-1, 1, -1, -1, 1, -1), 0),
    "dog": ((-1, 0, 1, -1, 0, 1), 4),
    "cat": ((-1, -1, 1, -1, -1, 1), 4),
    "penguin": ((-1, 1, -1, 1, 0, -1), 2),
}
AT_FIRST = ("eagle", "duck", "bat", "salmon", "whale", "dog", "cat")
ASKED = ("dog", "bat", "salmon", "duck", "penguin")
SHARPNESS = 3.0
SELECTIONS = {
    "softmax: a little of everything": selection.Softmax(),
    "sparsemax: exact zeros": selection.Sparsemax(),
    "hard: the best one": selection.Hard(),
    "top-k: the best two": selection.TopK(2),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("tour"), help="where the pictures go")
    out: Path = parser.parse_args().out
    try:
        out.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=out).close()
    except OSError as error:
        sys.stderr.write(f"Cannot write to {out}: {error.strerror}. Choose a folder with --out.\n")
        raise SystemExit(2) from None
    plt.rcParams.update(STYLE)
    weather(out / "weather.png")
    memory(out / "memory.png")
    print("What to try next")
    print(
        "  In docs/tour.py: another SIGMA, another SHARPNESS, a station or an animal of your own."
    )
    print(
        "  docs/library.md has every score, selection and mask; docs/conventions.md their promises."
    )


def weather(path: Path) -> None:
    """Scene one: every point of a map is a query that reads the stations."""
    print("1. A weather map")
    print("   A place is a query, a station is a key, and what it measured is the value.\n")
    stations = station_places()
    methods = {
        "softmax of 1 / distance": scores.InverseDistance(),
        f"softmax of a Gaussian, σ = {SIGMA * 100:.0f} km": scores.Gaussian(SIGMA),
    }
    near = {name: attend(PLACE, stations, READINGS, score=s) for name, s in methods.items()}
    print_stations(stations, next(iter(near.values())))
    east, north = torch.linspace(-0.1, 1.0, 150), torch.linspace(0.05, 0.9, 120)
    grid = torch.cartesian_prod(north, east).flip(-1)  # (points, 2)
    figure, panels = plt.subplots(1, 3, figsize=(13.5, 3.8), layout="compressed")
    colours = None
    for panel, (name, score) in zip(panels[:2], methods.items(), strict=True):
        celsius = attend(grid, stations, READINGS, score=score).context[:, 0]
        colours = draw_map(panel, east, north, celsius.view(len(north), len(east)))
        draw_stations(panel, stations, near[name].weights)
        panel.set_title(f"Temperature that each place reads,\n{name}")
    figure.colorbar(colours, ax=panels[:2], label="temperature (°C)", ticks=range(30, 38))
    draw_bars(panels[2], near)
    save(figure, path)


def station_places() -> Tensor:
    """Where the stations are: `(station, 2)`."""
    angles = torch.tensor(DIRECTIONS) * (math.pi / 180)
    around = torch.stack([angles.cos(), angles.sin()], -1)
    return PLACE + around / torch.tensor(INVERSE_DISTANCES)[:, None]


def print_stations(stations: Tensor, reading: Reading) -> None:
    print("   station   distance   score   weight   temperature   humidity")
    distances = (stations - PLACE).norm(dim=-1)
    for name, distance, weight, (celsius, humidity) in zip(
        STATIONS, distances.tolist(), reading.weights.tolist(), READINGS.tolist(), strict=True
    ):
        print(
            f"   {name:7}{100 * distance:9.1f} km{1 / distance:8.2f}{weight:9.3f}"
            f"{celsius:11.0f} °C{humidity:9.0f} %"
        )
    celsius, humidity = reading.context.tolist()
    print(f"   read here {28 * ' '}{celsius:10.1f} °C{humidity:9.1f} %\n")


def draw_map(panel: Axes, east: Tensor, north: Tensor, celsius: Tensor) -> object:
    levels = torch.arange(29.75, 37.5, 0.5).tolist()  # each whole degree amid its colour
    east, north = 100 * east, 100 * north
    colours = panel.contourf(east, north, celsius, levels, cmap="viridis")
    panel.contour(east, north, celsius, levels, colors="white", linewidths=0.4, alpha=0.6)
    panel.set(aspect="equal", xlabel="east (km)", ylabel="north (km)")
    return colours


def draw_stations(panel: Axes, stations: Tensor, weights: Tensor) -> None:
    """The stations with what they measured, and a line to each as wide as its weight."""
    x, y = (100 * PLACE).tolist()
    white = {"boxstyle": "round,pad=0.2", "fc": "white", "ec": "none", "alpha": 0.85}
    measured = READINGS[:, 0].tolist()
    for name, (east, north), weight, celsius in zip(
        STATIONS, (100 * stations).tolist(), weights.tolist(), measured, strict=True
    ):
        panel.plot([x, east], [y, north], color="white", linewidth=1 + 14 * weight, alpha=0.8)
        panel.plot(east, north, "o", color="black", markersize=6)
        label = f"{name} {celsius:.0f}°"
        panel.annotate(label, (east, north), (0, 9), textcoords="offset points", ha="center",
                       bbox=white)  # fmt: skip
    panel.plot(x, y, "X", color=ORANGE, markeredgecolor="white", markersize=13)


def draw_bars(panel: Axes, near: dict[str, Reading]) -> None:
    places = torch.arange(len(STATIONS)).float()
    for offset, colour, (name, reading) in zip(
        (-0.2, 0.2), (BLUE, ORANGE), near.items(), strict=True
    ):
        celsius, humidity = reading.context.tolist()
        label = f"{name}\n{celsius:.1f} °C, {humidity:.1f} %"
        bars = panel.barh(places + offset, reading.weights, 0.38, color=colour, label=label)
        panel.bar_label(bars, fmt="%.3f", padding=3, fontsize=9)
    panel.set_yticks(places.tolist(), list(STATIONS))
    panel.invert_yaxis()
    panel.set(xlim=(0, 0.66), xlabel="weight", ylabel="station", box_aspect=0.8)
    panel.set_title("How much the place at the cross\nreads of each station")
    panel.legend(
        loc="lower right", fontsize=10, frameon=False, title="What it reads", handlelength=1
    )
    panel.spines[["top", "right"]].set_visible(False)


def memory(path: Path) -> None:
    """Scene two: a memory is read by content, written to, and erased from."""
    print("2. A memory")
    print(f"   An animal is a key of {len(FEATURES)} features; its number of legs is the value.")
    print("   Each query is an animal seen through noise.\n")
    torch.manual_seed(3)
    queries = keys_of(ASKED) + 0.45 * torch.randn(len(ASKED), len(FEATURES))
    figure = plt.figure(figsize=(13.5, 8.4), layout="constrained")
    above, below = figure.subfigures(2, 1, hspace=0.04)
    above.suptitle(
        "Weights by four selections from one memory; a cell without a number is exactly 0"
    )
    panels = above.subplots(1, 4)
    for panel, (name, select) in zip(panels, SELECTIONS.items(), strict=True):
        attention = Attention(scores.Cosine(sharpness=SHARPNESS), select).eval()
        found = attention.prepare(keys_of(AT_FIRST), legs_of(AT_FIRST)).read(queries)
        colours = draw_weights(panel, AT_FIRST, found.weights, rows=panel is panels[0])
        panel.set_title(name)
    above.colorbar(colours, ax=panels, label="weight", aspect=30)
    below.suptitle("The same memory, written to and erased from")
    steps = read_write_erase(queries)
    panels = below.subplots(1, 3, width_ratios=[8, 7, 8])
    for panel, name in zip(panels, ("penguin written", "duck erased"), strict=False):
        names, found = steps[name]
        draw_weights(panel, names, found.weights, rows=panel is panels[0])
        panel.set_title(f"softmax, {name}")
    draw_legs(panels[2], steps)
    save(figure, path)


def keys_of(names: Sequence[str]) -> Tensor:
    return torch.tensor([ANIMALS[name][0] for name in names]).float()


def legs_of(names: Sequence[str]) -> Tensor:
    return torch.tensor([[ANIMALS[name][1]] for name in names]).float()


def read_write_erase(queries: Tensor) -> dict[str, tuple[tuple[str, ...], Reading]]:
    """One memory at three times: its names, and what the queries read."""
    attention = Attention(scores.Cosine(sharpness=SHARPNESS))
    animals = attention.prepare(keys_of(AT_FIRST), legs_of(AT_FIRST))
    steps = {"at first": (AT_FIRST, animals.read(queries))}
    print_reading("at first", animals, *steps["at first"])
    names = (*AT_FIRST, "penguin")
    animals.write(keys_of(["penguin"]), legs_of(["penguin"]))
    steps["penguin written"] = (names, animals.read(queries))
    print_reading("penguin written", animals, *steps["penguin written"])
    animals.erase([names.index("duck")])
    names = tuple(name for name in names if name != "duck")
    steps["duck erased"] = (names, animals.read(queries))
    print_reading("duck erased", animals, *steps["duck erased"])
    return steps


def print_reading(step: str, animals: Memory, names: Sequence[str], reading: Reading) -> None:
    print(f"   {step} ({animals})")
    best = reading.weights.max(-1)
    for asked, weight, index, (legs,) in zip(
        ASKED, best.values.tolist(), best.indices.tolist(), reading.context.tolist(), strict=True
    ):
        print(f"      {asked:8} reads most of {names[index]:8} {weight:.2f}   legs {legs:.1f}")
    print()


def draw_weights(panel: Axes, names: Sequence[str], weights: Tensor, *, rows: bool) -> object:
    """A heat map with its numbers; a cell without a number is exactly 0."""
    colours = panel.imshow(weights, cmap="cividis", vmin=0, vmax=1, aspect="auto")
    for row, line in enumerate(weights.tolist()):
        for column, weight in enumerate(line):
            if weight:
                ink = "black" if weight > 0.45 else "white"
                number = f"{weight:.2f}".removeprefix("0")
                panel.text(column, row, number, ha="center", va="center", color=ink, fontsize=9)
    panel.set_xticks(range(len(names)), names, rotation=45, ha="right", rotation_mode="anchor")
    panel.set_yticks(range(len(ASKED)), ASKED if rows else [""] * len(ASKED))
    panel.set_xlabel("key in the memory")
    if rows:
        panel.set_ylabel("query: this animal, with noise")
    return colours


def draw_legs(panel: Axes, steps: dict[str, tuple[tuple[str, ...], Reading]]) -> None:
    rows = torch.arange(len(ASKED)).float()
    true = legs_of(ASKED).flatten()
    panel.barh(rows, true, 0.8, color="0.9", label="its true number")
    for shift, colour, mark, (name, (_, reading)) in zip(
        (-0.22, 0, 0.22), (BLUE, ORANGE, GREEN), "os^", steps.items(), strict=True
    ):
        panel.plot(reading.context.flatten(), rows + shift, mark, color=colour, markersize=9,
                   label=name)  # fmt: skip
    panel.set_yticks(rows.tolist(), ASKED)
    panel.invert_yaxis()
    panel.set(xlabel="legs: the value that softmax reads", xlim=(-0.1, 4.2))
    panel.set_title("What was read, before and after")
    panel.legend(loc="lower right", fontsize=10)
    panel.spines[["top", "right"]].set_visible(False)


def save(figure: plt.Figure, path: Path) -> None:
    figure.savefig(path, pil_kwargs={"optimize": True})
    plt.close(figure)
    print(f"   Drawn: {path}\n")


if __name__ == "__main__":
    main()
