"""The suite measures in turn, writes a summary, and its pages show that and nothing else."""

import importlib
import json
import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks import __main__ as command
from benchmarks import limits, measure, race, report, results, suite, tables
from benchmarks.measure import FailedError, Plan, Sample
from benchmarks.peers import without_places
from benchmarks.race import Contestant
from benchmarks.settings import Settings, promise

ONE_CALL = Plan(rounds=3, seconds=0.0, most=3, repetition=0.0, warmups=1)
NUMBER = re.compile(r"\d[\d.,]*")


class Clock:
    """Time that passes only when someone works."""

    def __init__(self) -> None:
        self.now = 0.0
        self.order: list[str] = []

    def __call__(self) -> float:
        return self.now

    def worker(self, name: str, *seconds: float) -> measure.Runner:
        """A function that takes these seconds, call after call, then the last ones repeated."""
        left = list(seconds)

        def work() -> None:
            self.now += left.pop(0) if len(left) > 1 else left[0]
            self.order.append(name)

        return measure.timed(work, self, self)


def test_they_take_turns_and_each_round_another_one_begins() -> None:
    clock = Clock()
    runners = {name: clock.worker(name, 1.0) for name in "abc"}
    measure.interleave(runners, ONE_CALL, clock)
    warmed_and_counted = 2 * len(runners)
    assert clock.order[warmed_and_counted:] == list("abcbcacab")


def test_a_median_is_that_of_the_rounds_without_the_warm_up() -> None:
    clock = Clock()
    found = measure.interleave({"a": clock.worker("a", 99.0, 99.0, 5.0, 1.0, 3.0)}, ONE_CALL, clock)
    walls = [sample.wall for sample in found.samples["a"]]
    assert walls == [5.0, 1.0, 3.0]
    assert measure.spread(walls) == {"median": 3.0, "low": 1.4, "high": 4.6}


def test_it_goes_on_while_there_is_time_but_not_for_ever() -> None:
    for most, expected in ((100, 7), (5, 5)):
        clock = Clock()
        plan = Plan(rounds=2, seconds=13.0, most=most, repetition=0.0, warmups=0)
        found = measure.interleave({"a": clock.worker("a", 2.0)}, plan, clock)
        assert len(found.samples["a"]) == expected


def test_long_rounds_are_fewer_but_never_less_than_three() -> None:
    for longest, expected in ((5.0, 3), (25.0, 5)):
        clock = Clock()
        plan = Plan(9, seconds=0.0, most=9, repetition=0.0, warmups=9, longest=longest)
        found = measure.interleave({"a": clock.worker("a", 5.0)}, plan, clock)
        assert len(found.samples["a"]) == expected
        assert len(clock.order) == expected + 2  # one to warm up, one to count the calls


def test_short_calls_fill_a_repetition() -> None:
    clock = Clock()
    plan = Plan(rounds=1, seconds=0.0, most=1, repetition=1.0, warmups=0)
    found = measure.interleave({"a": clock.worker("a", 0.125)}, plan, clock)
    assert found.calls["a"] == 8
    assert found.samples["a"] == [Sample(0.125, 0.125, found.samples["a"][0].faults)]


def test_who_fails_is_out_and_says_why() -> None:
    clock = Clock()
    calls = iter(range(99))

    def fails(_: int) -> Sample:
        if next(calls) == 3:
            raise FailedError("no more memory")
        return Sample(1.0, 1.0)

    found = measure.interleave({"bad": fails, "good": clock.worker("good", 1.0)}, ONE_CALL, clock)
    assert found.failures == {"bad": "no more memory"}
    assert "bad" not in found.samples
    assert len(found.samples["good"]) == 3


def test_results_come_back_as_they_were(tmp_path: Path) -> None:
    results.write(tmp_path, {"name": "dot", "rows": []})
    other = made_up()
    results.write(tmp_path, other)
    assert results.read(tmp_path) == {"dot": other}
    assert [path.name for path in tmp_path.iterdir()] == ["dot.json"]


def test_a_file_has_one_line_a_case_and_no_rounds(tmp_path: Path) -> None:
    raw = made_up()
    for row in raw["rows"][:2]:
        row |= {"samples": [[1.0, 2.0, 3]], "calls": 7, "times_cpu": row["wall"]}
    raw["rows"][1] |= {"cpu": row["wall"], "share": {"fma": row["wall"]}, "over_one": row["wall"]}
    path = results.write(tmp_path, raw)
    assert results.read(tmp_path) == {"dot": made_up()}
    rows = path.read_text().partition('"rows": [\n')[2].splitlines()
    assert len(rows) == 3  # one case of three sides, and two brackets
    assert json.loads(results.write_raw(tmp_path / "raw", raw).read_text()) == raw


def made_up() -> results.Result:
    def spread(median: float, low: float, high: float) -> dict[str, float]:
        return {"median": median, "low": low, "high": high}

    case = {"score": "Dot", "heads": 7, "length": 531, "step": "forward", "threads": 3}
    wall = {"wall": spread(0.0172, 0.0161, 0.0188)}
    ours = {**wall, "cpu": spread(0.051, 0.049, 0.053)}
    share = {"fma": spread(0.437, 0.42, 0.45)}
    times = {"times": spread(1.37, 1.31, 1.44), "better": True}
    return {
        "name": "dot", "quick": False,
        "date": "2031-02-03 04:05:06 UTC", "commit": "abcdef",
        "machine": {"cpu": "a CPU", "cores": 11, "flags": ["fma"], "memory": 13 * 2**30,
                    "system": "Linux", "libc": "glibc", "load": [0.25, 0.5, 0.75]},
        "threads": [3], "plan": {}, "about": {},
        "versions": {"here": {"python": "8.9", "torch": "77.1"}},
        "promises": [promise("dots", [{"x": 0.83}], lambda row: row["x"], at_least=0.95)],
        "rows": [
            {"case": case, "who": "regard", **ours, "share": share},
            {"case": case, "who": "a peer", **wall, **times},
            {"case": case, "who": "another", "failed": "not installable: no such thing"},
        ],
    }  # fmt: skip


def written(found: dict[str, results.Result], folder: Path) -> dict[str, str]:
    """The pages by their names."""
    front = report.write(found, folder)
    topics = sorted((folder / "benchmarks").iterdir())
    return {str(path.relative_to(folder)): path.read_text() for path in (front, *topics)}


def test_the_pages_have_these_numbers_and_no_others(tmp_path: Path) -> None:
    pages = written({"dot": made_up()}, tmp_path)
    assert list(pages) == ["benchmarks.md", "benchmarks/dot.md"]
    front, page = pages.values()
    assert "17.2 ms (16.1–18.8)" in page
    assert "**1.37 × (1.31–1.44)**" in page
    assert "43.7 %" in page
    assert "another: not installable: no such thing" in page
    assert "| dots | ≥ 0.95 | 0.83 | 1 | **no** |" in page
    shown = """17.2 16.1 18.8 51 49 53 1.37 1.31 1.44 43.7 0.95 0.83 1 7 531 3 0.25
    2031 02 03 04 05 06 8.9 77.1 1"""  # the last: one row did not run
    assert numbers(page) == set(shown.split())
    # The front page: 0 of 1 targets met, one case, and the machine of 11 cores and 13 GiB.
    always = numbers(report.READING)
    assert numbers(front) - always == {"1.37", "0", "1", "0.95", "0.83", "11", "13"} - always
    assert (tmp_path / "images" / "bench-dot.png").stat().st_size > 10_000


def numbers(text: str) -> set[str]:
    return {number.rstrip(".,") for number in NUMBER.findall(text)}


@pytest.mark.parametrize("machine", [".", "intel", "avx2"])
def test_the_pages_are_what_their_results_say(machine: str, tmp_path: Path) -> None:
    """No figure of theirs was written by hand, or is left of results that are gone."""
    folder = results.RESULTS if machine == "." else results.RESULTS / machine
    docs = command.DOCS if machine == "." else folder
    command.pages(folder, tmp_path)
    for names in (("benchmarks.md",), sorted(p.name for p in (docs / "benchmarks").iterdir())):
        for name in names:
            place = name if name == "benchmarks.md" else f"benchmarks/{name}"
            assert (tmp_path / place).read_text() == (docs / place).read_text()
    made = {path.name for path in (tmp_path / "benchmarks").iterdir()}
    assert made == {path.name for path in (docs / "benchmarks").iterdir()}


def test_every_benchmark_has_a_topic() -> None:
    names = [name for _, names in suite.TOPICS.values() for name in names]
    assert sorted(names) == sorted((*suite.NAMES, *suite.TOOLKIT))


def test_the_results_stay_small() -> None:
    """A summary is a row a case: raw rounds go to `--raw FOLDER`."""
    for path in results.RESULTS.rglob("*.json"):
        assert "samples" not in path.read_text()
        assert path.stat().st_size < 100_000


def test_an_empty_page_has_no_numbers(tmp_path: Path) -> None:
    pages = written({}, tmp_path)
    assert list(pages) == ["benchmarks.md"]
    assert numbers(pages["benchmarks.md"]) == numbers(report.READING)


def test_pages_of_results_that_are_gone_go_too(tmp_path: Path) -> None:
    written({"dot": made_up()}, tmp_path)
    assert list(written({}, tmp_path)) == ["benchmarks.md"]


def test_a_quick_result_says_so(tmp_path: Path) -> None:
    pages = written({"dot": {**made_up(), "quick": True}}, tmp_path)
    assert all("quick run of small cases" in page for page in pages.values())


def test_a_page_of_several_machines_says_which_one_each_time(tmp_path: Path) -> None:
    one, other = made_up(), {**made_up(), "name": "decoding"}
    other["machine"] = {**one["machine"], "cpu": "another CPU"}
    pages = written({"dot": one, "decoding": other}, tmp_path)
    assert "*2031-02-03 04:05:06 UTC, a CPU, commit abcdef" in pages["benchmarks/dot.md"]
    assert "*2031-02-03 04:05:06 UTC, another CPU, commit abcdef" in pages["benchmarks/decoding.md"]


def test_times_are_in_the_unit_that_fits() -> None:
    for median, text in ((2.5, "2.5 s"), (0.0421, "42.1 ms"), (7.1e-6, "7.1 µs")):
        spread = {"median": median, "low": median, "high": median}
        assert tables.seconds(spread).startswith(text)


def test_the_machine_has_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CALL", 1e-4)
    outcome = limits.run(Settings(quick=True, threads=(1, 2)))
    rates = {(row["limit"], row["threads"]): row["rate"]["median"] for row in outcome.rows}
    assert set(rates) == {(name, n) for name in limits.LABELS for n in (1, 2)}
    assert min(rates.values()) > 1e6
    assert rates["additive_tanh", 1] < rates["fma", 1]


def test_every_benchmark_is_listed_and_says_what_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--list"]) == 0
    listed = capsys.readouterr().out
    for name in suite.NAMES:
        assert re.search(rf"^{name} +{re.escape(suite.title_of(name))}$", listed, re.M)
        assert callable(suite.module_of(name).run)


def test_a_wrong_name_is_answered_with_the_right_ones(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["dott"])
    assert "additive_length" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("No matching thing (from /a/b-c/d.whl)", "No matching thing (from …)"),
        ("cannot reach https://host.example/simple/x", "cannot reach …"),
        ("1/2 of torch==2.0/x", "1/2 of torch==2.0/x"),
    ],
)
def test_messages_name_no_places(given: str, message: str) -> None:
    assert without_places(given) == message


def test_a_race_in_other_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CALL", 1e-4)
    case = {"score": "ScaledDot", "batch": 2, "keys": 5, "size": 7, "padding": True}
    contestants = [
        Contestant("regard", "ours:step"),
        Contestant("by hand", "plain:step_by_ops"),
        Contestant("wrong", "plain:nothing_of_the_kind"),
        Contestant("a peer", "speechbrain:step", "speechbrain"),
    ]
    with race.working(Settings(quick=True, threads=(1,), peers=False)) as workers:
        rows = race.race(workers, case, contestants, [race.Work("fma", 140.0)])
        ours, by_hand, wrong, peer = rows
        assert [row["who"] for row in rows] == [each.who for each in contestants]
        assert ours["case"] == {**case, "threads": 1}
        assert ours["wall"]["median"] > 0 < ours["share"]["fma"]["median"]
        assert by_hand["times"]["low"] <= by_hand["times"]["median"] <= by_hand["times"]["high"]
        assert "nothing_of_the_kind" in wrong["failed"]
        assert "without peers" in peer["failed"]
        worker = workers.of(contestants[0])
        worker.process.send_signal(signal.SIGKILL)
        with pytest.raises(FailedError, match="its process ended with code -9"):
            worker.order("drop", name="regard")
        assert workers.of(contestants[0]) is not worker  # the next one gets a new process


@pytest.mark.parametrize("name", ["answering", "translating", "bleu", "alignment"])
def test_what_needs_data_says_so_in_one_line(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main([name]) == 2
    assert capsys.readouterr().err.splitlines()[-1].endswith("--data FOLDER")


def test_a_quick_run_from_end_to_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    raw = tmp_path / "raw"
    options = ["--quick", "--no-peers", "--threads", "1", "--out", str(tmp_path), "--raw", str(raw)]
    assert command.main(["distances", "report", *options]) == 0
    result = results.read(tmp_path)["distances"]
    every = json.loads((raw / "distances.json").read_text())
    assert all(len(row["samples"]) == row["rounds"] for row in every["rows"])
    assert result["quick"]
    assert result["promises"] == []  # these are not the cases that were promised
    whos = {row["who"] for row in result["rows"]}
    assert whos == {"regard", "PyTorch by hand"}
    assert all(row["wall"]["median"] > 0 for row in result["rows"])
    assert sum("times" in row for row in result["rows"]) == 4
    for place in (str(tmp_path), str(Path.home()), str(Path.cwd())):
        assert place not in json.dumps(result)
    assert "InverseDistance" in (tmp_path / "benchmarks" / "distances.md").read_text()
    printed = capsys.readouterr()
    assert "distances" in printed.out
    cases = [line for line in printed.err.splitlines() if line.startswith("  ")]
    assert len(cases) == 4  # who waits sees each case when it is done
    assert all("regard" in case and "PyTorch by hand" in case for case in cases)


def test_a_promise_has_the_worst_row() -> None:
    rows = [{"x": 3.0}, {"x": None}, {"x": 2.0}]
    value: Callable[[dict[str, Any]], float | None] = lambda row: row["x"]
    at_least, at_most = (
        promise("a", rows, value, at_least=2.5),
        promise("b", rows, value, at_most=3),
    )
    assert (at_least["worst"], at_least["met"], at_least["rows"]) == (2.0, False, 2)
    assert (at_most["worst"], at_most["met"]) == (3.0, True)
    assert promise("c", [], value, at_least=1)["met"] is False
    assert report.format_promise(at_least) == "a: at least 2.5; worst of 2 rows 2; MISSED"


@pytest.mark.parametrize("path", sorted(Path(suite.__file__).parent.glob("*.py")), ids=str)
def test_every_benchmark_can_be_imported(path: Path) -> None:
    """Most are run by hand only: what they import of the package must be there."""
    importlib.import_module(f"benchmarks.{path.stem}")
