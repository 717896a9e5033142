"""A resumed run is byte-identical to an uninterrupted one."""

import dataclasses
import json
import os
import re
import signal

import pytest
import torch

from regard.seq2seq.errors import ConfigError, RunError
from regard.seq2seq.training import (
    Checkpoints,
    NullReporter,
    Validation,
    derive_seed,
    load_weights,
    run,
)
from regard.seq2seq.training.run_state import RunState
from tests.seq2seq.training.toy import OPTIONS, Toy, job, left, train


class CrashError(Exception):
    pass


class RecordingReporter(NullReporter):
    """Remembers notes; does something once at a step."""

    def __init__(self, step=0, act=None):
        self.step, self.act = step, act
        self.notes, self.saves, self.bests, self.outcomes = [], [], [], []

    def progressed(self, update):
        if update.step == self.step:
            self.step = 0
            self.act()

    def noted(self, line):
        self.notes.append(line)

    def saved(self, path):
        self.saves.append(path.name)

    def validated(self, step, validation, best):
        self.bests += [step] if best else []

    def finished(self, outcome):
        self.outcomes.append(outcome)


def crash():
    raise CrashError


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """What a run never stopped leaves."""
    directory = tmp_path_factory.mktemp("whole")
    outcome = train(directory)
    assert (outcome.ending, outcome.step, outcome.code) == ("finished", OPTIONS.steps, 0)
    return left(directory)


def test_a_run_is_the_same_twice_and_the_log_has_no_clock(whole, tmp_path):
    heard = RecordingReporter()
    train(tmp_path, reporter=heard)
    assert left(tmp_path) == whole
    lines = [json.loads(line) for line in whole["log"].splitlines()]
    assert [line["step"] for line in lines if "loss" in line] == list(range(1, 24))
    assert [line["step"] for line in lines if "validation" in line] == [4, 8, 12, 16, 20, 23]
    assert lines[0].keys() == {"step", "loss", "terms", "gradient", "rate", "counts"}
    assert heard.outcomes[0].best.step == heard.bests[-1]
    timings = (tmp_path / "timings.jsonl").read_text().splitlines()
    assert len(timings) == len(lines)


@pytest.mark.parametrize("step", [1, 3, 4, 5, 9, 16, 22])
def test_a_crash_after_any_step_leaves_no_trace(whole, tmp_path, step):
    with pytest.raises(CrashError):
        train(tmp_path, reporter=RecordingReporter(step, crash))
    heard = RecordingReporter()
    train(tmp_path, reporter=heard)
    assert left(tmp_path) == whole
    assert heard.notes == []


def test_what_was_logged_after_the_checkpoint_is_cut_off(whole, tmp_path):
    with pytest.raises(CrashError):
        train(tmp_path, reporter=RecordingReporter(9, crash))
    with (tmp_path / "log.jsonl").open("ab") as log:
        log.write(b"half a li" * 10_000)
    train(tmp_path)
    assert left(tmp_path) == whole


def test_every_draw_is_one_of_its_purpose_and_number(tmp_path):
    def drawn(purpose, step):
        torch.manual_seed(derive_seed(OPTIONS.seed, purpose, step))
        return torch.rand(()).item()

    class Drawing(Toy):
        def forward(self, batch):
            steps.append(torch.rand(()).item())
            return super().forward(batch)

    def validate(model, step):
        judged[step] = torch.rand(()).item()
        return {"loss": 0.0}

    steps, judged = [], {}
    options = dataclasses.replace(OPTIONS, steps=6, accumulate=1, validate_every=3)
    run(tmp_path, job(model=Drawing(), validate=validate), options)
    assert steps == [drawn("step", step) for step in range(1, 7)]
    assert judged == {step: drawn("validation", step) for step in (3, 6)}


def test_many_stops_at_another_interval_leave_no_trace(whole, tmp_path):
    options = dataclasses.replace(OPTIONS, save_every=3)
    for step in range(2, 23, 2):
        with pytest.raises(CrashError):
            train(tmp_path, options, reporter=RecordingReporter(step, crash))
    train(tmp_path, options)
    found = left(tmp_path)
    for name in ("log", "model.safetensors", "optimiser.safetensors", "average.safetensors"):
        assert found[name] == whole[name], name


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_saves_between_updates(whole, tmp_path, number, code):
    before = signal.getsignal(number)
    heard = RecordingReporter(7, lambda: os.kill(os.getpid(), number))
    outcome = train(tmp_path, reporter=heard)
    assert (outcome.ending, outcome.step, outcome.code) == ("interrupted", 7, code)
    assert str(outcome).startswith("stopped and saved at step 7; run the same command to resume")
    assert heard.saves[-1] == "step-00000007"
    assert signal.getsignal(number) is before
    train(tmp_path)
    assert left(tmp_path) == whole


def test_a_second_ctrl_c_acts_at_once(whole, tmp_path):
    def twice():
        # To this thread, and heard before it goes on: two that wait together are heard as one.
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    heard = RecordingReporter(7, twice)
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path, reporter=heard)
    assert heard.outcomes == [None]
    train(tmp_path)
    assert left(tmp_path) == whole


def test_a_finished_run_says_so_and_resumes_if_asked(whole, tmp_path):
    train(tmp_path)
    before = left(tmp_path)
    outcome = train(tmp_path)
    assert (outcome.ending, outcome.code) == ("finished before", 0)
    assert "already finished at step 23" in str(outcome)
    assert left(tmp_path) == before
    heard = RecordingReporter()
    longer = dataclasses.replace(OPTIONS, steps=26, keep=1, save_every=100)
    assert train(tmp_path, longer, reporter=heard).step == 26
    assert heard.notes == ["training.steps was 23 and is 26: the cosine schedule follows it"]


@pytest.mark.parametrize(
    ("changed", "settings", "said"),
    [
        ({"rate": 0.06}, {}, r"^training\.rate was 0\.05 when this run started and is 0\.06 now"),
        ({"accumulate": 1}, {}, r"^training\.accumulate was 2 .* is 1 now"),
        ({}, {"size": 8}, r"^model\.size was 7 .* is 8 now"),
        ({}, {"depth": 2}, r"^model\.depth was not given .* is 2 now"),
    ],
)
def test_a_changed_key_is_named(tmp_path, changed, settings, said):
    with pytest.raises(CrashError):
        train(tmp_path, reporter=RecordingReporter(2, crash))
    before = left(tmp_path)
    now = job(settings={"model": {"kind": "toy", "size": 7, **settings}})
    with pytest.raises(ConfigError, match=said) as error:
        run(tmp_path, now, dataclasses.replace(OPTIONS, **changed))
    assert "training.save_every" in str(error.value)
    assert left(tmp_path) == before


def test_changed_data_is_named(tmp_path):
    with pytest.raises(CrashError):
        train(tmp_path, reporter=RecordingReporter(2, crash))
    with pytest.raises(RunError, match="the data 'train' has changed since this run started"):
        run(tmp_path, job(data={"train": "abd"}), OPTIONS)


def test_another_number_of_threads_is_noted(tmp_path):
    with pytest.raises(CrashError):
        train(tmp_path, reporter=RecordingReporter(6, crash))
    heard = RecordingReporter()
    before = torch.get_num_threads()
    train(tmp_path, dataclasses.replace(OPTIONS, threads=2), reporter=heard)
    assert len(heard.notes) == 1
    assert re.search("no longer bit-identical: threads was 1 and is 2$", heard.notes[0])
    assert torch.get_num_threads() == before


def test_patience_ends_a_run_and_more_of_it_resumes(tmp_path):
    options = dataclasses.replace(OPTIONS, patience=2, watch="luck")
    heard = RecordingReporter()
    # luck is step % 3 after steps 4, 8, 12 …: 1, 2, 0, 1
    outcome = train(tmp_path, options, reporter=heard)
    assert (outcome.ending, outcome.step, outcome.best.step) == ("stopped early", 16, 8)
    assert heard.bests == [4, 8]
    assert {"step-00000008", "step-00000015", "step-00000016"} == {
        path.name for path in (tmp_path / "checkpoints").iterdir()
    }
    assert train(tmp_path, options).ending == "finished before"
    more = dataclasses.replace(options, patience=3)
    assert train(tmp_path, more).step == 20


def test_the_best_is_loaded_with_its_averaged_weights(tmp_path):
    judged = {}

    def validate(model, step):
        assert not model.training
        judged[step] = {name: p.detach().clone() for name, p in model.named_parameters()}
        return Validation({"loss": abs(step - 9)}, ["a → b"])

    heard = RecordingReporter()
    run(tmp_path, job(validate=validate), OPTIONS, heard)
    assert heard.bests == [4, 8]
    found = Checkpoints(tmp_path).best()
    assert (found.step, found.notes) == (8, [])
    model = Toy()
    assert load_weights(model, found)
    for name, parameter in model.named_parameters():
        assert torch.equal(parameter, judged[8][name])
    assert not load_weights(model, found, averaged=False)
    assert not torch.equal(model.hidden.weight, judged[8]["hidden.weight"])
    assert b'"samples": ["a \xe2\x86\x92 b"]' in (tmp_path / "log.jsonl").read_bytes()


def test_a_validation_that_is_not_a_number_is_never_best(tmp_path):
    values = iter([float("nan"), 3.0, float("nan"), 2.0, 5.0, 4.0])
    validate = lambda model, step: {"loss": next(values)}
    heard = RecordingReporter()
    run(tmp_path, job(validate=validate), OPTIONS, heard)
    assert heard.bests == [8, 16]
    for line in (tmp_path / "log.jsonl").read_text().splitlines():
        json.loads(line, parse_constant=crash)


def test_a_score_to_watch_that_is_none_names_the_nearest(tmp_path):
    options = dataclasses.replace(OPTIONS, watch="lucky")
    with pytest.raises(ConfigError, match=r"watch is 'lucky', but .* are loss, luck. Give luck"):
        train(tmp_path, options)


def test_a_run_without_validation_or_average_resumes_too(tmp_path):
    options = dataclasses.replace(OPTIONS, ema=0.0)
    run(tmp_path / "whole", job(validate=None), options)
    with pytest.raises(CrashError):
        run(tmp_path / "parts", job(validate=None), options, RecordingReporter(13, crash))
    run(tmp_path / "parts", job(validate=None), options)
    assert left(tmp_path / "parts") == left(tmp_path / "whole")
    assert Checkpoints(tmp_path / "parts").best().step == 23


def test_a_folder_that_is_no_run_is_left_alone(tmp_path):
    log = tmp_path / "log.jsonl"
    log.write_text("mine\n")
    with pytest.raises(RunError, match=r"has a log\.jsonl but no checkpoint"):
        train(tmp_path)
    assert log.read_text() == "mine\n"
    with pytest.raises(RunError, match=r"log\.jsonl cannot be created: File exists"):
        train(log)
    with pytest.raises(RunError, match="has no checkpoint"):
        Checkpoints(tmp_path).best()


def test_a_device_that_is_not_there_is_named(tmp_path):
    for name in ("cuda:77", "gpu"):
        options = dataclasses.replace(OPTIONS, device=name)
        with pytest.raises(ConfigError, match=f"training.device is '{name}', which cannot be used"):
            train(tmp_path, options)


def test_a_record_says_where_and_what(whole):
    record = RunState.from_json(whole["record.json"], "record.json")
    assert (record.step, record.log) == (23, len(whole["log"]))
    # 7 batches an epoch, 2 an update: 23 updates are 5 epochs and 3 updates
    assert (record.epoch, record.position) == (5, 3)
    assert record.identity.threads == 1
    assert record.identity.versions["torch"] == torch.__version__
    assert record.to_json() == whole["record.json"]
