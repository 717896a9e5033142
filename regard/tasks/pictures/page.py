"""Attention weights as one HTML file: no network, no scripts from elsewhere.

What people wrote is data, never markup: it is in a JSON block in which no tag can end, and a script
puts it into the page as text. Browsers know every script and direction of writing.
"""

import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from jaxtyping import Float
from torch import Tensor

PLACE = "/*DATA*/"


def as_page(
    title: str,
    source: Sequence[str],
    target: Sequence[str],
    readings: Mapping[str, Float[Tensor, "target source"]],
    legend: str,
) -> str:
    """The page.

    Args:
        title: What is shown.
        source: Its words, as many as weights have columns.
        target: Its words, as many as weights have rows.
        readings: Weights by name, the one that is shown first coming first.
        legend: What is drawn: whose weights, forced or decoded.
    """
    data: dict[str, Any] = {
        "title": title,
        "source": list(source),
        "target": list(target),
        "legend": legend,
        "readings": [
            {"name": name, "weights": [[round(w, 4) for w in row] for row in weights.tolist()]}
            for name, weights in readings.items()
        ],
    }
    # No character of a tag, so that a text cannot end the block that it is in.
    safe = json.dumps(data).replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
    template = files("regard.tasks.pictures").joinpath("page.html").read_text(encoding="utf-8")
    return template.replace(PLACE, safe)
