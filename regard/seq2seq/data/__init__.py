"""Data: files, corpora of pairs, tokenizers, batches."""

from regard.seq2seq.data.alignment_words import AlignmentWords
from regard.seq2seq.data.batches import plan_batches
from regard.seq2seq.data.characters import Characters
from regard.seq2seq.data.cleaning import Clean, OnBadInput, ValidatedCorpus, clean
from regard.seq2seq.data.conll import ConllCorpus, LabelledWords, PlainSentences, open_conll
from regard.seq2seq.data.fault_text import format_fault
from regard.seq2seq.data.formats import Pair, SpanLink
from regard.seq2seq.data.lines import Lines, read_lines
from regard.seq2seq.data.max_length import (
    TOO_LONG,
    BoundedPairs,
    LengthWarning,
    MaxLength,
    Note,
)
from regard.seq2seq.data.overlap import overlap, unknown_characters
from regard.seq2seq.data.pair_codec import PairCodec
from regard.seq2seq.data.pairs import PairCorpus, open_pairs, open_sources
from regard.seq2seq.data.split import Split, split
from regard.seq2seq.data.subwords import Subwords
from regard.seq2seq.data.tokenizer import Encoding, Normal, Tokenizer
from regard.seq2seq.data.tokenizers import build_tokenizers, load_tokenizer, parse_tokenizer
from regard.seq2seq.data.vocabulary import Vocabulary
from regard.seq2seq.data.windows import BatchPlanner, Progress, by_length, windowed
from regard.seq2seq.data.words import Words

__all__ = [
    "TOO_LONG",
    "AlignmentWords",
    "BatchPlanner",
    "BoundedPairs",
    "Characters",
    "Clean",
    "ConllCorpus",
    "Encoding",
    "LabelledWords",
    "LengthWarning",
    "Lines",
    "MaxLength",
    "Normal",
    "Note",
    "OnBadInput",
    "Pair",
    "PairCodec",
    "PairCorpus",
    "PlainSentences",
    "Progress",
    "SpanLink",
    "Split",
    "Subwords",
    "Tokenizer",
    "ValidatedCorpus",
    "Vocabulary",
    "Words",
    "build_tokenizers",
    "by_length",
    "clean",
    "format_fault",
    "load_tokenizer",
    "open_conll",
    "open_pairs",
    "open_sources",
    "overlap",
    "parse_tokenizer",
    "plan_batches",
    "read_lines",
    "split",
    "unknown_characters",
    "windowed",
]
