"""A trained translator: texts in, answers with their scores and weights out."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.seq2seq.data import Pair, PairCodec
from regard.seq2seq.decoding import (
    Beam,
    Ensemble,
    Forced,
    Longest,
    Power,
    Replacement,
    Sampling,
    Streaming,
    quantised,
)
from regard.seq2seq.errors import RunError
from regard.seq2seq.model import EncoderDecoder
from regard.seq2seq.seams import Answer, Search, Stepper
from regard.tasks.config import load
from regard.tasks.config.models import build_model
from regard.tasks.config.translate import Translate
from regard.tasks.pairs.runs import CONFIG, check_task, weights_of
from regard.tasks.pairs.texts import kept_texts
from regard.tasks.translate.readings import Reader, token_weights, usual_layer
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
        config: Translate,
        about: str,
        unknown: Replacement | None = None,
    ) -> None:
        self.model, self.codec, self.config = model.eval(), codec, config
        self.about, self.unknown = about, unknown
        self.others: list[Translator] = []
        """Those that vote with it on each token."""

    @classmethod
    def load(cls, directory: Path | str, *, last: bool = False, int8: bool = False) -> "Translator":
        """The best weights of a run, averaged if it keeps an average; or its last.

        With `int8`, its large linear layers are rounded to 255 levels: quicker on a CPU.
        """
        directory = Path(directory)
        check_task(directory, "translate", "Give a run of regard train translate.")
        config = load(Translate, path=str(directory / CONFIG))
        texts = kept_texts(directory)
        model = build_model(config.model, len(texts[0]), len(texts[1]), shared=texts[0] is texts[1])
        about = weights_of(directory, model, last=last)
        if int8:
            model, about = _rounded(model), f"{about}, in int8"
        return cls(model, codec_of(config, texts), config, about)

    @property
    def readers(self) -> list[Reader]:
        """Those of its models that have attention."""
        return [
            Reader(each.model, usual_layer(each.config))
            for each in (self, *self.others)
            if each.model.decoder.reads
        ]

    def join(self, other: "Translator") -> None:
        """Let another translator vote on each token; both must have the same tokens."""
        pairs = (
            ("source", self.codec.source_text, other.codec.source_text),
            ("target", self.codec.target_text, other.codec.target_text),
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
        width = max(best, given.beam if beam is None else beam)
        penalty, patience = Power(given.penalty), given.patience or None
        return Beam(width, best, penalty, self._longest(), patience=patience)

    def sampling(
        self, temperature: float = 1.0, top_p: float = 1.0, count: int = 1, seed: int = 1
    ) -> Sampling:
        """Answers drawn by how likely they are, as long as the configuration allows."""
        return Sampling(temperature, top_p, count, seed, self._longest())

    def stream(
        self,
        texts: Iterable[str],
        search: Search | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> Iterator[list[Answer]]:
        """For each text its answers, the best first; for an empty one an empty answer."""
        pairs = (
            Pair(text, None, line) if text.strip() else None
            for line, text in enumerate(texts, start=1)
        )
        yield from self._asked(pairs, search or self.search(), progress)

    def predict(self, texts: Iterable[str], *, beam: int | None = None) -> list[Answer]:
        """The best answer to each text."""
        return [answers[0] for answers in self.stream(texts, self.search(beam))]

    def hypotheses(
        self, texts: Iterable[str], best: int, *, beam: int | None = None
    ) -> list[list[Answer]]:
        """Several answers to each text, the best first."""
        return list(self.stream(texts, self.search(beam, best)))

    def score(
        self, pairs: Iterable[tuple[str, str]], progress: Callable[[int], None] | None = None
    ) -> Iterator[Answer]:
        """For each source and target the target as an answer; its score is its log-probability."""
        given = (Pair(source, target, line) for line, (source, target) in enumerate(pairs, start=1))
        for answers in self._asked(given, Forced(Power(0.0)), progress):
            yield answers[0]

    def _asked(
        self,
        pairs: Iterable[Pair | None],
        search: Search,
        progress: Callable[[int], None] | None,
    ) -> Iterator[list[Answer]]:
        device = next(self.model.parameters()).device
        asked = Streaming(
            self._stepper(), self.codec, search, device=device, replacement=self.unknown,
            again=self._read_again if self.readers else None,
        )  # fmt: skip
        with torch.inference_mode():
            yield from asked(pairs, progress)

    def _stepper(self) -> Stepper:
        models = tuple(each.model for each in (self, *self.others))
        return Ensemble(models) if self.others else self.model

    def _read_again(
        self, pairs: Sequence[Pair], tokens: Sequence[Sequence[int]]
    ) -> list[Float[Tensor, "target source"]]:
        """For each pair what the tokens of its answer read, as `answer_alignments` has it."""
        batch = self.codec.answered(pairs, tokens, [[] for _ in tokens])
        weights = token_weights(self.readers, batch)
        return [own[: len(said)] for own, said in zip(weights, tokens, strict=True)]

    def _longest(self) -> Longest:
        given = self.config.decoding
        return Longest(given.longest_factor, given.longest_extra)


def together(
    directories: Sequence[Path | str], *, last: bool = False, int8: bool = False
) -> Translator:
    """One translator of several runs: they vote on each token."""
    first, *rest = (Translator.load(each, last=last, int8=int8) for each in directories)
    for other in rest:
        first.join(other)
    return first


def _rounded(model: nn.Module) -> EncoderDecoder:
    found = quantised(model)
    assert isinstance(found, EncoderDecoder)
    return found
