"""A split by the source: duplicates never cross, and the same is the same everywhere."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.attention.core.errors import OptionError
from regard.seq2seq.data import split
from regard.seq2seq.errors import DataError

many = st.lists(st.text(max_size=3), min_size=2, max_size=50).filter(
    lambda found: len(set(found)) > 1
)


@given(many, st.one_of(st.floats(0.01, 0.99), st.integers(1, 30)), st.integers(-9, 9))
def test_duplicates_never_cross(sources: list[str], much: float, seed: int) -> None:
    by = {"count": much} if isinstance(much, int) else {"share": much}
    train, valid = split(sources, **by, seed=seed)
    assert sorted(train + valid) == list(range(len(sources)))
    assert train
    assert valid
    assert not {sources[n] for n in train} & {sources[n] for n in valid}
    second = split(iter(sources), **by, seed=seed)
    assert second == (train, valid)


def test_share_and_count_are_kept() -> None:
    sources = [f"source {n}" for n in range(10_000)]
    assert 900 < len(split(sources, share=0.1, seed=1).valid) < 1100
    assert len(split(sources, count=500, seed=1).valid) == 500
    assert len(split(sources * 2, count=501, seed=1).valid) == 500
    assert split(sources, count=500, seed=1) != split(sources, count=500, seed=2)


def test_by_share_an_item_stays_where_it_is_when_the_file_grows() -> None:
    sources = [f"source {n}" for n in range(2000)]
    small, large = split(sources[:1000], share=0.2, seed=3), split(sources, share=0.2, seed=3)
    assert [n for n in large.valid if n < 1000] == small.valid


def test_it_is_the_same_for_ever() -> None:
    # Written down: a run that is resumed elsewhere must validate on the same items.
    sources = [str(n) for n in range(40)]
    assert split(sources, share=0.2, seed=7).valid == [20, 21, 24]
    hashes = [hashlib.blake2b(f"7\0{source}".encode(), digest_size=8) for source in sources]
    assert [n for n in range(40) if int(hashes[n].hexdigest(), 16) < 0.2 * 2**64] == [20, 21, 24]


def test_what_cannot_be_parted() -> None:
    with pytest.raises(DataError, match="3 items with 1 different sources"):
        split(["a", "a", "a"], share=0.5)
    with pytest.raises(OptionError, match="Give one of the two"):
        split(["a", "b"])
    with pytest.raises(OptionError, match="share is 1"):
        split(["a", "b"], share=1.0)
