"""Names in sentences."""

from collections.abc import Sequence
from difflib import get_close_matches


def dotted(path: Sequence[str]) -> str:
    """A path with dots."""
    return ".".join(path)


def listed(names: Sequence[str], last: str = "and") -> str:
    """Names in a sentence.

    >>> listed(["dot", "cosine", "additive"])
    'dot, cosine and additive'
    """
    return f" {last} ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)


def nearest(name: str, names: Sequence[str]) -> str | None:
    """The closest of some names, if any is close."""
    return next(iter(get_close_matches(name, names, 1)), None)


def one_line(text: str) -> str:
    """The same without line breaks: a key in quotes, say, may hold anything."""
    return " ".join(text.split())


def shortened(text: str, longest: int = 80) -> str:
    """Truncated to `longest` characters."""
    return text if len(text) <= longest else f"{text[:longest]}…"
