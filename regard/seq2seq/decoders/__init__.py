"""Decoders: a target and its encoded source to the features that predict each next token."""

from regard.seq2seq.decoders.bahdanau import BahdanauDecoder
from regard.seq2seq.decoders.base import (
    AttentionRecords,
    Decoder,
    DecoderOutput,
    DecoderState,
    DecoderStep,
    HasAttention,
)
from regard.seq2seq.decoders.luong import LuongDecoder
from regard.seq2seq.decoders.no_attention import NoAttentionDecoder
from regard.seq2seq.decoders.transformer import TransformerDecoder

__all__ = [
    "AttentionRecords",
    "BahdanauDecoder",
    "Decoder",
    "DecoderOutput",
    "DecoderState",
    "DecoderStep",
    "HasAttention",
    "LuongDecoder",
    "NoAttentionDecoder",
    "TransformerDecoder",
]
