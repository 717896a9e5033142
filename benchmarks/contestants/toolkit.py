"""regard's encoder–decoders, of the sizes that peers are measured in."""

from collections.abc import Callable
from typing import Any

import torch

from benchmarks.contestants import captions
from regard.seq2seq.batch import EOS, SourceTarget, Tokens
from regard.seq2seq.decoding import Beam, quantized
from regard.seq2seq.models.encoder_decoder import EncoderDecoder
from regard.seq2seq.protocols import DecodeStep, StepperState
from regard.seq2seq.training import TrainingOptions, seed_torch
from regard.seq2seq.training.loop import updates
from regard.seq2seq.training.optimizer import Optimiser
from regard.tasks.config.model import BahdanauConfig, LuongConfig, ModelConfig, TransformerConfig
from regard.tasks.config.model_factories import build_model
from regard.tasks.config.score import AdditiveConfig

MODELS: dict[str, ModelConfig] = {
    "additive RNN": BahdanauConfig(
        embedding=256, encoder_size=256, state_size=512, score=AdditiveConfig(hidden_size=512)
    ),
    "Luong, general, fed": LuongConfig(embedding=256, encoder_size=256, state_size=512),
    "Luong, general, not fed": LuongConfig(
        embedding=256, encoder_size=256, state_size=512, feeding=False
    ),
    "Transformer-tiny": TransformerConfig(),
}


def training(case: dict[str, Any]) -> Callable[[], object]:
    """Updates on real captions, by the loop that `regard train` runs."""
    model = _model(case)
    batches = [_pairs(sides) for sides in captions.training_batches(case["batches"])]
    optimiser = Optimiser(model, TrainingOptions(rate=1e-3))
    return lambda: list(updates(model, ([batch] for batch in batches), optimiser, seed=1))


def translating(case: dict[str, Any]) -> Callable[[], object]:
    """Test captions to so many tokens each, by the search that `regard predict` runs."""
    model = _model(case).eval()
    return _translating(model, case)


def translating_int8(case: dict[str, Any]) -> Callable[[], object]:
    """The same in int8."""
    found = quantized(_model(case))
    assert isinstance(found, EncoderDecoder)
    return _translating(found, case)


def answering(case: dict[str, Any]) -> Callable[[], list[list[int]]]:
    """All test captions by a trained model, by the search that `regard predict` runs."""
    return _answering(_trained().eval(), case)


def answering_int8(case: dict[str, Any]) -> Callable[[], list[list[int]]]:
    """The same in int8."""
    found = quantized(_trained())
    assert isinstance(found, EncoderDecoder)
    return _answering(found, case)


def _trained() -> EncoderDecoder:
    found = captions.trained()
    model = build_model(TransformerConfig(), found["vocabulary"], found["vocabulary"], shared=True)
    model.load_state_dict(found["weights"])
    return model


def _answering(model: EncoderDecoder, case: dict[str, Any]) -> Callable[[], list[list[int]]]:
    sources, batches = captions.trained()["sources"], []
    for rows in captions.in_batches(sources):
        batch = SourceTarget(range(len(rows)), Tokens(*captions.padded(rows)))
        search = Beam(case["beam"], max_length=captions.longest_for(rows), patience=1.0)
        batches.append((search, batch))

    def call() -> list[list[int]]:
        with torch.inference_mode():
            found = [ways[0] for search, batch in batches for ways in search(model, batch)]
        return captions.in_order(sources, [list(way.tokens) for way in found])

    return call


def _translating(model: EncoderDecoder, case: dict[str, Any]) -> Callable[[], object]:
    endless, search = Endless(model), Beam(case["beam"], max_length=case["tokens"])
    batches = [_pairs(sides) for sides in captions.sentence_batches()[: case["batches"]]]

    def call() -> object:
        with torch.inference_mode():
            return [search(endless, batch) for batch in batches]

    return call


class Endless:
    """A model that never ends by itself, so that all write as much."""

    def __init__(self, model: EncoderDecoder) -> None:
        self.model = model

    def start(self, batch: Any, width: int) -> StepperState:
        return self.model.start(batch, width)

    def step(self, tokens: Any, state: StepperState) -> DecodeStep:
        step = self.model.step(tokens, state)
        step.log_probs[..., EOS] = -torch.inf
        return step


def _model(case: dict[str, Any]) -> EncoderDecoder:
    seed_torch(1, "initialisation")
    count = captions.known()["vocabulary"]
    return build_model(MODELS[case["model"]], count, count, shared=True, smoothing=0.1)


def _pairs(sides: captions.Sides) -> SourceTarget:
    sources, source_lengths, targets, target_lengths = sides
    return SourceTarget(
        range(len(sources)), Tokens(sources, source_lengths), Tokens(targets, target_lengths)
    )
