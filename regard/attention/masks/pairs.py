"""Which pairs of queries and keys are looked at."""

import torch
from jaxtyping import Int
from torch import Tensor

from regard.attention.records import changed, record, static


@record
class Pairs:
    """Which pairs are looked at, by index; broadcasts to `(*batch, query, key)`.

    All pairs of `queries` × `keys`, unless `rows` or `columns` say which.
    """

    queries: int = static()
    keys: int = static()
    device: torch.device = static(default=torch.device("cpu"))
    rows: Int[Tensor, " row"] | None = None
    columns: Int[Tensor, " column"] | None = None

    @property
    def height(self) -> int:
        """How many queries are looked at."""
        return self.queries if self.rows is None else len(self.rows)

    def row_index(self) -> Int[Tensor, "row 1"]:
        """The place of each query, counted from the first."""
        rows = torch.arange(self.queries, device=self.device) if self.rows is None else self.rows
        return rows[:, None]

    def column_index(self) -> Int[Tensor, "1 column"]:
        """The place of each key, counted from the first."""
        if self.columns is None:
            return torch.arange(self.keys, device=self.device)[None, :]
        return self.columns[None, :]

    def standing(self) -> Int[Tensor, "row 1"]:
        """The key at which each query stands: the last query at the last key."""
        return self.row_index() + (self.keys - self.queries)

    def take_rows(self, index: Int[Tensor, " row"]) -> "Pairs":
        """These pairs for some of the rows only."""
        return changed(self, rows=index if self.rows is None else self.rows[index])
