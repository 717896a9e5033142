"""What is wrong with the pairs of a configuration."""

from collections.abc import Iterator

from regard.seq2seq.data import open_pairs, overlap, told
from regard.seq2seq.errors import ConfigError
from regard.seq2seq.examples import Fault
from regard.tasks.config.data import Data


def checked(data: Data) -> Iterator[tuple[Fault, str]]:
    """Every fault of every file, and a line that tells it."""
    if not data.train:
        raise ConfigError("data.train names no file. Give one: --data pairs.tsv.")
    fields = data.fields[0], data.fields[1]
    corpora = [open_pairs(paths, fields=fields) for paths in (data.train, data.valid) if paths]
    usable = []
    for corpus in corpora:
        bad = set()
        for fault in corpus.faults():
            if fault.severe and fault.line is not None:
                bad.add(fault.line - 1)
            yield fault, told(fault)
        usable.append([corpus[n] for n in range(len(corpus)) if n not in bad])
    if len(corpora) == 2:
        for fault in overlap(usable[0], usable[1], data.valid[0]):
            yield fault, told(fault)
