import io
from pathlib import Path

import pytest
from rich.console import Console

from regard.seq2seq.training import (
    BestStep,
    LineReporter,
    NullReporter,
    Outcome,
    Reporter,
    RichReporter,
    Update,
    Validation,
    reporter,
)
from tests.seq2seq.training.toy import train


def update(step, **counts):
    return Update(step, 1.5, {"tokens": 1.5}, 0.1, 0.01, counts)


def test_lines_tell_pace_and_what_is_left():
    seconds = iter(range(1000))
    stream = io.StringIO()
    plain = LineReporter(stream, every=4.0, clock=lambda: next(seconds) / 2)
    plain.started(10, 100)
    for step in range(11, 31):
        plain.progressed(update(step, tokens=70, sentences=3))
    lines = stream.getvalue().splitlines()
    assert lines[0] == "resuming after step 10 of 100"
    assert 2 < len(lines) < 15
    assert all("loss 1.5000" in line and "tokens/s" in line for line in lines[1:])
    # A look at the clock takes half a second: an update about one.
    assert lines[-1].endswith(" left")
    minutes = int(lines[-1].split()[-2].split(":")[1])
    assert 0 <= minutes <= 3


def test_the_pace_is_counted_in_tokens():
    now = [0.0]
    stream = io.StringIO()
    plain = LineReporter(stream, every=0.0, clock=lambda: now[0])
    plain.started(0, 3)
    for step in (1, 2):
        now[0] += 2.0
        plain.progressed(update(step, tokens=700))
    assert stream.getvalue().splitlines()[-1] == "step 2/3  loss 1.5000  350 tokens/s  0:00:02 left"


@pytest.mark.parametrize("width", [80, 120])
def test_a_bar_tells_loss_pace_and_what_is_left(width):
    """Paced from when the first update begins: what was made ready before is not counted."""
    now = [0.0]
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=width, color_system=None)
    rich = RichReporter(console, clock=lambda: now[0])
    now[0] += 1000.0
    rich.started(50_000, 100_000)
    for step in range(50_001, 50_006):
        now[0] += 2.0
        rich.progressed(update(step, tokens=70_000))
    rich.finished(None)
    last = stream.getvalue().split("\r")[-1]
    assert "50005/100000 loss 1.5000  35,000 tokens/s 27:46:30" in last


@pytest.mark.parametrize("kind", ["plain", "rich"])
def test_what_happens_is_noted(kind):
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=120, color_system=None)
    heard = LineReporter(stream) if kind == "plain" else RichReporter(console)
    heard.started(0, 5)
    heard.progressed(update(5, pages=3))
    heard.validated(5, Validation({"loss": 0.25}, ["[b]a[/b] → b"]), True)
    heard.noted("something")
    heard.saved(Path("runs/step-00000005"))
    heard.finished(Outcome("finished", 5, Path("runs"), BestStep(5, 0.25)))
    said = stream.getvalue()
    for words in (
        "5/5", "loss 1.5000", "pages/s", "step 5  validation  loss 0.25  (best)", "[b]a[/b] → b",
        "note: something", "finished at step 5; best 0.25 at step 5",
    ):  # fmt: skip
        assert words in said, words


@pytest.mark.parametrize(
    "heard",
    [NullReporter(), LineReporter(io.StringIO()), RichReporter(Console(file=io.StringIO()))],
)
def test_each_follows_a_whole_run(heard, tmp_path):
    assert isinstance(heard, Reporter)
    assert train(tmp_path, reporter=heard).ending == "finished"


def test_a_bar_is_taken_down_when_an_error_ends_the_run():
    stream = io.StringIO()
    rich = RichReporter(Console(file=stream, force_terminal=True))
    rich.started(0, 5)
    assert not rich._bar.finished
    assert rich._bar.live.is_started
    rich.finished(None)
    assert not rich._bar.live.is_started


def test_a_bar_is_for_terminals():
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    assert isinstance(reporter(Terminal()), RichReporter)
    assert isinstance(reporter(io.StringIO()), LineReporter)
