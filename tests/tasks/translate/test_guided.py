"""Guided alignment: links pull attention to them; invalid links are reported."""

import re
from pathlib import Path

import pytest
import torch

from regard.seq2seq.alignment import Argmax, Gold, alignment_error
from regard.seq2seq.data import Pair, format_fault
from regard.seq2seq.decoding import UnkReplacement
from regard.seq2seq.errors import ConfigError, DataError, RunError
from regard.tasks.check import check_data
from regard.tasks.run import load, task_examples, train
from regard.tasks.translate import TASK
from regard.tasks.translate.aligning import agreeing_layers, soft_alignments
from regard.tasks.translate.attention_view import attention_map
from regard.tasks.translate.hypothesis_alignment import hypothesis_alignments
from tests.tasks.translate.small import configured, say_unknown, write_pairs
from tests.tasks.translate.test_training import contents

TINY = {"kind": "transformer", "size": 12, "heads": 2, "layers": 2, "inner": 17}
STRAIGHT = frozenset({(0, 0), (1, 1), (2, 2)})


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pairs of three words, and their links beside them."""
    path = write_pairs(tmp_path_factory.mktemp("guided") / "pairs.tsv")
    path.with_suffix(".links").write_text("0-0 1-1 2-2\n" * 120, encoding="utf-8")
    return path


def error(folder: Path) -> float:
    """The AER of what a run reads."""
    translator = load(folder)
    given = [Pair("two four one", "2 4 1", 1), Pair("one three zero", "1 3 0", 2)]
    found = [Argmax()(s.weights, s.nothing) for s in soft_alignments(translator, given)]
    return alignment_error(found, [Gold(STRAIGHT, frozenset())] * 2)[-1].value


@pytest.mark.parametrize("model", [{}, TINY], ids=["bahdanau", "transformer"])
def test_attention_follows_the_links(model: dict[str, object], pairs: Path, tmp_path: Path) -> None:
    changes = {f"model__{key}": value for key, value in model.items()}
    changes |= {"training__steps": 40, "training__validate_every": 40, "model__dropout": 0.0}
    guide = {"data__links": str(pairs.with_suffix(".links")), "training__links": 1.0}
    train(tmp_path / "alone", configured(pairs, **changes))
    train(tmp_path / "guided", configured(pairs, **changes, **guide))
    assert error(tmp_path / "guided") < min(0.3, error(tmp_path / "alone"))


@pytest.mark.parametrize("layer", ["", "decoder.1/head.0", "decoder.1+1"])
def test_what_was_guided_is_what_is_read_and_drawn(layer: str, pairs: Path, tmp_path: Path) -> None:
    """Of a Transformer by default its first layer, a token later."""
    changes = {f"model__{key}": value for key, value in TINY.items()}
    guide = {"data__links": str(pairs.with_suffix(".links")), "training__links_layer": layer}
    train(tmp_path / "run", configured(pairs, **changes, **guide, training__steps=2))
    translator, pair = load(tmp_path / "run"), Pair("two four one", "2 4 1", 1)
    (usual,) = soft_alignments(translator, [pair])
    (named,) = soft_alignments(translator, [pair], layer=layer or "decoder.0+1")
    assert torch.equal(usual.weights, named.weights)
    assert agreeing_layers(translator, translator, [pair] * 2)[0] == (layer or "decoder.0+1")
    shown = next(iter(attention_map(translator, pair, maps="all").maps.values()))
    assert torch.equal(shown[:, :3], usual.weights)  # the end of the source comes after its words


@pytest.mark.parametrize("layer", ["", "decoder.0/head.1", "decoder.1+1"])
def test_an_unknown_word_is_replaced_by_what_the_guided_layer_read(
    layer: str, pairs: Path, tmp_path: Path
) -> None:
    changes = {f"model__{key}": value for key, value in TINY.items()}
    guide = {"data__links": str(pairs.with_suffix(".links")), "training__links_layer": layer}
    train(tmp_path / "run", configured(pairs, **changes, **guide, training__steps=2))
    translator = load(tmp_path / "run")
    say_unknown(translator)
    translator.unknown = UnkReplacement()
    sources = ["Ravel Satie two Faure Fauré", "one Bizet Widor", "Lalo Vierne Dukas four Chopin"]
    for source, answer in zip(sources, translator.predict(sources, beam=3), strict=True):
        (linked,) = hypothesis_alignments(translator, [source], [answer])
        words = source.split()
        assert answer.text.split() == [words[place] for place in linked.weights.argmax(-1)]


def test_without_weight_the_run_is_bit_identical(pairs: Path, tmp_path: Path) -> None:
    guide = {"data__links": str(pairs.with_suffix(".links"))}
    train(tmp_path / "alone", configured(pairs, training__steps=5))
    train(tmp_path / "none", configured(pairs, training__steps=5, training__links=0.0, **guide))
    for name, content in contents(tmp_path / "alone").items():
        if name not in ("record.json", "manifest.json"):  # these tell the configuration
            assert contents(tmp_path / "none")[name] == content, name
    train(tmp_path / "some", configured(pairs, training__steps=5, **guide))
    weights = "model.safetensors"
    assert contents(tmp_path / "some")[weights] != contents(tmp_path / "alone")[weights]


def test_links_follow_their_pair_through_split_and_skipped_lines(tmp_path: Path) -> None:
    """Pair n says its own number in its links: whichever are learned from have theirs."""
    path = tmp_path / "pairs.tsv"
    lines = [f"a{'a' * n} b\tx{'x' * n} y" for n in range(40)]
    lines[7], lines[30] = "no tab", lines[3]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    links = tmp_path / "links"
    links.write_text("".join(f"{n % 2}-{n % 2}\n" for n in range(40)), encoding="utf-8")
    examples = task_examples(
        TASK, configured(path, data__links=str(links), data__on_bad_input="skip")
    )
    for number in examples.numbers:
        pair = examples.corpus[number]
        assert pair.links is not None
        ((source, target),) = pair.links
        expected = ("b", "y") if number % 2 else (pair.source.split()[0], "x" * (number + 1))
        said = pair.source[slice(*source)], (pair.target or "")[slice(*target)]
        assert said == (expected if number != 30 else ("a" * 4, "xxxx"))


def test_sure_links_guide_before_possible_ones(pairs: Path, tmp_path: Path) -> None:
    links = tmp_path / "links"
    links.write_text("0-0 1p0 1p1 2p1\n" + "\n" * 119, encoding="utf-8")
    given = task_examples(TASK, configured(pairs, data__links=str(links))).corpus[0].links
    assert len(given) == 3  # the first word's sure one, and both possible ones of the second


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("0-0\n" * 119, r"links: has 119 lines of links, but .*pairs\.tsv has 120 pairs"),
        ("0-0\n" * 119 + "0-3\n", r"links, line 120: the link 0-3 \(counted from 0\)"),
        ("0-0\n0:1\n" + "0-0\n" * 118, r"links, line 2: '0:1' is not a link"),
    ],
)
def test_broken_links_are_reported_with_their_line(
    content: str, told: str, pairs: Path, tmp_path: Path
) -> None:
    links = tmp_path / "links"
    links.write_text(content, encoding="utf-8")
    config = configured(pairs, data__links=str(links), data__valid=[str(pairs)])
    with pytest.raises(DataError, match=told):
        train(tmp_path / "run", config)
    assert not (tmp_path / "run").exists()
    (found,) = [fault for fault in check_data(TASK, config) if fault.severe]
    assert re.search(told, format_fault(found))


def test_other_links_are_refused_when_a_run_resumes(pairs: Path, tmp_path: Path) -> None:
    links = tmp_path / "links"
    links.write_text("0-0 1-1\n" * 120, encoding="utf-8")
    guide = {"data__links": str(links)}
    train(tmp_path / "run", configured(pairs, training__steps=1, **guide))
    links.write_text("0-0 2-2\n" * 120, encoding="utf-8")
    with pytest.raises(RunError, match="links"):
        train(tmp_path / "run", configured(pairs, training__steps=2, **guide))


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"model__kind": "plain", "model__embedding": 5, "model__state_size": 7}, "kind plain"),
        ({"training__links_layer": "decoder.1"}, 'only "decoder"'),
        (
            {**{f"model__{key}": value for key, value in TINY.items()},
             "training__links_layer": "decoder.1/head.2"},
            r"decoder\.0 to decoder\.1, each with /head\.0 to /head\.1",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_guided_is_noted(
    changes: dict[str, object], told: str, pairs: Path, tmp_path: Path
) -> None:
    config = configured(pairs, data__links=str(pairs.with_suffix(".links")), **changes)
    with pytest.raises(ConfigError, match=told):
        train(tmp_path / "run", config)
    assert not (tmp_path / "run").exists()
