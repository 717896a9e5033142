"""Metrics of labels: accuracy, and the F1 of entities in BIO."""

from collections.abc import Sequence

from regard.seq2seq.errors import DataError
from regard.seq2seq.metrics.score import MetricScore

Labels = Sequence[Sequence[str]]
Entity = tuple[int, int, str]
"""From this word, up to that one, of this type."""


def accuracy(predicted: Labels, gold: Labels) -> MetricScore:
    """Percentage of words whose label is right.

    >>> accuracy([["DET", "NOUN"]], [["DET", "VERB"]]).value
    50.0
    """
    _check_lengths(predicted, gold)
    pairs = [
        pair
        for ours, theirs in zip(predicted, gold, strict=True)
        for pair in zip(ours, theirs, strict=True)
    ]
    if not pairs:
        raise DataError("there are no words to score. Give one sentence or more.")
    right = sum(ours == theirs for ours, theirs in pairs)
    return MetricScore("accuracy", 100 * right / len(pairs), "per:word", len(pairs))


def entity_f1(predicted: Labels, gold: Labels) -> MetricScore:
    """F1 of exact entities, micro-averaged (Tjong Kim Sang 2003), as conlleval counts them.

    >>> entity_f1([["B-PER", "I-PER", "O"]], [["B-PER", "O", "O"]]).value
    0.0
    """
    _check_lengths(predicted, gold)
    found, wanted, both = 0, 0, 0
    for ours, theirs in zip(predicted, gold, strict=True):
        one, other = entities(ours), entities(theirs)
        found, wanted, both = found + len(one), wanted + len(other), both + len(one & other)
    value = 200 * both / (found + wanted) if found + wanted else 0.0
    return MetricScore("F1", value, "entities:exact|scheme:BIO|average:micro", len(gold))


def is_bio(labels: Sequence[str]) -> bool:
    """Do these labels mark entities: O, B-TYPE and I-TYPE?"""
    return any(label.startswith("B-") for label in labels) and all(
        label == "O" or label.startswith(("B-", "I-")) for label in labels
    )


def entities(labels: Sequence[str]) -> set[Entity]:
    """The entities of one sentence; an I- of another type, or after O, begins a new one.

    >>> sorted(entities(["B-LOC", "I-LOC", "O", "I-PER", "B-PER"]))
    [(0, 2, 'LOC'), (3, 4, 'PER'), (4, 5, 'PER')]
    """
    found: set[Entity] = set()
    start, kind = 0, ""
    for place, label in enumerate([*labels, "O"]):
        prefix, _, name = label.partition("-")
        if kind and (prefix != "I" or name != kind):
            found.add((start, place, kind))
            kind = ""
        if prefix in ("B", "I") and not kind:
            start, kind = place, name
    return found


def _check_lengths(predicted: Labels, gold: Labels) -> None:
    lengths = [[len(each) for each in side] for side in (predicted, gold)]
    if lengths[0] != lengths[1]:
        raise DataError("predictions and gold have other lengths. Give a label for each word.")
