"""Decoders: a target and what is known of its source → what the next token is told from."""

from regard.seq2seq.decoders.bahdanau import Bahdanau
from regard.seq2seq.decoders.base import Attentive, Carried, Decoder, Readings, Stepped, Whole
from regard.seq2seq.decoders.luong import Luong
from regard.seq2seq.decoders.plain import Plain
from regard.seq2seq.decoders.transformer import Transformer

__all__ = [
    "Attentive",
    "Bahdanau",
    "Carried",
    "Decoder",
    "Luong",
    "Plain",
    "Readings",
    "Stepped",
    "Transformer",
    "Whole",
]
