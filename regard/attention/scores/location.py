"""Location-based attention: scores computed from the query alone."""

from regard.attention.core.axes import Prepared, Queries, StepState
from regard.attention.core.errors import ShapeError
from regard.attention.core.parameters import check_size, matrix, snapshot
from regard.attention.kernels import Comparison, DotComparison
from regard.attention.scores.base import Score


class Location(Score):
    """e = W q, one score for each position (Luong 2015, eq. 8), whatever a key contains.

    Args:
        query_size: Size of a query.
        max_keys: How many positions W has.
    """

    compares = DotComparison
    uses_keys = False

    def __init__(self, query_size: int, max_keys: int) -> None:
        super().__init__()
        self.query_size, self.max_keys = query_size, max_keys
        self.table = matrix("Location's table", max_keys, query_size)

    def compare(self, queries: Queries, prepared: Prepared, state: StepState) -> Comparison:
        check_size("Location", "queries", queries.shape[-1], self.query_size)
        keys = prepared["keys"]
        count = keys.shape[-2]
        if count > self.max_keys:
            raise ShapeError(
                f"Location has {self.max_keys} positions but there are {count} keys. "
                f"Slice them, or build it longer: scores.Location({self.query_size}, {count})."
            )
        table = snapshot(self.table, queries)[..., :count, :].to(queries.dtype)
        if queries.shape[:-2] != keys.shape[:-2]:  # the keys still determine the batch
            table = table.expand(*keys.shape[:-2], count, self.query_size)
        return DotComparison(queries, table)

    def extra_repr(self) -> str:
        return f"query_size={self.query_size}, max_keys={self.max_keys}"
