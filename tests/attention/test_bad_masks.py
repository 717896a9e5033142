"""What is no mask, or does not fit, is refused: nothing is ever hidden by a guess."""

import numpy as np
import pytest
import torch

from regard import Attention, MultiHead, attend, masks
from regard.attention.core.errors import MaskError, OptionError
from tests.attention.error_cases import (
    BATCH,
    KEYS,
    QUERIES,
    SIZE,
    VALUE,
    Wrong,
    assert_refuses,
    keys,
    queries,
    table,
    values,
)

pytestmark = pytest.mark.usefixtures("unchecked")

NO_MASK = "Pass a boolean tensor, True = may read, or one of regard.masks"
LENGTHS = "masks.Lengths(lengths)"


def may(*shape: int) -> torch.Tensor:
    return torch.ones(shape, dtype=torch.bool)


def masked(mask: object) -> object:
    return attend(queries, keys, values, mask=mask)


def prepared(mask: object, attention: Attention | None = None) -> object:
    attention = Attention() if attention is None else attention
    return attention.read(queries, attention.prepare(keys, values, mask))


def multi() -> MultiHead:
    return MultiHead(Attention, 5, SIZE, SIZE, 2, value_size=VALUE)


@table(
    ("0 and 1 as floats", lambda: masked(torch.ones(BATCH, QUERIES, KEYS)), MaskError,
     "a mask is a boolean tensor, True = may read; this one is torch.float32.",
     "as bias=…, 0/1 as mask.bool()"),
    ("0 and 1 as whole numbers", lambda: masked(torch.ones(BATCH, QUERIES, KEYS).long()), MaskError,
     "this one is torch.int64.", "0/1 as mask.bool()"),
    ("a bias", lambda: prepared(torch.zeros(BATCH, QUERIES, KEYS)), MaskError,
     "this one is torch.float32.", "Pass numbers that are added to the scores as bias=…"),
    ("lengths alone", lambda: masked(torch.tensor([3, 5])), MaskError,
     "this one is torch.int64.", "and lengths as masks.Lengths(lengths)."),
    ("an array", lambda: masked(np.ones((BATCH, QUERIES, KEYS), bool)), MaskError,
     "a ndarray of shape (2, 3, 5) is not a mask.", NO_MASK),
    ("a list", lambda: masked([[True] * KEYS]), MaskError,
     "[[True, True, True, True, True]] is not a mask.", NO_MASK),
    ("a name", lambda: masked("causal"), MaskError, "'causal' is not a mask.", NO_MASK),
    ("yes", lambda: masked(True), MaskError, "True is not a mask.", NO_MASK),
    ("a class", lambda: masked(masks.Causal), MaskError,
     "the class Causal is not a mask.", NO_MASK),
    ("a list as Dense", lambda: masks.Dense([[True]]), MaskError,
     "this one is [[True]].", "0/1 as mask.bool()"),
    ("a mask as Dense", lambda: masks.Dense(masks.Causal()), MaskError,
     "this one is Causal().", "0/1 as mask.bool()"),
    ("one axis", lambda: masked(may(KEYS)), MaskError,
     "a mask has shape (*batch, query, key); this one has (5,).", LENGTHS),
    ("no axis", lambda: masked(torch.tensor(True)), MaskError, "this one has ().", LENGTHS),
)  # fmt: skip
def test_no_masks(wrong: Wrong) -> None:
    assert_refuses(wrong)


@table(
    ("padding by items and keys", lambda: masked(may(BATCH, KEYS)), MaskError,
     "the mask has 2 axes, (2, 5), but these queries and keys need 3: (2, 3, 5),", LENGTHS),
    ("padding, with as many queries as items",
     lambda: attend(queries[:, :BATCH], keys, values, mask=may(BATCH, KEYS)), MaskError,
     "the mask has 2 axes, (2, 5), but these queries and keys need 3: (2, 2, 5),", LENGTHS),
    ("without the batch", lambda: masked(may(QUERIES, KEYS)), MaskError,
     "the mask has 2 axes, (3, 5), but", "or 1 to broadcast."),
    ("with heads", lambda: masked(may(BATCH, 1, QUERIES, KEYS)), MaskError,
     "the mask has 4 axes, (2, 1, 3, 5), but these queries and keys need 3: (2, 3, 5),",
     "or 1 to broadcast."),
    ("for other keys", lambda: masked(may(BATCH, QUERIES, QUERIES)), MaskError,
     "the mask has shape (2, 3, 3) but the batch, queries and keys are (2, 3, 5).",
     "Each axis must have that size, or 1 to broadcast."),
    ("for another batch", lambda: masked(may(3, QUERIES, KEYS)), MaskError,
     "the mask has shape (3, 3, 5) but the batch, queries and keys are (2, 3, 5).", "or 1 to"),
    ("one of two", lambda: masked(masks.Causal() & ~masks.Dense(may(1, 1, QUERIES))), MaskError,
     "the mask has shape (1, 1, 3) but the batch, queries and keys are (2, 3, 5).", "or 1 to"),
    ("prepared", lambda: prepared(may(BATCH, KEYS)), MaskError,
     "the mask has 2 axes, (2, 5), but these queries and keys need 3: (2, 3, 5),", LENGTHS),
    ("prepared for heads", lambda: prepared(may(3, QUERIES, KEYS), multi()), MaskError,
     "the mask has shape (3, 3, 5) but the batch, queries and keys are (2, 3, 5).", "or 1 to"),
)  # fmt: skip
def test_tensors_that_do_not_fit(wrong: Wrong) -> None:
    assert_refuses(wrong)


@table(
    ("floats", lambda: masks.Lengths(torch.tensor([3.0, 5.0])), MaskError,
     "lengths are torch.float32 of shape (2,).", "Give whole numbers"),
    ("a padding mask", lambda: masks.Lengths(may(BATCH, KEYS)), MaskError,
     "lengths are torch.bool of shape (2, 5).", "booleans as masks.Dense(tensor)"),
    ("complex", lambda: masks.Lengths(torch.tensor([1j])), MaskError,
     "lengths are torch.complex64 of shape (1,).", "Give whole numbers"),
    ("ragged", lambda: masks.Lengths([[3, 5], [2]]), MaskError,
     "lengths are [[3, 5], [2]].", "Give whole numbers: a list of equal rows, or a tensor."),
    ("none", lambda: masks.Lengths(None), MaskError, "lengths are None.", "Give whole numbers"),
    ("negative", lambda: masks.Lengths([3, -5]), MaskError,
     "lengths go down to -5.", "Give the number of keys that may be read, 0 or more."),
    ("too long", lambda: masked(masks.Lengths([3, 7])), MaskError,
     "lengths go up to 7 but there are 5 keys.", "or pad the keys further."),
    ("too many", lambda: masked(masks.Lengths([2, 3, 5])), MaskError,
     "the mask Lengths is for a batch of (3,) but the batch is (2,).",
     "Give one length for each item: shape (2,), or 1 to broadcast."),
    ("one for all", lambda: masked(masks.Lengths(3)), MaskError,
     "the mask Lengths is for a batch of () but the batch is (2,).", "shape (2,)"),
    ("in a column", lambda: masked(masks.Lengths([[3], [5]])), MaskError,
     "the mask Lengths is for a batch of (2, 1) but the batch is (2,).", "shape (2,)"),
    ("prepared for heads", lambda: prepared(masks.Lengths([2, 3, 5]), multi()), MaskError,
     "the mask Lengths is for a batch of (3,) but the batch is (2,).", "shape (2,)"),
)  # fmt: skip
def test_lengths(wrong: Wrong) -> None:
    assert_refuses(wrong)


@table(
    ("floats", lambda: masks.Blocks([0.0, 1.0]), MaskError,
     "the keys' blocks are torch.float32 of shape (2,).", "Give whole numbers"),
    ("ragged", lambda: masks.Blocks([0, 1], [[0], [1, 2]]), MaskError,
     "the queries' blocks are [[0], [1, 2]].", "a list of equal rows, or a tensor."),
    ("a number", lambda: masks.Blocks(3), MaskError, "the keys' blocks are one number, 3.",
     "Give a whole number for each position: masks.Blocks([0, 0, 1])."),
    ("of another batch", lambda: masked(masks.Blocks([[0] * KEYS] * 3)), MaskError,
     "the mask Blocks is for a batch of (3,) but the batch is (2,).",
     "Give the blocks of the keys these axes too, or 1 to broadcast."),
    ("without a batch", lambda: masked(masks.Blocks([0] * KEYS)), MaskError,
     "the mask Blocks is for a batch of () but the batch is (2,).", "the blocks of the keys"),
    ("queries of another batch",
     lambda: masked(masks.Blocks([[0] * KEYS], [[0] * QUERIES] * 3)), MaskError,
     "the mask Blocks is for a batch of (3,) but the batch is (2,).", "the blocks of the queries"),
    ("too few keys", lambda: masked(masks.Blocks([[0] * 3])), MaskError,
     "Blocks has 3 keys but there are 5.", "Give one block for each."),
    ("too few queries", lambda: masked(masks.Blocks([[0] * KEYS], [[0] * 2])), MaskError,
     "Blocks has 2 queries but there are 3.", "Give one block for each."),
    ("more queries than keys",
     lambda: attend(keys, queries, queries, mask=masks.Blocks([[0] * QUERIES])), MaskError,
     "5 queries cannot be at the last of 3 keys.", "masks.Blocks(keys, queries)."),
    ("packed, a negative length", lambda: masks.Blocks.packed([3, -2]), MaskError,
     "the documents' lengths are [3, -2].", "each 0 or more: masks.Blocks.packed([3, 5])."),
    ("packed, several rows", lambda: masks.Blocks.packed([[3, 5]]), MaskError,
     "the documents' lengths are [[3, 5]].", "Give the lengths of one row of documents"),
    ("packed, floats", lambda: masks.Blocks.packed([3.0, 5.0]), MaskError,
     "the documents' lengths are torch.float32 of shape (2,).", "Give whole numbers"),
)  # fmt: skip
def test_blocks(wrong: Wrong) -> None:
    assert_refuses(wrong)


@table(
    ("window back", lambda: masks.Window(-2), OptionError,
     "Window's before is -2.", "Give a whole number, 0 or more."),
    ("window on", lambda: masks.Window(2, -3), OptionError,
     "Window's after is -3.", "Give a whole number, 0 or more."),
    ("half a position", lambda: masks.Window(1.5), OptionError,
     "Window's before is 1.5.", "Give a whole number, 0 or more."),
    ("prefix below 0", lambda: masks.Prefix(-5), OptionError,
     "Prefix's size is -5.", "Give a whole number, 0 or more."),
    ("a prefix for each item", lambda: masks.Prefix(torch.tensor([2, 3])), OptionError,
     "Prefix's size is a Tensor of shape (2,).", "Give a whole number, 0 or more."),
)  # fmt: skip
def test_places(wrong: Wrong) -> None:
    assert_refuses(wrong)


AND = "so `and`, `or` and `not` do not combine masks."


@table(
    ("mask & tensor", lambda: masks.Causal() & may(KEYS, KEYS), MaskError,
     "a mask & Tensor has no meaning.", "masks.Dense(tensor)."),
    ("tensor & mask", lambda: may(KEYS, KEYS) & masks.Causal(), MaskError,
     "a mask & Tensor has no meaning.", "masks.Dense(tensor)."),
    ("tensor | mask", lambda: may(KEYS, KEYS) | masks.Causal(), MaskError,
     "a mask | Tensor has no meaning.", "masks.Dense(tensor)."),
    ("mask | None", lambda: masks.Causal() | None, MaskError,
     "a mask | NoneType has no meaning.", "masks.Dense(tensor)."),
    ("mask and mask", lambda: masks.Causal() and masks.Prefix(3), MaskError, AND, "Use & | ~"),
    ("not mask", lambda: not masks.Causal(), MaskError, AND, "mask is not None."),
)  # fmt: skip
def test_combining(wrong: Wrong) -> None:
    assert_refuses(wrong)


@table(
    ("tensors", lambda: masks.Causal().dense(queries, keys), MaskError,
     "dense shows a mask for two lengths, but queries are a Tensor of shape (2, 3, 7).",
     "mask.dense(queries.shape[-2], keys.shape[-2])."),
    ("less than none", lambda: masks.Causal().dense(3, -5), MaskError,
     "but keys are -5.", "mask.dense(queries.shape[-2], keys.shape[-2])."),
    ("other keys", lambda: masks.Dense(may(QUERIES, KEYS)).dense(3, 7), MaskError,
     "this mask does not fit 3 queries and 7 keys:", "Give the lengths for which it was made."),
    ("two batches", lambda: (masks.Lengths([3, 5]) & masks.Lengths([2, 3, 5])).dense(3, 5),
     MaskError, "this mask does not fit 3 queries and 5 keys:", "for which it was made."),
    ("other blocks", lambda: masks.Blocks([0, 1, 1]).dense(3, 5), MaskError,
     "this mask does not fit 3 queries and 5 keys:", "for which it was made."),
)  # fmt: skip
def test_showing(wrong: Wrong) -> None:
    assert_refuses(wrong)


def test_no_items_have_no_lengths() -> None:
    found = attend(queries[:0], keys[:0], values[:0], mask=masks.Lengths([]))
    assert found.context.shape == (0, QUERIES, VALUE)
