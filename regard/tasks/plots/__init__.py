"""Attention maps for people: in a terminal, as a figure, as a page."""

from regard.tasks.plots.attention_map import AttentionMap
from regard.tasks.plots.figures import save_figure, save_stacked
from regard.tasks.plots.page import html_page
from regard.tasks.plots.terminal import SHADE_LEGEND, terminal_heatmap

__all__ = [
    "SHADE_LEGEND",
    "AttentionMap",
    "html_page",
    "save_figure",
    "save_stacked",
    "terminal_heatmap",
]
