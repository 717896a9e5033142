"""Fonts for any script: matplotlib's own first, then the system's for the rest.

matplotlib shapes and reorders text by libraqm from 3.11 on, but it warns whenever it draws a
character that none of its fonts has. So fonts are chosen character by character; where there is
none, a square is drawn, and one note names all such characters.
"""

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from regard.seq2seq.errors import ConfigError
from regard.tasks.plots.labels import graphemes

DEFAULT = "DejaVu Sans"
"""Comes with matplotlib: Latin, Greek, Cyrillic, Hebrew, Arabic and more."""

EAST_ASIAN = ("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO", "IDEOGRAPHIC", "FULLWIDTH")
INVISIBLE = ("Cc", "Cf", "Cs", "Zs", "Zl", "Zp")

REPLACEMENT = "□"
"""What is drawn for a character that no font has."""

MAX_NAMED = 8
"""How many missing characters a note names; the others are counted."""


class Face(NamedTuple):
    """A font of the system, and the characters it adds."""

    family: str
    style: str
    path: str
    adds: frozenset[str]


@dataclass(frozen=True, slots=True)
class Fonts:
    """The fonts of some texts."""

    families: list[str]
    """For matplotlib to try in turn."""

    missing: frozenset[str]
    """Characters that none of them has."""

    def drawable(self, text: str) -> str:
        """The text with a square for each character that cannot be drawn."""
        return "".join(
            REPLACEMENT if self.missing.intersection(character) else character
            for character in graphemes(text)
        )

    @property
    def note(self) -> str:
        """Which characters cannot be drawn and what to install, on one line; else empty."""
        return _missing_note(sorted(self.missing)) if self.missing else ""


def fonts_for(texts: Iterable[str]) -> Fonts:
    """Fonts that together have every character of these texts that any font here has."""
    _need_matplotlib()
    from matplotlib.font_manager import fontManager, get_font  # noqa: PLC0415  # slow to import

    wanted = frozenset(c for text in texts for c in text if _is_visible(c))
    default = get_font(fontManager.findfont(DEFAULT))
    missing = frozenset(c for c in wanted if not default.get_char_index(ord(c)))
    families = [DEFAULT]
    faces = list(_faces(missing)) if missing else []
    while missing and faces:
        best = min(faces, key=lambda face: _rank(face, wanted, missing))
        if not best.adds & missing:
            break
        if not any(entry.fname == best.path for entry in fontManager.ttflist):
            fontManager.addfont(best.path)  # installed since matplotlib last looked
        families.append(best.family)
        missing -= best.adds
    return Fonts(families, missing)


def _need_matplotlib() -> None:
    try:
        from matplotlib import ft2font  # noqa: PLC0415  # an extra
    except ImportError:
        raise ConfigError(
            "Figures are drawn with matplotlib, which is not installed. Install it: "
            "pip install 'regard[plot]'"
        ) from None
    if not hasattr(ft2font, "__libraqm_version__"):
        raise ConfigError(
            "this matplotlib cannot shape text; 3.11 and newer can. Install it: "
            "pip install 'regard[plot]'"
        )


def _is_visible(character: str) -> bool:
    chooses_a_form = "\ufe00" <= character <= "\ufe0f" or "\U000e0100" <= character <= "\U000e01ef"
    return unicodedata.category(character) not in INVISIBLE and not chooses_a_form


def _faces(missing: frozenset[str]) -> Iterator[Face]:
    """The system's fonts that have some of these characters."""
    from matplotlib.font_manager import findSystemFonts  # noqa: PLC0415
    from matplotlib.ft2font import FT2Font  # noqa: PLC0415

    for path in sorted(findSystemFonts()):
        try:
            first = FT2Font(path)
            faces = [first, *(FT2Font(path, face_index=n) for n in range(1, first.num_faces))]
        except (OSError, RuntimeError):
            continue  # not ours to report
        for face in faces:
            adds = frozenset(c for c in missing if face.get_char_index(ord(c)))
            if adds and face.scalable:
                yield Face(face.family_name, face.style_name, path, adds)


def _rank(face: Face, wanted: frozenset[str], missing: frozenset[str]) -> tuple[object, ...]:
    """Lower is better: many characters, upright, sans serif, Han as in the text's language."""
    return (
        -len(face.adds & missing),
        face.style not in ("Regular", "Book", "Normal"),
        "Sans" not in face.family,
        "Mono" in face.family,
        not face.family.endswith(_east_asian_kind(wanted)),
        face.family,
    )


def _east_asian_kind(letters: frozenset[str]) -> str:
    scripts = {unicodedata.name(letter, "").split(" ")[0] for letter in letters}
    if scripts & {"HIRAGANA", "KATAKANA"}:
        return "JP"
    return "KR" if "HANGUL" in scripts else "SC"


def _missing_note(missing: Sequence[str]) -> str:
    letters = ", ".join(f"{letter} (U+{ord(letter):04X})" for letter in missing[:MAX_NAMED])
    others = f" and {len(missing) - MAX_NAMED} more" if len(missing) > MAX_NAMED else ""
    packages = dict.fromkeys(_package(character) for character in missing)
    return (
        f"no font here has {letters}{others}, so {REPLACEMENT} is drawn. Install one (on Debian "
        f"and Ubuntu: apt install {' '.join(packages)})."
    )


def _package(character: str) -> str:
    if unicodedata.name(character, "").startswith(EAST_ASIAN):
        return "fonts-noto-cjk"
    return "fonts-symbola" if unicodedata.category(character) == "So" else "fonts-noto-core"
