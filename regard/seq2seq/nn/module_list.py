"""A typed `nn.ModuleList`."""

from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar, cast

from torch import nn

M = TypeVar("M", bound=nn.Module)


class TypedModuleList(nn.ModuleList, Generic[M]):
    """A list of modules of one type, which mypy knows."""

    def __init__(self, modules: Iterable[M]) -> None:
        super().__init__(modules)

    def __iter__(self) -> Iterator[M]:
        return cast(Iterator[M], super().__iter__())

    def __getitem__(self, index: int) -> M:  # type: ignore[override]  # torch takes slices, too
        return cast(M, super().__getitem__(index))
