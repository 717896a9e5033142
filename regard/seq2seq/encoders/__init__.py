"""Encoders: tokens → what is known of each of them, and of all together."""

from regard.seq2seq.encoders.base import Encoder
from regard.seq2seq.encoders.recurrent import RecurrentEncoder
from regard.seq2seq.encoders.transformer import TransformerEncoder

__all__ = ["Encoder", "RecurrentEncoder", "TransformerEncoder"]
