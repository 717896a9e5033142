"""One date as people write it, its ISO form, and the gold alignment of their characters."""

from collections.abc import Iterator
from dataclasses import dataclass

from regard.seq2seq.alignment import Link
from regard.seq2seq.batch import Span

ISO = ((0, 4), (5, 7), (8, 10))
"""Where year, month and day lie in YYYY-MM-DD."""


@dataclass(frozen=True, slots=True)
class Example:
    """A pair of dates. Links are computed when asked for: there are about forty."""

    source: str
    target: str
    language: str
    """Its code: "de"."""

    form: str
    """How it is written: "long", "medium, native digits"."""

    spans: tuple[Span, Span, Span]
    """Where year, month and day lie in the source."""

    @property
    def sure(self) -> frozenset[Link]:
        """Each digit with the same digit; none of a year of another era."""
        return frozenset(self._digits())

    @property
    def possible(self) -> frozenset[Link]:
        """Each character of a year, month or day with each of its ISO form; the sure links too.

        Hyphens, weekdays, eras and commas are not linked.
        """
        return frozenset(
            (source, target)
            for (start, end), (iso_start, iso_end) in zip(self.spans, ISO, strict=True)
            for source in range(start, end)
            for target in range(iso_start, iso_end)
        )

    def _digits(self) -> Iterator[Link]:
        """Units with units, tens with tens, wherever the source has the number in digits."""
        for (start, end), (iso_start, iso_end) in zip(self.spans, ISO, strict=True):
            digits = [index for index in range(start, end) if self.source[index].isdecimal()]
            number = "".join(self.source[index] for index in digits)
            if digits and int(number) == int(self.target[iso_start:iso_end]):
                yield from zip(
                    reversed(digits), range(iso_end - 1, iso_start - 1, -1), strict=False
                )
