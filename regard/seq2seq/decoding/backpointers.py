"""What a search did, step by step; hypotheses are read back from it once, at the end."""

from dataclasses import dataclass, field
from itertools import islice

from jaxtyping import Float, Int
from torch import Tensor

from regard.seq2seq.batch import Batch
from regard.seq2seq.decoding.output_limit import source_lengths, source_width
from regard.seq2seq.protocols import Hypothesis


@dataclass(frozen=True, slots=True)
class Ended:
    """Where a hypothesis stopped, and what it was worth."""

    sentence: int
    length: int
    """Tokens chosen, `END` among them if it has ended."""

    beam: int
    """Of the beams that its last token was chosen *from* if it has ended; else the one it *is*."""

    score: float
    log_prob: float
    ended: bool


@dataclass(slots=True)
class Backpointers:
    """Tokens, parents and weights of every step, as they were: nothing is reordered.

    Tokens and parents of a step are one list, a row after the other: lists in lists are many, and
    Python looks through all that it holds when many were made.
    """

    batch: Batch
    rows: list[dict[int, int]] = field(default_factory=list)
    """At each step, in which row a sentence was."""

    width: int = 1
    """How many beams a sentence has."""

    tokens: list[list[int]] = field(default_factory=list)
    parents: list[list[int]] = field(default_factory=list)
    weights: list[Float[Tensor, "sentence beam source"] | None] = field(default_factory=list)

    def add(
        self,
        live: list[int],
        tokens: Int[Tensor, "sentence beam"],
        parents: Int[Tensor, "sentence beam"],
        weights: Float[Tensor, "sentence beam source"] | None,
    ) -> None:
        """One step: the new beams, whence each came, and what the *old* ones read."""
        self.rows.append({sentence: row for row, sentence in enumerate(live)})
        self.width = tokens.shape[1]
        self.tokens.append(tokens.flatten().tolist())
        self.parents.append(parents.flatten().tolist())
        self.weights.append(weights)

    def back(self, finishes: list[list[Ended]]) -> list[list[Hypothesis]]:
        """Read every hypothesis back from its end."""
        ends = [finish for ways in finishes for finish in ways]
        paths = [self._path(end) for end in ends]
        weights = self._weights([end.sentence for end in ends], [beams for _, beams in paths])
        found = iter(
            Hypothesis(tokens, end.score, end.log_prob, read, end.ended)
            for end, (tokens, _), read in zip(ends, paths, weights, strict=True)
        )
        return [list(islice(found, len(ways))) for ways in finishes]

    def _path(self, finish: Ended) -> tuple[list[int], list[int]]:
        """Its tokens without `END`, and for each token, `END` too, the beam it was chosen from."""
        beam = finish.beam
        tokens, beams = [], [beam] if finish.ended else []
        for step in reversed(range(finish.length - finish.ended)):
            place = self.rows[step][finish.sentence] * self.width + beam
            tokens.append(self.tokens[step][place])
            beam = self.parents[step][place]
            beams.append(beam)
        return tokens[::-1], beams[::-1]

    def _weights(self, sentences: list[int], ways: list[list[int]]) -> list[Tensor | None]:
        """Of all hypotheses at once, step by step: row by row would take as long as a search."""
        known = [weights for weights in self.weights if weights is not None]
        if not ways or len(known) < len(self.weights):
            return [None] * len(ways)
        read = known[0].new_zeros(len(ways), max(map(len, ways)), known[0].shape[-1])
        for step in range(read.shape[1]):
            here = [number for number, beams in enumerate(ways) if step < len(beams)]
            rows = [self.rows[step][sentences[number]] for number in here]
            read[here, step] = known[step][rows, [ways[number][step] for number in here]]
        widths = self._widths(known[0].shape[-1])
        return [
            own[: len(beams), : widths[sentence]].clone()
            for own, beams, sentence in zip(read, ways, sentences, strict=True)
        ]

    def _widths(self, columns: int) -> list[int]:
        """How many columns each sentence has of its own: padding belongs to the batch."""
        lengths = source_lengths(self.batch)
        if lengths is None or columns != source_width(self.batch):
            return [columns] * len(self.batch.items)
        return lengths
