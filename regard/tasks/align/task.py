"""The task: pairs of text, an HMM aligner in both directions, word alignments."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import torch
from jaxtyping import Int
from torch import Tensor

from regard.seq2seq.batch import Fault
from regard.seq2seq.data import Pair, PairCodec, Tokenizer
from regard.seq2seq.models.aligner import Aligner, VocabularySide, char_ngrams
from regard.seq2seq.training import Plan, Validate
from regard.tasks.align.aligner import WordAligner
from regard.tasks.align.validation import AlignmentValidator
from regard.tasks.config.align import AlignConfig
from regard.tasks.config.ram_check import check_fits_in_ram
from regard.tasks.examples import Examples
from regard.tasks.pairs.opening import open_gold_pairs, open_pair_files, unseen_characters
from regard.tasks.pairs.tokenizers import PairTokenizers, fit_tokenizers
from regard.tasks.task import Task

EPOCHS, LEAST = 5, 400
"""Default number of epochs, and minimum number of updates."""


def updates(config: AlignConfig, plan: Plan) -> int:
    """The configured number of updates, or a default by the number of pairs against overfitting."""
    training = config.training
    return training.steps or max(LEAST, -(-EPOCHS * len(plan(0)) // training.accumulate))


def _fit(config: AlignConfig, examples: Examples[Pair]) -> PairTokenizers:
    return fit_tokenizers(config.text, examples)


def _codec(_: AlignConfig, kept: PairTokenizers) -> PairCodec:
    return PairCodec(kept.source, kept.target)


def _model(config: AlignConfig, kept: PairTokenizers) -> Aligner:
    """An aligner with initial weights; raises if the machine has too little memory."""
    words, each = len(kept.source) + len(kept.target), config.model
    # The n-gram vectors are not parameters, but take as much memory.
    check_fits_in_ram(words * (each.size + each.spelling + 2) + 2 * each.spelling * each.size)
    source, target = (
        VocabularySide(
            torch.zeros(len(side), dtype=torch.long), _ngrams(side, each.spelling), each.size
        )
        for side in (kept.source, kept.target)
    )
    return Aligner(source, target, each.jumps)


def _ngrams(tokenizer: Tokenizer, size: int) -> Tensor:
    """The character n-grams of a vocabulary; special tokens have none."""
    special = len(tokenizer.pieces) - len(tokenizer.to_dict()["pieces"])
    words = [piece.strip() for piece in tokenizer.pieces[special:]]
    return char_ngrams([*[""] * special, *words], size)


def _prime(model: Aligner, kept: PairTokenizers, examples: Examples[Pair]) -> None:
    """Initialise the biases by word frequency."""
    lexicon = model.lexicon
    lexicon.source.set_frequencies(_counts(kept.source, (p.source for p in examples.items())))
    lexicon.target.set_frequencies(_counts(kept.target, (p.target or "" for p in examples.items())))


def _counts(tokenizer: Tokenizer, lines: Iterable[str]) -> Int[Tensor, " word"]:
    counts: Counter[int] = Counter()
    for line in lines:
        counts.update(tokenizer.encode(line).ids)
    return torch.tensor([counts[number] for number in range(len(tokenizer))])


def _predictor(
    config: AlignConfig, kept: PairTokenizers, model: Aligner, about: str
) -> WordAligner:
    return WordAligner(model, _codec(config, kept), config, about)


def _validator(config: AlignConfig, kept: PairTokenizers, valid: Sequence[Pair]) -> Validate:
    return AlignmentValidator(valid, _codec(config, kept))


def _between(config: AlignConfig, train: Sequence[Pair], valid: Sequence[Pair]) -> Iterator[Fault]:
    return unseen_characters(config.data, train, valid)


TASK = Task(
    name="align",
    config=AlignConfig,
    artifacts=PairTokenizers,
    describe=lambda config: f"A word aligner over `{config.text.kind}` tokens",
    usage="regard align {} pairs.tsv > links.pharaoh",
    scores_note="The loss is the cross-entropy of a word, both directions together; agreement is "
    "the share of their links that both directions have. `regard align --gold` gives the error "
    "rate.",
    open=lambda config, paths: open_pair_files(config.data, paths),
    gold=lambda config, paths: open_gold_pairs(config.data, paths),
    inputs=lambda config, path: open_gold_pairs(config.data, [path]),
    given=lambda _, text, target: Pair(text, target, 1),
    group=lambda pair: pair.source,
    between=_between,
    fit=_fit,
    codec=_codec,
    model=_model,
    prime=_prime,
    predictor=_predictor,
    validator=_validator,
    steps=updates,
)
