"""Alignments by attention: of given pairs, in both directions, and what is refused."""

from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path

import pytest
import torch
from torch import Tensor

from regard.attention.core.errors import OptionError
from regard.seq2seq.alignment import Argmax, Links, swapped
from regard.seq2seq.batch import SourceTarget
from regard.seq2seq.data import Pair, windows
from regard.seq2seq.errors import ConfigError
from regard.tasks.pairs.aligning import AlignmentOptions, alignments
from regard.tasks.run import load, train
from regard.tasks.translate import Translator
from regard.tasks.translate.aligning import ByAttention, agreeing_layers, soft_alignments
from tests.tasks.translate.small import configured, write_pairs

PAIRS = [Pair("two four one", "2 4 1", 1), Pair("zero three", "0 3", 2)]
SWAPPED = [Pair(pair.target or "", pair.source, pair.line) for pair in PAIRS]
STRAIGHT = [frozenset({(0, 0), (1, 1), (2, 2)}), frozenset({(0, 0), (1, 1)})]
TINY = {"kind": "transformer", "size": 12, "heads": 2, "layers": 3, "inner": 17}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both directions, a Transformer and a model without attention; none has learned anything."""
    folder = tmp_path_factory.mktemp("aligning")
    there = write_pairs(folder / "there.tsv")
    back = folder / "back.tsv"
    lines = (line.split("\t") for line in there.read_text("utf-8").splitlines())
    back.write_text("".join(f"{b}\t{a}\n" for a, b in lines), encoding="utf-8")
    train(folder / "there", configured(there, training__steps=1))
    train(folder / "back", configured(back, training__steps=1))
    model = {f"model__{key}": value for key, value in TINY.items()}
    train(folder / "transformer", configured(there, training__steps=2, **model))
    plain = {"model__kind": "plain", "model__embedding": 5, "model__state_size": 7}
    train(folder / "plain", configured(there, training__steps=1, **plain))
    return folder


def reading_along(folder: Path) -> Translator:
    """A translator whose target token n reads the source's token n, mostly."""
    translator = load(folder)

    def read(batch: SourceTarget) -> dict[str, Tensor]:
        assert batch.target is not None
        rows, columns = batch.target.ids.shape[1] - 1, batch.source.ids.shape[1]
        weights = torch.full((len(batch.items), rows, columns), 0.1 / columns)
        return {"decoder": weights + 0.9 * torch.eye(rows, columns)}

    translator.model.read = read  # type: ignore[method-assign]
    return translator


def aligned(
    one: Translator, other: Translator | None, pairs: Sequence[Pair], options: AlignmentOptions
) -> Iterator[Links]:
    return (each.links for each in alignments(ByAttention(one, other), pairs, options))


def test_links_follow_what_is_read(runs: Path) -> None:
    there = reading_along(runs / "there")
    assert list(aligned(there, None, PAIRS, AlignmentOptions())) == STRAIGHT


@pytest.mark.parametrize("symmetry", ["intersection", "union", "grow-diag-final-and", "product"])
def test_both_directions_agree(runs: Path, symmetry: str) -> None:
    there, back = reading_along(runs / "there"), reading_along(runs / "back")
    assert list(aligned(there, back, PAIRS, AlignmentOptions(symmetry=symmetry))) == STRAIGHT
    assert [
        swapped(links) for links in aligned(back, there, SWAPPED, AlignmentOptions())
    ] == STRAIGHT


@pytest.mark.parametrize("name", ["there", "transformer"])
@pytest.mark.parametrize("units", ["word", "subword", "char"])
def test_every_row_is_a_share_of_one(runs: Path, name: str, units: str) -> None:
    for each in soft_alignments(load(runs / name), PAIRS, units=units):
        total = each.weights.sum(-1) + each.nothing
        torch.testing.assert_close(total, torch.ones_like(total))


def test_batches_and_windows_change_nothing(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    translator, heard = load(runs / "there"), list[int]()
    whole = [each.weights for each in soft_alignments(translator, PAIRS * 3)]
    monkeypatch.setattr(windows, "WINDOW", 2)
    monkeypatch.setattr(windows, "TOKENS", 1)
    parts = list(soft_alignments(translator, PAIRS * 3, progress=heard.append))
    assert heard[-1] == 6
    for one, other in zip(whole, parts, strict=True):
        torch.testing.assert_close(one, other.weights)


def test_no_more_than_a_window_is_read_ahead(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So any number of pairs fits: what was answered is let go, what comes is not yet there."""
    monkeypatch.setattr(windows, "WINDOW", 3)
    taken = 0

    class Endless(Sequence[Pair]):
        def __len__(self) -> int:
            return 10**9

        def __getitem__(self, number: int) -> Pair:  # type: ignore[override]
            return PAIRS[number % 2]

        def __iter__(self) -> Iterator[Pair]:
            nonlocal taken
            for number in count():
                taken += 1
                yield self[number]

    links = aligned(load(runs / "there"), None, Endless(), AlignmentOptions())
    for number in range(1, 8):
        next(links)
        assert taken <= 3 * -(-number // 3)


@pytest.mark.parametrize(("layer", "row"), [("", 0), ("decoder.1", 0), ("decoder.1+1", 1)])
def test_a_layer_is_read_as_it_is_or_a_token_later(runs: Path, layer: str, row: int) -> None:
    """The reading of the first token: the row that it is predicted from, or the one after."""
    translator = load(runs / "transformer")
    batch = translator.codec.collate([0], PAIRS[:1])
    heads = [
        rows for name, rows in translator.model.read(batch).items()
        if name.startswith("decoder.1/")
    ]  # fmt: skip
    (found,) = soft_alignments(translator, PAIRS[:1], layer=layer)
    torch.testing.assert_close(found.weights[0], torch.stack(heads).mean(0)[0, row, :3])


def test_one_direction_can_be_asked_for(runs: Path) -> None:
    there, back = reading_along(runs / "there"), load(runs / "back")
    alone = list(aligned(there, back, PAIRS, AlignmentOptions(symmetry="forward")))
    assert alone == STRAIGHT
    other = list(aligned(back, None, SWAPPED, AlignmentOptions()))
    backward = list(aligned(there, back, PAIRS, AlignmentOptions(symmetry="backward")))
    assert backward == [swapped(links) for links in other]


def test_layers_are_chosen_by_agreement(runs: Path) -> None:
    there, other = load(runs / "transformer"), load(runs / "back")
    layer, own = agreeing_layers(there, other, PAIRS)
    assert layer.removesuffix("+1") in {"decoder.0", "decoder.1", "decoder.2"}
    assert own == ""


def test_what_cannot_be_aligned_is_noted(runs: Path) -> None:
    with pytest.raises(ConfigError, match="kind plain has no attention"):
        next(soft_alignments(load(runs / "plain"), PAIRS))
    with pytest.raises(OptionError, match=r"no layer decoder\.9\. It has decoder"):
        next(soft_alignments(load(runs / "transformer"), PAIRS, layer="decoder.9"))
    with pytest.raises(OptionError, match="grow-diag"):
        AlignmentOptions(symmetry="both")
    assert AlignmentOptions().rule == Argmax()
