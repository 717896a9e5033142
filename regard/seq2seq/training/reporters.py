"""Progress reports of a run: none, lines, or a progress bar."""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Protocol, cast, runtime_checkable

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)

from regard.seq2seq.system.escaping import escaped, unescaping
from regard.seq2seq.training.loop import Update
from regard.seq2seq.training.outcome import Outcome, Validation


@runtime_checkable
class TextOutput(Protocol):
    """A text stream: a file, a terminal, a string."""

    def write(self, text: str, /) -> int: ...

    def flush(self) -> None: ...

    def isatty(self) -> bool: ...


@runtime_checkable
class Reporter(Protocol):
    """Callbacks of a run. They change nothing."""

    def started(self, step: int, steps: int) -> None:
        """`step` of `steps` updates are already made."""

    def progressed(self, update: Update) -> None: ...

    def validated(self, step: int, validation: Validation, best: bool) -> None: ...

    def saved(self, path: Path) -> None: ...

    def noted(self, line: str) -> None:
        """A note for the user."""

    def finished(self, outcome: Outcome | None) -> None:
        """The last callback; None if the run raised an error, which is reported elsewhere."""


class NullReporter:
    """Reports nothing."""

    def started(self, step: int, steps: int) -> None: ...

    def progressed(self, update: Update) -> None: ...

    def validated(self, step: int, validation: Validation, best: bool) -> None: ...

    def saved(self, path: Path) -> None: ...

    def noted(self, line: str) -> None: ...

    def finished(self, outcome: Outcome | None) -> None: ...


class LineReporter:
    """Lines, for a file or a pipe: one every few seconds, and one for each event."""

    def __init__(
        self,
        stream: TextOutput | None = None,
        every: float = 5.0,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._every, self._clock = every, clock
        self._pace = _Pace(clock)
        self._steps = 0
        self._last_report = 0.0

    def started(self, step: int, steps: int) -> None:
        self._steps, self._last_report = steps, self._clock()
        self._pace = _Pace(self._clock)
        self._write(f"resuming after step {step} of {steps}" if step else f"{steps} steps to go")

    def progressed(self, update: Update) -> None:
        self._pace.count(update)
        if self._clock() - self._last_report >= self._every or update.step == self._steps:
            self._last_report = self._clock()
            left = self._pace.left(self._steps - update.step)
            self._write(
                f"step {update.step}/{self._steps}  {self._pace.summary(update)}  {left} left"
            )

    def validated(self, step: int, validation: Validation, best: bool) -> None:
        self._write(_validation_text(step, validation, best))
        for line in _shown(validation):
            self._write(line)

    def saved(self, path: Path) -> None:
        self._write(f"saved {path}")

    def noted(self, line: str) -> None:
        self._write(f"note: {line}")

    def finished(self, outcome: Outcome | None) -> None:
        if outcome is not None:
            self._write(str(outcome))

    def _write(self, line: str) -> None:
        self._stream.write(escaped(line) + "\n")
        self._stream.flush()


class RichReporter:
    """A bar with the loss, the pace and the time that is left, for a terminal."""

    def __init__(
        self, console: Console | None = None, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self._console = Console(stderr=True) if console is None else console
        self._clock = clock
        self._pace = _Pace(clock)
        self._bar = Progress(
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[summary]}"),
            TimeRemainingColumn(),
            console=self._console,
            get_time=clock,
        )
        self._task = self._bar.add_task("training", total=None, summary="")

    def started(self, step: int, steps: int) -> None:
        self._pace = _Pace(self._clock)  # the time of setup does not count
        self._bar.update(self._task, completed=step, total=steps)
        self._bar.start()

    def progressed(self, update: Update) -> None:
        self._pace.count(update)
        self._bar.update(self._task, completed=update.step, summary=self._pace.summary(update))

    def validated(self, step: int, validation: Validation, best: bool) -> None:
        self._write(_validation_text(step, validation, best))
        for line in _shown(validation):
            self._write(line)

    def saved(self, path: Path) -> None: ...

    def noted(self, line: str) -> None:
        self._write(f"note: {line}")

    def finished(self, outcome: Outcome | None) -> None:
        self._bar.stop()
        if outcome is not None:
            self._write(str(outcome))

    def _write(self, line: str) -> None:
        self._console.print(escaped(line), markup=False, highlight=False)


def reporter(stream: TextOutput | None = None) -> Reporter:
    """A bar on a terminal, lines elsewhere."""
    stream = unescaping(sys.stderr if stream is None else stream)  # a bar needs its control codes
    return (
        RichReporter(Console(file=cast(IO[str], stream)))
        if stream.isatty()
        else LineReporter(stream)
    )


class _Pace:
    """Throughput, in tokens per second where there are any, and time left."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._start = clock()
        self._unit, self._counted, self._updates = "tokens", 0, 0

    def count(self, update: Update) -> None:
        if "tokens" not in update.counts:
            self._unit = next(iter(update.counts), "updates")
        self._counted += update.counts.get(self._unit, 1)
        self._updates += 1

    def summary(self, update: Update) -> str:
        pace = self._counted / max(1e-9, self._clock() - self._start)
        return f"loss {update.loss:.4f}  {pace:,.0f} {self._unit}/s"

    def left(self, updates: int) -> str:
        seconds = (self._clock() - self._start) / max(1, self._updates) * updates
        minutes, seconds = divmod(round(seconds), 60)
        hours, minutes = divmod(minutes, 60)
        return f"{hours}:{minutes:02d}:{seconds:02d}"


def _shown(validation: Validation) -> list[str]:
    """Samples, and the attention map of one of them, indented below the scores."""
    lines = [*validation.samples, *validation.picture.splitlines()]
    return [f"  {line}" for line in lines]


def _validation_text(step: int, validation: Validation, best: bool) -> str:
    scores = "  ".join(f"{name} {value:.4g}" for name, value in validation.scores.items())
    return f"step {step}  validation  {scores}{'  (best)' if best else ''}"
