"""`regard recipes`: configurations with their results."""

from typing import Annotated

import typer

from regard.cli.output import write_answer
from regard.tasks.config.recipes import recipe_named
from regard.tasks.config.recipes import recipes as all_recipes

Name = Annotated[
    str | None, typer.Argument(metavar="[NAME]", help="Print this recipe; without it, list all.")
]


def recipes(name: Name = None) -> None:
    """List the recipes that come with regard, or print one.

    regard recipes multi30k-bahdanau
    """
    if name is not None:
        write_answer(recipe_named(name).text, end="")
        return
    width = max(map(len, all_recipes()))
    for each in all_recipes().values():
        line = f"{each.name:{width}}  {each.task}: {each.summary}"
        write_answer(f"{line} Data: {each.data}. Result: {each.result}.")
