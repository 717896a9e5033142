"""Which pairs of queries and keys are computed."""

import torch
from jaxtyping import Int, Shaped
from torch import Tensor

from regard.attention.core.gather import gather_pairs
from regard.attention.core.records import record, replace, static


@record
class PairIndex:
    """Indices of pairs, which broadcast to `(*batch, query, key)`.

    All pairs of `queries` × `keys`, unless `rows` or `columns` select some: columns that all
    queries share, `(column,)`, or each query's own, `(*batch, query, column)`.
    """

    queries: int = static()
    keys: int = static()
    device: torch.device = static(default=torch.device("cpu"))
    rows: Int[Tensor, " row"] | None = None
    columns: Int[Tensor, "*own column"] | None = None

    @property
    def height(self) -> int:
        """How many queries are selected."""
        return self.queries if self.rows is None else len(self.rows)

    @property
    def width(self) -> int:
        """How many keys are selected for each query."""
        return self.keys if self.columns is None else self.columns.shape[-1]

    def row_index(self) -> Int[Tensor, "row 1"]:
        """The index of each query, counted from the first."""
        rows = torch.arange(self.queries, device=self.device) if self.rows is None else self.rows
        return rows[:, None]

    def column_index(self) -> Int[Tensor, "*#batch #row column"]:
        """The index of each key, counted from the first."""
        if self.columns is None:
            return torch.arange(self.keys, device=self.device)[None, :]
        return self.columns[None, :] if self.columns.ndim == 1 else self.columns

    def query_positions(self) -> Int[Tensor, "row 1"]:
        """The key at whose position each query is: the last query at the last key."""
        return self.row_index() + (self.keys - self.queries)

    def take_rows(self, index: Int[Tensor, " row"]) -> "PairIndex":
        """These pairs for some of the rows only."""
        columns = self.columns
        if columns is not None and columns.ndim > 1 and columns.shape[-2] != 1:
            columns = columns[..., index, :]
        rows = index if self.rows is None else self.rows[index]
        return replace(self, rows=rows, columns=columns)

    def at(self, columns: Int[Tensor, "*own column"]) -> "PairIndex":
        """The same queries at these columns of all keys."""
        return replace(self, columns=columns)

    def take_columns(
        self, tensor: Shaped[Tensor, "*#batch #row #key"]
    ) -> Shaped[Tensor, "*#batch #row #column"]:
        """The selected columns of a tensor that has one column for each key, or one for all."""
        if self.columns is None or tensor.shape[-1] == 1:
            return tensor
        return (
            tensor[..., self.columns]
            if self.columns.ndim == 1
            else gather_pairs(tensor, self.columns)
        )
