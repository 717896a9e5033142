"""Whole models, which have a loss."""
