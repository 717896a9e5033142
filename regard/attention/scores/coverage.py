"""Coverage: past weights as a term of the score, against over- and under-translation."""

from collections.abc import Mapping

from torch import Tensor

from regard.attention.core.axes import Keys, Prepared, Queries, StepState, Weights
from regard.attention.core.errors import OptionError
from regard.attention.core.numerics import upcast
from regard.attention.core.options import check_number, check_positive
from regard.attention.core.parameters import check_size, matrix, project, scalar, snapshot
from regard.attention.kernels import Comparison, Request
from regard.attention.scores.base import Score
from regard.attention.scores.function import Function, as_score
from regard.attention.state import Stateful

MIN_FERTILITY = 1e-6
"""A sigmoid may be 0, by which weights must not be divided."""


class Coverage(Score, Stateful):
    """e = inner(q, k) + w · C, C the sum of past weights on k (Tu 2016, section 3.1).

    With a fertility, C is the sum of past weights divided by Φ = N · sigmoid(u·k). Tu's coverage
    enters inside the tanh of one score; here it is a term of its own, so that any score has it.

    Args:
        inner: The score to which coverage is added; it may be stateful itself.
        weight: The initial w, learned; below 0 it keeps from reading a key again.
        fertility: N, the largest Φ; without it Φ is 1.
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
        self.uses_keys = self.inner.uses_keys or fertility is not None
        self.weight = scalar(check_number("weight", weight))
        self.fertility = None if fertility is None else check_positive("fertility", fertility)
        self.fertility_weight = (
            None if key_size is None else matrix("Coverage's fertility", 1, key_size)
        )

    def prepare(self, keys: Keys) -> Prepared:
        prepared = _add_prefix(self.inner.prepare(keys))
        if self.fertility_weight is None or self.fertility is None:
            return prepared
        check_size("Coverage", "keys", keys.shape[-1], self.fertility_weight.shape[-1])
        return {
            **prepared,
            "fertility": self.fertility * project(keys, self.fertility_weight).sigmoid(),
        }

    def compare(self, queries: Queries, prepared: Prepared, state: StepState) -> Comparison:
        inner = self.inner.compare(queries, _strip_prefix(prepared), _strip_prefix(state))
        return inner.biased(snapshot(self.weight, queries) * state["covered"])

    def state_key(self) -> str:
        inner = self.inner.state_key() if isinstance(self.inner, Stateful) else ""
        return f"Coverage({inner})" if inner else "Coverage"

    def start(self, prepared: Prepared, shape: tuple[int, ...]) -> StepState:
        covered = {"covered": upcast(prepared["keys"]).new_zeros(*shape[:-2], 1, shape[-1])}
        if self.fertility_weight is not None:
            covered["fertility"] = upcast(prepared["fertility"]).mT
        if not isinstance(self.inner, Stateful):
            return covered
        return {**covered, **_add_prefix(self.inner.start(_strip_prefix(prepared), shape))}

    def advance(self, state: StepState, weights: Weights, request: Request) -> StepState:
        if self.fertility_weight is not None:
            read = weights / state["fertility"].clamp(min=MIN_FERTILITY)
        else:
            read = weights
        after = {**state, "covered": state["covered"] + read}
        if not isinstance(self.inner, Stateful):
            return after
        return {**after, **_add_prefix(self.inner.advance(_strip_prefix(state), weights, request))}

    def extra_repr(self) -> str:
        return f"fertility={self.fertility}"


def _add_prefix(named: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Prefix what belongs to the inner score; `"keys"` is shared."""
    return {name if name == "keys" else f"inner.{name}": tensor for name, tensor in named.items()}


def _strip_prefix(named: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """What belongs to the inner score, without the prefix."""
    own = {name: t for name, t in named.items() if name == "keys" or name.startswith("inner.")}
    return {name.removeprefix("inner."): tensor for name, tensor in own.items()}
