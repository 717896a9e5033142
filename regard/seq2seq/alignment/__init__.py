"""From weights to word alignments: links, joined over words, symmetrised, written, scored.

A link is `(source, target)`, both counted from 0. Weights are `(target, source)`, as models have
them: a row is what one target token was predicted from.
"""

from regard.seq2seq.alignment.extraction import Argmax, Extraction, Mutual, Threshold
from regard.seq2seq.alignment.gold import Gold, alignment_error
from regard.seq2seq.alignment.links import Link, Links, swapped
from regard.seq2seq.alignment.pharaoh import as_pharaoh, check_range, read_naacl, read_pharaoh
from regard.seq2seq.alignment.records import read_records
from regard.seq2seq.alignment.symmetry import SYMMETRIES, product, symmetrize
from regard.seq2seq.alignment.words import UnitWeights, by_units, joined, places

__all__ = [
    "SYMMETRIES",
    "Argmax",
    "Extraction",
    "Gold",
    "Link",
    "Links",
    "Mutual",
    "Threshold",
    "UnitWeights",
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
    "swapped",
    "symmetrize",
]
