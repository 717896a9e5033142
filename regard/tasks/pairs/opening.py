"""Open files of pairs by a task's configuration."""

import sys
from collections.abc import Iterator, Sequence

from regard.seq2seq.batch import Fault
from regard.seq2seq.data import (
    Pair,
    PairCorpus,
    build_tokenizers,
    open_pairs,
    open_sources,
    unknown_characters,
)
from regard.tasks.config.data import PairFilesConfig


def open_pair_files(data: PairFilesConfig, paths: Sequence[str]) -> PairCorpus:
    """Files of pairs."""
    return open_pairs(paths, fields=(data.fields[0], data.fields[1]))


def open_gold_pairs(data: PairFilesConfig, paths: Sequence[str]) -> PairCorpus:
    """The same without a limit in characters: inputs of inference are bounded in tokens."""
    return open_pairs(paths, fields=(data.fields[0], data.fields[1]), longest=sys.maxsize)


def open_source_file(data: PairFilesConfig, path: str) -> PairCorpus:
    """Sources alone."""
    return open_sources(path, field=data.fields[0])


def unseen_characters(
    data: PairFilesConfig, train: Sequence[Pair], valid: Sequence[Pair]
) -> Iterator[Fault]:
    """Characters of the validation set that the training set lacks, on either side."""
    if not train:
        return
    source, target = build_tokenizers(
        [pair.source for pair in train], [pair.target or "" for pair in train], kind="characters"
    )
    sources = ((pair.line, pair.source) for pair in valid)
    targets = ((pair.line, pair.target or "") for pair in valid)
    yield from unknown_characters(source, sources, data.valid[0])
    yield from unknown_characters(target, targets, data.valid[-1])
