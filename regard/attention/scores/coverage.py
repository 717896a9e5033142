"""Remember what has been read, so that nothing is read twice and nothing is left out."""

from regard.attention.axes import Keys, Prepared, Queries, Trace, Weights
from regard.attention.errors import OptionError
from regard.attention.kernels import Comparison, Request
from regard.attention.kernels.numbers import wide
from regard.attention.parameters import matrix, project, scalar, snapshot
from regard.attention.scores.base import Score
from regard.attention.scores.function import Function, as_score
from regard.attention.state import LooksBack


class Coverage(Score, LooksBack):
    """e = inner(q, k) + w · C, C the sum of past weights on k (Tu 2016, eq. 6, around any score).

    With a fertility, each key has room for Φ = N · sigmoid(u·k) readings and C counts in parts
    of it (eq. 7 and 8). Tu's coverage enters inside the tanh of one score; here it is a term
    of its own, so that any score has it.

    Args:
        inner: The score that is covered; it may itself look back.
        weight: w at first, learned: below 0, what was read is avoided.
        fertility: N, the most readings a key has room for; none unless given.
        key_size: Size of a key, needed with a fertility.
    """

    def __init__(
        self,
        inner: Score | Function,
        weight: float = -1.0,
        *,
        fertility: float | None = None,
        key_size: int | None = None,
    ) -> None:
        super().__init__()
        if (fertility is None) != (key_size is None):
            raise OptionError(
                f"fertility is {fertility} and key_size {key_size}: it is computed from the keys. "
                "Give both or neither."
            )
        self.inner = as_score(inner)
        self.compares = self.inner.compares
        self.weight = scalar(weight)
        self.fertility = fertility
        self.room = None if key_size is None else matrix("Coverage's fertility", 1, key_size)

    def prepare(self, keys: Keys) -> Prepared:
        prepared = self.inner.prepare(keys)
        if self.room is None or self.fertility is None:
            return prepared
        return {**prepared, "room": self.fertility * project(keys, self.room).sigmoid()}

    def compare(self, queries: Queries, prepared: Prepared, trace: Trace) -> Comparison:
        inner = self.inner.compare(queries, prepared, trace)
        return inner.biased(snapshot(self.weight, queries.ndim) * trace["covered"])

    def start(self, prepared: Prepared, shape: tuple[int, ...]) -> Trace:
        none = wide(prepared["keys"]).new_zeros(*shape[:-2], 1, shape[-1])
        inner = self.inner.start(prepared, shape) if isinstance(self.inner, LooksBack) else {}
        room = {"room": wide(prepared["room"]).mT} if self.room is not None else {}
        return {**inner, **room, "covered": none}

    def advance(self, trace: Trace, weights: Weights, request: Request) -> Trace:
        part = weights if self.room is None else weights / trace["room"]
        inner = trace
        if isinstance(self.inner, LooksBack):
            inner = {**trace, **self.inner.advance(trace, weights, request)}
        return {**inner, "covered": trace["covered"] + part}
