"""Multi30k as token ids: written once, so that every contestant sees the same batches.

The folder is given with `--data`: `train.en`, `train.de`, `val.en`, …, a sentence a line.
"""

import json
from pathlib import Path

from benchmarks.contestants.captions import IDS
from benchmarks.measure import FailedError
from benchmarks.settings import Settings
from regard.seq2seq.data import Pair, PairCodec, build_tokenizers, open_pairs

PIECES = 8000
TRAIN, TEST = 64 * 32, 640
"""How many pairs are enough to measure a pace, and how many are translated."""


def folder(settings: Settings) -> Path:
    """Where the captions are."""
    if settings.data is None:
        raise FailedError("give a folder with Multi30k: --data FOLDER")
    return settings.data


def pairs_of(folder: Path, name: str) -> list[Pair]:
    """The pairs of one part: "train", "val", "test_2016_flickr"."""
    corpus = open_pairs([str(folder / f"{name}.en"), str(folder / f"{name}.de")])
    return [corpus[number] for number in range(len(corpus))]


def write_ids(settings: Settings) -> None:
    """Learn the pieces from all of the training text, and write the ids of some pairs."""
    train = pairs_of(folder(settings), "train")
    texts = build_tokenizers(
        [pair.source for pair in train], [pair.target or "" for pair in train],
        kind="subwords", size=PIECES, joint=True,
    )  # fmt: skip
    codec = PairCodec(*texts)
    ids = {
        "vocabulary": len(texts[0]),
        "train": [_ids(codec, pair) for pair in train[:TRAIN]],
        "test": [_ids(codec, p) for p in pairs_of(folder(settings), "test_2016_flickr")[:TEST]],
    }
    IDS.parent.mkdir(parents=True, exist_ok=True)
    IDS.write_text(json.dumps(ids))


def _ids(codec: PairCodec, pair: Pair) -> tuple[list[int], list[int]]:
    batch = codec.collate([0], [pair])
    assert batch.target is not None
    return batch.source.ids[0].tolist(), batch.target.ids[0].tolist()
