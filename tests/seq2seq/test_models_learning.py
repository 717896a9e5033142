"""Each kind of model learns to copy a few letters, in seconds."""

import pytest
import torch

from regard import Attention, scores
from regard.seq2seq import decoders, encoders
from regard.seq2seq.batch import BOS, EOS, SourceTarget, Tokens
from regard.seq2seq.models.encoder_decoder import EncoderDecoder
from regard.seq2seq.outputs.output_layer import LinearOutput

LETTERS, LENGTH, SIZE = 8, 4, 32


def pairs(count: int, seed: int) -> SourceTarget:
    drawn = torch.Generator().manual_seed(seed)
    words = torch.randint(4, LETTERS, (count, LENGTH), generator=drawn)
    ends = torch.full((count, 1), EOS)
    source = Tokens(torch.cat([words, ends], 1), torch.full((count,), LENGTH + 1))
    framed = torch.cat([torch.full((count, 1), BOS), words, ends], 1)
    return SourceTarget(range(count), source, Tokens(framed, torch.full((count,), LENGTH + 2)))


def recurrent(decoder) -> EncoderDecoder:
    encoder = encoders.RecurrentEncoder(LETTERS, SIZE, SIZE)
    made = decoder(LETTERS, SIZE, 2 * SIZE, encoder.out_size)
    return EncoderDecoder(encoder, made, LinearOutput(2 * SIZE, LETTERS))


def transformer() -> EncoderDecoder:
    options = {"layers": 1, "heads": 2, "inner": 2 * SIZE}
    encoder = encoders.TransformerEncoder(LETTERS, SIZE, Attention, **options)
    decoder = decoders.TransformerDecoder(LETTERS, SIZE, SIZE, Attention, **options)
    return EncoderDecoder(encoder, decoder, LinearOutput(SIZE, LETTERS, tied=decoder.embedding))


def bahdanau() -> EncoderDecoder:
    attention = Attention(scores.Additive(2 * SIZE, 2 * SIZE, SIZE))
    return recurrent(lambda *sizes: decoders.BahdanauDecoder(*sizes, attention))


def luong() -> EncoderDecoder:
    attention = Attention(scores.Bilinear(2 * SIZE, 2 * SIZE))
    return recurrent(lambda *sizes: decoders.LuongDecoder(*sizes, attention))


def plain() -> EncoderDecoder:
    return recurrent(lambda *sizes: decoders.NoAttentionDecoder(*sizes, cell="gru"))


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("make", "steps"), [(plain, 110), (bahdanau, 60), (luong, 60), (transformer, 120)]
)
def test_a_copy_is_learned(make, steps: int) -> None:
    torch.manual_seed(0)
    model = make()
    optimiser = torch.optim.Adam(model.parameters(), lr=5e-3)
    for step in range(steps):
        term = model(pairs(64, 100 + step))["tokens"]
        optimiser.zero_grad()
        (term.total / term.count).backward()
        optimiser.step()
    assert exact(model.eval(), pairs(64, 1)) > 0.95


@torch.no_grad()
def exact(model: EncoderDecoder, unseen: SourceTarget) -> float:
    """What share comes out right, the best token taken at each step."""
    state = model.start(unseen, 1)
    token, right = unseen.target.ids[:, :1], torch.ones(len(unseen.items), dtype=torch.bool)
    for column in unseen.target.ids[:, 1:].unbind(1):
        step = model.step(token, state)
        state, token = step.state, step.log_probs.argmax(-1)
        right &= token[:, 0] == column
    return float(right.float().mean())
