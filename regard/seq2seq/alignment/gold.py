"""Gold links and the alignment error rate."""

from collections.abc import Sequence
from dataclasses import dataclass

from regard.seq2seq.alignment.links import Links
from regard.seq2seq.errors import DataError
from regard.seq2seq.metrics import MetricScore


@dataclass(frozen=True, slots=True)
class Gold:
    """Sure and possible links; every sure link is possible, too."""

    sure: Links
    possible: Links

    def __post_init__(self) -> None:
        object.__setattr__(self, "possible", self.possible | self.sure)


def alignment_error(found: Sequence[Links], gold: Sequence[Gold]) -> list[MetricScore]:
    """Precision, recall and AER, 1 − (|A ∩ S| + |A ∩ P|) / (|A| + |S|) (Och 2003), over all pairs.

    >>> gold = Gold(frozenset({(0, 0), (1, 1)}), frozenset({(1, 2)}))
    >>> [score.value for score in alignment_error([frozenset({(0, 0), (1, 2)})], [gold])]
    [1.0, 0.5, 0.25]
    """
    if len(found) != len(gold):
        raise DataError(
            f"there are alignments of {len(found)} pairs but gold links of {len(gold)}. "
            "Give both for the same pairs, a line each."
        )
    pairs = list(zip(found, gold, strict=True))
    links, sure = sum(map(len, found)), sum(len(each.sure) for each in gold)
    in_sure = sum(len(ours & each.sure) for ours, each in pairs)
    in_possible = sum(len(ours & each.possible) for ours, each in pairs)
    if not sure:
        raise DataError("the gold has no sure link, so recall is undefined. Check its format.")
    signature = f"pairs:{len(pairs)}|links:{links}|sure:{sure}"
    values = {
        "precision": in_possible / links if links else 0.0,
        "recall": in_sure / sure,
        "AER": 1 - (in_sure + in_possible) / (links + sure),
    }
    return [
        MetricScore(name, value, signature, len(pairs), higher_is_better=name != "AER")
        for name, value in values.items()
    ]
