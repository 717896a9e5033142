"""A trained translator: texts in, answers with their scores and weights out."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import torch

from regard.seq2seq.data import Pair, PairCodec
from regard.seq2seq.decoding import Beam, Longest, Power, Streaming
from regard.seq2seq.errors import RunError
from regard.seq2seq.model import EncoderDecoder
from regard.seq2seq.seams import Answer, Search
from regard.seq2seq.training import Store, load_weights
from regard.tasks.config import load
from regard.tasks.config.models import build_model
from regard.tasks.config.translate import Translate
from regard.tasks.translate.texts import codec_of, kept_texts
from regard.tasks.translate.training import CONFIG


class Translator:
    """A model with everything that it needs to answer.

    translator = Translator.load("runs/dates")
    translator.predict(["3 May 1979"])[0].text
    """

    def __init__(
        self, model: EncoderDecoder, codec: PairCodec, config: Translate, about: str
    ) -> None:
        self.model, self.codec, self.config = model.eval(), codec, config
        self.about = about
        """Which weights these are, for people."""

    @classmethod
    def load(cls, directory: Path | str, *, last: bool = False) -> "Translator":
        """The best weights of a run, averaged if it keeps an average; or its last."""
        directory = Path(directory)
        if not (directory / CONFIG).is_file():
            raise RunError(
                f"{directory} has no {CONFIG}, so it is no run. Give the folder that was --out of "
                "regard train."
            )
        config = load(Translate, path=str(directory / CONFIG))
        texts = kept_texts(directory)
        model = build_model(config.model, len(texts[0]), len(texts[1]), shared=texts[0] is texts[1])
        store = Store(directory)
        found = store.newest() if last else store.best()
        if found is None:
            raise RunError(f"{directory} holds no checkpoint. Train first.")
        averaged = load_weights(model, found)
        kind = "averaged weights" if averaged else "weights"
        about = f"{'last' if last else 'best'} {kind}, of step {found.step}"
        return cls(model, codec_of(config, texts), config, "; ".join([about, *found.notes]))

    def search(self, beam: int | None = None, best: int = 1) -> Beam:
        """The search that the configuration asks for."""
        given = self.config.decoding
        width = max(best, given.beam if beam is None else beam)
        longest = Longest(given.longest_factor, given.longest_extra)
        return Beam(width, best, Power(given.penalty), longest)

    def stream(
        self,
        texts: Iterable[str],
        search: Search | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> Iterator[list[Answer]]:
        """For each text its answers, the best first; for an empty one an empty answer."""
        device = next(self.model.parameters()).device
        asked = Streaming(self.model, self.codec, search or self.search(), device=device)
        pairs = (
            Pair(text, None, line) if text.strip() else None
            for line, text in enumerate(texts, start=1)
        )
        with torch.inference_mode():
            yield from asked(pairs, progress)

    def predict(self, texts: Iterable[str], *, beam: int | None = None) -> list[Answer]:
        """The best answer to each text."""
        return [answers[0] for answers in self.stream(texts, self.search(beam))]

    def hypotheses(
        self, texts: Iterable[str], best: int, *, beam: int | None = None
    ) -> list[list[Answer]]:
        """Several answers to each text, the best first."""
        return list(self.stream(texts, self.search(beam, best)))
