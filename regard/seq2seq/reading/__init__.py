"""From weights to word alignments: links, joined over words, symmetrised, written, scored.

A link is `(source, target)`, both counted from 0. Weights are `(target, source)`, as models have
them: a row is what one target token was predicted from.
"""

from regard.seq2seq.reading.extraction import Above, Best, Extraction, Mutual
from regard.seq2seq.reading.gold import Gold, alignment_error
from regard.seq2seq.reading.links import Link, Links, turned
from regard.seq2seq.reading.pharaoh import as_pharaoh, check_range, read_naacl, read_pharaoh
from regard.seq2seq.reading.records import read_records
from regard.seq2seq.reading.symmetry import SYMMETRIES, product, symmetrised
from regard.seq2seq.reading.words import Joined, by_units, joined, places

__all__ = [
    "SYMMETRIES",
    "Above",
    "Best",
    "Extraction",
    "Gold",
    "Joined",
    "Link",
    "Links",
    "Mutual",
    "alignment_error",
    "as_pharaoh",
    "by_units",
    "check_range",
    "joined",
    "places",
    "product",
    "read_naacl",
    "read_pharaoh",
    "read_records",
    "symmetrised",
    "turned",
]
