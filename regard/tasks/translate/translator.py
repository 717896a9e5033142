"""A trained translator: texts in, answers with their scores and weights out."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import tee
from pathlib import Path

from jaxtyping import Float
from torch import Tensor, nn

from regard.attention.core.options import check_int
from regard.seq2seq.data import MaxLength, Note, Pair, PairCodec
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
from regard.seq2seq.models.encoder_decoder import EncoderDecoder
from regard.seq2seq.protocols import Prediction, Search, Stepper
from regard.tasks.config.decoding import MAX_BEAM
from regard.tasks.config.model_factories import build_model
from regard.tasks.config.translate import TranslateConfig
from regard.tasks.pairs.lengths import max_length_of, warn
from regard.tasks.pairs.runs import check_task, open_run
from regard.tasks.translate.layer_choice import LayerChoice, token_weights, usual_layer
from regard.tasks.translate.memory import batches, check_memory
from regard.tasks.translate.training import codec_of


class Translator:
    """A model with everything that it needs to answer.

    translator = Translator.load("runs/dates")
    translator.predict(["3 May 1979"])[0].text

    Args:
        model: What answers.
        codec: Texts to tokens and back.
        config: The configuration of its run.
        about: Which weights these are, for people.
        unknown: What stands for unknown words; None leaves their sign.
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
        """Those that vote with it on each token."""
        self.max_length: MaxLength = max_length_of(config)
        """How long a source and an answer may be; `dataclasses.replace` gives another."""
        self.note: Note = warn
        """Hears of each line that was truncated or skipped."""

    @classmethod
    def load(cls, directory: Path | str, *, last: bool = False, int8: bool = False) -> "Translator":
        """The best weights of a run, averaged if it keeps an average; or its last.

        With `int8`, its large linear layers are rounded to 255 levels: quicker on a CPU.
        """
        check_task(directory, "translate", "Give a run of regard train translate.")
        run = open_run(directory, TranslateConfig, last=last)
        config, texts = run.config, run.texts
        model = build_model(config.model, len(texts[0]), len(texts[1]), shared=texts[0] is texts[1])
        about = run.restore(model)
        if int8:
            model, about = _rounded(model), f"{about}, in int8"
        return cls(model, codec_of(config, texts), config, about)

    @property
    def readers(self) -> list[LayerChoice]:
        """Those of its models that have attention."""
        return [
            LayerChoice(each.model, usual_layer(each.config))
            for each in (self, *self.others)
            if each.model.decoder.has_attention
        ]

    def add_member(self, other: "Translator") -> None:
        """Let another translator vote on each token; both must have the same tokens."""
        pairs = (
            ("source", self.codec.source_tokenizer, other.codec.source_tokenizer),
            ("target", self.codec.target_tokenizer, other.codec.target_tokenizer),
        )
        for side, ours, theirs in pairs:
            if ours.fingerprint() != theirs.fingerprint():
                raise RunError(
                    f"the models have different {side} tokens, so they cannot answer together. "
                    "Train them on the same files, with other seeds."
                )
        if self.codec.copying != other.codec.copying:
            raise RunError("one of the models copies and the other does not. Give alike ones.")
        self.others.append(other)
        self.about = f"{self.about} + {other.about}"

    def search(self, beam: int | None = None, best: int = 1) -> Beam:
        """The search that the configuration asks for."""
        given = self.config.decoding
        check_int("beam", given.beam if beam is None else beam, 1, MAX_BEAM)
        width = max(check_int("best", best, 1, MAX_BEAM), given.beam if beam is None else beam)
        check_memory(width, len(self.codec.target_tokenizer), self.max_length)
        penalty, patience = PowerPenalty(given.penalty), given.patience or None
        return Beam(width, best, penalty, self._longest(), patience=patience)

    def sampling(
        self, temperature: float = 1.0, top_p: float = 1.0, count: int = 1, seed: int = 1
    ) -> Sampling:
        """Answers drawn by how likely they are, as long as the configuration allows."""
        width = check_int("best", count, 1, MAX_BEAM)
        check_memory(width, len(self.codec.target_tokenizer), self.max_length)
        return Sampling(temperature, top_p, count, seed, self._longest())

    def bounded(self, pair: Pair) -> Pair | None:
        """The pair as it may be read: truncated, or None if it is skipped, as `max_length` says."""
        return self.max_length(self.codec, pair, self.note)

    def stream(
        self,
        texts: Iterable[str],
        search: Search | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> Iterator[list[Prediction]]:
        """For each text its answers, the best first; for an empty one an empty answer."""
        pairs = (
            self.bounded(Pair(text, None, line)) if text.strip() else None
            for line, text in enumerate(texts, start=1)
        )
        return self._asked(pairs, search or self.search(), progress)

    def predict(self, texts: Iterable[str], *, beam: int | None = None) -> list[Prediction]:
        """The best answer to each text."""
        return [answers[0] for answers in self.stream(texts, self.search(beam))]

    def hypotheses(
        self, texts: Iterable[str], best: int, *, beam: int | None = None
    ) -> list[list[Prediction]]:
        """Several answers to each text, the best first."""
        return list(self.stream(texts, self.search(beam, best)))

    def score(
        self, pairs: Iterable[tuple[str, str]], progress: Callable[[int], None] | None = None
    ) -> Iterator[Prediction]:
        """For each source and target the target as an answer; its score is its log-probability.

        One that is skipped for its length has a score that is no number.
        """
        skipped = Prediction("", math.nan)
        lines = enumerate(pairs, start=1)
        given = (self.bounded(Pair(source, target, line)) for line, (source, target) in lines)
        noticed, asked = tee(given)
        answers = self._asked(asked, Forced(PowerPenalty(0.0)), progress)
        for pair, found in zip(noticed, answers, strict=True):
            yield skipped if pair is None else found[0]

    def _asked(
        self,
        pairs: Iterable[Pair | None],
        search: Search,
        progress: Callable[[int], None] | None,
    ) -> Iterator[list[Prediction]]:
        device = next(self.model.parameters()).device
        asked = BatchedPredictor(
            self._stepper(), self.codec, WithoutGradients(search), device=device,
            replacement=self.unknown, rereader=self._read_again if self.readers else None,
            **batches(search, len(self.codec.target_tokenizer)),
        )  # fmt: skip
        return asked(pairs, progress)

    def _stepper(self) -> Stepper:
        models = tuple(each.model for each in (self, *self.others))
        return Ensemble(models) if self.others else self.model

    def _read_again(
        self, pairs: Sequence[Pair], tokens: Sequence[Sequence[int]]
    ) -> list[Float[Tensor, "target source"]]:
        """For each pair what the tokens of its answer read, as `answer_alignments` has it."""
        batch = self.codec.collate_hypotheses(pairs, tokens, [[] for _ in tokens])
        weights = token_weights(self.readers, batch)
        return [own[: len(said)] for own, said in zip(weights, tokens, strict=True)]

    def _longest(self) -> OutputLimit:
        given = self.config.decoding
        return OutputLimit(given.longest_factor, given.longest_extra, self.max_length.target)


def load_ensemble(
    directories: Sequence[Path | str], *, last: bool = False, int8: bool = False
) -> Translator:
    """One translator of several runs: they vote on each token."""
    first, *rest = (Translator.load(each, last=last, int8=int8) for each in directories)
    for other in rest:
        first.add_member(other)
    return first


def _rounded(model: nn.Module) -> EncoderDecoder:
    found = quantized(model)
    assert isinstance(found, EncoderDecoder)
    return found
