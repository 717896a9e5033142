"""Every model of a configuration is built as it says, has a loss and takes steps."""

import pytest
import torch

from regard.seq2seq.batch import BOS, EOS, SourceTarget, Tokens
from regard.seq2seq.outputs.pointer_generator import PointerGenerator
from regard.tasks.config import load, setting
from regard.tasks.config.factories import SCORES, SELECTIONS
from regard.tasks.config.model_factories import build_model
from regard.tasks.config.translate import TranslateConfig

SOURCE, TARGET = 17, 19
KINDS = pytest.mark.parametrize("kind", ["plain", "bahdanau", "luong", "transformer"])
SMALL = {
    "plain": ["embedding=5", "state_size=6", "layers=2"],
    "bahdanau": ["embedding=5", "encoder_size=3", "state_size=6"],
    "luong": ["embedding=5", "encoder_size=3", "state_size=6", "layers=2"],
    "transformer": ["size=6", "heads=2", "inner=7", "layers=2"],
}


def built(kind: str, *said: str, source: int = SOURCE, shared: bool = False):
    keys = [f"model.{text}" for text in (f"kind={kind}", *SMALL[kind], *said)]
    model = load(TranslateConfig, overrides=[setting(key) for key in keys]).model
    return build_model(model, source, TARGET, shared=shared)


def pairs() -> SourceTarget:
    source = Tokens(torch.tensor([[4, 5, 6, EOS], [7, EOS, 0, 0]]), torch.tensor([4, 2]))
    target = Tokens(torch.tensor([[BOS, 8, 9, EOS], [BOS, 8, EOS, 0]]), torch.tensor([4, 3]))
    return SourceTarget([0, 1], source, target, copy_ids=source.ids)


def trained_and_stepped(model) -> None:
    term = model(pairs())["tokens"]
    assert term.total.isfinite()
    term.total.backward()
    model.eval()
    step = model.step(torch.full((2, 3), BOS), model.start(pairs(), 3))
    assert step.log_probs.shape == (2, 3, TARGET)
    assert torch.allclose(step.log_probs.exp().sum(-1), torch.ones(2, 3), atol=1e-5)


@KINDS
def test_every_model_has_a_loss_and_takes_steps(kind: str) -> None:
    trained_and_stepped(built(kind))


@pytest.mark.parametrize("score", [*SCORES, "coverage"])
@pytest.mark.parametrize("kind", ["bahdanau", "luong", "transformer"])
def test_every_score_goes_into_every_model(kind: str, score: str) -> None:
    trained_and_stepped(built(kind, f"score={score}"))


@pytest.mark.parametrize("select", SELECTIONS)
@pytest.mark.parametrize("kind", ["bahdanau", "luong", "transformer"])
def test_every_selection_goes_into_every_model(kind: str, select: str) -> None:
    chosen = [f"selection={select}"]
    if (kind, select) == ("transformer", "hard"):
        chosen.append("selection.gradient=gumbel")
    trained_and_stepped(built(kind, *chosen))


@pytest.mark.parametrize("kind", ["bahdanau", "luong", "transformer"])
def test_copying(kind: str) -> None:
    model = built(kind, "copying=true")
    assert isinstance(model.output_layer, PointerGenerator)
    trained_and_stepped(model)


def test_tied_embeddings_are_one_table() -> None:
    model = built("transformer")
    assert model.output_layer.linear.weight is model.decoder.embedding.weight
    assert model.encoder.embedding is not model.decoder.embedding
    model = built("transformer", source=TARGET, shared=True)
    assert model.encoder.embedding is model.decoder.embedding
    model = built("transformer", "tied=false", source=TARGET, shared=True)
    assert model.encoder.embedding is not model.decoder.embedding
    assert model.output_layer.linear.weight is not model.decoder.embedding.weight


def parameters(model) -> int:
    return sum(weight.numel() for weight in model.parameters())


@pytest.mark.parametrize(
    ("kind", "more"),
    [
        ("plain", "layers=3"),
        ("plain", "embedding=7"),
        ("plain", "state_size=7"),
        ("plain", "cell=lstm"),
        ("bahdanau", "encoder_size=4"),
        ("bahdanau", "cell=lstm"),
        ("luong", "layers=3"),
        ("transformer", "layers=3"),
        ("transformer", "inner=9"),
        ("transformer", "tied=false"),
    ],
)
def test_options_arrive(kind: str, more: str) -> None:
    assert parameters(built(kind, more)) > parameters(built(kind))


def test_feeding_dropout_and_direction_arrive() -> None:
    assert built("luong", "feeding=false").decoder.feed is None
    assert built("luong").decoder.feed is not None
    assert built("bahdanau", "dropout=0.3").decoder.dropout.rate == 0.3
    assert built("plain", "reverse_source=true").encoder.body.reversed == (True,)
    assert built("plain", "reverse_source=false").encoder.body.reversed == (False,)
    assert built("bahdanau").encoder.body.reversed == (False, True)
