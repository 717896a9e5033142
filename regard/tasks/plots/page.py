"""Attention maps as one HTML file: no network, no scripts from elsewhere.

User text is data, never markup: it is in a JSON block in which no tag can end, and a script puts it
into the page as text. Browsers shape and order every writing system.
"""

import json
from importlib.resources import files

from regard.tasks.plots.attention_map import AttentionMap
from regard.tasks.plots.bidi import right_to_left, visual_order
from regard.tasks.plots.labels import graphemes, visible

PLACEHOLDER = "/*DATA*/"


def html_page(attention: AttentionMap, threshold: float = 0.2) -> str:
    """A page in which any of the maps can be chosen.

    Args:
        attention: What is shown.
        threshold: Arcs are for weights above it at first.
    """
    sides = {"source": attention.source, "target": attention.target}
    data = {
        **attention.to_dict(),
        **{side: [visible(word) for word in words] for side, words in sides.items()},
        "order": {side: visual_order(words) for side, words in sides.items()},
        "direction": {
            side: "rtl" if right_to_left(words) else "ltr" for side, words in sides.items()
        },
        "upright": all(len(graphemes(visible(word))) == 1 for word in attention.source),
        "threshold": threshold,
    }
    # No character of a tag, so that a text cannot end its block.
    safe = json.dumps(data).replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
    template = files("regard.tasks.plots").joinpath("page.html").read_text(encoding="utf-8")
    return template.replace(PLACEHOLDER, safe)
