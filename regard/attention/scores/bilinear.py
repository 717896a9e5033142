"""A learned bilinear form of queries and keys, of any two sizes."""

from regard.attention.core.axes import Keys, Prepared, Queries, StepState
from regard.attention.core.parameters import check_size, matrix, project
from regard.attention.kernels import Comparison, DotComparison
from regard.attention.scores.base import Score


class Bilinear(Score):
    """e = qᵀWk (Luong 2015, section 3.1, "general").

    Args:
        query_size: Size of a query.
        key_size: Size of a key.
    """

    compares = DotComparison

    def __init__(self, query_size: int, key_size: int) -> None:
        super().__init__()
        self.query_size, self.key_size = query_size, key_size
        self.weight = matrix("Bilinear's weight", query_size, key_size)

    def prepare(self, keys: Keys) -> Prepared:
        check_size("Bilinear", "keys", keys.shape[-1], self.key_size)
        return {"keys": project(keys, self.weight)}

    def compare(self, queries: Queries, prepared: Prepared, state: StepState) -> Comparison:
        check_size("Bilinear", "queries", queries.shape[-1], self.query_size)
        return DotComparison(queries, prepared["keys"])

    def extra_repr(self) -> str:
        return f"query_size={self.query_size}, key_size={self.key_size}"
