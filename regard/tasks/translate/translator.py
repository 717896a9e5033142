"""A trained translator: texts in, answers with scores and attention weights out."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import tee

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.attention.core.options import check_int
from regard.seq2seq.alignment import UnitWeights
from regard.seq2seq.data import MaxLength, Note, Pair, PairCodec, Progress
from regard.seq2seq.decoding import (
    BatchedPredictor,
    Beam,
    Ensemble,
    Forced,
    OutputLimit,
    PowerPenalty,
    Sampling,
    UnkReplacement,
    WithoutGradients,
    quantized,
)
from regard.seq2seq.errors import RunError
from regard.seq2seq.metrics import Bootstrap, MetricScore, bleu, chrf, exact_match, perplexity
from regard.seq2seq.models.encoder_decoder import EncoderDecoder
from regard.seq2seq.protocols import Prediction, Search, Stepper
from regard.tasks.config.decoding import MAX_BEAM
from regard.tasks.config.translate import TranslateConfig
from regard.tasks.faithfulness import Faithfulness
from regard.tasks.pairs.lengths import default_max_length, warn_length
from regard.tasks.pairs.tokenizers import shown_units
from regard.tasks.plots import AttentionMap
from regard.tasks.translate.aligning import ByAttention
from regard.tasks.translate.alignment_layer import (
    ModelWithLayer,
    default_alignment_layer,
    token_weights,
)
from regard.tasks.translate.attention_view import answered, attention_map
from regard.tasks.translate.faithfulness import measure_faithfulness
from regard.tasks.translate.hypothesis_alignment import hypothesis_alignments
from regard.tasks.translate.search_memory import batches, check_memory
from regard.tasks.translate.validation import token_terms


class Translator:
    """The `Predictor` of translate, with all abilities.

    translator = regard.load("runs/dates")
    translator.predict(["3 May 1979"])[0].text

    Args:
        model: The model.
        codec: Texts to tokens and back.
        config: The configuration of its run.
        about: Which weights these are, for notes.
        unknown: Replacement of UNK; None leaves it.
    """

    def __init__(
        self,
        model: EncoderDecoder,
        codec: PairCodec,
        config: TranslateConfig,
        about: str,
        unknown: UnkReplacement | None = None,
    ) -> None:
        self.model, self.codec, self.config = model.eval(), codec, config
        self.about, self.unknown = about, unknown
        self.others: list[Translator] = []
        """The other members of the ensemble."""
        self.decoding: Search | None = None
        """The search; None: as configured."""
        self.max_length: MaxLength = default_max_length(config.data.longest, config.decoding)
        """Maximum length of a source and an answer; change it by `dataclasses.replace`."""
        self.note: Note = warn_length
        """Called for each line that was truncated or skipped."""

    @property
    def readers(self) -> list[ModelWithLayer]:
        """Its models with attention."""
        return [
            ModelWithLayer(each.model, default_alignment_layer(each.config))
            for each in (self, *self.others)
            if each.model.decoder.has_attention
        ]

    def add_member(self, other: "Translator") -> None:
        """Add a member to the ensemble; all must have the same vocabularies."""
        if not isinstance(other, Translator):
            raise RunError(f"a {type(other).__name__} does not translate. Give alike runs.")
        pairs = (
            ("source", self.codec.source_tokenizer, other.codec.source_tokenizer),
            ("target", self.codec.target_tokenizer, other.codec.target_tokenizer),
        )
        for side, ours, theirs in pairs:
            if ours.fingerprint() != theirs.fingerprint():
                raise RunError(
                    f"the models have different {side} vocabularies, so they cannot be an "
                    "ensemble. Train them on the same files, with other seeds."
                )
        if self.codec.copying != other.codec.copying:
            raise RunError("one of the models copies and the other does not. Give alike ones.")
        self.others.append(other)
        self.about = f"{self.about} + {other.about}"

    def search(self, beam: int | None = None, best: int = 1) -> Beam:
        """Beam search as configured."""
        given = self.config.decoding
        check_int("beam", given.beam if beam is None else beam, 1, MAX_BEAM)
        width = max(check_int("best", best, 1, MAX_BEAM), given.beam if beam is None else beam)
        check_memory(width, len(self.codec.target_tokenizer), self.max_length)
        penalty, patience = PowerPenalty(given.penalty), given.patience or None
        return Beam(width, best, penalty, self._longest(), patience=patience)

    def sampling(
        self, temperature: float = 1.0, top_p: float = 1.0, count: int = 1, seed: int = 1
    ) -> Sampling:
        """Sampling, with the configured length limit."""
        width = check_int("best", count, 1, MAX_BEAM)
        check_memory(width, len(self.codec.target_tokenizer), self.max_length)
        return Sampling(temperature, top_p, count, seed, self._longest())

    def bounded(self, pair: Pair) -> Pair | None:
        """The pair truncated to `max_length`; None if it is skipped."""
        return self.max_length(self.codec, pair, self.note)

    def stream(
        self,
        items: Iterable[Pair | str],
        search: Search | None = None,
        *,
        progress: Progress | None = None,
    ) -> Iterator[list[Prediction]]:
        """The answers to each source, the best first; an empty answer to an empty one."""
        sources = (_without_target(item, line) for line, item in enumerate(items, start=1))
        pairs = (self.bounded(pair) if pair.source.strip() else None for pair in sources)
        return self._answers(pairs, search or self.decoding or self.search(), progress)

    def predict(self, texts: Iterable[Pair | str], *, beam: int | None = None) -> list[Prediction]:
        """The best answer to each text."""
        search = None if beam is None else self.search(beam)
        return [answers[0] for answers in self.stream(texts, search)]

    def hypotheses(
        self, texts: Iterable[Pair | str], best: int, *, beam: int | None = None
    ) -> list[list[Prediction]]:
        """Several answers to each text, the best first."""
        return list(self.stream(texts, self.search(beam, best)))

    def evaluate(
        self, items: Sequence[Pair], *, progress: Progress | None = None
    ) -> list[MetricScore]:
        """BLEU, chrF and exact matches, each with an interval by bootstrap; and the perplexity.

        The perplexity is of the first model alone if there are several. A line that is skipped for
        its length has an empty answer, and no part in the perplexity.
        """
        answers = [each[0].text for each in self.stream(items, progress=progress)]
        references = [pair.target or "" for pair in items]
        found = [metric(answers, references, Bootstrap()) for metric in (bleu, chrf, exact_match)]
        kept = [pair for item in items if (pair := self.bounded(item)) is not None]
        with torch.inference_mode():
            return [*found, perplexity(token_terms(self.model, self.codec, kept))]

    def attention(
        self, item: Pair, *, units: str = "", layer: str = "", maps: str = "one"
    ) -> AttentionMap:
        """The attention for each word of the target, or of the model's own answer."""
        pair = answered(self, item)
        return attention_map(
            self, pair, forced=item.target is not None,
            units=units or shown_units(self.config.text.kind), layer=layer, maps=maps,
        )  # fmt: skip

    def faithfulness(self, item: Pair, *, units: str = "", layer: str = "") -> Faithfulness:
        """The faithfulness of the attention weights, by erasing source words one by one."""
        units = units or shown_units(self.config.text.kind)
        return measure_faithfulness(self, answered(self, item), units=units, layer=layer)

    def score(
        self,
        items: Iterable[Pair | tuple[str, str]],
        *,
        progress: Progress | None = None,
    ) -> Iterator[Prediction]:
        """The target of each pair as an answer, whose score is its log-probability.

        A pair that is skipped for its length has the score NaN.
        """
        skipped = Prediction("", math.nan)
        pairs = (_with_target(item, line) for line, item in enumerate(items, start=1))
        bounded, inputs = tee(self.bounded(pair) for pair in pairs)
        answers = self._answers(inputs, Forced(PowerPenalty(0.0)), progress)
        for pair, found in zip(bounded, answers, strict=True):
            yield skipped if pair is None else found[0]

    def aligner(self, reverse: "Translator | None" = None) -> ByAttention:
        """Aligns given pairs by attention; with a translator of the reverse direction, by both."""
        if reverse is not None and not isinstance(reverse, Translator):
            raise RunError(
                "--reverse: this run does not translate. Give one of the reverse direction."
            )
        return ByAttention(self, reverse)

    def answer_alignments(
        self, items: Sequence[Pair], answers: Sequence[Prediction], *, units: str = "word"
    ) -> list[UnitWeights]:
        """The attention of each answer's units to its source."""
        sources = [item.source for item in items]
        return hypothesis_alignments(self, sources, answers, units=units)

    def replace_unknown(self, dictionary: Mapping[str, str]) -> None:
        """Replace UNK by the attended source word, translated by a dictionary, from now on."""
        separator = "" if self.config.text.kind == "characters" else " "
        self.unknown = UnkReplacement(dict(dictionary), separator)

    def quantize(self) -> None:
        """Quantize the large linear layers to int8: faster on a CPU."""
        self.model, self.about = _quantized(self.model), f"{self.about}, in int8"

    def _answers(
        self,
        pairs: Iterable[Pair | None],
        search: Search,
        progress: Progress | None,
    ) -> Iterator[list[Prediction]]:
        device = next(self.model.parameters()).device
        predictor = BatchedPredictor(
            self._stepper(), self.codec, WithoutGradients(search), device=device,
            replacement=self.unknown, rereader=self._reread if self.readers else None,
            **batches(search, len(self.codec.target_tokenizer)),
        )  # fmt: skip
        return predictor(pairs, progress)

    def _stepper(self) -> Stepper:
        models = tuple(each.model for each in (self, *self.others))
        return Ensemble(models) if self.others else self.model

    def _reread(
        self, pairs: Sequence[Pair], tokens: Sequence[Sequence[int]]
    ) -> list[Float[Tensor, "target source"]]:
        """The attention weights of each answer's tokens, as in `answer_alignments`."""
        batch = self.codec.collate_hypotheses(pairs, tokens, [[] for _ in tokens])
        weights = token_weights(self.readers, batch)
        return [rows[: len(answer)] for rows, answer in zip(weights, tokens, strict=True)]

    def _longest(self) -> OutputLimit:
        given = self.config.decoding
        return OutputLimit(given.longest_factor, given.longest_extra, self.max_length.target)


def _quantized(model: nn.Module) -> EncoderDecoder:
    found = quantized(model)
    assert isinstance(found, EncoderDecoder)
    return found


def _without_target(item: Pair | str, line: int) -> Pair:
    return Pair(item, None, line) if isinstance(item, str) else replace(item, target=None)


def _with_target(item: Pair | tuple[str, str], line: int) -> Pair:
    return Pair(*item, line) if isinstance(item, tuple) else item
