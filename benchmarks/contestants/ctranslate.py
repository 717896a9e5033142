"""CTranslate2, with the weights of OpenNMT-py's Transformer."""

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ctranslate2
import torch

from benchmarks.contestants import captions, opennmt


def translating(case: dict[str, Any], kind: str = "float32") -> Callable[[], object]:
    """Test captions to so many tokens each."""
    translator = _converted(case, kind)
    names = opennmt.Vocabulary(captions.known()["vocabulary"]).ids_to_tokens
    texts = []
    for sources, lengths, *_ in captions.sentence_batches()[: case["batches"]]:
        rows = zip(sources.tolist(), lengths.tolist(), strict=True)
        texts.append([[names[token] for token in row[:length]] for row, length in rows])

    def call() -> object:
        return [
            translator.translate_batch(
                batch, beam_size=case["beam"], min_decoding_length=case["tokens"],
                max_decoding_length=case["tokens"], max_batch_size=0,
            )
            for batch in texts
        ]  # fmt: skip

    return call


def translating_int8(case: dict[str, Any]) -> Callable[[], object]:
    """The same in int8."""
    return translating(case, "int8")


def answering(case: dict[str, Any], kind: str = "float32") -> Callable[[], list[list[int]]]:
    """All test captions, with weights that regard has trained."""
    trained = captions.trained()
    translator = _converted(case, kind, trained)
    vocabulary = opennmt.Vocabulary(trained["vocabulary"])
    batches = [
        ([[vocabulary.ids_to_tokens[token] for token in row] for row in rows],
         captions.longest_for(rows))
        for rows in captions.in_batches(trained["sources"])
    ]  # fmt: skip

    def call() -> list[list[int]]:
        found = []
        for batch, longest in batches:
            told = translator.translate_batch(
                batch, beam_size=case["beam"], max_decoding_length=longest, max_batch_size=0
            )
            found += [[vocabulary[token] for token in each.hypotheses[0]] for each in told]
        return captions.in_order(trained["sources"], found)

    return call


def answering_int8(case: dict[str, Any]) -> Callable[[], list[list[int]]]:
    """The same in int8."""
    return answering(case, "int8")


def _converted(case: dict[str, Any], kind: str, trained: dict[str, Any] | None = None) -> Any:
    """As its own converter makes it of a checkpoint."""
    options, model, vocabularies = opennmt.built(case, trained)
    options.self_attn_type = "scaled-dot"  # the same weights; how they are used is its own affair
    state = model.state_dict()
    own = {name: each for name, each in state.items() if not name.startswith("generator.")}
    last = {
        name.removeprefix("generator."): each for name, each in state.items() if name not in own
    }
    names = vocabularies["tgt"].ids_to_tokens
    words = {"src": names, "tgt": names, "data_task": "seq2seq", "decoder_start_token": "<s>"}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        whole = {"model": own, "generator": last, "opt": options, "vocab": words}
        torch.save(whole, path / "model.pt")
        torch.serialization.add_safe_globals([argparse.Namespace])  # the converter trusts no other
        converter = ctranslate2.converters.OpenNMTPyConverter(str(path / "model.pt"))
        converter.convert(str(path / "converted"))
        return ctranslate2.Translator(
            str(path / "converted"), compute_type=kind, inter_threads=1, intra_threads=1
        )
