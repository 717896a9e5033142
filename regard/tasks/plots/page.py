"""Attention weights as one HTML file: no network, no scripts from elsewhere.

What people wrote is data, never markup: it is in a JSON block in which no tag can end, and a script
puts it into the page as text. Browsers know every script and direction of writing.
"""

import json
from importlib.resources import files

from regard.tasks.plots.attention_map import AttentionMap
from regard.tasks.plots.bidi import right_to_left, visual_order
from regard.tasks.plots.labels import shown

PLACE = "/*DATA*/"


def as_page(looked: AttentionMap, threshold: float = 0.2) -> str:
    """The page: every reading can be chosen in it.

    Args:
        looked: What is shown.
        threshold: For which weights there are lines at first.
    """
    sides = {"source": looked.source, "target": looked.target}
    data = {
        **looked.as_data(),
        **{side: [shown(word) for word in words] for side, words in sides.items()},
        "order": {side: visual_order(words) for side, words in sides.items()},
        "direction": {
            side: "rtl" if right_to_left(words) else "ltr" for side, words in sides.items()
        },
        "threshold": threshold,
    }
    # No character of a tag, so that a text cannot end the block that it is in.
    safe = json.dumps(data).replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
    template = files("regard.tasks.plots").joinpath("page.html").read_text(encoding="utf-8")
    return template.replace(PLACE, safe)
