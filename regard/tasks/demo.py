"""The demo: dates in forty languages to ISO dates, with attention maps."""

from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from regard.seq2seq.errors import ConfigError
from regard.seq2seq.protocols import Prediction
from regard.seq2seq.system.escaping import escaped
from regard.seq2seq.training import reporter
from regard.tasks import run
from regard.tasks.config import ConfigSource, load
from regard.tasks.config.translate import TranslateConfig
from regard.tasks.dates import LANGUAGES, Example, draw, held_out, write
from regard.tasks.plots import AttentionMap, save_stacked, terminal_heatmap
from regard.tasks.plots.fonts import fonts_for
from regard.tasks.translate import Translator

TRAIN, VALID, TEST = 40_000, 1_000, 1_000
SHOWN = ("de", "ru", "el", "ar", "ja")
"""Languages whose attention is shown, in several scripts; drawn if a font here has them."""

SETTINGS = {
    "text": {"kind": "characters"},
    "model": {
        "kind": "bahdanau", "embedding": 64, "encoder_size": 64, "state_size": 128, "dropout": 0.0,
        "score": {"kind": "additive", "hidden_size": 64},
    },
    "training": {
        "batch": {"kind": "sentences", "size": 128}, "rate": 3e-3, "warmup": 100, "ema": 0.99,
        "validate_every": 200, "save_every": 200,
    },
    "decoding": {"beam": 1},
}  # fmt: skip
"""Small enough to learn in a minute."""


def show(out: str, steps: int, seed: int) -> int:
    """Train, predict, plot, and print what to type next; returns the exit code."""
    folder, console = Path(out), Console(highlight=False)
    named = escape(escaped(out))  # a name must not be markup or a control sequence
    console.print(f"Writing {TRAIN:,} dates in {len(LANGUAGES)} languages to {named}/data …")
    paths = write(folder / "data", TRAIN, VALID, TEST, seed)
    files = {"train": [str(paths["train"])], "valid": [str(paths["valid"])]}
    chosen = {"data": files, "training": {"steps": steps, "seed": seed}}
    config = load(
        TranslateConfig,
        overrides=[ConfigSource("the demo", SETTINGS), ConfigSource("the demo", chosen)],
    )
    outcome = run.train(folder / "run", config, reporter())
    if outcome.code:
        return outcome.code
    translator = run.load(folder / "run")
    assert isinstance(translator, Translator)
    unseen = draw(TEST, seed, "test")
    answers = translator.predict([example.source for example in unseen])
    _show_some(console, unseen, answers)
    picture = _draw(folder / "attention.png", unseen, answers)
    right = sum(a.text == e.target for a, e in zip(answers, unseen, strict=True))
    console.print(f"\n[bold]{100 * right / TEST:.1f} % exact[/] over {TEST:,} unseen dates.")
    _show_unseen_formats(console, translator, seed)
    console.print(f"\n{escape(escaped(picture))}")
    console.print(f"Next: echo '3 May 1979' | regard predict {named}/run")
    return 0


def _show_some(console: Console, examples: list[Example], answers: list[Prediction]) -> None:
    console.print("\nUnseen dates, with the attention for each character of the answer:")
    for example, answer in _chosen(examples, answers):
        console.print(f"\n{LANGUAGES[example.language].name}", style="bold")
        console.print(terminal_heatmap(AttentionMap.of(answer), console.width), markup=False)


def _show_unseen_formats(console: Console, translator: Translator, seed: int) -> None:
    unseen = held_out(2, seed)
    console.print("Formats that were not in the training data:")
    for example, answer in zip(unseen, translator.predict([e.source for e in unseen]), strict=True):
        verdict = "right" if answer.text == example.target else f"it is {example.target}"
        console.print(
            f"  {example.source} → {answer.text} ({example.form}; {verdict})", markup=False
        )


def _draw(path: Path, examples: list[Example], answers: list[Prediction]) -> str:
    """Draw the attention maps; returns the message about it."""
    found = [
        replace(AttentionMap.of(answer), title=LANGUAGES[example.language].name)
        for example, answer in _chosen(examples, answers)
    ]
    if not found:
        return "There is nothing to draw: the answers are empty."
    try:
        drawn = [each for each in found if not fonts_for([*each.source, *each.target]).missing]
        note = save_stacked(path, drawn or found, "Attention for each character of an answer")
    except ConfigError as error:  # the demo works without a picture
        return str(error)
    left_out = ", ".join(each.title for each in found if each not in (drawn or found))
    return "\n".join(
        [
            f"The picture of these is {path}",
            *([f"Not in it, as no font here has the letters: {left_out}"] if left_out else []),
            *([f"Note: {note}"] if note else []),
        ]
    )


def _chosen(examples: list[Example], answers: list[Prediction]) -> list[tuple[Example, Prediction]]:
    """The first example of each language in `SHOWN` whose answer is not empty."""
    first: dict[str, tuple[Example, Prediction]] = {}
    for example, answer in zip(examples, answers, strict=True):
        if answer.target:
            first.setdefault(example.language, (example, answer))
    return [first[language] for language in SHOWN if language in first]
