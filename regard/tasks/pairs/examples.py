"""The pairs that a run learns from, and those that it is judged by."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from regard.seq2seq.data import Clean, Pair, PairCorpus, ValidatedPairs, clean, open_pairs, split
from regard.seq2seq.errors import ConfigError
from regard.tasks.config.data import FilesConfig, PairDataConfig


@dataclass(frozen=True, slots=True)
class Examples:
    """Pairs, told apart by what they are for."""

    corpus: PairCorpus
    numbers: list[int]
    """Those of the corpus that are learned from."""

    valid: list[Pair]
    hashes: Mapping[str, str]
    """Of the files, by what they are for."""

    notes: list[str]
    """What was skipped, and what somebody may want to look at."""

    def sources(self) -> list[str]:
        """The sources that are learned from."""
        return [self.corpus[number].source for number in self.numbers]

    def targets(self) -> list[str]:
        """Their targets."""
        return [self.corpus[number].target or "" for number in self.numbers]


def open_examples(data: FilesConfig) -> Examples:
    """Open the files of a configuration, and part what is learned from what is not.

    Whatever its seed, a run on these files keeps the same pairs to validate on: runs can be
    compared, and vote together, for none has learned from what another is judged by. Where nothing
    is split off and no other file is named, what is learned from is validated on, too.
    """
    corpus = open_files(data.train, data)
    usable = clean(corpus, data.on_bad_input)
    notes, hashes = _notes(usable, data.train), {"train": corpus.fingerprint()}
    if data.valid:
        other = open_files(data.valid, data)
        kept = clean(other, data.on_bad_input)
        notes += _notes(kept, data.valid)
        hashes["valid"] = other.fingerprint()
        valid = [other[number] for number in kept.numbers]
        return Examples(corpus, usable.numbers, valid, hashes, notes)
    if not isinstance(data, PairDataConfig):
        valid = [corpus[number] for number in usable.numbers]
        return Examples(corpus, usable.numbers, valid, hashes, notes)
    sources = (corpus[number].source for number in usable.numbers)
    parted = split(sources, share=data.valid_share)
    numbers = [usable.numbers[place] for place in parted.train]
    valid = [corpus[usable.numbers[place]] for place in parted.valid]
    return Examples(corpus, numbers, valid, hashes, notes)


def open_files(paths: Sequence[str], data: FilesConfig) -> PairCorpus:
    """Files of pairs as the configuration says they are written."""
    if not paths:
        raise ConfigError("data.train names no file. Give one: --data pairs.tsv.")
    return open_pairs(paths, fields=(data.fields[0], data.fields[1]))


def open_given(data: FilesConfig, paths: Sequence[str]) -> ValidatedPairs:
    """Pairs from other files that are written as those of a run; raise if one is bad."""
    # However long: what a model is asked about is bounded by its tokens, line by line.
    fields = data.fields[0], data.fields[1]
    return ValidatedPairs(open_pairs(paths, fields=fields, longest=sys.maxsize))


def _notes(found: Clean, paths: Sequence[str]) -> list[str]:
    where = ", ".join(paths)
    skipped = [f"{where}: skipped {count}, {kind}" for kind, count in found.skipped.items()]
    return skipped + [f"{where}: {kind}, {count}" for kind, count in found.warnings.items()]
