"""Alignments of hypotheses: as if their text had been given."""

from pathlib import Path

import pytest
import torch

from regard.seq2seq.alignment import Argmax
from regard.seq2seq.data import Pair
from regard.seq2seq.decoding import UnkReplacement, quantized
from regard.seq2seq.protocols import Prediction
from regard.tasks.run import load, load_ensemble, train
from regard.tasks.translate import Translator
from regard.tasks.translate.aligning import soft_alignments
from regard.tasks.translate.hypothesis_alignment import hypothesis_alignments
from tests.tasks.translate.small import configured, write_pairs

SOURCES = ["two four one", "zero three", "one one four three zero", "three"]
KINDS: dict[str, dict[str, object]] = {
    "bahdanau": {},
    "luong": {"kind": "luong", "embedding": 7, "encoder_size": 5, "state_size": 11},
    "fed": {
        "kind": "luong", "embedding": 7, "encoder_size": 5, "state_size": 11, "feeding": True,
        "score": "bilinear",
    },
    "transformer": {"kind": "transformer", "size": 12, "heads": 2, "layers": 3, "inner": 17},
    "copying": {"copying": True},
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of each kind, and one of subwords; all have learned a little."""
    there = tmp_path_factory.mktemp("decoded")
    pairs = write_pairs(there / "pairs.tsv")
    for name, model in KINDS.items():
        changes = {f"model__{key}": value for key, value in model.items()}
        train(there / name, configured(pairs, training__steps=4, **changes))
    subwords = configured(pairs, training__steps=30, text__kind="bpe", text__size=24)
    train(there / "subwords", subwords)
    return there


def found(
    translator: Translator, search: object, units: str = "word"
) -> list[tuple[str, Prediction, torch.Tensor, torch.Tensor]]:
    """All hypotheses with what they read."""
    told = translator.stream(SOURCES, search)  # type: ignore[arg-type]
    both = [(s, a) for s, ways in zip(SOURCES, told, strict=True) for a in ways]
    sources, answers = [s for s, _ in both], [a for _, a in both]
    soft = hypothesis_alignments(translator, sources, answers, units=units)
    return [(s, a, j.weights, j.nothing) for (s, a), j in zip(both, soft, strict=True)]


@pytest.mark.parametrize("name", [*KINDS, "subwords"])
@pytest.mark.parametrize("width", [1, 4])
def test_decoded_and_forced_read_the_same(folder: Path, name: str, width: int) -> None:
    """If the text of a hypothesis is cut into the tokens that it was said in."""
    translator = load(folder / name)
    compared = 0
    for source, answer, weights, nothing in found(translator, translator.search(width, width)):
        if translator.codec.target_tokenizer.encode(answer.text).ids != answer.tokens:
            continue
        (forced,) = soft_alignments(translator, [Pair(source, answer.text, 1)])
        torch.testing.assert_close(weights, forced.weights)
        torch.testing.assert_close(nothing, forced.nothing)
        assert Argmax()(weights, nothing) == Argmax()(forced.weights, forced.nothing)
        compared += 1
    assert compared >= (1 if name == "copying" else 3)


@pytest.mark.parametrize("name", ["bahdanau", "luong", "fed", "copying"])
def test_it_is_what_the_search_read(folder: Path, name: str) -> None:
    """Where a step shows all there is: the weights that the trail kept are those."""
    translator = load(folder / name)
    for _, answer, weights, _ in found(translator, translator.search(4, 4), "subword"):
        assert answer.weights is not None
        said = [place for place, piece in enumerate(answer.target) if piece]
        torch.testing.assert_close(weights, answer.weights[said, :-1])


def test_draws_have_links_too(folder: Path) -> None:
    translator = load(folder / "bahdanau")
    drawn = found(translator, translator.sampling(count=3, seed=5))
    assert len(drawn) == 3 * len(SOURCES)
    for source, answer, weights, _ in drawn:
        assert weights.shape == (len(answer.text.split()), len(source.split()))


@pytest.mark.parametrize("names", [("bahdanau", "transformer"), ("transformer", "bahdanau")])
def test_models_that_vote_are_averaged_each_by_its_own_layer(
    folder: Path, names: tuple[str, str]
) -> None:
    voting = load_ensemble([folder / name for name in names])
    alone = [load(folder / name) for name in names]
    told = [ways[0] for ways in voting.stream(SOURCES)]
    own = [hypothesis_alignments(one, SOURCES, told) for one in (voting, *alone)]
    for both, first, second in zip(*own, strict=True):
        torch.testing.assert_close(both.weights, (first.weights + second.weights) / 2)


def test_an_empty_answer_has_no_links(folder: Path) -> None:
    translator = load(folder / "bahdanau")
    (empty,) = hypothesis_alignments(translator, [""], [Prediction("", 0.0)])
    assert empty.weights.shape == (0, 0)
    assert Argmax()(empty.weights, empty.nothing) == frozenset()


def test_replaced_words_are_linked_to_what_they_were_taken_from(folder: Path) -> None:
    """Their place is that of the new word, whatever its length."""
    translator = load(folder / "bahdanau")
    translator.unknown = UnkReplacement({"Ravel": "Maurice"})
    answers = [ways[0] for ways in translator.stream(["Ravel", "Ravel two"])]
    for source, answer in zip(["Ravel", "Ravel two"], answers, strict=True):
        (own,) = hypothesis_alignments(translator, [source], [answer])
        assert own.weights.shape == (len(answer.text.split()), len(source.split()))


def test_rounded_models_have_links_too(folder: Path) -> None:
    translator = load(folder / "transformer")
    translator.model = quantized(translator.model, min_weights=1)  # type: ignore[assignment]
    for _, _, weights, nothing in found(translator, translator.search(3)):
        torch.testing.assert_close(weights.sum(-1) + nothing, torch.ones(len(weights)))
