"""Examples as files: pairs in TSV, and beside them the gold links in Pharaoh format.

A line of links belongs to the same line of pairs. `7-0` is a sure link from character 7 of the
source to character 0 of the target, `3p5` one that is only possible; both count from 0, and every
sure link is possible too. Links are sorted and separated by spaces:

    1979年5月3日 ⇥ 1979-05-03        0-0 0p1 0p2 0p3 1p0 1-1 … 5p5 5-6 7p8 7-9
"""

import os
from collections.abc import Sequence
from pathlib import Path

from regard.seq2seq.errors import DataError
from regard.tasks.dates.example import Example
from regard.tasks.dates.sampling import check_unambiguous, draw


def write(folder: Path | str, train: int, valid: int, test: int, seed: int) -> dict[str, Path]:
    """Draw so many examples of each split and write them: `train.tsv`, `train.links` and so on.

    Returns the path of the pairs of each split. That no string has two dates is checked over all
    of them before anything is written.
    """
    counts = {"train": train, "valid": valid, "test": test}
    examples = {split: draw(count, seed, split) for split, count in counts.items()}
    check_unambiguous(example for each in examples.values() for example in each)
    return {
        split: write_pairs(Path(folder) / f"{split}.tsv", each) for split, each in examples.items()
    }


def write_pairs(path: Path | str, examples: Sequence[Example]) -> Path:
    """Write pairs, and their links beside them. A file with other content is not overwritten."""
    pairs = Path(path)
    _write(pairs, [f"{example.source}\t{example.target}" for example in examples])
    _write(links_path(pairs), [pharaoh(example) for example in examples])
    return pairs


def links_path(pairs: Path | str) -> Path:
    """The file of links beside a file of pairs: `train.links` for `train.tsv`."""
    return Path(pairs).with_suffix(".links")


def pharaoh(example: Example) -> str:
    """The links of one example, in a line."""
    sure = example.sure
    return " ".join(
        f"{source}{'-' if (source, target) in sure else 'p'}{target}"
        for source, target in sorted(example.possible)
    )


def _write(path: Path, lines: Sequence[str]) -> None:
    """Atomically, so that a killed process leaves no partial file."""
    content = "".join(f"{line}\n" for line in lines).encode()
    try:
        if path.exists() and path.read_bytes() != content:
            raise DataError(
                f"{path} exists already, with other content: name another folder, or move it away."
            )
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f"{path.name}.part")
        partial.write_bytes(content)
        os.replace(partial, path)
    except OSError as error:
        raise DataError(
            f"{path} cannot be written ({error.strerror}): name another folder."
        ) from error
