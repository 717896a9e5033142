"""`regard init`: a configuration to start from."""

from regard.cli.config_options import (
    Config,
    Data,
    Recipe,
    Settings,
    TaskArgument,
    Valid,
    config_options,
)
from regard.cli.output import write_answer
from regard.tasks.config import as_toml


def init(
    task: TaskArgument,
    data: Data = None,
    valid: Valid = None,
    recipe: Recipe = None,
    config: Config = None,
    settings: Settings = None,
) -> None:
    """Write a commented configuration to the standard output.

    regard init translate --data pairs.tsv > run.toml
    """
    given = config_options(
        task, recipe=recipe, path=config, data=data, valid=valid, settings=settings
    )
    heading = (
        f"Train with: regard train {task} --config run.toml --out runs/first\n"
        "Any key here can be set there too: --set training.steps=300\n"
    )
    write_answer(as_toml(given, heading), end="")
