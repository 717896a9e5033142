"""What a reading used stays as it was, though its weights are asked for only later."""

import pytest
import torch
from torch import Tensor, nn

from regard import Reading, attend, kernels
from tests.attention.memory_cases import (
    ALONE,
    EXACT,
    Content,
    Kind,
    every_kind,
    every_score,
)
from tests.catalogue import SCORES, SELECTIONS, Mechanism

SOFTMAX = SELECTIONS[0]
SCALED = next(score for score in SCORES if score.name == "ScaledDot-learned")
LEARNED = [
    *((score, SOFTMAX) for score in SCORES if list(ALONE.owner(score).parameters())),
    *((SCALED, select) for select in SELECTIONS[1:]),
]
learned = pytest.mark.parametrize(
    ("score", "select"), LEARNED, ids=[f"{score}-{select}" for score, select in LEARNED]
)


def asked(owner: nn.Module, content: Content) -> Reading:
    """A reading whose weights are not known yet, with the same draws each time."""
    torch.manual_seed(1)
    return forgetful(owner.read(content.queries, owner.prepare(*content.pairs)))


def forgetful(reading: Reading) -> Reading:
    """The reading without the weights that came with its context: they must be found again."""
    for part in reading.parts:
        part.cached_weights = None
    return reading


def step(*parameters: Tensor) -> None:
    """An optimiser moves every parameter, and each of its numbers otherwise."""
    for parameter in parameters:
        slope = torch.linspace(-1, 2, parameter.numel(), dtype=parameter.dtype)
        parameter.grad = slope.reshape(parameter.shape)
    torch.optim.SGD(parameters, lr=1.0).step()


@every_kind
@learned
def test_weights_are_those_from_before_the_optimiser_stepped(
    kind: Kind, score: Mechanism, select: Mechanism
) -> None:
    owner, content = kind.owner(score, select).train(), kind.content()
    expected = asked(owner, content).weights.detach()
    whole, rows = asked(owner, content), asked(owner, content)
    step(*owner.parameters())
    torch.testing.assert_close(whole.weights.detach(), expected, **EXACT)
    torch.testing.assert_close(rows.rows([2, 0]).detach(), expected[..., [2, 0], :], **EXACT)
    assert not torch.allclose(asked(owner, content).weights, expected)  # it did step


@pytest.mark.parametrize("name", ["queries", "keys"])
def test_weights_are_those_from_before_what_was_asked_moved(name: str) -> None:
    content = ALONE.content()
    tensors = {"queries": content.queries, "keys": content.keys, "values": content.values}
    tensors[name] = nn.Parameter(tensors[name].clone())
    with kernels.using(kernels.Sdpa()):
        expected, reading = attend(**tensors).weights.detach(), attend(**tensors)
    step(tensors[name])
    torch.testing.assert_close(reading.weights.detach(), expected, **EXACT)


@every_kind
@every_score
def test_weights_are_those_from_before_the_memory_changed(kind: Kind, score: Mechanism) -> None:
    owner, content, other = kind.owner(score), kind.content(keys=7), kind.content(keys=3, seed=7)
    memory = owner.prepare(*content.pairs, torch.arange(7)[None, None, :] != 2)
    expected = memory.read(content.queries).weights
    readings = [forgetful(memory.read(content.queries)) for _ in range(3)]
    memory.write(*other.pairs)
    assert torch.equal(readings[0].weights, expected)
    memory.write(*other.pairs, at=[0, 4, 6])
    assert torch.equal(readings[1].weights, expected)
    memory.erase(range(5))
    assert torch.equal(readings[2].weights, expected)
