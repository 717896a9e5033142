"""The task of aligning."""
