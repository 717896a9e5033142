"""Translating the test set with trained weights: sentences a CPU second, at equal BLEU.

The Transformer of the recipe `multi30k-transformer` translates test_2016_flickr, 64 sentences a
batch, the longest first, one core, until each sentence ends. All have the same weights: regard's
are copied into OpenNMT-py's model, and CTranslate2's are converted from that; all rank by the mean
log-probability of a token. Outputs are scored with BLEU (sacrebleu, 13a, cased).
"""

import dataclasses
from collections.abc import Sequence
from contextlib import suppress

import torch

from benchmarks import captions
from benchmarks.bleu import trained
from benchmarks.contestants.captions import TRAINED
from benchmarks.measure import FailedError
from benchmarks.race import Contestant, Workers, race, working
from benchmarks.results import Row
from benchmarks.settings import Outcome, Settings, median, promise
from benchmarks.toolkit import paced
from benchmarks.translating import BEAMS, FAST, FAST8, INT8, ONMT
from regard.seq2seq.data import Pair
from regard.seq2seq.metrics import bleu
from regard.tasks.run import load
from regard.tasks.translate import Translator

RECIPE, TEST = "multi30k-transformer", "test_2016_flickr"
CONTESTANTS = (
    Contestant("regard", "toolkit:answering", warm=True),
    Contestant(INT8, "toolkit:answering_int8", warm=True),
    Contestant(ONMT, "opennmt:answering", "opennmt"),
    Contestant(FAST, "ctranslate:answering", "opennmt"),
    Contestant(FAST8, "ctranslate:answering_int8", "opennmt"),
)


def run(settings: Settings) -> Outcome:
    """Greedily and with a beam."""
    folder, _ = trained(RECIPE, captions.folder(settings), settings.quick)
    translator = load(folder)
    pairs = captions.pairs_of(captions.folder(settings), TEST)
    pairs = pairs[: 64 if settings.quick else None]
    _write(translator, pairs)
    settings, rows = dataclasses.replace(settings, threads=(1,)), list[Row]()
    with working(settings) as workers:
        for beam in BEAMS:
            case = {"model": "Transformer-tiny", "beam": beam, "sentences": len(pairs)}
            scores = _scores(workers, case, translator, pairs)
            for row in paced(race(workers, case, CONTESTANTS), "sentences", len(pairs)):
                rows.append(row | ({"bleu": scores[row["who"]]} if row["who"] in scores else {}))
            workers.end()
        versions = workers.versions
    return Outcome(rows, promises(rows), versions)


def _write(translator: Translator, pairs: Sequence[Pair]) -> None:
    """What every contestant needs of the model."""
    sources = [translator.codec.collate([0], [pair]).source.ids[0].tolist() for pair in pairs]
    weights, vocabulary = translator.model.state_dict(), len(translator.codec.target_tokenizer)
    torch.save({"weights": weights, "vocabulary": vocabulary, "sources": sources}, TRAINED)


def _scores(
    workers: Workers, case: Row, translator: Translator, pairs: Sequence[Pair]
) -> dict[str, float]:
    """BLEU of what each of them says."""
    found = {}
    for contestant in CONTESTANTS:
        with suppress(FailedError):  # the race tells why
            worker = workers.of(contestant)
            answers = worker.order("answer", target=contestant.target, case=case, threads=1)
            said = [
                translator.codec.decode(tokens, pair)
                for tokens, pair in zip(answers, pairs, strict=True)
            ]
            score = bleu(said, [pair.target or "" for pair in pairs])
            found[contestant.who] = round(score.value, 2)
    return found


def promises(rows: Sequence[Row]) -> list[Row]:
    """How many times as fast as each, and that they say as good a thing."""
    return [
        promise(
            f"the test set, {BEAMS[beam]}, times {who}",
            [row for row in rows if row["case"]["beam"] == beam and row["who"] == who],
            lambda row: median(row, "times_cpu"), at_least=needed,
        )
        for beam in BEAMS
        for who, needed in ((ONMT, 2.0), (FAST, 0.8))
    ]  # fmt: skip
