"""Fused Transformer steps against the layers' steps, while beams are reordered and dropped."""

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from regard import Attention, kernels, scores, selection
from regard.native import loader, parallel
from regard.native.eligibility import usable
from regard.seq2seq.decoders import TransformerDecoder, fused_decoder
from regard.seq2seq.protocols import Encoded

pytestmark = pytest.mark.skipif(not usable(), reason="the C extension was not built")
SIZE, VOCABULARY = 24, 13


@pytest.fixture(autouse=True)
def _no_gradient() -> Iterator[None]:
    with torch.no_grad():
        yield


def decoder(norm: str = "pre", make: object = Attention) -> TransformerDecoder:
    torch.manual_seed(3)
    options = {"layers": 2, "heads": 3, "inner": 17, "dropout": 0.3}
    return TransformerDecoder(VOCABULARY, SIZE, SIZE, make, norm=norm, **options).eval()  # type: ignore[arg-type]


def source(*lengths: int) -> Encoded:
    torch.manual_seed(4)
    values = torch.randn(len(lengths), max(lengths), SIZE)
    for row, length in enumerate(lengths):
        values[row, length:] = torch.nan  # padding does not matter
    return Encoded(values, torch.tensor(lengths), torch.zeros(len(lengths), SIZE))


def run(
    model: TransformerDecoder, encoded: Encoded, width: int
) -> list[tuple[Tensor, Tensor, int]]:
    """Features and weights of each step, with beams that cross and sentences that leave."""
    draw = torch.Generator().manual_seed(5)
    state, found = model.start(encoded, width), []
    sentences = len(encoded.lengths)
    for step in range(5):
        tokens = torch.randint(0, VOCABULARY, (sentences, width), generator=draw)
        made = model.step(tokens, state)
        assert made.weights is not None
        found.append((made.features, made.weights, sentences))
        state = made.state.reorder(torch.randint(0, width, (sentences, width), generator=draw))
        if step == 2:
            state, sentences = state.keep(torch.tensor([1])), 1
    return found


@pytest.mark.parametrize("level", range(loader.level() + 1))
@pytest.mark.parametrize("width", [1, 4])
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_it_is_the_layers(
    norm: str, width: int, level: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loader, "level", lambda: level)
    model, encoded = decoder(norm), source(7, 4)
    assert model.start(encoded, width).fused is not None
    found = run(model, encoded, width)
    with kernels.using(kernels.Reference()):
        assert model.start(encoded, width).fused is None
        plain = run(model, encoded, width)
    for (features, weights, _), (own, read, _) in zip(found, plain, strict=True):
        torch.testing.assert_close(features, own, atol=2e-5, rtol=2e-5)
        torch.testing.assert_close(weights, read, atol=2e-6, rtol=2e-5)
        assert ((weights == 0) == (read == 0)).all()


@pytest.mark.parametrize("threads", [2, 5])
def test_any_number_of_threads(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model, encoded = decoder(), source(6, 5, 2)
    alone = run(model, encoded, 3)
    monkeypatch.setattr(parallel, "threads", lambda _: threads)
    for (features, weights, _), (own, read, _) in zip(run(model, encoded, 3), alone, strict=True):
        assert torch.equal(features, own)
        assert torch.equal(weights, read)


def test_a_state_can_be_continued_twice() -> None:
    model, encoded = decoder(), source(5, 3)
    state = model.step(torch.tensor([[1], [2]]), model.start(encoded, 1)).state
    first = model.step(torch.tensor([[3], [4]]), state).features
    model.step(torch.tensor([[7], [8]]), state)
    assert torch.equal(model.step(torch.tensor([[3], [4]]), state).features, first)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Attention(scores.Dot()),
        lambda: Attention(scores.ScaledDot(learned=True)),
        lambda: Attention(scores.ScaledDot(0.3)),
        lambda: Attention(scores.ScaledDot(), selection.Softmax(temperature=0.5)),
        lambda: Attention(scores.ScaledDot(), selection.Sparsemax()),
    ],
)
def test_other_attentions_are_not_fused(make: object) -> None:
    assert decoder(make=make).start(source(3), 1).fused is None


def test_training_and_gradients_are_not_fused() -> None:
    model, encoded = decoder(), source(3)
    with torch.enable_grad():
        assert model.start(encoded, 1).fused is None
    assert model.train().start(encoded, 1).fused is None
    assert model.eval().start(encoded, 1).fused is not None
    assert not fused_decoder.is_supported(list(model.layers), model.double().embedding)
