"""Our sparse selections give the weights of the entmax package, and 0 where that has no answer."""

from collections.abc import Callable

import entmax
import pytest
import torch
from torch import Tensor

from regard import Attention, MultiHead, attend, scores, selection
from tests.parity.close import assert_as_exact, assert_same, assert_sums_to, with_gradients

Select = Callable[[Tensor], Tensor]

BATCH, QUERIES, KEYS = 2, 3, 17
STEEP = [4.0, 8.0]
"""So far above 2 a weight near 0 hangs on the last bits of its score."""


def bisect(alpha: float) -> Select:
    return lambda given: entmax.entmax_bisect(given, alpha, n_iter=100)


PEERS: dict[str, tuple[selection.Selection, Select]] = {
    "sparsemax": (selection.Sparsemax(), entmax.sparsemax),
    "sparsemax by bisection": (selection.Sparsemax(), entmax.sparsemax_bisect),
    "entmax15": (selection.Entmax(1.5), entmax.entmax15),
    **{str(alpha): (selection.Entmax(alpha), bisect(alpha)) for alpha in (1.2, 1.5, 1.8, 2.0, 2.5)},
}


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(1)


@pytest.fixture(params=PEERS)
def pair(request: pytest.FixtureRequest) -> tuple[selection.Selection, Select]:
    return PEERS[request.param]


def draw() -> Tensor:
    """Scores far enough apart that some keys are read and some are not."""
    return 2 * torch.randn(BATCH, QUERIES, KEYS, dtype=torch.float64)


def chooser(select: selection.Selection, mask: Tensor | None = None) -> Select:
    """What is read of unit vectors with given scores: the weights."""

    def choose(given: Tensor) -> Tensor:
        queries = given.new_zeros(*given.shape[:-1], 1)
        units = torch.eye(given.shape[-1], dtype=given.dtype).expand(*given.shape[:-2], -1, -1)
        score = lambda *_: given
        return attend(queries, units, units, score=score, select=select, mask=mask).context

    return choose


def test_weights_and_gradients(pair: tuple[selection.Selection, Select]) -> None:
    (select, peer), given, direction = pair, draw(), torch.randn(BATCH, QUERIES, KEYS)
    found = with_gradients(chooser(select), [given], direction)
    assert_same(found, with_gradients(peer, [given], direction))
    assert torch.equal(found[0] == 0, peer(given) == 0)
    assert (found[0] == 0).any()


def test_weights_and_gradients_in_float32(pair: tuple[selection.Selection, Select]) -> None:
    (select, peer), given, direction = pair, draw().float(), torch.randn(BATCH, QUERIES, KEYS)
    found = with_gradients(chooser(select), [given], direction)
    expected = with_gradients(peer, [given], direction)
    assert_as_exact(found, expected, with_gradients(peer, [given.double()], direction))


@pytest.mark.parametrize("alpha", STEEP)
def test_steep_weights_in_float32(alpha: float) -> None:
    given = 2 * torch.randn(101, QUERIES, KEYS)
    found, peer = chooser(selection.Entmax(alpha))(given), bisect(alpha)
    assert_as_exact([found], [peer(given)], [peer(given.double())])


@pytest.mark.parametrize("alpha", [1.2, 1.5, 1.8, 2.0, 2.2, 2.5, 3.0, 4.0])
def test_a_key_on_the_edge(alpha: float) -> None:
    """A weight that only just is not 0.

    With two scores 0 and −c, times α − 1, and the threshold a little below −c, the second weight is
    that little to the power p = 1/(α − 1). The rounding of c then moves it by eps · little^(p − 1).
    """
    power = 1 / (alpha - 1)
    little = 10 ** torch.linspace(-10, -6, 41, dtype=torch.float64)[:, None]
    second = (1 - little**power) ** (alpha - 1) - little
    given = torch.cat([torch.zeros_like(second), -second / (alpha - 1)], -1)
    found, expected = chooser(selection.Entmax(alpha))(given), bisect(alpha)(given)
    rounding = torch.finfo(torch.float64).eps * (little ** (power - 1)).clamp(min=1)
    torch.testing.assert_close(found / rounding, expected / rounding, rtol=0, atol=8)


def test_hidden_is_a_score_of_minus_infinity(pair: tuple[selection.Selection, Select]) -> None:
    (select, peer), given, direction = pair, draw(), torch.randn(BATCH, QUERIES, KEYS)
    mask = torch.rand(BATCH, QUERIES, KEYS) > 0.5
    mask[..., 0] = True
    found = with_gradients(chooser(select, mask), [given], direction)
    without = given.masked_fill(~mask, -torch.inf)
    assert_same(found, with_gradients(peer, [without], direction))


def test_a_fully_masked_query_has_no_answer_there(pair: tuple[selection.Selection, Select]) -> None:
    """Bisection gives NaN, the exact ways an index that does not exist."""
    (select, peer), given, direction = pair, draw(), torch.randn(BATCH, QUERIES, KEYS)
    mask = torch.ones(BATCH, QUERIES, KEYS, dtype=torch.bool)
    mask[1, 2] = False
    without = given.masked_fill(~mask, -torch.inf)
    if peer in (entmax.sparsemax, entmax.entmax15):
        with pytest.raises(RuntimeError, match="index -1 is out of bounds"):
            peer(without)
    else:
        assert peer(without)[1, 2].isnan().all()
    found = with_gradients(chooser(select, mask), [given], direction)
    for ours in found:
        assert torch.equal(ours[1, 2], torch.zeros(KEYS, dtype=torch.float64))
    readers = mask.any(-1)
    expected = with_gradients(peer, [given[readers]], direction[readers])
    assert_same([ours[readers] for ours in found], expected)


def learned_alpha(raw: Tensor) -> Tensor:
    return 1.01 + 0.99 * raw.sigmoid()


@pytest.mark.parametrize("alpha", [1.2, 1.5, 1.8])
def test_learned_alpha(alpha: float) -> None:
    given, direction = draw(), torch.randn(BATCH, QUERIES, KEYS, dtype=torch.float64)
    select = selection.Entmax(alpha, learned=True).double()
    found = with_gradients(chooser(select), [given], direction)
    select.zero_grad()
    chooser(select)(given).backward(direction)

    raw = select.raw_alpha.detach().expand(BATCH, QUERIES, 1).clone().requires_grad_()
    peer = lambda given: entmax.entmax_bisect(given, learned_alpha(raw), n_iter=100)
    assert_same(found, with_gradients(peer, [given], direction))
    peer(given).backward(direction)
    assert_sums_to(raw.grad, select.raw_alpha.grad[0, 0])


@pytest.mark.parametrize("alpha", [1.2, 1.5, 1.8])
def test_learned_alpha_starts_where_it_is_told(alpha: float) -> None:
    given = draw().float()
    found = chooser(selection.Entmax(alpha, learned=True))(given)
    assert_as_exact([found], [bisect(alpha)(given)], [bisect(alpha)(given.double())])


def test_each_head_learns_its_own_alpha() -> None:
    heads, size, head_size = 5, 7, 11
    make = lambda: Attention(scores.ScaledDot(1.0), selection.Entmax(1.5, learned=True))
    multi = MultiHead(make, heads, size, size, head_size).double()
    raw = multi.attention.select.raw_alpha
    torch.nn.init.normal_(raw)
    queries, keys = (torch.randn(BATCH, n, size).double() for n in (QUERIES, KEYS))
    split = lambda projected: projected.unflatten(-1, (heads, head_size)).transpose(1, 2)
    given = split(multi.query(queries)) @ split(multi.key(keys)).mT
    expected = entmax.entmax_bisect(given, learned_alpha(raw), n_iter=100)
    assert_same([multi(queries, keys, keys).weights], [expected])
