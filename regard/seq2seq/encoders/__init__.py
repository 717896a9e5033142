"""Encoders: a source to the vectors that attention reads, and one vector for all of it.

A body runs over vectors, whatever made them; an encoder is a front end and a body.
"""

from regard.seq2seq.encoders.base import Encoder, EncoderBody, HasEmbedding
from regard.seq2seq.encoders.recurrent import RecurrentBody, RecurrentEncoder
from regard.seq2seq.encoders.transformer import TransformerBody, TransformerEncoder

__all__ = [
    "Encoder",
    "EncoderBody",
    "HasEmbedding",
    "RecurrentBody",
    "RecurrentEncoder",
    "TransformerBody",
    "TransformerEncoder",
]
