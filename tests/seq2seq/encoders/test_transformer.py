"""The Transformer's encoder against torch's own layers."""

import pytest
import torch
from torch import nn

from regard import Attention, scores, selection
from regard.attention.core.errors import OptionError
from regard.seq2seq.encoders import TransformerEncoder
from regard.seq2seq.nn.embeddings import sinusoids
from tests.seq2seq.model_cases import HEADS, INNER, SOURCE, SOURCES, WIDE, tokens


def torch_layer(layer: nn.Module, *, first: bool) -> nn.TransformerEncoderLayer:
    twin = nn.TransformerEncoderLayer(WIDE, HEADS, INNER, 0.0, batch_first=True, norm_first=first)
    twin = twin.double()
    attention = layer.self_attention
    with torch.no_grad():
        three = (attention.query, attention.key, attention.value)
        twin.self_attn.in_proj_weight.copy_(torch.cat([linear.weight for linear in three]))
        twin.self_attn.in_proj_bias.copy_(torch.cat([linear.bias for linear in three]))
    pairs = [
        (twin.self_attn.out_proj, attention.out), (twin.linear1, layer.feed_forward[0]),
        (twin.linear2, layer.feed_forward[3]), (twin.norm1, layer.self_residual.norm),
        (twin.norm2, layer.ffn_residual.norm),
    ]  # fmt: skip
    for theirs, ours in pairs:
        theirs.load_state_dict(ours.state_dict())
    return twin


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_it_is_what_torch_makes_of_it(norm: str) -> None:
    encoder = TransformerEncoder(
        SOURCE, WIDE, Attention, layers=2, heads=HEADS, inner=INNER, norm=norm
    ).double()
    source = tokens(SOURCES, SOURCE)
    padding = torch.arange(source.ids.shape[1]) >= source.lengths[:, None]
    seen = encoder.embedding(source.ids) * WIDE**0.5
    seen = seen + sinusoids(torch.arange(seen.shape[1]), WIDE, seen.dtype)
    for layer in encoder.body.layers:
        seen = torch_layer(layer, first=norm == "pre")(seen, src_key_padding_mask=padding)
    seen = encoder.body.norm(seen).masked_fill(padding[..., None], 0.0)
    encoded = encoder(source)
    torch.testing.assert_close(encoded.values, seen)
    means = torch.stack([row[:n].mean(0) for row, n in zip(seen, source.lengths, strict=True)])
    torch.testing.assert_close(encoded.summary, means)


def test_positions_are_sines_and_cosines() -> None:
    found = sinusoids(torch.arange(5), 7, torch.float64)
    torch.testing.assert_close(found[:, 0], torch.arange(5).double().sin())
    torch.testing.assert_close(found[:, 1], torch.arange(5).double().cos())
    assert len(found.unique(dim=0)) == 5


@pytest.mark.usefixtures("unchecked")
def test_what_cannot_be_is_refused() -> None:
    options = {"layers": 1, "inner": INNER}
    with pytest.raises(OptionError, match="10 cannot be split among 3 heads"):
        TransformerEncoder(SOURCE, WIDE, Attention, heads=3, **options)
    with pytest.raises(OptionError, match=r"norm is 'both'"):
        TransformerEncoder(SOURCE, WIDE, Attention, heads=2, norm="both", **options)
    with pytest.raises(OptionError, match="gumbel"):
        TransformerEncoder(
            SOURCE, WIDE, lambda: Attention(scores.Dot(), selection.Hard()), heads=2, **options
        )
