"""How Sphinx builds the site: `make docs`. Nothing in it asks another host for anything."""

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
suppress_warnings = ["myst.xref_missing", "docutils", "ref.python"]
