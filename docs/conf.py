"""How Sphinx builds the site: `make docs` writes it to docs/_build/html."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_extensions"))

from freewalk import __version__  # noqa: E402

project = "freewalk"
author = "The freewalk developers"
copyright = author
release = version = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "markdown_pages",
    "command_line",
    "spec_kinds",
    "docstrings",
]
exclude_patterns = ["_build", "_extensions", "images/**/*.md"]
language = "en"
smartquotes = False  # quotes belong to code

# Markdown: links as GitHub reads them, each checked; a link to nothing is a warning, and `make docs` fails on warnings.
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 4
suppress_warnings: list[str] = []

# The reference, from the docstrings.
default_role = "code"
add_module_names = False
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented_params"
autodoc_typehints_format = "short"
autodoc_mock_imports = ["torch", "safetensors"]
autodoc_preserve_defaults = True
napoleon_google_docstring = False
napoleon_use_ivar = True
python_display_short_literal_types = True
python_maximum_signature_line_length = 88

html_theme = "furo"
html_title = "freewalk"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
pygments_style = "friendly"
pygments_dark_style = "monokai"
