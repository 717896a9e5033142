"""From a configuration's model to p(target | source)."""

from collections.abc import Callable, Mapping
from typing import Any

from torch import nn

from regard.attention.attend import Attention
from regard.seq2seq.copying import Copying
from regard.seq2seq.decoders import Decoder, bahdanau, luong, plain
from regard.seq2seq.decoders import transformer as transformer_decoder
from regard.seq2seq.encoders import Encoder, recurrent
from regard.seq2seq.encoders import transformer as transformer_encoder
from regard.seq2seq.model import EncoderDecoder
from regard.seq2seq.readout import Readout
from regard.tasks.config.building import build_attention
from regard.tasks.config.model import Bahdanau, Luong, Model, Plain, Transformer

Parts = tuple[Encoder, Decoder]


def build_model(
    config: Model,
    source: int,
    target: int,
    *,
    shared: bool = False,
    smoothing: float = 0.0,
    coverage: float = 0.0,
    links: float = 0.0,
    links_layer: str = "",
) -> EncoderDecoder:
    """A model with new weights.

    Args:
        config: Which model.
        source: How many tokens the source's vocabulary has.
        target: How many the target's has.
        shared: Are both one vocabulary? Then tied embeddings are one table, too.
        smoothing: What share of a target goes to all tokens alike.
        coverage: How much it counts to read a place twice.
        links: How much given alignments count.
        links_layer: Which reading they are held to.
    """
    encoder, decoder = BUILDERS[config.kind](config, source, target)
    tied = isinstance(config, Transformer) and config.tied
    if tied and shared and isinstance(encoder, nn.Module):
        encoder.embedding = decoder.embedding
    readout = Readout(decoder.size, target, tied=decoder.embedding if tied else None)
    copying = not isinstance(config, Plain) and config.copying
    return EncoderDecoder(
        encoder,
        decoder,
        Copying(readout) if copying else readout,
        smoothing=smoothing,
        coverage=coverage,
        links=links,
        links_layer=links_layer,
    )


def _plain(config: Plain, source: int, target: int) -> Parts:
    options: dict[str, Any] = config.model_dump(include={"cell", "layers", "dropout"})
    size, embedding = config.state_size, config.embedding
    encoder = recurrent.Recurrent(
        source, embedding, size, both_ways=False, reverse=config.reverse_source, **options
    )
    return encoder, plain.Plain(target, embedding, size, encoder.out_size, **options)


def _bahdanau(config: Bahdanau, source: int, target: int) -> Parts:
    options: dict[str, Any] = config.model_dump(include={"cell", "dropout"})
    encoder = recurrent.Recurrent(source, config.embedding, config.encoder_size, **options)
    decoder = bahdanau.Bahdanau(
        target,
        config.embedding,
        config.state_size,
        encoder.out_size,
        _attention(config, encoder.out_size),
        **options,
    )
    return encoder, decoder


def _luong(config: Luong, source: int, target: int) -> Parts:
    options: dict[str, Any] = config.model_dump(include={"cell", "layers", "dropout"})
    encoder = recurrent.Recurrent(source, config.embedding, config.encoder_size, **options)
    decoder = luong.Luong(
        target,
        config.embedding,
        config.state_size,
        encoder.out_size,
        _attention(config, encoder.out_size),
        feeding=config.feeding,
        **options,
    )
    return encoder, decoder


def _attention(config: Bahdanau | Luong, key_size: int) -> Attention:
    return build_attention(config.score, config.selection, config.state_size, key_size)


def _transformer(config: Transformer, source: int, target: int) -> Parts:
    options: dict[str, Any] = config.model_dump(
        include={"layers", "heads", "inner", "dropout", "norm"}
    )
    head_size = config.size // config.heads

    def make() -> Attention:
        return build_attention(config.score, config.selection, head_size, head_size)

    encoder = transformer_encoder.Transformer(source, config.size, make, **options)
    decoder = transformer_decoder.Transformer(target, config.size, config.size, make, **options)
    return encoder, decoder


BUILDERS: Mapping[str, Callable[[Any, int, int], Parts]] = {
    "plain": _plain,
    "bahdanau": _bahdanau,
    "luong": _luong,
    "transformer": _transformer,
}
