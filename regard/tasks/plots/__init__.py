"""What a model looked at, for people: in a terminal, as a picture, as a page."""

from regard.tasks.plots.attention_map import AttentionMap
from regard.tasks.plots.page import as_page
from regard.tasks.plots.save import save_one_below_the_other, save_picture
from regard.tasks.plots.terminal import SHADES_TOLD, as_blocks

__all__ = [
    "SHADES_TOLD",
    "AttentionMap",
    "as_blocks",
    "as_page",
    "save_one_below_the_other",
    "save_picture",
]
