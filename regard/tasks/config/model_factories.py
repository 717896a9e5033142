"""Builds an encoder–decoder from its configuration."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from regard.attention.attend import Attention
from regard.seq2seq.batch import Tokens
from regard.seq2seq.decoders import Decoder, bahdanau, luong, no_attention
from regard.seq2seq.decoders import transformer as transformer_decoder
from regard.seq2seq.encoders import Encoder, HasEmbedding, recurrent
from regard.seq2seq.encoders import transformer as transformer_encoder
from regard.seq2seq.models.encoder_decoder import EncoderDecoder
from regard.seq2seq.objectives import Objective
from regard.seq2seq.outputs.output_layer import LinearOutput
from regard.seq2seq.outputs.pointer_generator import PointerGenerator
from regard.tasks.config.factories import build_attention
from regard.tasks.config.model import (
    BahdanauConfig,
    LuongConfig,
    ModelConfig,
    NoAttentionConfig,
    TransformerConfig,
)
from regard.tasks.config.ram_check import check_fits_in_ram

Parts = tuple[Encoder[Tokens], Decoder]


def build_model(
    config: ModelConfig,
    source: int,
    target: int,
    *,
    shared: bool = False,
    smoothing: float = 0.0,
    objectives: Sequence[Objective] = (),
) -> EncoderDecoder:
    """A model with initial weights; raises if the machine has too little memory.

    Args:
        config: The model's configuration.
        source: Size of the source vocabulary.
        target: Size of the target vocabulary.
        shared: Is it one vocabulary? Then tied embeddings are shared by both sides.
        smoothing: Label smoothing.
        objectives: Auxiliary losses.
    """

    def build() -> EncoderDecoder:
        encoder, decoder = BUILDERS[config.kind](config, source, target)
        tied = isinstance(config, TransformerConfig) and config.tied
        if tied and shared and isinstance(encoder, HasEmbedding):
            encoder.embedding = decoder.embedding
        output_layer = LinearOutput(decoder.size, target, tied=decoder.embedding if tied else None)
        copying = not isinstance(config, NoAttentionConfig) and config.copying
        return EncoderDecoder(
            encoder,
            decoder,
            PointerGenerator(output_layer) if copying else output_layer,
            smoothing=smoothing,
            objectives=objectives,
        )

    # On the meta device first: that takes no memory and draws no random numbers.
    with torch.device("meta"):
        check_fits_in_ram(sum(parameter.numel() for parameter in build().parameters()))
    return build()


def _no_attention(config: NoAttentionConfig, source: int, target: int) -> Parts:
    options: dict[str, Any] = config.model_dump(include={"cell", "layers", "dropout"})
    size, embedding = config.state_size, config.embedding
    encoder = recurrent.RecurrentEncoder(
        source, embedding, size, bidirectional=False, reverse=config.reverse_source, **options
    )
    return encoder, no_attention.NoAttentionDecoder(
        target, embedding, size, encoder.out_size, **options
    )


def _bahdanau(config: BahdanauConfig, source: int, target: int) -> Parts:
    options: dict[str, Any] = config.model_dump(include={"cell", "dropout"})
    encoder = recurrent.RecurrentEncoder(source, config.embedding, config.encoder_size, **options)
    decoder = bahdanau.BahdanauDecoder(
        target,
        config.embedding,
        config.state_size,
        encoder.out_size,
        _attention(config, encoder.out_size),
        **options,
    )
    return encoder, decoder


def _luong(config: LuongConfig, source: int, target: int) -> Parts:
    options: dict[str, Any] = config.model_dump(include={"cell", "layers", "dropout"})
    encoder = recurrent.RecurrentEncoder(source, config.embedding, config.encoder_size, **options)
    decoder = luong.LuongDecoder(
        target,
        config.embedding,
        config.state_size,
        encoder.out_size,
        _attention(config, encoder.out_size),
        input_feeding=config.feeding,
        **options,
    )
    return encoder, decoder


def _attention(config: BahdanauConfig | LuongConfig, key_size: int) -> Attention:
    return build_attention(config.score, config.selection, config.state_size, key_size)


def _transformer(config: TransformerConfig, source: int, target: int) -> Parts:
    options: dict[str, Any] = config.model_dump(
        include={"layers", "heads", "inner", "dropout", "norm"}
    )
    head_size = config.size // config.heads

    def make() -> Attention:
        return build_attention(config.score, config.selection, head_size, head_size)

    encoder = transformer_encoder.TransformerEncoder(source, config.size, make, **options)
    decoder = transformer_decoder.TransformerDecoder(
        target, config.size, config.size, make, **options
    )
    return encoder, decoder


BUILDERS: Mapping[str, Callable[[Any, int, int], Parts]] = {
    "plain": _no_attention,
    "bahdanau": _bahdanau,
    "luong": _luong,
    "transformer": _transformer,
}
