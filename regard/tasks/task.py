"""What a task is: its data, model, metric and picture, named in one place.

    file → open → corpus → fit → artifacts → codec → batch → model(batch) is the loss
                                                             ↓
                             predictor: stream, evaluate, attention

`regard.tasks.run` trains and loads any task; the verbs of the command line know `Task` and
`Predictor`, never a task by name. What only some predictors can do is a protocol in `abilities`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from torch import nn

from regard.seq2seq.batch import Batch, Codec, Corpus, Fault
from regard.seq2seq.data import Progress
from regard.seq2seq.metrics import MetricScore
from regard.seq2seq.protocols import Prediction
from regard.seq2seq.training import Plan, Validate
from regard.tasks.artifacts import Artifacts
from regard.tasks.config import TaskConfig
from regard.tasks.examples import Examples
from regard.tasks.plots import AttentionMap

Config = TypeVar("Config", bound=TaskConfig)
Item = TypeVar("Item")
Item_contra = TypeVar("Item_contra", contravariant=True)


Kept = TypeVar("Kept", bound=Artifacts)
Model = TypeVar("Model", bound=nn.Module)


@runtime_checkable
class Predictor(Protocol[Item_contra]):
    """A trained model with its codec and configuration: what `regard.load` returns."""

    about: str
    """Which weights these are, for notes."""

    def stream(
        self, items: Iterable[Item_contra], *, progress: Progress | None = None
    ) -> Iterator[list[Prediction]]:
        """For each item its answers, the best first; in bounded memory."""

    def evaluate(
        self, items: Sequence[Item_contra], *, progress: Progress | None = None
    ) -> list[MetricScore]:
        """Metrics against the items' gold; the first is the task's main one."""

    def attention(
        self, item: Item_contra, *, units: str = "", layer: str = "", maps: str = "one"
    ) -> AttentionMap:
        """What was attended to for the item's gold, or for the model's own answer without one.

        Args:
            item: One item.
            units: Units of rows and columns: "word", "subword", "char"; empty: the task's default.
            layer: Layer or head, as in "decoder.2"; empty: the model's default.
            maps: "one", "several" (the heads of a named layer, else the layers) or "all".
        """


@dataclass(frozen=True, kw_only=True)
class Task(Generic[Config, Item, Kept, Model]):
    """A task: its data, model, predictor and metrics. Optional fields have shared defaults."""

    name: str
    config: type[Config]
    artifacts: type[Kept]

    describe: Callable[[Config], str]
    """What the model is, for its card: "A translator of kind `bahdanau`"."""

    usage: str
    """What to type next, `{}` being the run: "regard predict {} input.txt"."""

    open: Callable[[Config, Sequence[str]], Corpus[Item]]
    """Items with their gold: to train and to validate."""

    inputs: Callable[[Config, str], Corpus[Item]]
    """Items without: to predict. `-` is the standard input."""

    gold: Callable[[Config, Sequence[str]], Corpus[Item]] | None = None
    """Items with their gold for inference on a trained model; none: as `open`."""

    given: Callable[[Config, str, str | None], Item]
    """One item from the command line: its input, and its gold if there is one."""

    group: Callable[[Item], str]
    """Items of one group are never split between training and validation."""

    fit: Callable[[Config, Examples[Item]], Kept]
    codec: Callable[[Config, Kept], Codec[Item, Batch]]
    model: Callable[[Config, Kept], Model]
    """With initial weights, drawn from torch's generator."""

    predictor: Callable[[Config, Kept, Model, str], Predictor[Item]]
    """A trained model, ready to answer; the text says which weights these are."""

    prime: Callable[[Model, Kept, Examples[Item]], None] = lambda *_: None
    """Initialise from the data, once, before the first update."""

    guide: Callable[[Config, Corpus[Item]], Corpus[Item]] = lambda _, corpus: corpus
    """The training corpus with extra supervision: given alignments."""

    validator: Callable[[Config, Kept, Sequence[Item]], Validate] | None = None
    """The validation; none: the loss and the metrics of `evaluate`."""

    steps: Callable[[Config, Plan], int] = lambda config, _: config.training.steps
    """Number of updates."""

    check: Callable[[Config], None] = lambda _: None
    """Raise a `ConfigError` for incompatible choices."""

    between: Callable[[Config, Sequence[Item], Sequence[Item]], Iterator[Fault]] = lambda *_: iter(
        ()
    )
    """Faults between the training and the validation set, such as unseen characters."""

    formats: Mapping[str, Callable[[Item, Prediction], str]] = field(
        default_factory=lambda: {"text": lambda _, answer: answer.text}
    )
    """How `predict` writes an answer, by name; the first is the default."""

    scores_note: str = ""
    """What the validation metrics mean, for the card."""

    packages: Sequence[str] = ()
    """Packages whose versions the card lists, beside those of every task."""


AnyTask = Task[Any, Any, Any, Any]
