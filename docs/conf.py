"""How Sphinx builds the site: `make docs`. Nothing in it asks another host for anything."""

import re

from sphinx.application import Sphinx

project = "regard"
author = "The regard developers"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "furo"
html_title = "regard"
html_show_copyright = False
html_show_sourcelink = False
exclude_patterns = ["images/README.md"]
default_role = "code"  # our docstrings write `name` as Markdown does
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the shapes of jaxtyping are long; docstrings have them
napoleon_google_docstring = True
myst_heading_anchors = 3
# Links to files outside the site are for readers of the repository; the tests check all links.
suppress_warnings = ["myst.xref_missing", "ref.python"]
BAR = re.compile(r"(`[^`]*`)|\|")


def _as_markdown(
    _app: object, _what: str, _name: str, _object: object, _options: object, lines: list[str]
) -> None:
    """Docstrings are Markdown: an indented block is code or a drawing, and |x| is a norm."""
    found: list[str] = []
    depth, literal, doctest = 0, False, False
    for line in lines:
        indent = len(line) - len(line.lstrip())
        doctest = bool(line.strip()) and (doctest or line.lstrip().startswith(">>>"))
        if line.strip():
            literal = literal and indent > depth
            if not literal and indent > depth and found and not found[-1]:
                found += [" " * depth + "::", ""]
                literal = True
            depth = depth if literal else indent
        found.append(line if literal or doctest else BAR.sub(_escaped_bar, line))
    lines[:] = found


def _escaped_bar(match: re.Match[str]) -> str:
    return match[1] or r"\|"


def setup(app: Sphinx) -> None:
    app.connect("autodoc-process-docstring", _as_markdown, priority=400)
