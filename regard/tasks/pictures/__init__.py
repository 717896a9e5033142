"""What a model looked at, for people: in a terminal, as a picture, as a page."""

from regard.tasks.pictures.blocks import SHADES_TOLD, as_blocks
from regard.tasks.pictures.looked import Looked
from regard.tasks.pictures.page import as_page
from regard.tasks.pictures.saving import save_one_below_the_other, save_picture

__all__ = [
    "SHADES_TOLD",
    "Looked",
    "as_blocks",
    "as_page",
    "save_one_below_the_other",
    "save_picture",
]
