"""The recurrent encoder against torch's own, sentence by sentence and packed."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from regard.attention.core.errors import OptionError
from regard.seq2seq.encoders import EncoderBody, HasEmbedding, RecurrentEncoder
from regard.seq2seq.nn.rnn import RNNLayer
from tests.seq2seq.model_cases import EMBEDDING, HALF, SOURCE, SOURCES, tokens

KINDS = {"gru": nn.GRU, "lstm": nn.LSTM}
LAYERS = 2


def torch_twin(encoder: RecurrentEncoder, cell: str, *, both: bool) -> nn.RNNBase:
    """torch's layers with the same parameters."""
    twin = KINDS[cell](EMBEDDING, HALF, LAYERS, bidirectional=both).double()
    with torch.no_grad():
        for number, layer in enumerate(encoder.body.layers):
            for direction, end in enumerate(["", "_reverse"][: 1 + both]):
                inputs, state = layer.input[direction], layer.hidden[direction]
                getattr(twin, f"weight_ih_l{number}{end}").copy_(inputs.weight)
                getattr(twin, f"bias_ih_l{number}{end}").copy_(inputs.bias)
                getattr(twin, f"weight_hh_l{number}{end}").copy_(state.weight)
                getattr(twin, f"bias_hh_l{number}{end}").zero_()
    return twin


def packed(twin: nn.RNNBase, encoder: RecurrentEncoder, source) -> tuple[Tensor, Tensor]:
    vectors = encoder.embedding(source.ids)
    sequence = pack_padded_sequence(vectors, source.lengths, batch_first=True, enforce_sorted=False)
    outputs, last = twin(sequence)
    last = last[0] if isinstance(last, tuple) else last
    values, _ = pad_packed_sequence(outputs, batch_first=True)
    directions = 2 if twin.bidirectional else 1
    return values, torch.cat(list(last[-directions:]), -1)


@pytest.mark.parametrize("both", [True, False])
@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_it_is_what_torch_makes_of_a_packed_batch(cell: str, both: bool) -> None:
    encoder = RecurrentEncoder(
        SOURCE, EMBEDDING, HALF, cell=cell, layers=LAYERS, bidirectional=both
    ).double()
    source = tokens(SOURCES, SOURCE)
    twin = torch_twin(encoder, cell, both=both)
    values, summary = packed(twin, encoder, source)
    encoded = encoder(source)
    torch.testing.assert_close(encoded.values, values)
    torch.testing.assert_close(encoded.summary, summary)
    shared = [
        encoder.embedding.weight,
        *(p for n, p in encoder.named_parameters() if "layers" in n),
    ]
    weigh = torch.randn(values.shape, dtype=values.dtype), torch.randn_like(summary)
    ours = (encoded.values * weigh[0]).sum() + (encoded.summary * weigh[1]).sum()
    theirs = (values * weigh[0]).sum() + (summary * weigh[1]).sum()
    own = torch.autograd.grad(ours, shared)
    names = [n for n, _ in twin.named_parameters() if "bias_hh" not in n]
    other = torch.autograd.grad(
        theirs, [encoder.embedding.weight, *(twin.get_parameter(n) for n in names)]
    )
    torch.testing.assert_close(own[0], other[0])
    # In another order: sums of squares tell them apart well enough.
    assert sorted(round(float(g.square().sum()), 8) for g in own[1:]) == pytest.approx(
        sorted(round(float(g.square().sum()), 8) for g in other[1:])
    )


def test_reverse_is_the_mirrored_source() -> None:
    options = {"bidirectional": False}
    encoder = RecurrentEncoder(SOURCE, EMBEDDING, HALF, **options).double()
    backward = RecurrentEncoder(SOURCE, EMBEDDING, HALF, reverse=True, **options).double()
    backward.load_state_dict(encoder.state_dict())
    source = tokens([5], SOURCE)
    mirrored = tokens([5], SOURCE)
    mirrored.ids = source.ids.flip(1)
    torch.testing.assert_close(backward(source).values, encoder(mirrored).values.flip(1))
    torch.testing.assert_close(backward(source).summary, encoder(mirrored).summary)


@pytest.mark.parametrize("counts", [[3, 3, 3], [3, 2, 2, 1], [2, 1], []])
@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_the_backward_of_a_sequence(cell: str, counts: list[int]) -> None:
    """Three sequences, of different lengths or without any step."""
    layer = RNNLayer(cell, 2, 3, directions=2).double()
    rows = sum(counts), layer.cell.gates * 3
    parts = torch.randn(rows, dtype=torch.float64, requires_grad=True)
    state = [
        torch.randn(3, 3, dtype=torch.float64, requires_grad=True)
        for _ in range(layer.cell.state_tensors)
    ]
    weight = layer.hidden[1].weight

    def run(parts: Tensor, *rest: Tensor) -> tuple[Tensor, ...]:
        outputs, last = layer.forward_sequence(parts, counts, rest[: len(state)], direction=1)
        return outputs, *last

    assert torch.autograd.gradcheck(run, (parts, *state, weight))


@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_steps_equal_the_sequence_and_so_do_their_gradients(cell: str) -> None:
    layer = RNNLayer(cell, 2, 3).double()
    parts = torch.randn(4, 5, layer.cell.gates * 3, dtype=torch.float64)
    zeros = tuple(torch.zeros(5, 3, dtype=torch.float64) for _ in range(layer.cell.state_tensors))
    outputs, last = layer.forward_sequence(parts.flatten(0, 1), [5] * 4, zeros)
    steps, state, found = layer.steps(), zeros, []
    for own in parts.unbind(0):
        state = steps(own, state)
        found.append(state[0])
    torch.testing.assert_close(torch.cat(found), outputs)
    torch.testing.assert_close(state, last)
    weigh, weight = torch.randn_like(outputs), layer.hidden[0].weight
    one = torch.autograd.grad((outputs * weigh).sum(), weight)
    graph = (torch.cat(found) * weigh).sum()
    for keep in (True, False):  # deferred gradients are flushed once in each backward
        torch.testing.assert_close(torch.autograd.grad(graph, weight, retain_graph=keep), one)


@torch.no_grad()
def test_an_empty_source_is_zeros() -> None:
    source = tokens([0, 3], SOURCE)
    encoded = RecurrentEncoder(SOURCE, EMBEDDING, HALF)(source)
    assert not bool(encoded.values[0].any())
    assert not bool(encoded.summary[0].any())
    empty = RecurrentEncoder(SOURCE, EMBEDDING, HALF)(
        type(source)(source.ids[:, :0], source.lengths * 0)
    )
    assert empty.values.shape == (2, 0, 2 * HALF)


@pytest.mark.usefixtures("unchecked")
def test_an_unknown_cell_is_named() -> None:
    with pytest.raises(OptionError, match=r"'mlp'. Choose \"gru\" or \"lstm\""):
        RNNLayer("mlp", 2, 3)


def test_a_body_takes_vectors_of_any_front_end() -> None:
    encoder = RecurrentEncoder(SOURCE, EMBEDDING, HALF, layers=LAYERS).double()
    source = tokens(SOURCES, SOURCE)
    vectors = encoder.embedding(source.ids)
    vectors[0, SOURCES[0] :] = torch.nan  # padding does not matter
    encoded, expected = encoder.body(vectors, source.lengths), encoder(source)
    assert isinstance(encoder.body, EncoderBody)
    assert torch.equal(encoded.values, expected.values)
    assert torch.equal(encoded.summary, expected.summary)


def test_tying_asks_for_an_embedding() -> None:
    encoder = RecurrentEncoder(SOURCE, EMBEDDING, HALF)
    assert isinstance(encoder, HasEmbedding)
    assert not isinstance(encoder.body, HasEmbedding)
