"""Weights for a layer of Keras, drawn: those it starts with hide mistakes, being 0 and 1."""

import keras
import torch


def with_drawn_weights(layer: keras.layers.Layer, *shapes: object) -> keras.layers.Layer:
    """The layer, built for inputs of these shapes, with other weights than its own."""
    layer.build(*shapes)
    for weight in layer.weights:
        fan_in = weight.shape[0] if weight.shape else 1
        weight.assign(torch.randn(tuple(weight.shape)) / fan_in**0.5)
    return layer
