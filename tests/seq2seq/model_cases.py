"""Every kind of model at a small size, and batches for them."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from regard import Attention, scores, selection
from regard.seq2seq import decoders, encoders
from regard.seq2seq.batch import BOS, EOS, PAD, SourceTarget, Tokens
from regard.seq2seq.models.encoder_decoder import EncoderDecoder
from regard.seq2seq.objectives import Objective
from regard.seq2seq.outputs.output_layer import LinearOutput
from regard.seq2seq.outputs.pointer_generator import PointerGenerator

SOURCE, TARGET = 13, 11
EMBEDDING, SIZE, HALF = 5, 7, 3
WHOLE = 2 * HALF
HEADS, HEAD, INNER = 2, 5, 17
WIDE = HEADS * HEAD
SOURCES, TARGETS = [5, 3, 7], [4, 6, 2]
"""Lengths of the sentences; those of targets without BOS and EOS."""


@dataclass(frozen=True)
class Case:
    name: str
    encoder: Callable[[], nn.Module]
    decoder: Callable[[], nn.Module]

    def build(
        self,
        *objectives: Objective,
        copying: bool = False,
        dtype: torch.dtype = torch.float64,
        smoothing: float = 0.0,
    ):
        torch.manual_seed(3)
        decoder = self.decoder()
        output_layer = LinearOutput(decoder.size, TARGET)
        output_layer = PointerGenerator(output_layer) if copying else output_layer
        model = EncoderDecoder(
            self.encoder(), decoder, output_layer, smoothing=smoothing, objectives=objectives
        )
        return model.to(dtype).eval()

    def __str__(self) -> str:
        return self.name


def recurrent(**options: object) -> Callable[[], nn.Module]:
    return lambda: encoders.RecurrentEncoder(SOURCE, EMBEDDING, HALF, **options)


def transformer(make: Callable[[], Attention] = Attention, norm: str = "pre") -> nn.Module:
    options = {"layers": 2, "heads": HEADS, "inner": INNER, "norm": norm}
    return encoders.TransformerEncoder(SOURCE, WIDE, make, **options)


def additive() -> scores.Score:
    return scores.Additive(SIZE, WHOLE, 19)


def bahdanau(score: Callable[[], scores.Score] = additive, select=selection.Softmax, **options):
    def make() -> nn.Module:
        attention = Attention(score(), select())
        return decoders.BahdanauDecoder(TARGET, EMBEDDING, SIZE, WHOLE, attention, **options)

    return make


def luong(score: Callable[[], scores.Score], select=selection.Softmax, **options):
    def make() -> nn.Module:
        attention = Attention(score(), select())
        return decoders.LuongDecoder(TARGET, EMBEDDING, SIZE, WHOLE, attention, **options)

    return make


def general() -> scores.Score:
    return scores.Bilinear(SIZE, WHOLE)


def covered() -> scores.Score:
    return scores.Coverage(additive(), fertility=2.0, key_size=WHOLE)


def aware() -> scores.Score:
    return scores.LocationAware(SIZE, WHOLE, 19, filters=2, kernel_size=3)


def nearby() -> selection.Selection:
    return selection.LocalPredictive(SIZE, 2)


def transforming(make: Callable[[], Attention] = Attention, norm: str = "pre", source: int = WIDE):
    options = {"layers": 2, "heads": HEADS, "inner": INNER, "norm": norm}
    return lambda: decoders.TransformerDecoder(TARGET, WIDE, source, make, **options)


def plain(**options: object) -> Callable[[], nn.Module]:
    return lambda: decoders.NoAttentionDecoder(TARGET, EMBEDDING, SIZE, WHOLE, **options)


def by_additive() -> Attention:
    return Attention(scores.Additive(HEAD, HEAD, 3))


def by_coverage() -> Attention:
    inner = scores.Additive(HEAD, HEAD, 3)
    return Attention(scores.Coverage(inner, fertility=2.0, key_size=HEAD))


def by_step() -> Attention:
    return Attention(scores.ScaledDot(), selection.LocalMonotonic(2))


BOTH = recurrent()
CASES = [
    Case("plain gru", BOTH, plain(cell="gru")),
    Case(
        "plain lstm", recurrent(cell="lstm", reverse=True, layers=2), plain(cell="lstm", layers=2)
    ),
    Case("bahdanau", BOTH, bahdanau()),
    Case("bahdanau lstm", BOTH, bahdanau(cell="lstm")),
    Case("bahdanau coverage", BOTH, bahdanau(covered)),
    Case("bahdanau location", BOTH, bahdanau(aware)),
    Case("bahdanau local", BOTH, bahdanau(select=lambda: selection.LocalMonotonic(1))),
    Case("luong fed", BOTH, luong(general, layers=2)),
    Case("luong gru local", BOTH, luong(general, nearby, cell="gru")),
    Case("luong at once", BOTH, luong(general, input_feeding=False)),
    Case("luong at once coverage", BOTH, luong(covered, layers=2, input_feeding=False)),
    Case("transformer", transformer, transforming()),
    Case("transformer post", lambda: transformer(norm="post"), transforming(norm="post")),
    Case("transformer additive", BOTH, transforming(by_additive, source=WHOLE)),
    Case("transformer coverage", BOTH, transforming(by_coverage, source=WHOLE)),
    Case("transformer local", BOTH, transforming(by_step, source=WHOLE)),
]
READING = [case for case in CASES if not case.name.startswith("plain")]
ADDING_UP = [case for case in READING if "local" not in case.name]
"""Those whose weights sum to 1."""


def tokens(lengths: list[int], vocabulary: int, *, framed: bool = False, seed: int = 0) -> Tokens:
    """Random sentences, padded; framed ones with BOS and EOS besides."""
    drawn = torch.Generator().manual_seed(seed)
    rows = []
    for length in lengths:
        row = torch.randint(4, vocabulary, (length,), generator=drawn).tolist()
        rows.append([BOS, *row, EOS] if framed else row)
    width = max(map(len, rows))
    padded = [row + [PAD] * (width - len(row)) for row in rows]
    return Tokens(torch.tensor(padded), torch.tensor([len(row) for row in rows]))


def batch(
    sources: list[int] = SOURCES, targets: list[int] = TARGETS, *, copies: int = 0
) -> SourceTarget:
    """Random pairs; with copies, so many words past the vocabulary."""
    source = tokens(sources, SOURCE)
    pairs = SourceTarget(range(len(sources)), source, tokens(targets, TARGET, framed=True, seed=1))
    if copies:
        pairs.copy_ids = source.ids % (TARGET + copies)
        pairs.extra_vocab = copies
    return pairs


def chosen(pairs: SourceTarget, order: list[int], *, more: int = 0) -> SourceTarget:
    """Some sentences of a batch, with more padding after them, of ids that mean something."""

    def some(side: Tokens) -> Tokens:
        lengths = side.lengths[order]
        ids = side.ids[order][:, : int(lengths.max())]
        junk = torch.full((len(order), more), 5)
        ids = torch.cat([ids, junk], 1)
        ids = torch.where(torch.arange(ids.shape[1]) < lengths[:, None], ids, 6)
        return Tokens(ids, lengths)

    return SourceTarget(
        [pairs.items[number] for number in order], some(pairs.source), some(pairs.target)
    )


def total(model: EncoderDecoder, pairs: SourceTarget) -> Tensor:
    """The objective."""
    terms = model(pairs).values()
    return sum(term.weight * term.total / term.count for term in terms)
