"""Where to look, said by the query alone."""

from regard.attention.core.axes import Prepared, Queries, StepState
from regard.attention.core.errors import ShapeError
from regard.attention.core.parameters import check_size, matrix, snapshot
from regard.attention.kernels import Comparison, DotComparison
from regard.attention.scores.base import Score


class Location(Score):
    """e = W q, one number for each place (Luong 2015, eq. 8): what a key contains does not matter.

    Args:
        query_size: Size of a query.
        max_keys: How many places it knows.
    """

    compares = DotComparison
    looks_at_keys = False

    def __init__(self, query_size: int, max_keys: int) -> None:
        super().__init__()
        self.query_size, self.max_keys = query_size, max_keys
        self.table = matrix("Location's table", max_keys, query_size)

    def compare(self, queries: Queries, prepared: Prepared, trace: StepState) -> Comparison:
        check_size("Location", "queries", queries.shape[-1], self.query_size)
        keys = prepared["keys"]
        places = keys.shape[-2]
        if places > self.max_keys:
            raise ShapeError(
                f"Location knows {self.max_keys} places but there are {places} keys. "
                f"Slice them, or build it longer: scores.Location({self.query_size}, {places})."
            )
        table = snapshot(self.table, queries)[..., :places, :].to(queries.dtype)
        if queries.shape[:-2] != keys.shape[:-2]:  # the keys' batch still counts, if nothing else
            table = table.expand(*keys.shape[:-2], places, self.query_size)
        return DotComparison(queries, table)

    def extra_repr(self) -> str:
        return f"query_size={self.query_size}, max_keys={self.max_keys}"
