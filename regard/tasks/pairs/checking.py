"""What is wrong with the pairs of a configuration."""

from collections.abc import Iterator, Sequence

from regard.seq2seq.batch import Fault
from regard.seq2seq.data import Pair, build_tokenizers, format_fault, overlap, unknown_characters
from regard.tasks.config.data import FilesConfig, PairDataConfig
from regard.tasks.pairs.examples import open_files
from regard.tasks.pairs.links import open_links


def checked(data: FilesConfig) -> Iterator[tuple[Fault, str]]:
    """Every fault of every file, and a line that tells it."""
    corpora = [open_files(data.train, data)]
    corpora += [open_files(data.valid, data)] if data.valid else []
    usable = []
    for corpus in corpora:
        bad = set()
        for fault in corpus.faults():
            if fault.severe and fault.line is not None:
                bad.add(fault.line - 1)
            yield fault, format_fault(fault)
        usable.append([corpus[n] for n in range(len(corpus)) if n not in bad])
        if isinstance(data, PairDataConfig) and data.links and corpus is corpora[0]:
            good = (number for number in range(len(corpus)) if number not in bad)
            for fault in open_links(data, corpus).faults(good):
                yield fault, format_fault(fault)
    if len(corpora) == 2:
        for fault in _between(usable[0], usable[1], data.valid):
            yield fault, format_fault(fault)


def _between(train: Sequence[Pair], valid: Sequence[Pair], paths: Sequence[str]) -> Iterator[Fault]:
    """What is wrong with validation for who learns from the other: known already, or unheard of."""
    yield from overlap(train, valid, paths[0])
    if not train:
        return
    source, target = build_tokenizers(
        [pair.source for pair in train], [pair.target or "" for pair in train], kind="characters"
    )
    yield from unknown_characters(source, ((pair.line, pair.source) for pair in valid), paths[0])
    yield from unknown_characters(
        target, ((pair.line, pair.target or "") for pair in valid), paths[-1]
    )
