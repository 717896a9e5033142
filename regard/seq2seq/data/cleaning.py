"""Which items of a corpus can be used, and what to do about the others."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from regard.seq2seq.batch import Corpus
from regard.seq2seq.data.fault_text import format_fault
from regard.seq2seq.errors import DataError

OnBadInput = Literal["error", "skip"]


@dataclass(frozen=True, slots=True)
class Clean:
    """What is left of a corpus."""

    numbers: list[int]
    """The items that can be used."""

    skipped: Mapping[str, int]
    """How many cannot, each counted once, by the kind of its first fault."""

    warnings: Mapping[str, int]
    """How often something was found that need not stop anybody."""


def clean(corpus: Corpus[object], on_bad_input: OnBadInput = "error") -> Clean:
    """The items that can be used; an item that cannot is an error, or is skipped and counted.

    What is wrong with a file as a whole is always an error: there is no line to skip.
    """
    skipped: dict[int, str] = {}
    warnings: Counter[str] = Counter()
    for fault in corpus.faults():
        if not fault.severe:
            warnings[fault.kind] += 1
        elif fault.line is None:
            raise DataError(
                f"{format_fault(fault)}. Mend the file; regard check shows all there is."
            )
        elif on_bad_input == "error":
            raise DataError(
                f"{format_fault(fault)}. See all with regard check; mend them, or leave "
                "such lines out "
                "with --on-bad-input skip."
            )
        else:
            skipped.setdefault(fault.line - 1, fault.kind)
    numbers = [number for number in range(len(corpus)) if number not in skipped]
    if not numbers:
        raise DataError(
            f"of {len(corpus)} items none can be used. See what is wrong with them: regard check."
        )
    return Clean(numbers, Counter(skipped.values()), warnings)
