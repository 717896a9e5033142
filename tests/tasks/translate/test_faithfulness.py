"""Faithfulness against a plain computation, one source at a time."""

import math
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.seq2seq.data import Pair
from regard.tasks.faithfulness import rank_correlation
from regard.tasks.run import load, train
from regard.tasks.translate import Translator
from regard.tasks.translate import faithfulness as faithfulness_module
from regard.tasks.translate.attention_view import attention_map
from regard.tasks.translate.faithfulness import (
    Faithfulness,
    entropies,
    measure_faithfulness,
)
from tests.tasks.translate.small import configured, write_pairs

PAIR = Pair("two four one three", "2 4 1", 1)
SOURCE = PAIR.source.split()


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recurrent model and a Transformer, hardly trained."""
    folder = tmp_path_factory.mktemp("trusting")
    pairs = write_pairs(folder / "pairs.tsv", 40)
    train(folder / "bahdanau", configured(pairs, training__steps=3))
    tiny = {"kind": "transformer", "size": 12, "heads": 2, "layers": 3, "inner": 17}
    train(
        folder / "transformer",
        configured(pairs, training__steps=3, **{f"model__{key}": tiny[key] for key in tiny}),
    )
    return folder


@torch.no_grad()
def plainly(translator: Translator, source: str) -> list[float]:
    """The log-probability of each target word, by one pass over the whole target."""
    batch = translator.codec.collate([0], [Pair(source, PAIR.target, 1)])
    assert batch.target is not None
    ids, model = batch.target.ids, translator.model
    whole = model.decoder.forward(ids[:, :-1], model.encoder(batch.source))
    log_probs = model.output_layer.log_probs(whole.features, None)
    return [float(log_probs[0, place, ids[0, place + 1]]) for place in range(3)]


@pytest.mark.parametrize("kind", ["bahdanau", "transformer"])
def test_words_are_left_out_one_by_one(runs: Path, kind: str) -> None:
    translator = load(runs / kind)
    found = measure_faithfulness(translator, PAIR)
    whole = plainly(translator, PAIR.source)
    for column in range(4):
        rest = " ".join(SOURCE[:column] + SOURCE[column + 1 :])
        without = plainly(translator, rest)
        drops = [before - after for before, after in zip(whole, without, strict=True)]
        assert found.drops[:, column].tolist() == pytest.approx(drops, abs=2e-5)
    assert found.erased == [0, 1, 2, 3]
    # What was read is what the picture shows.
    shown = attention_map(translator, PAIR)
    assert torch.equal(found.weights, shown.first[:, :4])
    assert list(shown.source) == [*SOURCE, ""]


@pytest.mark.parametrize("name", ["decoder.1", "decoder.2/head.1"])
def test_a_row_is_what_its_word_was_predicted_from(runs: Path, name: str) -> None:
    translator = load(runs / "transformer")
    batch = translator.codec.collate([0], [PAIR])
    readings = translator.model.read(batch)
    heads = [own for head, own in readings.items() if head.startswith(name)]
    plain = torch.stack(heads).mean(0)[0, :3]  # a token is a word here; the last row is the end's
    shown = attention_map(translator, PAIR, layer=name).first
    torch.testing.assert_close(shown, plain)


def test_long_sources_are_capped_to_the_most_attended(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    translator = load(runs / "bahdanau")
    every = measure_faithfulness(translator, PAIR)
    monkeypatch.setattr(faithfulness_module, "MAX_ERASED", 2)
    monkeypatch.setattr(faithfulness_module, "TOKENS", 1)  # one source a batch
    capped = measure_faithfulness(translator, PAIR)
    most = sorted(range(4), key=lambda place: -float(every.weights[:, place].sum()))[:2]
    assert capped.erased == sorted(most)
    torch.testing.assert_close(capped.drops, every.drops[:, capped.erased], atol=2e-5, rtol=0)


def test_agreement_is_counted() -> None:
    found = Faithfulness(
        source=["a", "b", "c"], target=["x", "y"], entropy=[0.0, 0.0], erased=[0, 2],
        weights=torch.tensor([[0.9, 0.1], [0.2, 0.8]]),
        drops=torch.tensor([[3.0, 1.0], [2.0, 0.5]]), on_punctuation=0.0, on_end=0.0,
    )  # fmt: skip
    assert found.most_read == [0, 2]
    assert found.most_needed == [0, 0]
    assert found.agreement == 0.5
    assert found.correlation == 0.0


def test_punctuation_and_the_end_are_noted(runs: Path) -> None:
    translator = load(runs / "bahdanau")
    pair = Pair("two , four !?", "2 4", 1)
    found, shown = measure_faithfulness(translator, pair), attention_map(translator, pair)
    mean = shown.first.mean(0)
    assert found.on_punctuation == pytest.approx(float(mean[1] + mean[3]), abs=1e-5)
    assert found.on_end == pytest.approx(float(mean[4]), abs=1e-5)


def test_entropy_is_in_bits() -> None:
    weights = torch.tensor([[1.0, 0, 0, 0], [0.25] * 4, [0.5, 0.5, 0, 0], [0.1, 0.1, 0, 0]])
    assert entropies(weights) == pytest.approx([0, 2, 1, 1])


@given(st.lists(st.integers(), min_size=2, max_size=9, unique=True))
def test_ranks_correlate_as_spearman_has_it(values: list[int]) -> None:
    ranks = list(range(len(values)))
    other = sorted(ranks, key=lambda rank: hash((rank, values[rank])))
    squares = sum((a - b) ** 2 for a, b in zip(ranks, other, strict=True))
    count = len(values)
    expected = 1 - 6 * squares / (count * (count**2 - 1))
    found = rank_correlation(torch.tensor(ranks).float().exp(), torch.tensor(other).float())
    assert found == pytest.approx(expected, abs=1e-5)


def test_equal_values_share_their_rank_and_no_order_is_none() -> None:
    one, other = torch.tensor([1.0, 1.0, 2.0]), torch.tensor([1.0, 2.0, 3.0])
    assert rank_correlation(one, other) == pytest.approx(math.sqrt(3) / 2)
    assert rank_correlation(torch.ones(3), other) is None
