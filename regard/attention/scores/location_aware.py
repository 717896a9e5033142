"""Location-aware attention: the last step's weights, convolved, as features of the keys."""

import torch
from torch import Tensor
from torch.nn import functional

from regard.attention.core.axes import Keys, Prepared, Queries, StepState, Weights
from regard.attention.core.errors import OptionError
from regard.attention.core.numerics import upcast
from regard.attention.core.options import check_int
from regard.attention.core.parameters import check_size, matrix, project, snapshot
from regard.attention.kernels import AdditiveComparison, Comparison, Request
from regard.attention.scores.base import Score
from regard.attention.state import Stateful


class LocationAware(Score, Stateful):
    """e = vᵀ tanh(W q + V k + U f + b), f = F ∗ α of the last step (Chorowski 2015, eq. 8 and 9).

    Before the first step α is 0.

    Args:
        query_size: Size of a query.
        key_size: Size of a key.
        hidden_size: Size of the hidden layer.
        filters: How many filters F has.
        kernel_size: How many positions each filter covers; odd, so that it has a centre.
    """

    compares = Comparison  # kernels cache nothing: the compared keys change with every step

    def __init__(
        self,
        query_size: int,
        key_size: int,
        hidden_size: int,
        filters: int = 10,
        kernel_size: int = 31,
    ) -> None:
        super().__init__()
        if check_int("kernel_size", kernel_size, 1) % 2 == 0:
            raise OptionError(
                f"kernel_size is {kernel_size}; it has no centre. Give an odd number."
            )
        self.query_size, self.key_size, self.hidden_size = query_size, key_size, hidden_size
        self.query_weight = matrix("LocationAware's query weight", hidden_size, query_size)
        self.key_weight = matrix("LocationAware's key weight", hidden_size, key_size)
        self.filters = matrix("LocationAware's filters", filters, kernel_size)
        self.filter_weight = matrix("LocationAware's filter weight", hidden_size, filters)
        self.v = matrix("LocationAware's v", 1, hidden_size)
        self.offset = torch.nn.Parameter(torch.zeros(1, hidden_size))

    def prepare(self, keys: Keys) -> Prepared:
        check_size("LocationAware", "keys", keys.shape[-1], self.key_size)
        return {"keys": project(keys, self.key_weight) + self.offset}

    def compare(self, queries: Queries, prepared: Prepared, state: StepState) -> Comparison:
        check_size("LocationAware", "queries", queries.shape[-1], self.query_size)
        hidden = project(queries, self.query_weight)
        keys = prepared["keys"] + self._features(state["last"].to(hidden.dtype))
        return AdditiveComparison(hidden, keys, snapshot(self.v, queries))

    def start(self, prepared: Prepared, shape: tuple[int, ...]) -> StepState:
        return {"last": upcast(prepared["keys"]).new_zeros(*shape[:-2], 1, shape[-1])}

    def advance(self, state: StepState, weights: Weights, request: Request) -> StepState:
        return {"last": weights}

    def _features(self, last: Tensor) -> Tensor:
        """U (F ∗ α) for each key."""
        size = self.filters.shape[-1]
        if last.shape[-1] == 0:  # unfold does not take an empty axis
            windows = last.new_zeros(*last.shape[:-2], 0, size)
        else:
            windows = functional.pad(last, (size // 2, size // 2)).unfold(-1, size, 1).squeeze(-3)
        return project(project(windows, self.filters), self.filter_weight)

    def extra_repr(self) -> str:
        sizes = f"query_size={self.query_size}, key_size={self.key_size}"
        return f"{sizes}, hidden_size={self.hidden_size}"
