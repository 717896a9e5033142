"""The aligner."""
