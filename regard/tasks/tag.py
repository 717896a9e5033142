"""The task: labelled words, a tagger with self-attention, accuracy or entity F1, attention maps."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import torch
from torch import Tensor

from regard.attention.attend import Attention
from regard.attention.multihead import MultiHead
from regard.seq2seq.batch import Corpus, Fault, Tokens
from regard.seq2seq.data import (
    LabelledWords,
    PlainSentences,
    Progress,
    Vocabulary,
    by_length,
    open_conll,
    read_lines,
    windowed,
)
from regard.seq2seq.data.vocabulary import SPECIAL_IDS
from regard.seq2seq.encoders import RecurrentBody
from regard.seq2seq.errors import ConfigError, DataError
from regard.seq2seq.metrics import MetricScore, accuracy, entity_f1, is_bio
from regard.seq2seq.models.tagger import CharacterCNN, Tagger, TaggingBatch
from regard.seq2seq.protocols import Prediction
from regard.tasks.artifacts import Artifacts
from regard.tasks.config.tag import TagConfig
from regard.tasks.examples import Examples
from regard.tasks.plots import AttentionMap
from regard.tasks.task import Task

COLUMNS = (".conll", ".conllu", ".bio", ".iob", ".tsv")
"""Inputs of these names have a word a line; of others, a sentence."""

LONGEST_WORD = 30
"""Characters of a word that are read: longer ones are mostly addresses."""


@dataclass(frozen=True, slots=True)
class TagVocabularies(Artifacts):
    """The words, characters and labels of the training data."""

    words: Vocabulary
    characters: Vocabulary
    labels: Vocabulary

    FILES: ClassVar[tuple[str, ...]] = ("words.json", "characters.json", "labels.json")

    def to_files(self) -> dict[str, bytes]:
        parts = (self.words, self.characters, self.labels)
        return {name: part.to_json() for name, part in zip(self.FILES, parts, strict=True)}

    @classmethod
    def from_files(cls, contents: Mapping[str, bytes], directory: Path) -> "TagVocabularies":
        return cls(*(Vocabulary.from_json(contents[n], str(directory / n)) for n in cls.FILES))

    @property
    def label_count(self) -> int:
        """Without the special ids, which no word has as its label."""
        return len(self.labels) - SPECIAL_IDS


@dataclass(frozen=True, slots=True)
class TagCodec:
    """A `Codec` of labelled words."""

    kept: TagVocabularies

    def sizes(self, item: LabelledWords) -> tuple[int, ...]:
        return (len(item.words),)

    def collate(self, numbers: Sequence[int], items: Sequence[LabelledWords]) -> TaggingBatch:
        lengths = torch.tensor([len(item.words) for item in items])
        shape = len(items), max(1, int(lengths.max()))
        longest = max((len(word) for item in items for word in item.words), default=1)
        ids = torch.zeros(shape, dtype=torch.long)
        characters = torch.zeros(*shape, min(longest, LONGEST_WORD), dtype=torch.long)
        for row, item in enumerate(items):
            for place, word in enumerate(item.words):
                ids[row, place] = self.kept.words.id(word.lower())
                spelt = [self.kept.characters.id(each) for each in word[:LONGEST_WORD]]
                characters[row, place, : len(spelt)] = torch.tensor(spelt)
        return TaggingBatch(list(numbers), Tokens(ids, lengths), characters, self._labels(items))

    def _labels(self, items: Sequence[LabelledWords]) -> Tensor | None:
        if any(item.labels is None for item in items):
            return None
        rows = [
            [self.kept.labels.id(label) - SPECIAL_IDS for label in item.labels or ()]
            for item in items
        ]
        longest = max(1, *(len(row) for row in rows))
        # UNK is below 0, too: a label that was never seen cannot be trained on.
        return torch.tensor([row + [-1] * (longest - len(row)) for row in rows]).clamp(min=-1)


class WordTagger:
    """The `Predictor` of tag: its answer to a sentence are the labels of its words."""

    def __init__(self, model: Tagger, kept: TagVocabularies, about: str) -> None:
        self.model, self.codec, self.about = model.eval(), TagCodec(kept), about

    def stream(
        self, items: Iterable[LabelledWords | str], *, progress: Progress | None = None
    ) -> Iterator[list[Prediction]]:
        """For each sentence one answer: words as its source, labels as its target."""
        sentences = (_sentence(item, line) for line, item in enumerate(items, start=1))
        return windowed(sentences, by_length(self.codec), self._answers, progress)

    def predict(self, texts: Iterable[LabelledWords | str]) -> list[Prediction]:
        """The labels of each sentence, whose words stand between spaces."""
        return [answers[0] for answers in self.stream(texts)]

    def evaluate(
        self, items: Sequence[LabelledWords], *, progress: Progress | None = None
    ) -> list[MetricScore]:
        """Entity F1 and accuracy if the labels are BIO; else accuracy alone."""
        predicted = [answers[0].target for answers in self.stream(items, progress=progress)]
        gold = [item.labels or () for item in items]
        entities = is_bio(self.codec.kept.labels.pieces)
        return [
            metric(predicted, gold) for metric in ([entity_f1] if entities else []) + [accuracy]
        ]

    def attention(
        self, item: LabelledWords, *, units: str = "", layer: str = "", maps: str = "one"
    ) -> AttentionMap:
        """What each word attended to when it was labelled."""
        if units not in ("", "word") or layer:
            raise ConfigError(
                "tag labels words by one layer of self-attention. Leave --units and --layer out."
            )
        if not item.words:
            raise DataError("the text is empty. Give one that can be read.")
        ((answer, heads),) = self._tagged([item])
        labels = item.labels or answer.target
        named = {f"self-attention (mean of {len(heads)} heads)": heads.mean(0)}
        each = {f"self-attention/head.{number}": own for number, own in enumerate(heads)}
        found = {"one": named, "several": each, "all": named | each}[maps]
        legend = "for the model's own labels" if item.labels is None else "for the given labels"
        target = [f"{word}/{label}" for word, label in zip(item.words, labels, strict=True)]
        return AttentionMap(" ".join(target), legend, list(item.words), target, found)

    def _answers(
        self, _: Sequence[int], items: Sequence[LabelledWords]
    ) -> Iterator[list[Prediction]]:
        return ([answer] for answer, _ in self._tagged(items))

    @torch.inference_mode()
    def _tagged(self, items: Sequence[LabelledWords]) -> list[tuple[Prediction, Tensor]]:
        """For each sentence its answer, and the weights of each head."""
        device = next(self.model.parameters()).device
        found = self.model.tag(self.codec.collate(range(len(items)), items).to(device))
        scores, best = found.logits.log_softmax(-1).max(-1)
        tagged = []
        for row, item in enumerate(items):
            length = len(item.words)
            ids = best[row, :length].tolist()
            labels = [self.codec.kept.labels.piece(number + SPECIAL_IDS) for number in ids]
            heads = found.weights[row, :, :length, :length].cpu()
            text = " ".join(
                f"{word}/{label}" for word, label in zip(item.words, labels, strict=True)
            )
            score = float(scores[row, :length].sum())
            answer = Prediction(text, score, list(item.words), labels, heads.mean(0), ids)
            tagged.append((answer, heads))
        return tagged


def _sentence(item: LabelledWords | str, line: int) -> LabelledWords:
    return LabelledWords(tuple(item.split()), None, line) if isinstance(item, str) else item


def _open(config: TagConfig, paths: Sequence[str]) -> Corpus[LabelledWords]:
    data = config.data
    return open_conll(
        paths, word_column=data.word_column or None, label_column=data.label_column or None
    )


def _inputs(config: TagConfig, path: str) -> Corpus[LabelledWords]:
    if path.lower().removesuffix(".gz").endswith(COLUMNS):
        return _open(config, [path])
    return PlainSentences(read_lines(path))


def _given(_: TagConfig, text: str, target: str | None) -> LabelledWords:
    words, labels = tuple(text.split()), None if target is None else tuple(target.split())
    if labels is not None and len(labels) != len(words):
        raise DataError(
            f"{len(words)} words have {len(labels)} labels. Give a label for each word."
        )
    return LabelledWords(words, labels, 1)


def _fit(config: TagConfig, examples: Examples[LabelledWords]) -> TagVocabularies:
    items = list(examples.items())
    words = [word for item in items for word in item.words]
    return TagVocabularies(
        Vocabulary.build((word.lower() for word in words), config.model.min_count),
        Vocabulary.build(character for word in words for character in word),
        Vocabulary.build(label for item in items for label in item.labels or ()),
    )


def _model(config: TagConfig, kept: TagVocabularies) -> Tagger:
    given = config.model
    characters = CharacterCNN(
        len(kept.characters), given.character_embedding, given.character_size
    )  # fmt: skip
    body = RecurrentBody(
        given.embedding + given.character_size, given.hidden_size,
        cell=given.cell, layers=given.layers, dropout=given.dropout,
    )  # fmt: skip
    size = body.out_size
    attention = MultiHead(Attention, given.heads, size, size, size // given.heads)
    return Tagger(
        len(kept.words), given.embedding, characters, body, attention, kept.label_count,
        dropout=given.dropout, word_dropout=given.word_dropout,
    )  # fmt: skip


def _between(
    config: TagConfig, train: Sequence[LabelledWords], valid: Sequence[LabelledWords]
) -> Iterator[Fault]:
    """Labels of the validation set that the training set lacks: each once."""
    seen = {label for item in train for label in item.labels or ()}
    for item in valid:
        for label in set(item.labels or ()) - seen:
            seen.add(label)
            what = f"the label {label!r} is not in the training set, so it is never predicted"
            yield Fault("unseen label", what, config.data.valid[0], item.line, severe=False)


def _columns(item: LabelledWords, answer: Prediction) -> str:
    rows = zip(item.words, answer.target, strict=True)
    return "".join(f"{word}\t{label}\n" for word, label in rows)


def _json(item: LabelledWords, answer: Prediction) -> str:
    return json.dumps({"words": item.words, "labels": answer.target}, ensure_ascii=False)


TASK = Task(
    name="tag",
    config=TagConfig,
    artifacts=TagVocabularies,
    describe=lambda config: f"A tagger of words, {config.model.cell} with self-attention",
    usage="echo 'Time flies like an arrow .' | regard predict {}",
    scores_note="Accuracy is the percentage of words with the right label; F1 is of whole "
    "entities, where the labels are BIO.",
    open=_open,
    inputs=_inputs,
    given=_given,
    group=lambda item: " ".join(item.words),
    between=_between,
    fit=_fit,
    codec=lambda _, kept: TagCodec(kept),
    model=_model,
    predictor=lambda _, kept, model, about: WordTagger(model, kept, about),
    formats={"columns": _columns, "inline": lambda _, answer: answer.text, "json": _json},
)
