"""Translating with encoder–decoders: sentences a CPU second.

Captions of Multi30k's test set, 64 a batch, the longest first, one core; weights are random, and
every sentence gets 20 tokens, so that the work is equal. Models as in training. regard is measured
in float32 and in int8, CTranslate2 (which has no RNNs) with the converted weights of OpenNMT-py's
Transformer.
"""

import dataclasses
from collections.abc import Sequence

from benchmarks import captions
from benchmarks.contestants.captions import SENTENCES
from benchmarks.race import Contestant, race, working
from benchmarks.results import Row
from benchmarks.settings import Outcome, Settings, median, promise
from benchmarks.toolkit import paced

INT8, ONMT, FAST, FAST8 = "regard, int8", "OpenNMT-py", "CTranslate2", "CTranslate2, int8"
OURS = Contestant("regard", "toolkit:translating", warm=True)
ROUNDED = Contestant(INT8, "toolkit:translating_int8", warm=True)
OPENNMT = Contestant(ONMT, "opennmt:translating", "opennmt")
CTRANSLATE = Contestant(FAST, "ctranslate:translating", "opennmt")
CTRANSLATE8 = Contestant(FAST8, "ctranslate:translating_int8", "opennmt")
CASES = {
    "additive RNN": (OURS, ROUNDED, OPENNMT),
    "Transformer-tiny": (OURS, ROUNDED, OPENNMT, CTRANSLATE, CTRANSLATE8),
}
BEAMS = {1: "greedy", 5: "beam of 5"}
TOKENS = 20


def run(settings: Settings) -> Outcome:
    """Both models, greedily and with a beam."""
    captions.write_ids(settings)
    settings, rows = dataclasses.replace(settings, threads=(1,)), list[Row]()
    batches = 1 if settings.quick else 4
    with working(settings) as workers:
        for model, contestants in CASES.items():
            for beam in BEAMS:
                case = {"model": model, "beam": beam, "tokens": TOKENS, "batches": batches}
                found = race(workers, case, contestants)
                rows += paced(found, "sentences", SENTENCES * batches)
                workers.end()
        versions = workers.versions
    return Outcome(rows, promises(rows), versions)


def promises(rows: Sequence[Row]) -> list[Row]:
    """How many times as fast as each of them, in CPU seconds."""
    rnn, small = "additive RNN", "Transformer-tiny"
    needed = [
        (rnn, 1, "regard", ONMT, 1.7), (rnn, 5, "regard", ONMT, 1.7),
        (rnn, 1, INT8, ONMT, 3.0), (rnn, 5, INT8, ONMT, 2.5),
        (small, 1, "regard", ONMT, 2.0), (small, 5, "regard", ONMT, 2.0),
        (small, 1, "regard", FAST, 0.8), (small, 5, "regard", FAST, 0.8),
    ]  # fmt: skip
    return [
        promise(
            f"translating, {model}, {BEAMS[beam]}, {ours}, times {who}",
            [{"ratio": _ratio(rows, model, beam, ours, who)}],
            lambda row: row["ratio"], at_least=least,
        )
        for model, beam, ours, who, least in needed
    ]  # fmt: skip


def _ratio(rows: Sequence[Row], model: str, beam: int, ours: str, who: str) -> float | None:
    """How many times as long as one of ours a peer took, in CPU seconds."""
    same = {
        row["who"]: row
        for row in rows
        if row["case"]["model"] == model and row["case"]["beam"] == beam
    }
    theirs = median(same.get(who, {}), "times_cpu")
    if ours == "regard":
        return theirs
    rounded = median(same.get(ours, {}), "times_cpu")
    return None if theirs is None or rounded is None else theirs / rounded
