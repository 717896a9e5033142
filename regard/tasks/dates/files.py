"""Examples as files: pairs in TSV, and beside them the gold links in Pharaoh's form.

A line of links belongs to the same line of pairs. `7-0` is a sure link from character 7 of the
source to character 0 of the target, `3p5` one that is possible and no more; both count from 0,
and every sure link is possible too. Sorted, with spaces between:

    1979年5月3日 ⇥ 1979-05-03        0-0 0p1 0p2 0p3 1p0 1-1 … 5p5 5-6 7p8 7-9
"""

import os
from collections.abc import Sequence
from pathlib import Path

from regard.seq2seq.errors import DataError
from regard.tasks.dates.drawing import check_one_date_each, draw
from regard.tasks.dates.example import Example


def write(folder: Path | str, train: int, valid: int, test: int, seed: int) -> dict[str, Path]:
    """Draw so many examples for each purpose and write them: `train.tsv`, `train.links` and so on.

    What comes back is where the pairs are, by purpose. That no string has two dates is asserted
    over all of them before anything is written.
    """
    counts = {"train": train, "valid": valid, "test": test}
    drawn = {purpose: draw(count, seed, purpose) for purpose, count in counts.items()}
    check_one_date_each(example for examples in drawn.values() for example in examples)
    return {
        purpose: write_pairs(Path(folder) / f"{purpose}.tsv", examples)
        for purpose, examples in drawn.items()
    }


def write_pairs(path: Path | str, examples: Sequence[Example]) -> Path:
    """Write pairs, and their links beside them. A file that says something else stays as it is."""
    pairs = Path(path)
    _write(pairs, [f"{example.source}\t{example.target}" for example in examples])
    _write(links_beside(pairs), [pharaoh(example) for example in examples])
    return pairs


def links_beside(pairs: Path | str) -> Path:
    """Where the links of a file of pairs are: `train.links` for `train.tsv`."""
    return Path(pairs).with_suffix(".links")


def pharaoh(example: Example) -> str:
    """The links of one example, in a line."""
    sure = example.sure
    return " ".join(
        f"{source}{'-' if (source, target) in sure else 'p'}{target}"
        for source, target in sorted(example.possible)
    )


def _write(path: Path, lines: Sequence[str]) -> None:
    """Whole or not at all, so that what a killed process left is not taken for somebody's own."""
    content = "".join(f"{line}\n" for line in lines).encode()
    try:
        if path.exists() and path.read_bytes() != content:
            raise DataError(
                f"{path} is there already and holds something else: "
                "name another folder, or move it away."
            )
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_name(f"{path.name}.part")
        unfinished.write_bytes(content)
        os.replace(unfinished, path)
    except OSError as error:
        raise DataError(
            f"{path} cannot be written ({error.strerror}): name another folder."
        ) from error
