"""What the laws are tried on: shapes, numbers and masks that hypothesis chooses."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from hypothesis import strategies as st
from torch import Tensor

from regard import Attention, masks
from regard.attention.masks import Mask
from tests.catalogue import SIZE, Mechanism

VALUE_SIZE = 3
NO_BATCH: tuple[int, ...] = ()
BATCHES = [(2,), (3,), (2, 3)]


@dataclass
class Case:
    """Queries, keys and values, and a mask over them."""

    queries: Tensor
    keys: Tensor
    values: Tensor
    mask: Mask | None
    seed: int

    @property
    def shape(self) -> tuple[int, ...]:
        return (*self.queries.shape[:-1], self.keys.shape[-2])

    def allowed(self) -> Tensor:
        """May each pair read? As a whole tensor."""
        if self.mask is None:
            return torch.ones(self.shape, dtype=torch.bool)
        return self.mask.dense(*self.shape[-2:]).expand(self.shape)

    def to(self, dtype: torch.dtype) -> "Case":
        tensors = {name: getattr(self, name).to(dtype) for name in ("queries", "keys", "values")}
        return replace(self, **tensors)

    def ask(self, attention: Attention, **changes):
        """Read the whole, with the same draws each time."""
        case = replace(self, **changes)
        seed(case.seed)
        return attention(case.queries, case.keys, case.values, mask=case.mask)


@dataclass(frozen=True)
class Plan:
    """What hypothesis chose; the tensors are made outside of it."""

    batch: tuple[int, ...]
    queries: int
    keys: int
    mask: str
    seed: int

    def case(self) -> Case:
        """The case of this plan, in float64."""
        generator = torch.Generator().manual_seed(self.seed)

        def normal(*shape: int) -> Tensor:
            return torch.randn(*shape, generator=generator, dtype=torch.float64)

        queries = normal(*self.batch, self.queries, SIZE)
        keys, values = (
            normal(*self.batch, self.keys, SIZE),
            normal(*self.batch, self.keys, VALUE_SIZE),
        )
        mask = MASKS[self.mask]((*self.batch, self.queries, self.keys), generator)
        return Case(queries, keys, values, mask, self.seed)


def plans(
    fewest_keys: int = 0,
    masked: bool = True,
    batches: Sequence[tuple[int, ...]] = (NO_BATCH, *BATCHES),
) -> st.SearchStrategy[Plan]:
    """Any plan: sizes include one key, no key and all hidden."""
    return st.builds(
        Plan,
        batch=st.sampled_from(batches),
        queries=st.integers(1, 5),
        keys=st.integers(fewest_keys, 7),
        mask=st.sampled_from(sorted(MASKS)) if masked else st.just("none"),
        seed=st.integers(0, 2**16),
    )


def _lengths(shape: tuple[int, ...], generator: torch.Generator) -> Mask:
    return masks.Lengths(torch.randint(0, shape[-1] + 1, shape[:-2], generator=generator))


def _dense(shape: tuple[int, ...], generator: torch.Generator) -> Mask:
    return masks.Dense(torch.rand(*shape, generator=generator) < 0.6)


def _blocks(shape: tuple[int, ...], generator: torch.Generator) -> Mask:
    *batch, queries, keys = shape
    key_blocks = torch.randint(0, 2, (*batch, keys), generator=generator)
    return masks.Blocks(key_blocks, torch.randint(0, 2, (*batch, queries), generator=generator))


def _nothing(shape: tuple[int, ...], generator: torch.Generator) -> Mask:
    return masks.Dense(torch.zeros([1] * len(shape), dtype=torch.bool))


MASKS = {
    "none": lambda *_: None,
    "all hidden": _nothing,
    "lengths": _lengths,
    "not lengths": lambda *given: ~_lengths(*given),
    "dense": _dense,
    "blocks": _blocks,
    "causal": lambda *_: masks.Causal(),
    "causal & lengths": lambda *given: masks.Causal() & _lengths(*given),
    "window": lambda *given: masks.Causal() & masks.Window(1) & _lengths(*given),
    "not window": lambda *given: ~masks.Window(1, 0) & _lengths(*given),
    "prefix": lambda *given: (masks.Causal() | masks.Prefix(2)) & _dense(*given),
}


def make(score: Mechanism, select: Mechanism, *, training: bool = False) -> Attention:
    """An attention of these two, in float64, the same at each call."""
    seed(0)
    return Attention(score.make(), select.make()).double().train(training)


def seed(number: int) -> None:
    """`torch.manual_seed` also writes down the stack for each kind of GPU, at 1 ms a call."""
    torch.default_generator.manual_seed(number)
