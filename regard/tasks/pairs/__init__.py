"""Shared by tasks on pairs of text: files, tokenizers, links, alignments."""
