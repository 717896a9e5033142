"""The fused Transformer encoder against its layers, whatever the padding contains."""

from collections.abc import Iterator

import pytest
import torch

from regard import Attention, kernels, scores, selection
from regard.native import loader, parallel
from regard.native.eligibility import usable
from regard.seq2seq.batch import Tokens
from regard.seq2seq.encoders import EncoderBody, TransformerEncoder, fused_encoder

pytestmark = pytest.mark.skipif(not usable(), reason="the C extension was not built")
VOCABULARY = 13


@pytest.fixture(autouse=True)
def _no_gradient() -> Iterator[None]:
    with torch.no_grad():
        yield


def encoder(norm: str = "pre", head: int = 8, make: object = Attention) -> TransformerEncoder:
    torch.manual_seed(3)
    options = {"layers": 2, "heads": 3, "inner": 17, "dropout": 0.3}
    return TransformerEncoder(VOCABULARY, 3 * head, make, norm=norm, **options).eval()  # type: ignore[arg-type]


def source(*lengths: int) -> Tokens:
    torch.manual_seed(4)
    return Tokens(torch.randint(0, VOCABULARY, (len(lengths), 7)), torch.tensor(lengths))


def is_fused(model: TransformerEncoder) -> bool:
    vectors = model.positions(model.embedding(source(3).ids))
    return fused_encoder.is_supported(list(model.body.layers), vectors)


@pytest.mark.parametrize("level", range(loader.level() + 1))
@pytest.mark.parametrize("head", [8, 16, 32, 64, 80])
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_it_is_the_layers(
    norm: str, head: int, level: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loader, "level", lambda: level)
    model, tokens = encoder(norm, head), source(7, 4, 1)
    assert is_fused(model)
    found = model(tokens)
    with kernels.using(kernels.Reference()):
        assert not is_fused(model)
        plain = model(tokens)
    torch.testing.assert_close(found.values, plain.values, atol=2e-5, rtol=2e-5)
    torch.testing.assert_close(found.summary, plain.summary, atol=2e-5, rtol=2e-5)


def test_the_padding_does_not_matter() -> None:
    model, tokens = encoder(), source(7, 4, 0)
    other = Tokens(tokens.ids.clone(), tokens.lengths)
    other.ids[1, 4:], other.ids[2] = 1, 2
    assert torch.equal(model(tokens).values, model(other).values)
    assert not model(tokens).values[2].any()


def test_nothing_to_encode() -> None:
    tokens = Tokens(torch.zeros(2, 0, dtype=torch.int64), torch.zeros(2, dtype=torch.int64))
    assert encoder()(tokens).values.shape == (2, 0, 24)


@pytest.mark.parametrize("threads", [2, 5])
def test_any_number_of_threads(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model, tokens = encoder(), source(6, 5, 2)
    alone = model(tokens).values
    monkeypatch.setattr(parallel, "threads", lambda _: threads)
    assert torch.equal(model(tokens).values, alone)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Attention(scores.Dot()),
        lambda: Attention(scores.ScaledDot(0.3)),
        lambda: Attention(scores.ScaledDot(), selection.Sparsemax()),
    ],
)
def test_other_attentions_are_not_fused(make: object) -> None:
    assert not is_fused(encoder(make=make))


def test_training_and_gradients_are_not_fused() -> None:
    model = encoder()
    with torch.enable_grad():
        assert not is_fused(model)
    assert not is_fused(model.train())
    assert is_fused(model.eval())
    assert not is_fused(model.double())


def test_a_body_leaves_its_input_alone() -> None:
    body, vectors = encoder().body, torch.randn(2, 5, 24)
    before = vectors.clone()
    encoded = body(vectors, torch.tensor([5, 3]), [[(0, 1)] * 5, [(0, 1)] * 3])
    assert isinstance(body, EncoderBody)
    assert fused_encoder.is_supported(list(body.layers), vectors)
    assert torch.equal(vectors, before)
    assert encoded.places[1] == [(0, 1)] * 3
