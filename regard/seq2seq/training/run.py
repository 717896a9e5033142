"""A run in a folder: updates with checkpoints, log, validation and signals.

    run.lock                      held while a process trains here
    log.jsonl                     a line for each update and each validation; no clock in it
    timings.jsonl                 when those lines were written
    checkpoints/step-00000500/    the last few and the best

The same call again resumes, bit-identically: weights, optimiser, average, batches and log are
those of an uninterrupted run, given the same number of threads and the same CPU level. Nothing is
triggered by the clock. In a folder, only a run's own checkpoints are ever deleted.
"""

import math
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, nullcontext
from difflib import get_close_matches
from pathlib import Path

import torch
from torch import Tensor

from regard.seq2seq.errors import ConfigError, RunError
from regard.seq2seq.training import checkpoint_files, checkpoints
from regard.seq2seq.training.batch_stream import BatchStream
from regard.seq2seq.training.checkpoint_files import AVERAGE, MODEL, OPTIMISER, After
from regard.seq2seq.training.checkpoints import Checkpoints, FoundCheckpoint
from regard.seq2seq.training.lock import Lock
from regard.seq2seq.training.log import EMPTY, LOG, Log
from regard.seq2seq.training.loop import Update, updates
from regard.seq2seq.training.optimizer import Optimiser
from regard.seq2seq.training.options import TrainingOptions
from regard.seq2seq.training.outcome import Ending, Outcome, TrainingJob, Validation
from regard.seq2seq.training.reporters import NullReporter, Reporter
from regard.seq2seq.training.run_state import BestStep, RunState, compare, identity
from regard.seq2seq.training.seeds import seed_torch
from regard.seq2seq.training.signals import Signals


def run(
    directory: Path | str,
    job: TrainingJob,
    options: TrainingOptions,
    reporter: Reporter | None = None,
    after: After = checkpoints.no_hook,
) -> Outcome:
    """Train in a folder, or resume there, until the end or a signal.

    `after` is called with the name of each stage of a save: tests kill the process there.
    """
    directory = Path(directory)
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(
            f"{directory} cannot be created: {error.strerror}. Give another folder."
        ) from error
    reporter = NullReporter() if reporter is None else reporter
    with Lock(directory), Signals() as signals, _threads(options.threads):
        outcome: Outcome | None = None
        try:
            store = Checkpoints(directory, options.keep, after)
            current = _Run(store, job, options, reporter)
            with closing(current.start_or_resume(directory)):
                outcome = current.train(signals)
        finally:
            reporter.finished(outcome)
    return outcome


class _Run:
    """A run in progress: its state, and what is due after each update."""

    def __init__(
        self,
        checkpoints: Checkpoints,
        job: TrainingJob,
        options: TrainingOptions,
        reporter: Reporter,
    ) -> None:
        self.job, self.options, self.reporter = job, options, reporter
        self.checkpoints = checkpoints
        device = _device(options.device)
        self.model = job.model.to(device)
        self.autocast = options.autocast and device.type != "cpu"
        self.optimiser = Optimiser(self.model, options)
        self.batches = BatchStream(job.corpus, job.codec, job.plan, options.accumulate)
        self.identity = identity(options, job.settings, job.data, job.inference)
        self.step, self.validations_since_best = 0, 0
        self.best: BestStep | None = None
        self.log: Log

    def start_or_resume(self, directory: Path) -> Log:
        """Restore the latest checkpoint, or write the first one; returns the open log."""
        self.checkpoints.tidy()
        found = self.checkpoints.newest()
        if found is None:
            if (directory / LOG).exists():
                raise RunError(
                    f"{directory} has a {LOG} but no checkpoint, so it is not a run. "
                    "Give another folder."
                )
            self._save(0, EMPTY)
            self.log = Log(directory, 0)
            return self.log
        notes = [*found.notes, *compare(found.record.identity, self.identity)]
        self._restore(found)
        self.log = Log(directory, found.record.log)
        if self.log.lost:
            notes.append(f"{self.log.lost} bytes of {directory / LOG} are missing")
        elif self.log.hash != found.record.log_hash:
            notes.append(f"{directory / LOG} was changed since the checkpoint; appending to it")
        for line in notes:
            self.reporter.noted(line)
        return self.log

    def train(self, signals: Signals) -> Outcome:
        """Update until the end, early stopping or a signal."""
        if self._over():
            return self._outcome("finished before")
        self.reporter.started(self.step, self.options.steps)
        options = self.options
        made = updates(
            self.model, self.batches, self.optimiser, options.seed, self.step, self.autocast
        )
        for update in made:
            better = self._advance(update)
            over = self._over()
            due = update.step % options.save_every == 0
            if better or over or due or signals.received:
                self._save(self.log.size, self.log.hash)
            if over:
                return self._outcome(over)
            if signals.received:
                return self._outcome("interrupted", signals.received)
        raise AssertionError("a batch stream never ends")

    def _restore(self, found: FoundCheckpoint) -> None:
        record = found.record
        for name, tensors in self._tensors().items():
            if name not in found.files:
                raise RunError(f"{found.path} has no {name}. Train in another folder.")
            checkpoint_files.restore(tensors, found.files[name], str(found.path / name))
        self.step, self.best, self.validations_since_best = (
            record.step,
            record.best,
            record.validations_since_best,
        )
        self.batches.epoch, self.batches.position = record.epoch, record.position

    def _advance(self, update: Update) -> bool:
        """Log an update and validate if that is due; is there a new best?"""
        self.step = update.step
        line = {"loss": update.loss, "terms": update.terms, "gradient": update.norm}
        self.log.write(update.step, {**line, "rate": update.rate, "counts": update.counts})
        self.reporter.progressed(update)
        options = self.options
        due = update.step % options.validate_every == 0 or update.step == options.steps
        return due and self._validate()

    def _validate(self) -> bool:
        """Validate, with the averaged weights if there are any; is there a new best?"""
        if self.job.validate is None:
            return False
        average = self.optimiser.average
        seed_torch(self.options.seed, "validation", self.step)
        self.model.eval()
        with average.applied() if average else nullcontext(), torch.no_grad():
            found = self.job.validate(self.model, self.step)
        validation = found if isinstance(found, Validation) else Validation(found)
        better = self._better(validation)
        line = {"validation": validation.scores, "samples": list(validation.samples)}
        self.log.write(self.step, {**line, "best": better})
        self.reporter.validated(self.step, validation, better)
        return better

    def _watched(self, scores: Mapping[str, float]) -> float:
        watch = self.options.watch
        if watch in scores:
            return float(scores[watch])
        near = get_close_matches(watch, scores, 1, 0.0)
        raise ConfigError(
            f"training.watch is {watch!r}, but the metrics of the validation are "
            f"{', '.join(scores) or 'none'}. Give {near[0] if near else 'it a metric'}."
        )

    def _better(self, validation: Validation) -> bool:
        value = self._watched(validation.scores)
        sign = -1 if self.options.watch in validation.lower_is_better else 1
        better = self.best is None or sign * value > sign * self.best.value
        if math.isfinite(value) and better:
            self.best, self.validations_since_best = BestStep(self.step, value), 0
            return True
        self.validations_since_best += 1
        return False

    def _over(self) -> Ending | None:
        if self.step >= self.options.steps:
            return "finished"
        patience = self.options.patience
        return "stopped early" if patience and self.validations_since_best >= patience else None

    def _save(self, log: int, log_hash: str) -> None:
        """Save the state between two updates."""
        if self.step:
            self.log.sync()
        record = RunState(
            self.step, self.batches.epoch, self.batches.position,
            self.best, self.validations_since_best, log, log_hash, self.identity,
        )  # fmt: skip
        path = self.checkpoints.save(record, self._tensors())
        self.reporter.saved(path)

    def _tensors(self) -> dict[str, Mapping[str, Tensor]]:
        """The tensors of a checkpoint, by file."""
        tensors: dict[str, Mapping[str, Tensor]] = {
            MODEL: checkpoints.weights(self.model),
            OPTIMISER: self.optimiser.tensors(),
        }
        if self.optimiser.average is not None:
            tensors[AVERAGE] = self.optimiser.average.tensors()
        return tensors

    def _outcome(self, ending: Ending, signal: int | None = None) -> Outcome:
        return Outcome(ending, self.step, self.checkpoints.path(self.step), self.best, signal)


def _device(name: str) -> torch.device:
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise ConfigError(
            f"training.device is {name!r}, which cannot be used here ({reason}). Give cpu or auto."
        ) from error
    return device


@contextmanager
def _threads(number: int) -> Iterator[None]:
    before = torch.get_num_threads()
    if number:
        torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)
