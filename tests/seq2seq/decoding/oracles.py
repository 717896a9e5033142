"""Naive searches: lists of tokens, nothing cached, one sentence."""

from collections.abc import Iterator

from regard.seq2seq.batch import EOS
from regard.seq2seq.decoding import Penalty
from tests.seq2seq.decoding.toy import Prefix, Toy

Ranked = list[tuple[float, Prefix, bool]]
"""Score, tokens without EOS, and whether it has ended; the best first."""


def sequences(words: int, longest: int, start: Prefix = ()) -> Iterator[Prefix]:
    """Everything that ends within so many tokens, EOS included."""
    yield (*start, EOS)
    if len(start) + 1 < longest:
        for word in range(words):
            if word != EOS:
                yield from sequences(words, longest, (*start, word))


def exhaustive(toy: Toy, item: int, penalty: Penalty, longest: int) -> Ranked:
    """Every sequence, scored."""
    found = [
        (toy.log_prob(item, tokens) / penalty(len(tokens)), tokens[:-1], True)
        for tokens in sequences(toy.words, longest)
    ]
    return sorted(found, reverse=True)


def greedy(toy: Toy, item: int, longest: int) -> tuple[Prefix, bool]:
    """The best next token, until the end."""
    tokens: Prefix = ()
    while len(tokens) < longest:
        best = int(toy.row(item, tokens)[0].argmax())
        if best == EOS:
            return tokens, True
        tokens = (*tokens, best)
    return tokens, False


def beam(toy: Toy, item: int, width: int, penalty: Penalty, longest: int) -> Ranked:
    """A beam of hypotheses as tuples, never stopped early."""
    live: list[tuple[float, Prefix]] = [(0.0, ())]
    ended: Ranked = []
    for length in range(1, longest + 1):
        candidates = sorted(
            (
                (total + float(log_prob), (*tokens, word))
                for total, tokens in live
                for word, log_prob in enumerate(toy.row(item, tokens)[0])
            ),
            reverse=True,
        )[: 2 * width]
        ended += [
            (total / penalty(length), tokens[:-1], True)
            for total, tokens in candidates[:width]
            if tokens[-1] == EOS
        ]
        live = [entry for entry in candidates if entry[1][-1] != EOS][:width]
    cut = [(total / penalty(longest), tokens, False) for total, tokens in live]
    return [*sorted(ended, reverse=True), *cut]
