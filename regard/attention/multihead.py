"""Multi-head attention, for any score and any selection."""

from collections.abc import Callable
from typing import cast

import torch
from torch import Tensor, nn

from regard.attention.attend import Attention, check_owner, read
from regard.attention.core.axes import Prepared
from regard.attention.core.errors import OptionError, shown
from regard.attention.core.fingerprint import fingerprint, parameter_version
from regard.attention.core.nonfinite import validate_pairs
from regard.attention.core.options import check_int
from regard.attention.core.parameters import check_dtype_device, check_size
from regard.attention.core.validation import check_bias_shape
from regard.attention.masks import Mask, as_mask
from regard.attention.memory import Memory, build_memory, set_owner
from regard.attention.reading import Reading
from regard.attention.scores import FromFunction
from regard.attention.state import State


class MultiHead(nn.Module):
    """Several heads, each with its own projections (Vaswani 2017, section 3.2.2).

    Every score and selection can have heads. Self-attention and cross-attention are the same
    object: `multi(x, x, x)`, `multi(x, memory, memory)`.

    >>> from regard import scores
    >>> multi = MultiHead(lambda: Attention(scores.Additive(8, 8, 16)), 4, 32, 24, 8)
    >>> reading = multi(torch.randn(2, 5, 32), torch.randn(2, 7, 24), torch.randn(2, 7, 24))
    >>> reading.context.shape, reading.weights.shape
    (torch.Size([2, 5, 32]), torch.Size([2, 4, 5, 7]))

    Args:
        make: Builds the attention of one head, for vectors of `head_size`; called for each head
            of the keys, so that each has its own initial parameters.
        heads: How many heads the queries have.
        query_size: Size of a query, and of the context unless `out_size` says otherwise.
        key_size: Size of a key.
        head_size: Size of a query, key or value within one head.
        key_heads: How many heads keys and values have; each is shared by a group of query heads
            (Ainslie 2023). As many as `heads` unless given.
        value_size: Size of a value; that of a key unless given.
        out_size: Size of the context; that of a query unless given.
        bias: Do the four projections have a bias?
    """

    def __init__(
        self,
        make: Callable[[], Attention],
        heads: int,
        query_size: int,
        key_size: int,
        head_size: int,
        key_heads: int | None = None,
        *,
        value_size: int | None = None,
        out_size: int | None = None,
        bias: bool = True,
    ) -> None:
        super().__init__()
        key_heads = heads if key_heads is None else key_heads
        value_size = key_size if value_size is None else value_size
        out_size = query_size if out_size is None else out_size
        sizes = {"heads": heads, "key_heads": key_heads, "query_size": query_size,
                 "key_size": key_size, "head_size": head_size, "value_size": value_size,
                 "out_size": out_size}  # fmt: skip
        for name, size in sizes.items():
            check_int(name, size, 1)
        if heads % key_heads:
            raise OptionError(
                f"{heads} heads cannot share {key_heads} heads of keys in equal groups. "
                "Give a key_heads that divides heads."
            )
        self.heads, self.key_heads, self.head_size = heads, key_heads, head_size
        groups = () if heads == key_heads else (heads // key_heads,)
        self.head_shape: tuple[int, ...] = (key_heads, *groups)
        self.query = nn.Linear(query_size, heads * head_size, bias)
        self.key = nn.Linear(key_size, key_heads * head_size, bias)
        self.value = nn.Linear(value_size, key_heads * head_size, bias)
        self.out = nn.Linear(heads * head_size, out_size, bias)
        if isinstance(make, nn.Module) or not callable(make):
            raise OptionError(
                f"make is {shown(make)}. Give a callable that builds the attention of one head: "
                "lambda: Attention(…), or the class Attention itself."
            )
        self.attention = _stacked([make() for _ in range(key_heads)], grouped=bool(groups))

    def forward(
        self,
        queries: Tensor,
        keys: Tensor,
        values: Tensor,
        *,
        mask: Mask | Tensor | None = None,
        bias: Tensor | None = None,
        state: State | None = None,
    ) -> Reading:
        """Prepare and read at once; `reading.weights` is `(*batch, heads, query, key)`.

        A bias is `(*batch, query, key)` for all heads, or `(*batch, heads, query, key)`.
        """
        mask = as_mask(mask)
        memory = self._memory(keys, values, None, masked=mask is not None)
        return self._read(queries, memory, state, mask, bias)

    def prepare(self, keys: Tensor, values: Tensor, mask: Mask | Tensor | None = None) -> Memory:
        """A memory of these pairs, keys and values projected once."""
        return self._memory(keys, values, as_mask(mask), masked=True)

    def read(
        self,
        queries: Tensor,
        memory: Memory,
        *,
        state: State | None = None,
        mask: Mask | Tensor | None = None,
        bias: Tensor | None = None,
    ) -> Reading:
        """Read a memory that these heads prepared; a mask here is combined with its own."""
        check_owner(memory, self)
        memory.check()
        return self._read(queries, memory, state, as_mask(mask), bias)

    def fingerprint(self) -> str:
        """A hash of the score and of the projections, on which prepared keys depend."""
        sizes = f"{self.heads} heads on {self.key_heads} of size {self.head_size}"
        return fingerprint(self.key, self.value, self.attention.score, note=sizes)

    def parameter_version(self) -> int:
        """How often the parameters of these were changed in place."""
        return parameter_version(self.key, self.value, self.attention.score)

    def cache(self, prepared: Prepared) -> Prepared:
        """What kernels cache of prepared keys."""
        return self.attention.cache(prepared)

    def split_heads(self, queries: Tensor) -> Tensor:
        """`(*batch, query, size)` to `(*batch, *heads, query, head_size)`."""
        _check_fits(self.query, "queries", queries)
        split = self.query(queries).unflatten(-1, [*self.head_shape, self.head_size])
        return split.movedim(-2 - len(self.head_shape), -2)

    def merge_heads(self, context: Tensor) -> Tensor:
        """`(*batch, *heads, query, head_size)` to `(*batch, query, size)`."""
        axes = len(self.head_shape)
        merged: Tensor = self.out(context.movedim(-2, -2 - axes).flatten(-1 - axes))
        return merged

    def split_bias(self, bias: Tensor, shape: tuple[int, ...]) -> Tensor:
        """A bias for all heads, or for each, with axes of heads."""
        ones = [1] * len(self.head_shape)
        if bias.ndim != len(shape) + 1:
            return check_bias_shape(bias, shape).unflatten(-2, [*ones, bias.shape[-2]])
        bias = check_bias_shape(bias, (*shape[:-2], self.heads, *shape[-2:]))
        return bias.unflatten(-3, ones if bias.shape[-3] == 1 else self.head_shape)

    def _memory(self, keys: Tensor, values: Tensor, mask: Mask | None, *, masked: bool) -> Memory:
        keys, values, nonfinite = validate_pairs(keys, values, masked=masked)
        _check_fits(self.key, "keys", keys)
        _check_fits(self.value, "values", values)
        sizes = keys.shape[-1], values.shape[-1]
        keys, values = self._split(self.key(keys)), self._split(self.value(values))
        if masked and not torch.is_grad_enabled():  # it will be read step by step
            keys, values = keys.contiguous(), values.contiguous()
        if nonfinite is not None:
            nonfinite.insert_head_axes(len(self.head_shape))
            keys, values = nonfinite.zero_keys(keys), nonfinite.zero_values(values)
        memory = build_memory(self.attention.score, keys, values, mask, nonfinite)
        return set_owner(self, memory, sizes)

    def _split(self, projected: Tensor) -> Tensor:
        split = projected.unflatten(-1, [self.key_heads, self.head_size]).transpose(-2, -3)
        return split if len(self.head_shape) == 1 else split.unsqueeze(-3)

    def _read(
        self, queries: Tensor, memory: Memory, state: State | None,
        mask: Mask | None, bias: Tensor | None,
    ) -> Reading:  # fmt: skip
        score, select = self.attention.score, self.attention.select
        return read(score, select, queries, memory, state=state, mask=mask, bias=bias, heads=self)


def _check_fits(linear: nn.Module, name: str, tensor: Tensor) -> None:
    """Raise unless a linear layer, or its int8 form, takes the tensor."""
    check_size("MultiHead", name, tensor.shape[-1], cast(nn.Linear, linear).in_features)
    if isinstance(linear, nn.Linear):  # it is not quantized
        check_dtype_device(tensor, linear.weight)


def _stacked(attentions: list[Attention], *, grouped: bool) -> Attention:
    """One attention with the parameters of all, stacked along a new first axis.

    Neither a loop over heads nor vmap: all parameters broadcast over an axis of heads.
    """
    first = attentions[0]
    for attention in attentions:
        _check_stackable(attention)
    parameters = [parameter for attention in attentions for parameter in attention.parameters()]
    if len({id(parameter) for parameter in parameters}) < len(parameters):
        raise OptionError(
            "make returned the same parameters twice, so that heads could not differ. "
            "Build a new score and selection at each call: lambda: Attention(scores.Additive(…))."
        )
    for attention in attentions:
        _check_same_mechanism(attention, first)
    for name, _ in list(first.named_parameters()):
        stacked = torch.stack([attention.get_parameter(name).detach() for attention in attentions])
        path, _, own = name.rpartition(".")
        setattr(
            first.get_submodule(path), own, nn.Parameter(stacked[:, None] if grouped else stacked)
        )
    return first


def _check_same_mechanism(attention: Attention, first: Attention) -> None:
    """Raise unless two heads differ in the values of their parameters only."""

    def kind(module: nn.Module) -> str:
        """Its class with its parameters' shapes or, without parameters, its options."""
        shapes = [f"{name} {tuple(p.shape)}" for name, p in module.named_parameters(recurse=False)]
        return f"{type(module).__name__}({', '.join(shapes) or module.extra_repr()})"

    for one, other in zip(map(kind, first.modules()), map(kind, attention.modules()), strict=False):
        if one != other:
            raise OptionError(
                f"make built {one} for one head and {other} for another. "
                "Build the same mechanism, with the same options, for each."
            )


def _check_stackable(attention: Attention) -> None:
    if not isinstance(attention, Attention):
        raise OptionError(f"make returned {attention!r}. It must build an Attention for one head.")
    for module in attention.modules():
        if isinstance(module, FromFunction) and list(module.parameters()):
            raise OptionError(
                "a callable with parameters of its own cannot be given several heads. "
                "Write it as a Score whose parameters have two axes: see CONTRIBUTING.md."
            )
    wrong = {name: tuple(p.shape) for name, p in attention.named_parameters() if p.ndim != 2}
    if wrong:
        raise OptionError(
            f"parameters {wrong} do not have two axes, (out, in). Heads are stacked before these "
            "two: give a scalar the shape (1, 1), a vector (1, size)."
        )
