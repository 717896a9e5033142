"""From weights to links: what each rule promises, whatever the weights."""

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from regard.attention.core.errors import OptionError, ShapeError
from regard.seq2seq.alignment import (
    SYMMETRIES,
    Argmax,
    Links,
    Mutual,
    Threshold,
    product,
    symmetrize,
)
from regard.seq2seq.alignment.links import swapped

pairs = st.tuples(st.integers(0, 4), st.integers(0, 5))
links = st.frozensets(pairs, max_size=12)


@st.composite
def weights(draw: st.DrawFn) -> Tensor:
    shape = draw(st.tuples(st.integers(1, 5), st.integers(1, 5)))
    seed = draw(st.integers(0, 999))
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed)).softmax(-1)


@given(weights())
def test_best_gives_every_target_one_source(soft: Tensor) -> None:
    found = sorted(Argmax()(soft), key=lambda link: link[1])
    assert [target for _, target in found] == list(range(len(soft)))
    assert all(soft[target, source] == soft[target].max() for source, target in found)


@given(weights())
def test_mutual_is_what_both_directions_call_best(soft: Tensor) -> None:
    assert Mutual()(soft) == Argmax()(soft) & swapped(Argmax()(soft.mT))


@given(weights(), st.floats(0, 1), st.floats(0, 1))
def test_a_lower_threshold_never_loses_a_link(soft: Tensor, one: float, other: float) -> None:
    assert Threshold(max(one, other))(soft) <= Threshold(min(one, other))(soft)


def test_who_looks_at_nothing_has_no_link() -> None:
    soft, nothing = torch.tensor([[0.4, 0.0], [0.3, 0.1]]), torch.tensor([0.6, 0.6])
    for rule in (Argmax(), Mutual(), Threshold(0.2)):
        assert rule(soft, nothing) == frozenset()
    assert Argmax(null=0.7)(soft, nothing) == frozenset({(0, 0), (0, 1)})


def test_rows_of_zeros_and_no_rows_have_no_links() -> None:
    assert Argmax()(torch.zeros(2, 3)) == frozenset()
    assert Mutual()(torch.zeros(0, 3)) == Threshold()(torch.zeros(2, 0)) == frozenset()


@pytest.mark.parametrize("wrong", [-0.1, 1.5, float("nan")])
def test_shares_are_shares(wrong: float) -> None:
    for make in (Argmax, Mutual, Threshold):
        with pytest.raises(OptionError):
            make(wrong)


@given(links, links)
def test_symmetries_lie_between_what_both_and_what_either_say(one: Links, other: Links) -> None:
    for rule in SYMMETRIES:
        found = symmetrize(rule, one, other)
        assert one & other <= found <= one | other


@given(links, links)
def test_growing_only_adds(one: Links, other: Links) -> None:
    grown, both, either = (
        symmetrize(rule, one, other)
        for rule in ("grow-diag", "grow-diag-final-and", "grow-diag-final")
    )
    assert grown <= both
    assert grown <= either
    sources, targets = {s for s, _ in either}, {t for _, t in either}
    for source, target in one | other:  # nobody stays alone whom a direction has linked
        assert source in sources
        assert target in targets


@given(links, links)
def test_what_is_grown_touches_what_was_there(one: Links, other: Links) -> None:
    found = symmetrize("grow-diag", one, other)
    near = {
        (s + ds, t + dt) for s, t in found for ds, dt in itertools.product((-1, 0, 1), repeat=2)
        if (ds, dt) != (0, 0)
    }  # fmt: skip
    assert found - (one & other) <= near


def test_koehns_example_grows_along_the_diagonal() -> None:
    forward = frozenset({(0, 0), (1, 1), (2, 1), (3, 3)})
    backward = frozenset({(0, 0), (1, 1), (3, 2), (3, 3)})
    assert symmetrize("grow-diag", forward, backward) == forward | backward


def test_an_unknown_rule_is_told_the_right_ones() -> None:
    with pytest.raises(OptionError, match="grow-diag-final-and"):
        symmetrize("grow", frozenset(), frozenset())


def test_the_product_needs_the_same_pair() -> None:
    forward, backward = torch.tensor([[0.9, 0.1]]), torch.tensor([[0.4], [0.1]])
    assert torch.allclose(product(forward, backward), torch.tensor([[0.6, 0.1]]))
    with pytest.raises(ShapeError, match="its transpose"):
        product(forward, backward.mT)
