"""Measurements side by side with peers: `python -m benchmarks --list` says which."""
