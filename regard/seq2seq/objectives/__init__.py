"""Objectives: what a model is trained for beside the cross-entropy of its tokens."""
