"""Nothing that commands a terminal gets through; what people write does."""

import io
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.seq2seq.system.escaping import EscapingStream, escaped, spelled_out, unescaping

BIDI = [chr(code) for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))]
FORBIDDEN = {chr(code) for code in (*range(32), *range(0x7F, 0xA0))} - {"\n", "\t"} | set(BIDI)


@pytest.mark.parametrize("sign", sorted(FORBIDDEN), ids=ascii)
def test_every_control_is_written_out(sign: str) -> None:
    shown = escaped(f"a{sign}b")
    assert shown == f"a{sign.encode('unicode_escape').decode()}b"
    assert shown.isprintable()
    assert escaped(shown) == shown


def test_what_people_write_stays() -> None:
    for text in ("one\ttwo\n", "日本 naïve €", "שלום", "می\u200cخواهم", "👩\u200d🚀", "a\u00a0b"):
        assert escaped(text) == text


def test_isolates_that_end_stay_and_others_do_not() -> None:
    """Pictures of ours have them; one without an end would turn round what follows it."""
    assert escaped("\u2068שלום\u2069 x") == "\u2068שלום\u2069 x"
    assert escaped("\u2068שלום x") == "\\u2068שלום x"
    assert escaped("x\u2069") == "x\\u2069"
    assert escaped("\u2068a\u202eb\u2069") == "\\u2068a\\u202eb\\u2069"
    assert spelled_out("\u2068שלום\u2069\n") == "\\u2068שלום\\u2069\\n"


@given(st.text(st.characters()))
def test_nothing_is_left_of_any_text(text: str) -> None:
    shown = spelled_out(text)
    assert not FORBIDDEN & set(shown)
    assert not any(unicodedata.category(sign) in ("Cc", "Cs") for sign in shown)
    assert not (FORBIDDEN - {"\u2068", "\u2069"}) & set(escaped(text))


def test_a_stream_escapes_whatever_is_written() -> None:
    inner = io.StringIO()
    stream = EscapingStream(inner)
    print("a\x1b[31m", "\u202e", file=stream)
    assert inner.getvalue() == "a\\x1b[31m \\u202e\n"
    assert unescaping(stream) is inner is unescaping(inner)
    assert not stream.isatty()
