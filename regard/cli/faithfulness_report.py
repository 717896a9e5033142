"""What `regard show --check` tells: how far the weights can be trusted."""

import json
import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from regard.tasks.faithfulness import Faithfulness


def faithfulness_report(trust: "Faithfulness", reading: str, as_json: bool) -> str:
    """For people, or for programs; whose reading it is comes first."""
    if as_json:
        return json.dumps({"reading": reading, **_as_data(trust)}, ensure_ascii=False)
    return f"{reading}\n\n{_as_text(trust)}"


def _as_text(trust: "Faithfulness") -> str:
    """For people: a line a word, and what comes of them all."""
    from rich.cells import cell_len  # noqa: PLC0415  # help need not wait

    from regard.tasks.plots.labels import truncate, visible  # noqa: PLC0415
    from regard.tasks.plots.terminal_text import join_line, pad_columns  # noqa: PLC0415

    def named(word: str) -> str:
        return truncate(visible(word), 20)

    rows = [("word", "bits", "read most", "", "needed most", "")]
    for place, word in enumerate(trust.target):
        read, needed = trust.most_read[place], trust.most_needed[place]
        rows.append(
            (
                named(word), f"{trust.entropy[place]:.2f}",
                named(trust.source[read]), f"{100 * float(trust.weights[place].max()):.0f} %",
                named(trust.source[needed]), f"{-float(trust.drops[place].max()):+.2f}",
            )
        )  # fmt: skip
    widths = [max(cell_len(row[column]) for row in rows) + 2 for column in range(len(rows[0]))]
    table = [
        join_line(*(pad_columns(*cell) for cell in zip(row, widths, strict=True))) for row in rows
    ]
    return "\n".join([*table, "", *_summed_up(trust)])


def _summed_up(trust: "Faithfulness") -> list[str]:
    words, agree = len(trust.target), round(trust.agreement * len(trust.target))
    mean = sum(trust.entropy) / words
    at_most = math.log2(len(trust.source) + 1)
    correlation = "none" if trust.correlation is None else f"{trust.correlation:.2f}"
    left_out = f"each of the {len(trust.source)} source words was left out once"
    if len(trust.erased) < len(trust.source):
        left_out = f"of {len(trust.source)} source words the {len(trust.erased)} read most, no more"
    return [
        f"entropy           {mean:.2f} bits a word; {at_most:.2f} if all were read alike",
        f"agreement         {agree} of {words} words read most what they need most"
        f" ({100 * trust.agreement:.0f} %; by chance {100 / len(trust.erased):.0f} %)",
        f"rank correlation  {correlation} between weight and need (Spearman's; 0 is chance)",
        f"on punctuation    {100 * trust.on_punctuation:.1f} % of the reading",
        f"on the end        {100 * trust.on_end:.1f} % of the reading",
        f"Need is how far the log-probability of a word falls without a source word; {left_out}.",
    ]


def _as_data(trust: "Faithfulness") -> dict[str, object]:
    """The same for programs."""
    return {
        "source": trust.source,
        "target": trust.target,
        "entropy": _rounded(trust.entropy),
        "mean_entropy": round(sum(trust.entropy) / len(trust.entropy), 4),
        "erased": trust.erased,
        "weights": [_rounded(row) for row in trust.weights.tolist()],
        "drops": [_rounded(row) for row in trust.drops.tolist()],
        "most_read": trust.most_read,
        "most_needed": trust.most_needed,
        "agreement": round(trust.agreement, 4),
        "correlation": None if trust.correlation is None else round(trust.correlation, 4),
        "on_punctuation": round(trust.on_punctuation, 4),
        "on_end": round(trust.on_end, 4),
    }


def _rounded(values: list[float]) -> list[float]:
    return [round(value, 4) for value in values]
