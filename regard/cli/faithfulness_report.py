"""The report of `regard show --check`: how faithful the attention weights are."""

import json
import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from regard.tasks.faithfulness import Faithfulness


def faithfulness_report(trust: "Faithfulness", caption: str, as_json: bool) -> str:
    """As text or JSON; the caption of the attention map comes first."""
    if as_json:
        return json.dumps({"reading": caption, **_as_data(trust)}, ensure_ascii=False)
    return f"{caption}\n\n{_as_text(trust)}"


def _as_text(trust: "Faithfulness") -> str:
    """A line per word, and a summary."""
    from rich.cells import cell_len  # noqa: PLC0415  # help need not wait

    from regard.tasks.plots.labels import truncate, visible  # noqa: PLC0415
    from regard.tasks.plots.terminal_text import join_line, pad_columns  # noqa: PLC0415

    def named(word: str) -> str:
        return truncate(visible(word), 20)

    rows = [("word", "bits", "most attended", "", "most needed", "")]
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
    return "\n".join([*table, "", *_summary(trust)])


def _summary(trust: "Faithfulness") -> list[str]:
    words, agree = len(trust.target), round(trust.agreement * len(trust.target))
    mean = sum(trust.entropy) / words
    at_most = math.log2(len(trust.source) + 1)
    correlation = "none" if trust.correlation is None else f"{trust.correlation:.2f}"
    left_out = f"each of the {len(trust.source)} source words was left out once"
    if len(trust.erased) < len(trust.source):
        left_out = (
            f"only the {len(trust.erased)} most attended of {len(trust.source)} source words were "
            "left out"
        )
    return [
        f"entropy           {mean:.2f} bits a word; {at_most:.2f} if attention were uniform",
        f"agreement         {agree} of {words} words attend most to what they need most"
        f" ({100 * trust.agreement:.0f} %; by chance {100 / len(trust.erased):.0f} %)",
        f"rank correlation  {correlation} between weight and need (Spearman's; 0 is chance)",
        f"on punctuation    {100 * trust.on_punctuation:.1f} % of the attention",
        f"on EOS            {100 * trust.on_end:.1f} % of the attention",
        f"Need is the drop in a word's log-probability without a source word; {left_out}.",
    ]


def _as_data(trust: "Faithfulness") -> dict[str, object]:
    """The same as JSON values."""
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
