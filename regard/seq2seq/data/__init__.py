"""From files to batches: lines, pairs, tokens, and which items make a batch."""

from regard.seq2seq.data.bare import Bare
from regard.seq2seq.data.batches import plan
from regard.seq2seq.data.characters import Characters
from regard.seq2seq.data.cleaning import Clean, OnBadInput, clean
from regard.seq2seq.data.comparing import lacking, overlap
from regard.seq2seq.data.formats import Pair
from regard.seq2seq.data.lines import Lines, read_lines
from regard.seq2seq.data.pair_codec import Link, Links, PairCodec
from regard.seq2seq.data.pairs import PairCorpus, SoundPairs, open_pairs, open_sources
from regard.seq2seq.data.split import Split, split
from regard.seq2seq.data.subwords import Subwords
from regard.seq2seq.data.telling import told
from regard.seq2seq.data.text import Encoding, Normal, Text
from regard.seq2seq.data.vocabularies import build_texts, load_text
from regard.seq2seq.data.words import Words

__all__ = [
    "Bare",
    "Characters",
    "Clean",
    "Encoding",
    "Lines",
    "Link",
    "Links",
    "Normal",
    "OnBadInput",
    "Pair",
    "PairCodec",
    "PairCorpus",
    "SoundPairs",
    "Split",
    "Subwords",
    "Text",
    "Words",
    "build_texts",
    "clean",
    "lacking",
    "load_text",
    "open_pairs",
    "open_sources",
    "overlap",
    "plan",
    "read_lines",
    "split",
    "told",
]
