"""One-line messages for faults, and excerpts of texts, safe to print."""

from regard.seq2seq.batch import Fault

WIDTH = 40


def excerpt(text: str, around: int = 0) -> str:
    r"""The text around a position, quoted and escaped, shortened with `…`.

    >>> print(excerpt("a\tb"))
    'a\tb'
    >>> print(excerpt("x" * 99, around=50))
    '…xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…'
    """
    start = max(0, min(around - WIDTH // 2, len(text) - WIDTH))
    before = "…" if start else ""
    after = "…" if start + WIDTH < len(text) else ""
    return repr(before + text[start : start + WIDTH] + after)


def format_fault(fault: Fault) -> str:
    """A fault as one line, with its file and line number.

    >>> format_fault(Fault("empty side", "the target is empty", "pairs.tsv", 7))
    'pairs.tsv, line 7: the target is empty'
    """
    place = fault.path if fault.line is None else f"{fault.path}, line {fault.line}"
    return f"{place}: {fault.message}"
