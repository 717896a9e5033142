"""Pairs and links as files: what was drawn can be read back, and nobody's file is lost."""

import re
from pathlib import Path

import pytest

from regard.seq2seq.errors import DataError
from regard.tasks.dates import Example, draw, held_out, links_path, write, write_pairs
from regard.tasks.dates import files as files_of_dates
from regard.tasks.dates.example import Link

COUNTS = {"train": 53, "valid": 11, "test": 7}


def lines(path: Path) -> list[str]:
    """A line ends at a newline and nowhere else; the last one too."""
    *found, rest = path.read_bytes().decode().split("\n")
    assert rest == ""
    return found


def links(line: str) -> tuple[set[Link], set[Link]]:
    """Sure and possible ones, read by other means than they were written with."""
    found = [re.fullmatch(r"(\d+)([-p])(\d+)", word) for word in line.split(" ")]
    read = [(int(match[1]), match[2], int(match[3])) for match in found if match]
    assert len(read) == len(found)
    sure = {(source, target) for source, kind, target in read if kind == "-"}
    return sure, {(source, target) for source, _, target in read}


def test_what_was_written_is_what_was_drawn(tmp_path: Path) -> None:
    paths = write(tmp_path / "new" / "folder", **COUNTS, seed=3)
    assert list(paths) == list(COUNTS)
    for split, path in paths.items():
        examples = draw(COUNTS[split], 3, split)
        pairs = [(example.source, example.target) for example in examples]
        assert [tuple(line.split("\t")) for line in lines(path)] == pairs
        expected = [(example.sure, example.possible) for example in examples]
        assert [links(line) for line in lines(links_path(path))] == expected


def test_the_form_of_the_links() -> None:
    example = Example("5月3日1979年", "1979-05-03", "ja", "month first", ((4, 8), (0, 1), (2, 3)))
    assert files_of_dates.pharaoh(example) == (
        "0p5 0-6 2p8 2-9 4-0 4p1 4p2 4p3 5p0 5-1 5p2 5p3 6p0 6p1 6-2 6p3 7p0 7p1 7p2 7-3"
    )


def test_only_pairs_and_links_are_left_in_the_folder(tmp_path: Path) -> None:
    write(tmp_path, **COUNTS, seed=3)
    names = {f"{split}.{end}" for split in COUNTS for end in ("tsv", "links")}
    assert {path.name for path in tmp_path.iterdir()} == names


def test_writing_again_changes_nothing(tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in write(tmp_path, **COUNTS, seed=3).values()}
    write(tmp_path, **COUNTS, seed=3)
    assert {path: path.read_bytes() for path in before} == before


def test_a_file_of_somebody_else_is_kept(tmp_path: Path) -> None:
    mine = tmp_path / "train.tsv"
    mine.write_text("mine\tmeins\n")
    with pytest.raises(DataError, match=r"train\.tsv exists already, with other content"):
        write(tmp_path, **COUNTS, seed=3)
    assert mine.read_text() == "mine\tmeins\n"
    assert list(tmp_path.iterdir()) == [mine]


def test_a_folder_that_is_a_file_is_named(tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.write_text("")
    with pytest.raises(DataError, match=r"taken.*cannot be written.*name another folder"):
        write(taken, **COUNTS, seed=3)


def test_other_examples_go_where_one_likes(tmp_path: Path) -> None:
    examples = held_out(5, 1)
    path = write_pairs(tmp_path / "held_out.tsv", examples)
    assert [line.split("\t")[1] for line in lines(path)] == [e.target for e in examples]
    assert len(lines(links_path(path))) == 5


def test_two_dates_across_splits_leave_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = ((4, 8), (0, 1), (2, 3))
    dates = {"train": "1979-05-03", "valid": "1979-05-04", "test": "1979-03-05"}

    def clash(count: int, seed: int, split: str) -> list[Example]:
        text = "5/4/1979" if split == "valid" else "5/3/1979"
        return [Example(text, dates[split], "en", "short", places)]

    monkeypatch.setattr(files_of_dates, "draw", clash)
    with pytest.raises(DataError, match="'5/3/1979' has two dates: 1979-05-03"):
        write(tmp_path / "none", 1, 1, 1, seed=3)
    assert not (tmp_path / "none").exists()
