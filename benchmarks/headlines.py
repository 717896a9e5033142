"""The results in a dozen lines: what the front page and the README quote."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from benchmarks.results import Result, Row
from benchmarks.steps import BOTH, FORWARD
from benchmarks.tables import number, size

Results = Mapping[str, Result]


def of(results: Results) -> dict[str, list[str]]:
    """For each topic its lines, where there are results for them."""
    lines: dict[str, list[str]] = {}
    for topic, needed, line in HEADLINES:
        if all(name in results and results[name]["rows"] for name in needed):
            lines.setdefault(topic, []).append(line(*(results[name]["rows"] for name in needed)))
    return lines


def additive(rows: Sequence[Row]) -> str:
    """How many times as fast as plain PyTorch."""
    hand = [r for r in rows if r["who"] == "PyTorch by hand" and r["case"]["what"] == "projected"]
    forward, both = (_times(r for r in hand if r["case"]["step"] == s) for s in (FORWARD, BOTH))
    return f"{forward} as fast as PyTorch by hand, {both} with the backward"


def additive_memory(rows: Sequence[Row]) -> str:
    """Peak memory at the greatest length where both run."""
    peaks: dict[int, dict[str, float]] = {}
    for row in rows:
        if row["case"]["step"] == BOTH and "peak" in row:
            peaks.setdefault(row["case"]["keys"], {}).setdefault(row["who"], row["peak"])
    length = max((n for n, by in peaks.items() if "PyTorch by hand" in by), default=max(peaks))
    by = {who: size(peak) for who, peak in peaks[length].items()}
    theirs = f" in place of {by['PyTorch by hand']}" if "PyTorch by hand" in by else ""
    return f"{length:,} queries and keys with the backward: {by['regard']} of memory{theirs}"


def dot(rows: Sequence[Row]) -> str:
    """Against the better of two, anywhere."""
    better = [row for row in rows if row.get("better") and "times" in row]
    return f"{_least(better)} as fast as the better of matmul and SDPA, or more, {_in_all(better)}"


def distances(rows: Sequence[Row]) -> str:
    """Against code that holds a tensor of all pairs."""
    return f"{_times(r for r in rows if 'times' in r)} as fast as PyTorch by hand"


def local(rows: Sequence[Row]) -> str:
    """Against a mask over all keys."""
    several = [r for r in rows if "times" in r and r["case"]["queries"] > 1]
    return f"{_times(several)} as fast as masking global attention over {_keys(several)} keys"


def sparse(rows: Sequence[Row]) -> str:
    """Against the package of that name."""
    better = [row for row in rows if row.get("better") and "times" in row]
    return f"{_least(better)} as fast as the entmax package, or more, {_in_all(better)}"


def decoding(rows: Sequence[Row]) -> str:
    """Against the better of hand-written operations and SDPA."""
    better = [row for row in rows if row.get("better") and "times" in row]
    found = {
        score: _times(row for row in better if row["case"]["score"] == score)
        for score in dict.fromkeys(row["case"]["score"] for row in better)
    }
    scores = ", ".join(f"{times} ({score})" for score, times in found.items())
    return f"{scores} as fast as the same operations by hand"


def accuracy(rows: Sequence[Row]) -> str:
    """The largest error, relative to plain code's."""
    worst = max(row["times_as_wrong"] for row in rows)
    return f"at most {number(worst)} × the error of plain float32 code, {_in_all(rows)}"


def imports(rows: Sequence[Row]) -> str:
    """Against torch alone."""
    times = next(row["against_torch"]["median"] for row in rows if "against_torch" in row)
    return f"{number(times)} × the time of `import torch`, which it includes"


def training(rows: Sequence[Row]) -> str:
    """Against OpenNMT-py and Marian."""
    return _against(rows, ("OpenNMT-py", "Hugging Face Marian"))


def translating(rows: Sequence[Row]) -> str:
    """Against OpenNMT-py and CTranslate2."""
    return f"{_against(rows, ('OpenNMT-py', 'CTranslate2'))}, in float32"


def recipes(transformer: Sequence[Row], rnn: Sequence[Row]) -> str:
    """BLEU of the test set, and minutes of a core."""
    found = [
        f"{name}: BLEU {row['scores']['BLEU']['value']:.1f} after {row['minutes']:.0f} CPU minutes"
        for name, (row, *_) in (("Transformer", transformer), ("RNN with attention", rnn))
    ]
    return "Multi30k, English to German. " + "; ".join(found)


def resuming(rows: Sequence[Row]) -> str:
    """What became of runs that were killed."""
    kills, runs, same = (sum(row[name] for row in rows) for name in ("kills", "runs", "same"))
    return f"{kills} kills, {same} of {runs} runs bit-identical to one never stopped"


def alignment(rows: Sequence[Row]) -> str:
    """The best error rate of each system that is no translator, and its cost."""
    found = [
        f"{row['case']['system']} {100 * min(row['errors'].values()):.1f} % "
        f"in {row['seconds']:.0f} CPU seconds"
        for row in rows
        if "seconds" in row
    ]
    return f"alignment error rate of English–French Hansards: {'; '.join(found)}"


def _times(rows: Iterable[Row]) -> str:
    values = [row["times"]["median"] for row in rows]
    ends = dict.fromkeys(map(number, (min(values), max(values)))) if values else ()
    return f"{'–'.join(ends)} ×" if values else "not measured"


def _least(rows: Sequence[Row]) -> str:
    values = [row["times"]["median"] for row in rows]
    return f"{number(min(values))} ×" if values else "not measured"


def _in_all(rows: Sequence[Row]) -> str:
    return f"in all {len(rows)} cases"


def _keys(rows: Sequence[Row]) -> str:
    return f"{max((row['case']['keys'] for row in rows), default=0):,}"


def _against(rows: Sequence[Row], peers: Sequence[str]) -> str:
    found = {who: [r for r in rows if r["who"] == who and "times" in r] for who in peers}
    return ", ".join(f"{_times(same)} as fast as {who}" for who, same in found.items() if same)


HEADLINES: tuple[tuple[str, tuple[str, ...], Callable[..., str]], ...] = (
    ("additive", ("additive",), additive),
    ("additive", ("additive_length",), additive_memory),
    ("dot", ("dot",), dot),
    ("distances", ("distances",), distances),
    ("local", ("local",), local),
    ("sparse", ("sparse",), sparse),
    ("decoding", ("decoding",), decoding),
    ("accuracy", ("accuracy",), accuracy),
    ("imports", ("imports",), imports),
    ("training", ("learning",), training),
    ("translating", ("translating",), translating),
    ("recipes", ("bleu", "bleu_rnn"), recipes),
    ("resuming", ("kills",), resuming),
    ("alignment", ("alignment",), alignment),
)
"""A topic, the benchmarks that a line needs, and the line."""
