"""What is wrong with the pairs of a configuration."""

from collections.abc import Iterator

from regard.seq2seq.data import overlap, told
from regard.seq2seq.examples import Fault
from regard.tasks.config.data import Data
from regard.tasks.translate.examples import open_files


def checked(data: Data) -> Iterator[tuple[Fault, str]]:
    """Every fault of every file, and a line that tells it."""
    corpora = [open_files(data.train, data)]
    corpora += [open_files(data.valid, data)] if data.valid else []
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
