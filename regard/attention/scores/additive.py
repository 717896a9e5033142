"""Additive attention: a network with one hidden layer over a query and a key."""

from regard.attention.core.axes import Keys, Prepared, Queries, StepState
from regard.attention.core.parameters import check_size, matrix, project, snapshot
from regard.attention.kernels import AdditiveComparison, Comparison
from regard.attention.scores.base import Score


class Additive(Score):
    """e = vᵀ tanh(W_q q + W_k k) (Bahdanau 2015, appendix A.1.2).

    It is the MLP or "concat" form vᵀ tanh(W [q; k]) of Luong 2015, section 3.1, with W = [W_q W_k].

    Args:
        query_size: Size of a query.
        key_size: Size of a key.
        hidden_size: Size of the hidden layer.
    """

    compares = AdditiveComparison

    def __init__(self, query_size: int, key_size: int, hidden_size: int) -> None:
        super().__init__()
        self.query_size, self.key_size, self.hidden_size = query_size, key_size, hidden_size
        self.query_weight = matrix("Additive's query weight", hidden_size, query_size)
        self.key_weight = matrix("Additive's key weight", hidden_size, key_size)
        self.v = matrix("Additive's v", 1, hidden_size)

    def prepare(self, keys: Keys) -> Prepared:
        check_size("Additive", "keys", keys.shape[-1], self.key_size)
        return {"keys": project(keys, self.key_weight)}

    def compare(self, queries: Queries, prepared: Prepared, state: StepState) -> Comparison:
        check_size("Additive", "queries", queries.shape[-1], self.query_size)
        hidden = project(queries, self.query_weight)
        return AdditiveComparison(hidden, prepared["keys"], snapshot(self.v, queries))

    def extra_repr(self) -> str:
        sizes = f"query_size={self.query_size}, key_size={self.key_size}"
        return f"{sizes}, hidden_size={self.hidden_size}"
