"""Tokens and backpointers of every step, from which hypotheses are read back at the end."""

from dataclasses import dataclass, field
from itertools import islice

from jaxtyping import Float, Int
from torch import Tensor

from regard.seq2seq.protocols import Hypothesis


@dataclass(frozen=True, slots=True)
class Ended:
    """The last step of a hypothesis, and its scores."""

    sentence: int
    length: int
    """Tokens chosen, EOS included if it has ended."""

    beam: int
    """The beam its EOS was chosen *from* if it has ended; else the beam it *is*."""

    score: float
    log_prob: float
    ended: bool


@dataclass(slots=True)
class Backpointers:
    """Tokens, backpointers and weights of every step as they were: nothing is reordered.

    Tokens and backpointers of a step are one flat list, row after row: many nested lists would
    keep the garbage collector busy.
    """

    source_lengths: list[int] | None = None
    """How many columns of the weights are each sentence's own; the rest is padding. None: all."""

    rows: list[dict[int, int]] = field(default_factory=list)
    """At each step, the row of each active sentence."""

    beam_size: int = 1
    tokens: list[list[int]] = field(default_factory=list)
    parents: list[list[int]] = field(default_factory=list)
    weights: list[Float[Tensor, "sentence beam source"] | None] = field(default_factory=list)

    def add(
        self,
        active: list[int],
        tokens: Int[Tensor, "sentence beam"],
        parents: Int[Tensor, "sentence beam"],
        weights: Float[Tensor, "sentence beam source"] | None,
    ) -> None:
        """One step: the new beams, the old beam of each, and the weights of the *old* ones."""
        self.rows.append({sentence: row for row, sentence in enumerate(active)})
        self.beam_size = tokens.shape[1]
        self.tokens.append(tokens.flatten().tolist())
        self.parents.append(parents.flatten().tolist())
        self.weights.append(weights)

    def hypotheses(self, ends: list[list[Ended]]) -> list[list[Hypothesis]]:
        """The hypotheses of each sentence, read back from their ends."""
        flat = [end for each in ends for end in each]
        paths = [self._path(end) for end in flat]
        weights = self._weights([end.sentence for end in flat], [beams for _, beams in paths])
        hypotheses = iter(
            Hypothesis(tokens, end.score, end.log_prob, rows, end.ended)
            for end, (tokens, _), rows in zip(flat, paths, weights, strict=True)
        )
        return [list(islice(hypotheses, len(each))) for each in ends]

    def _path(self, end: Ended) -> tuple[list[int], list[int]]:
        """Its tokens without EOS, and for each token, EOS too, the beam it was chosen from."""
        beam = end.beam
        tokens, beams = [], [beam] if end.ended else []
        for step in reversed(range(end.length - end.ended)):
            index = self.rows[step][end.sentence] * self.beam_size + beam
            tokens.append(self.tokens[step][index])
            beam = self.parents[step][index]
            beams.append(beam)
        return tokens[::-1], beams[::-1]

    def _weights(self, sentences: list[int], paths: list[list[int]]) -> list[Tensor | None]:
        """Of all hypotheses together, step by step: row by row would take as long as a search."""
        steps = [weights for weights in self.weights if weights is not None]
        if not paths or len(steps) < len(self.weights):
            return [None] * len(paths)
        columns = steps[0].shape[-1]
        weights = steps[0].new_zeros(len(paths), max(map(len, paths)), columns)
        for step in range(weights.shape[1]):
            here = [number for number, beams in enumerate(paths) if step < len(beams)]
            rows = [self.rows[step][sentences[number]] for number in here]
            weights[here, step] = steps[step][rows, [paths[number][step] for number in here]]
        lengths = self.source_lengths
        return [
            rows[: len(beams), : columns if lengths is None else lengths[sentence]].clone()
            for rows, beams, sentence in zip(weights, paths, sentences, strict=True)
        ]
