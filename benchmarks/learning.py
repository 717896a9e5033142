"""Training encoder–decoders: target tokens a CPU second.

Multi30k captions, English to German, 8,000 joint BPE tokens, 64 pairs a batch, bucketed by length,
the same batches for everyone; one core. Only updates are timed: batches are ready. regard's are
those of its training loop, with `keep_heap`, as in `regard train`; OpenNMT-py's those of its
trainer; for Hugging Face's Marian, which has no trainer of its own here, a plain loop with
PyTorch's fused AdamW. The RNNs have embeddings of 256, an encoder of 2 × 256, a state and an output
layer of 512; the Transformer has 4 + 4 layers of size 128 with 4 heads and a feed-forward size of
256, tied. OpenNMT-py's RNNs have input feeding; regard is also measured without it, where training
need not go step by step.
"""

import dataclasses
from collections.abc import Sequence

from benchmarks import captions
from benchmarks.contestants.captions import target_tokens
from benchmarks.race import Contestant, race, working
from benchmarks.results import Row
from benchmarks.settings import Outcome, Settings, median, promise
from benchmarks.toolkit import paced

ONMT, MARIAN = "OpenNMT-py", "Hugging Face Marian"
OURS = Contestant("regard", "toolkit:training", warm=True)
OPENNMT = Contestant(ONMT, "opennmt:training", "opennmt")
HUGGING = Contestant(MARIAN, "marian:training", "marian")
CASES = {
    "additive RNN": (OURS, OPENNMT),
    "Luong, general, fed": (OURS, OPENNMT),
    "Luong, general, not fed": (OURS, OPENNMT),
    "Transformer-tiny": (OURS, OPENNMT, HUGGING),
}
LONGEST = 45.0
"""Rounds are long here, and three of them too few for a median on a machine that is not quiet."""

NEEDED = {
    ("additive RNN", ONMT): 2.0,
    ("Luong, general, fed", ONMT): 1.6,
    ("Luong, general, not fed", ONMT): 2.0,
    ("Transformer-tiny", ONMT): 1.6,
    ("Transformer-tiny", MARIAN): 1.25,
}


def run(settings: Settings) -> Outcome:
    """Each model, with those who have it."""
    captions.write_ids(settings)
    settings, rows = dataclasses.replace(settings, threads=(1,)), list[Row]()
    batches = 1 if settings.quick else 8
    with working(settings) as workers:
        for model, contestants in CASES.items():
            case = {"model": model, "batches": batches}
            found = race(workers, case, contestants, longest=LONGEST)
            rows += paced(found, "target tokens", target_tokens(batches))
            workers.end()
        versions = workers.versions
    return Outcome(rows, promises(rows), versions)


def promises(rows: Sequence[Row]) -> list[Row]:
    """How many times as fast as each of them, in CPU seconds."""

    def of(model: str, who: str) -> list[Row]:
        return [row for row in rows if row["who"] == who and row["case"]["model"] == model]

    return [
        promise(
            f"training, {model}, times {who}",
            of(model, who), lambda row: median(row, "times_cpu"), at_least=needed,
        )
        for (model, who), needed in NEEDED.items()
    ]  # fmt: skip
