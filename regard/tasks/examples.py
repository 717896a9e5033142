"""The training and validation items of a run."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from regard.seq2seq.batch import Corpus
from regard.seq2seq.data import Clean, clean, split
from regard.seq2seq.errors import ConfigError
from regard.tasks.config.data import DataConfig

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Examples(Generic[Item]):
    """Training and validation items."""

    corpus: Corpus[Item]
    numbers: list[int]
    """The numbers of the training items in the corpus."""

    valid: list[Item]
    hashes: Mapping[str, str]
    """SHA-256 of the files, by role: "train.pairs", "valid.pairs"."""

    notes: list[str]
    """What was skipped, and warnings."""

    def items(self) -> Iterator[Item]:
        """The training items."""
        return (self.corpus[number] for number in self.numbers)


def open_examples(
    data: DataConfig,
    open_files: Callable[[Sequence[str]], Corpus[Item]],
    group: Callable[[Item], str],
    guide: Callable[[Corpus[Item]], Corpus[Item]] = lambda corpus: corpus,
) -> Examples[Item]:
    """Open the files of a configuration, and split off validation items.

    The split does not depend on the seed: runs on the same files can be compared and make an
    ensemble, for none was trained on another's validation items. Without a split and without
    validation files, the training items are the validation items, too.
    """
    if not data.train:
        raise ConfigError("data.train names no file. Give one: --data FILE.")
    corpus = guide(open_files(data.train))
    usable = clean(corpus, data.on_bad_input)
    notes, hashes = _notes(usable, data.train), _hashes("train", corpus)
    if data.valid:
        other = open_files(data.valid)
        kept = clean(other, data.on_bad_input)
        notes += _notes(kept, data.valid)
        hashes |= _hashes("valid", other)
        return Examples(corpus, usable.numbers, [other[n] for n in kept.numbers], hashes, notes)
    if not data.held_out:
        valid = [corpus[number] for number in usable.numbers]
        return Examples(corpus, usable.numbers, valid, hashes, notes)
    parts = split((group(corpus[number]) for number in usable.numbers), share=data.held_out)
    numbers = [usable.numbers[place] for place in parts.train]
    valid = [corpus[usable.numbers[place]] for place in parts.valid]
    return Examples(corpus, numbers, valid, hashes, notes)


def _hashes(role: str, corpus: Corpus[object]) -> dict[str, str]:
    return {f"{role}.{name}": digest for name, digest in corpus.fingerprints().items()}


def _notes(found: Clean, paths: Sequence[str]) -> list[str]:
    where = ", ".join(paths)
    skipped = [f"{where}: skipped {count}, {kind}" for kind, count in found.skipped.items()]
    return skipped + [f"{where}: {kind}, {count}" for kind, count in found.warnings.items()]
