"""Word alignments from attention weights: pooled over words, symmetrised, written, scored.

A link is `(source, target)`, both counted from 0. Weights are `(target, source)`, as models have
them: row t is the attention of target token t.
"""

from regard.seq2seq.alignment.extraction import Argmax, Extraction, Mutual, Threshold
from regard.seq2seq.alignment.gold import Gold, alignment_error
from regard.seq2seq.alignment.json_links import read_json_links
from regard.seq2seq.alignment.links import Link, Links, swapped
from regard.seq2seq.alignment.pharaoh import check_range, format_pharaoh, read_naacl, read_pharaoh
from regard.seq2seq.alignment.symmetry import SYMMETRIES, product, symmetrize
from regard.seq2seq.alignment.words import UnitWeights, piece_spans, pool_to_units, unit_spans

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
    "check_range",
    "format_pharaoh",
    "piece_spans",
    "pool_to_units",
    "product",
    "read_json_links",
    "read_naacl",
    "read_pharaoh",
    "swapped",
    "symmetrize",
    "unit_spans",
]
