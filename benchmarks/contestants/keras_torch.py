"""Keras 3 on torch."""

from collections.abc import Callable
from typing import Any

import keras

from benchmarks.contestants.inputs import drawn
from benchmarks.contestants.stepping import stepped


def additive(case: dict[str, Any]) -> Callable[[], object]:
    """`AdditiveAttention`, which has no projections: queries, values and keys as they are."""
    batch, queries, keys, hidden = case["batch"], case["queries"], case["keys"], case["hidden"]
    shapes = (batch, queries, hidden), (batch, keys, hidden), (batch, keys, hidden)
    q, k, values = leaves = drawn(*shapes, step=case["step"])
    layer = keras.layers.AdditiveAttention()
    layer.build([shapes[0], shapes[2], shapes[1]])
    weights = [weight.value for weight in layer.trainable_weights]
    return stepped(lambda: layer([q, values, k]), [*leaves, *weights], case)
