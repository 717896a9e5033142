"""Bodies behind another front end: one that shortens its source, as speech recognisers do."""

import pytest
import torch
from torch import Tensor, nn

from regard import Attention
from regard.seq2seq.batch import Tokens
from regard.seq2seq.decoding import AtLeast, Beam, Constrained, Ensemble, Greedy
from regard.seq2seq.encoders import Encoder, EncoderBody, RecurrentBody, TransformerBody
from regard.seq2seq.models.encoder_decoder import EncoderDecoder
from regard.seq2seq.outputs.output_layer import LinearOutput
from regard.seq2seq.protocols import Encoded, Search, Stepper
from tests.seq2seq.model_cases import HALF, SOURCE, SOURCES, TARGET, WHOLE, bahdanau, batch, total

BODIES = {
    "recurrent": lambda: RecurrentBody(WHOLE, HALF),
    "transformer": lambda: TransformerBody(WHOLE, Attention, layers=1, heads=2, inner=11),
}
SHORTENED = [(length + 1) // 2 for length in SOURCES]


class Subsampling(nn.Module):
    """A convolution with a stride of 2 over one-hot vectors, then a body."""

    def __init__(self, body: EncoderBody) -> None:
        super().__init__()
        self.convolution = nn.Conv1d(SOURCE, WHOLE, 3, stride=2, padding=1)
        self.body, self.out_size = body, body.out_size

    def forward(self, source: Tokens) -> Encoded:
        one_hot = nn.functional.one_hot(source.ids, SOURCE).to(self.convolution.weight.dtype)
        real = torch.arange(source.ids.shape[1]) < source.lengths[:, None]
        vectors = self.convolution((one_hot * real[..., None]).mT).mT
        return self.body(vectors, (source.lengths + 1) // 2)


def model(body: str) -> EncoderDecoder:
    torch.manual_seed(7)
    decoder = bahdanau()()
    output_layer = LinearOutput(decoder.size, TARGET)
    return EncoderDecoder(Subsampling(BODIES[body]()), decoder, output_layer).double().eval()


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("search", [Greedy(5), Beam(3, max_length=5)], ids=["greedy", "beam"])
@pytest.mark.parametrize("wrap", ["alone", "ensemble", "constrained"])
def test_weights_have_a_column_for_each_encoded_position(
    body: str, search: Search, wrap: str
) -> None:
    inner = model(body)
    steppers: dict[str, Stepper] = {
        "alone": inner,
        "ensemble": Ensemble((inner, model(body))),
        "constrained": Constrained(inner, AtLeast(2)),
    }
    assert isinstance(inner.encoder, Encoder)
    for (hypothesis,), length in zip(search(steppers[wrap], batch()), SHORTENED, strict=True):
        assert hypothesis.weights.shape[1] == length
        torch.testing.assert_close(
            hypothesis.weights.sum(-1), torch.ones_like(hypothesis.weights[:, 0])
        )


@pytest.mark.parametrize("body", BODIES)
def test_the_front_end_is_trained(body: str) -> None:
    found = model(body)
    total(found, batch()).backward()
    gradient: Tensor | None = found.encoder.convolution.weight.grad
    assert gradient is not None
    assert bool(gradient.any())
