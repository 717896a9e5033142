"""The recurrent decoders against their papers' formulas, one sentence and one token at a time."""

import torch
from torch import Tensor, nn

from regard.seq2seq.decoders import BahdanauDecoder, LuongDecoder, NoAttentionDecoder
from regard.seq2seq.nn.rnn import RNNLayer
from regard.seq2seq.protocols import Encoded
from tests.seq2seq.model_cases import (
    EMBEDDING,
    SIZE,
    SOURCES,
    TARGET,
    WHOLE,
    bahdanau,
    general,
    luong,
    plain,
    tokens,
)

LENGTHS = torch.tensor(SOURCES)


def encoded() -> Encoded:
    torch.manual_seed(2)
    values = torch.randn(3, max(SOURCES), WHOLE, dtype=torch.float64)
    return Encoded(values, LENGTHS, torch.randn(3, WHOLE, dtype=torch.float64))


def cell(layer: RNNLayer, extra: Tensor, kind: type[nn.GRUCell] | type[nn.LSTMCell]):
    """torch's cell of a token's vector with what the decoder adds to it."""
    own = layer.input[0]
    made = kind(own.in_features + extra.shape[1], SIZE).double()
    with torch.no_grad():
        made.weight_ih.copy_(torch.cat([own.weight, extra], 1))
        made.bias_ih.copy_(own.bias)
        made.weight_hh.copy_(layer.hidden[0].weight)
        made.bias_hh.zero_()
    return made


def check(decoder, by_hand) -> None:
    inputs = tokens([4, 4, 4], TARGET).ids
    source = encoded()
    found = decoder.forward(inputs, source).features
    for item, length in enumerate(SOURCES):
        values, summary = source.values[item, :length], source.summary[item]
        expected = by_hand(decoder, decoder.embedding(inputs[item]), values, summary)
        torch.testing.assert_close(found[item], expected)


def test_plain() -> None:
    def by_hand(decoder: NoAttentionDecoder, vectors: Tensor, _: Tensor, summary: Tensor) -> Tensor:
        step = cell(decoder.stack.layers[0], decoder.summary.weight, nn.GRUCell)
        state, found = torch.tanh(decoder.stack.initial.linear(summary)), []
        for vector in vectors:
            state = step(torch.cat([vector, summary])[None], state[None])[0]
            found.append(state)
        return torch.stack(found)

    check(plain(cell="gru")().double(), by_hand)


def test_bahdanau() -> None:
    def by_hand(
        decoder: BahdanauDecoder, vectors: Tensor, values: Tensor, summary: Tensor
    ) -> Tensor:
        step = cell(decoder.stack.layers[0], decoder.context.weight, nn.GRUCell)
        score, state, found = (
            decoder.attention.score,
            torch.tanh(decoder.stack.initial.linear(summary)),
            [],
        )
        for vector in vectors:
            hidden = score.query_weight @ state + values @ score.key_weight.T
            context = (score.v @ torch.tanh(hidden).T).softmax(-1)[0] @ values
            state = step(torch.cat([vector, context])[None], state[None])[0]
            found.append(torch.tanh(decoder.out(torch.cat([state, context, vector]))))
        return torch.stack(found)

    assert bahdanau()().embedding.weight.shape == (TARGET, EMBEDDING)
    check(bahdanau()().double(), by_hand)


def test_luong_with_input_feeding() -> None:
    def by_hand(decoder: LuongDecoder, vectors: Tensor, values: Tensor, summary: Tensor) -> Tensor:
        step = cell(decoder.stack.layers[0], decoder.feed.weight, nn.LSTMCell)
        first = torch.tanh(decoder.stack.initial.linear(summary)).split(SIZE)
        state, fed, found = tuple(part[None] for part in first), torch.zeros(SIZE).double(), []
        for vector in vectors:
            state = step(torch.cat([vector, fed])[None], state)
            hidden = state[0][0]
            weights = (hidden @ decoder.attention.score.weight @ values.T).softmax(-1)
            context = weights @ values
            fed = torch.tanh(
                decoder.from_context.weight @ context + decoder.from_state.weight @ hidden
            )
            found.append(fed)
        return torch.stack(found)

    check(luong(general)().double(), by_hand)
