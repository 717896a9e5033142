"""What a model looked at, for people: in a terminal, as a picture, as a page."""

from regard.tasks.pictures.blocks import as_blocks
from regard.tasks.pictures.heat import save_picture
from regard.tasks.pictures.page import as_page

__all__ = ["as_blocks", "as_page", "save_picture"]
