"""Keras 3 on JAX, compiled by XLA."""

from collections.abc import Callable
from typing import Any

import jax
import keras

from benchmarks.steps import FORWARD


def additive(case: dict[str, Any]) -> Callable[[], object]:
    """`AdditiveAttention` under `jax.jit`; compiled here, so that only running it is timed."""
    batch, queries, keys, hidden = case["batch"], case["queries"], case["keys"], case["hidden"]
    shapes = (batch, queries, hidden), (batch, keys, hidden), (batch, keys, hidden)
    draws = zip(jax.random.split(jax.random.key(0), 4), (*shapes, shapes[0]), strict=True)
    q, k, values, direction = (jax.random.normal(key, shape) for key, shape in draws)
    layer = keras.layers.AdditiveAttention()
    layer.build([shapes[0], shapes[2], shapes[1]])
    weights = [weight.value for weight in layer.trainable_variables]

    def read(q: jax.Array, k: jax.Array, values: jax.Array, weights: list[jax.Array]) -> jax.Array:
        return layer.stateless_call(weights, [], [q, values, k])[0]

    def both(direction: jax.Array, *inputs: Any) -> object:
        output, pull = jax.vjp(read, *inputs)
        return output, pull(direction)

    inputs = (q, k, values, weights)
    if case["step"] == FORWARD:
        forward = jax.jit(read).lower(*inputs).compile()
        return lambda: jax.block_until_ready(forward(*inputs))
    compiled = jax.jit(both).lower(direction, *inputs).compile()
    return lambda: jax.block_until_ready(compiled(direction, *inputs))
