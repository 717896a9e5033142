"""How the two sides of a run become tokens: built once, kept in its folder."""

from pathlib import Path

from regard.seq2seq.data import Text, build_texts, load_text
from regard.seq2seq.errors import RunError
from regard.tasks.config.text import Bare, Bpe, Characters, Words
from regard.tasks.pairs.examples import Examples
from regard.tasks.pairs.files import keep

SOURCE, TARGET = "source.json", "target.json"


def keep_texts(directory: Path, texts: tuple[Text, Text]) -> None:
    """Write them to a run's folder, each whole or not at all."""
    for text, name in zip(texts, (SOURCE, TARGET), strict=True):
        keep(directory / name, text.save)


def kept_texts(directory: Path) -> tuple[Text, Text]:
    """Those of a run's folder; one object if they are the same."""
    for name in (SOURCE, TARGET):
        if not (directory / name).exists():
            raise RunError(f"{directory} has no {name}, so it is no run. Give the folder of one.")
    source, target = load_text(directory / SOURCE), load_text(directory / TARGET)
    return source, source if source.fingerprint() == target.fingerprint() else target


def new_texts(config: Characters | Words | Bpe | Bare, examples: Examples) -> tuple[Text, Text]:
    """Those that the examples need."""
    sources, targets = examples.sources(), examples.targets()
    match config:
        case Characters():
            return build_texts(sources, targets, kind="characters")
        case Words():
            return build_texts(sources, targets, kind="words", size=config.size)
        case Bpe():
            return build_texts(
                sources, targets, kind="subwords", size=config.size, joint=config.joint
            )
        case Bare():
            return build_texts(
                sources, targets,
                kind="bare", size=config.size, cut=config.cut, lower=config.lower,
            )  # fmt: skip
