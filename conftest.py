"""Shapes are types: in the tests every call is checked against its annotations."""

import os

import jaxtyping

os.environ.setdefault("KERAS_BACKEND", "torch")
jaxtyping.install_import_hook("regard", "beartype.beartype")
