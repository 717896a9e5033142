"""The valid items of a corpus; invalid ones are an error, or skipped and counted."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar, final, overload

from regard.seq2seq.batch import Corpus
from regard.seq2seq.data.fault_text import format_fault
from regard.seq2seq.errors import DataError

OnBadInput = Literal["error", "skip"]
Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Clean:
    """The valid items of a corpus."""

    numbers: list[int]
    """Numbers of the valid items."""

    skipped: Mapping[str, int]
    """Counts of invalid items by the kind of their first fault."""

    warnings: Mapping[str, int]
    """Counts of faults that are only warnings, by kind."""


def clean(corpus: Corpus[object], on_bad_input: OnBadInput = "error") -> Clean:
    """The valid items; an invalid one is an error, or is skipped and counted.

    A fault of a whole file is always an error: there is no line to skip.
    """
    skipped: dict[int, str] = {}
    warnings: Counter[str] = Counter()
    for fault in corpus.faults():
        if not fault.severe:
            warnings[fault.kind] += 1
        elif fault.item is None:
            raise DataError(f"{format_fault(fault)}. Fix the file; regard check lists all faults.")
        elif on_bad_input == "error":
            raise DataError(
                f"{format_fault(fault)}. List all faults with regard check; fix them, or skip "
                "such lines with --on-bad-input skip."
            )
        else:
            skipped.setdefault(fault.item, fault.kind)
    numbers = [number for number in range(len(corpus)) if number not in skipped]
    if not numbers:
        raise DataError(
            f"none of the {len(corpus)} items is valid. See their faults with regard check."
        )
    return Clean(numbers, Counter(skipped.values()), warnings)


@final
class ValidatedCorpus(Sequence[Item], Generic[Item]):
    """All items of a corpus, read lazily; a severe fault is an error."""

    def __init__(self, corpus: Corpus[Item]) -> None:
        for fault in corpus.faults(duplicates=False):
            if fault.severe:
                raise DataError(f"{format_fault(fault)}. Fix it; regard check lists all faults.")
        self.corpus = corpus

    def __len__(self) -> int:
        return len(self.corpus)

    @overload
    def __getitem__(self, number: int) -> Item: ...
    @overload
    def __getitem__(self, number: slice) -> list[Item]: ...
    def __getitem__(self, number: int | slice) -> Item | list[Item]:
        if isinstance(number, slice):
            return [self[each] for each in range(*number.indices(len(self)))]
        return self.corpus[number]
