"""Sizes, lengths and axes that do not fit are refused, with the shape that would."""

import torch

from regard import Attention, MultiHead, attend, scores, selection
from regard.attention.core.errors import ShapeError
from tests.attention.error_cases import (
    BATCH,
    HIDDEN,
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


def ones(*shape: int) -> torch.Tensor:
    return torch.ones(*shape)


def multi() -> MultiHead:
    return MultiHead(Attention, 3, SIZE, SIZE, 2, value_size=VALUE)


@table(
    ("a key without its axis", lambda: attend(queries, keys[0, 0], values), ShapeError,
     "keys have shape (7,); they are (*batch, key, size).", "keys[None, :] for one key."),
    ("a value without its axis", lambda: attend(queries, keys, values[0, 0]), ShapeError,
     "values have shape (11,);", "values[None, :] for one key."),
    ("a number as keys", lambda: attend(queries, torch.tensor(1.0), values), ShapeError,
     "keys have shape ();", "Add the axis of the keys"),
    ("fewer values than keys", lambda: attend(queries, keys, values[:, :3]), ShapeError,
     "keys have 5 positions but values have 3 (keys (2, 5, 7), values (2, 3, 11)).",
     "pass values of shape (2, 5, …)."),
    ("another batch of values", lambda: attend(queries, ones(3, KEYS, SIZE), values), ShapeError,
     "different batch axes (keys (3, 5, 7), values (2, 5, 11)).", "Give both the same, or 1"),
    ("keys without a batch", lambda: attend(queries, keys[0], values), ShapeError,
     "different batch axes (keys (5, 7), values (2, 5, 11)).", "Give both the same, or 1"),
)  # fmt: skip
def test_pairs(wrong: Wrong) -> None:
    assert_refuses(wrong)


@table(
    ("a state for each item", lambda: attend(queries[:, 0], keys, values), ShapeError,
     "queries have shape (2, 7) but the keys have 3 axes,", "queries[..., None, :]"),
    ("a state for each item, of several heads", lambda: multi()(queries[:, 0], keys, values),
     ShapeError, "queries have shape (2, 7) but the keys have 3 axes,", "context[..., 0, :]."),
    ("one vector for a batch", lambda: attend(queries[0, 0], keys, values), ShapeError,
     "queries have 1 axes, (7,), but the keys have 3.", "Give queries of shape (2, query, …)"),
    ("a number as a query", lambda: attend(torch.tensor(1.0), keys, values), ShapeError,
     "queries have 0 axes, (), but the keys have 3.", "Give queries of shape (2, query, …)"),
    ("an axis too many", lambda: attend(queries[None], keys, values), ShapeError,
     "queries have 4 axes, (1, 2, 3, 7), but the keys have 3.", "or 1 to broadcast."),
    ("another batch", lambda: attend(ones(3, QUERIES, SIZE), keys, values), ShapeError,
     "queries are for a batch of (3,) but the keys for (2,).", "Give both the same batch, or 1"),
)  # fmt: skip
def test_queries(wrong: Wrong) -> None:
    assert_refuses(wrong)


def same_size(score: scores.Score, name: str) -> tuple:
    return (
        name, lambda: attend(queries[..., :3], keys, values, score=score), ShapeError,
        f"{name} compares vectors of one size; queries have 3, keys have 7.",
        "scores.Bilinear(3, 7) or scores.Additive(3, 7, hidden_size=…).",
    )  # fmt: skip


@table(
    same_size(scores.Dot(), "Dot"),
    same_size(scores.ScaledDot(), "ScaledDot"),
    same_size(scores.Cosine(), "Cosine"),
    same_size(scores.InverseDistance(), "InverseDistance"),
    same_size(scores.Gaussian(), "Gaussian"),
)
def test_vectors_of_two_sizes(wrong: Wrong) -> None:
    assert_refuses(wrong)


def built_for(name: str, what: str, given: int, attention: Attention | MultiHead) -> tuple:
    return (
        f"{name}'s {what}", lambda: attention(queries, keys, values), ShapeError,
        f"{name} was built for {what} of size 3; these have size {given}.",
        f"Build it with {given}, or project the {what} first.",
    )  # fmt: skip


@table(
    built_for("Bilinear", "queries", SIZE, Attention(scores.Bilinear(3, SIZE))),
    built_for("Bilinear", "keys", SIZE, Attention(scores.Bilinear(SIZE, 3))),
    built_for("Additive", "queries", SIZE, Attention(scores.Additive(3, SIZE, HIDDEN))),
    built_for("Additive", "keys", SIZE, Attention(scores.Additive(SIZE, 3, HIDDEN))),
    built_for("LocationAware", "queries", SIZE, Attention(scores.LocationAware(3, SIZE, HIDDEN))),
    built_for("LocationAware", "keys", SIZE, Attention(scores.LocationAware(SIZE, 3, HIDDEN))),
    built_for("Location", "queries", SIZE, Attention(scores.Location(3, KEYS))),
    built_for("LocalPredictive", "queries", SIZE,
              Attention(select=selection.LocalPredictive(3, window=2))),
    built_for("Coverage", "keys", SIZE,
              Attention(scores.Coverage(scores.Dot(), fertility=2.0, key_size=3))),
    built_for("MultiHead", "queries", SIZE, MultiHead(Attention, 3, 3, SIZE, 2, value_size=VALUE)),
    built_for("MultiHead", "keys", SIZE, MultiHead(Attention, 3, SIZE, 3, 2)),
    built_for("MultiHead", "values", VALUE, MultiHead(Attention, 3, SIZE, SIZE, 2, value_size=3)),
    ("Location's positions", lambda: attend(queries, keys, values, score=scores.Location(SIZE, 3)),
     ShapeError, "Location has 3 positions but there are 5 keys.", "scores.Location(7, 5)."),
)  # fmt: skip
def test_vectors_that_a_mechanism_was_not_built_for(wrong: Wrong) -> None:
    assert_refuses(wrong)


@table(
    ("without the batch", lambda: attend(queries, keys, values, bias=ones(QUERIES, KEYS)),
     ShapeError, "bias has shape (3, 5) but the batch, queries and keys are (2, 3, 5).",
     "or 1 to broadcast."),
    ("turned around", lambda: attend(queries, keys, values, bias=ones(BATCH, KEYS, QUERIES)),
     ShapeError, "bias has shape (2, 5, 3) but the batch, queries and keys are (2, 3, 5).",
     "Give it these axes, each of that size"),
    ("of several heads, without the batch",
     lambda: multi()(queries, keys, values, bias=ones(QUERIES, KEYS)), ShapeError,
     "bias has shape (3, 5) but the batch, queries and keys are (2, 3, 5).", "Give it these axes"),
    ("of too many heads",
     lambda: multi()(queries, keys, values, bias=ones(BATCH, 5, QUERIES, KEYS)), ShapeError,
     "bias has shape (2, 5, 3, 5) but the batch, queries and keys are (2, 3, 3, 5).",
     "or 1 to broadcast."),
)  # fmt: skip
def test_biases(wrong: Wrong) -> None:
    assert_refuses(wrong)


@table(
    ("queries as they are", lambda: attend(queries, keys, values, score=lambda q, _: q),
     ShapeError, "the score returned (2, 3, 7) for queries (2, 3, 7) and keys (2, 5, 7).",
     "It must return one number for each pair: (2, 3, 5)."),
    ("a sum too many",
     lambda: attend(queries, keys, values, score=lambda q, k: (q @ k.mT).sum(-1)), ShapeError,
     "the score returned (2, 3) for queries", "one number for each pair: (2, 3, 5)."),
)  # fmt: skip
def test_scores_that_a_callable_made(wrong: Wrong) -> None:
    assert_refuses(wrong)


def drawn() -> object:
    return Attention(select=selection.Hard())(queries, keys, values)


@table(
    ("a reward for each key", lambda: selection.reinforce(drawn(), ones(KEYS)), ShapeError,
     "reward has shape (5,) but the reading's log_probs (2, 3).", "or for each item, (2,)."),
    ("one reward for all", lambda: selection.reinforce(drawn(), torch.tensor(1.0)), ShapeError,
     "reward has shape () but", "Give one reward for each sample"),
    ("a baseline for each item",
     lambda: selection.reinforce(drawn(), ones(BATCH), ones(BATCH)), ShapeError,
     "baseline has shape (2,); it is one number", "reinforce(reading, reward - baseline)."),
)  # fmt: skip
def test_rewards(wrong: Wrong) -> None:
    assert_refuses(wrong)
