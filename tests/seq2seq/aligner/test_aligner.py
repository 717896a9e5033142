"""The aligner learns word alignments from pairs alone."""

import random

import torch

from regard.seq2seq.alignment import Argmax, Gold, alignment_error
from regard.seq2seq.data import AlignmentWords, Pair, PairCodec
from regard.seq2seq.models.aligner import Aligner, VocabularySide, char_ngrams
from regard.seq2seq.training import Optimiser, TrainingOptions, updates

WORDS, FILLER = 30, "um"


def corpus(count: int, seed: int) -> tuple[list[Pair], list[Gold]]:
    """Word-by-word translations, two neighbours swapped, with filler words aligned to NULL."""
    draw = random.Random(seed)
    pairs, gold = [], []
    for line in range(count):
        source = [draw.randrange(WORDS) for _ in range(draw.randint(2, 6))]
        order = list(range(len(source)))
        place = draw.randrange(len(source) - 1)
        order[place], order[place + 1] = order[place + 1], order[place]
        target, links = [], set()
        for number in order:
            if draw.random() < 0.2:
                target.append(FILLER)
            links.add((number, len(target)))
            target.append(f"zq{source[number]}")
        texts = " ".join(f"w{n}x" for n in source), " ".join(target)
        pairs.append(Pair(*texts, line + 1))
        gold.append(Gold(frozenset(links), frozenset(links)))
    return pairs, gold


def build(pairs: list[Pair]) -> tuple[Aligner, PairCodec]:
    texts = (
        AlignmentWords.build([p.source for p in pairs]),
        AlignmentWords.build([p.target or "" for p in pairs]),
    )
    torch.manual_seed(1)
    sides = [
        VocabularySide(
            torch.ones(len(t), dtype=torch.long), char_ngrams([*[""] * 4, *t.pieces[4:]], 32), 32
        )
        for t in texts
    ]
    return Aligner(sides[0], sides[1], jumps=3), PairCodec(*texts)


def trained(pairs: list[Pair], steps: int, shown: int = 0) -> tuple[Aligner, PairCodec]:
    """An aligner with the vocabulary of all pairs, trained on the first `shown` of them."""
    model, codec = build(pairs)
    pairs = pairs[: shown or len(pairs)]
    batches = (
        [codec.collate(range(64), [pairs[(64 * step + n) % len(pairs)] for n in range(64)])]
        for step in range(steps)
    )
    options = TrainingOptions(rate=2e-2, steps=steps, warmup=10)
    list(updates(model, batches, Optimiser(model, options), seed=1))
    return model.eval(), codec


def test_it_recovers_the_gold_alignment() -> None:
    pairs, gold = corpus(600, seed=1)
    model, codec = trained(pairs, steps=100)
    batch = codec.collate(range(100), pairs[:100])
    found = model.posteriors(batch)
    links = []
    for row, pair in enumerate(pairs[:100]):
        sizes = len((pair.target or "").split()), len(pair.source.split())
        weights = found.forward[row, : sizes[0], : sizes[1]]
        links.append(Argmax()(weights, 1 - weights.sum(-1)))
    error = {score.name: score.value for score in alignment_error(links, gold[:100])}
    assert error["AER"] < 0.05


def inflected(count: int, seed: int, *, new: bool) -> tuple[list[Pair], list[Gold]]:
    """Three stems in any order, each with any ending; some forms are held out for `new`."""
    letters = random.Random(7)
    stems = [["".join(letters.choices(own, k=5)) for _ in range(24)] for own in ("abcde", "vwxyz")]
    forms = [(stem, end) for stem in range(24) for end in range(3) if (stem % 3 == end) == new]
    draw = random.Random(seed)
    pairs, gold = [], []
    for line in range(count):
        said, order = draw.sample(forms, 3), draw.sample(range(3), 3)
        source = [stems[0][stem] + "fgh"[end] for stem, end in said]
        target = [stems[1][said[place][0]] + "stu"[said[place][1]] for place in order]
        pairs.append(Pair(" ".join(source), " ".join(target), line + 1))
        links = frozenset((place, number) for number, place in enumerate(order))
        gold.append(Gold(links, links))
    return pairs, gold


def test_unseen_words_are_aligned_by_their_stems() -> None:
    seen, _ = inflected(400, seed=1, new=False)
    unseen, gold = inflected(100, seed=2, new=True)
    model, codec = trained([*seen, *unseen], steps=100, shown=len(seen))
    found = model.posteriors(codec.collate(range(100), unseen))
    links = [Argmax()(weights, 1 - weights.sum(-1)) for weights in found.forward]
    error = {score.name: score.value for score in alignment_error(links, gold)}
    assert error["AER"] < 0.2


def test_both_directions_are_probabilities() -> None:
    pairs, _ = corpus(20, seed=2)
    model, codec = build(pairs)
    found = model.eval().posteriors(codec.collate(range(20), pairs))
    for sums in (found.forward.sum(-1), found.backward.sum(-2)):
        assert (sums >= 0).all()
        assert (sums <= 1 + 1e-5).all()
    assert found.log_prob < 0


def test_swapped_sides_swap_the_directions() -> None:
    pairs, _ = corpus(5, seed=3)
    model, codec = build(pairs)
    other = Aligner(model.lexicon.target, model.lexicon.source, jumps=3)
    swapped = [Pair(p.target or "", p.source, p.line) for p in pairs]
    back = PairCodec(codec.target_tokenizer, codec.source_tokenizer)
    found = model.eval().posteriors(codec.collate(range(5), pairs))
    reverse = other.eval().posteriors(back.collate(range(5), swapped))
    torch.testing.assert_close(found.forward, reverse.backward.mT)
    torch.testing.assert_close(found.backward, reverse.forward.mT)


def test_training_clears_the_cached_normalisers() -> None:
    pairs, _ = corpus(5, seed=4)
    model, codec = build(pairs)
    batch = codec.collate(range(5), pairs)
    before = model.eval().posteriors(batch).log_prob
    model.train()
    with torch.no_grad():
        model.lexicon.target.bias += torch.randn_like(model.lexicon.target.bias)
    after = model.eval().posteriors(batch).log_prob
    fresh = Aligner(model.lexicon.source, model.lexicon.target, jumps=3).eval().posteriors(batch)
    assert before != after
    torch.testing.assert_close(after, fresh.log_prob)
