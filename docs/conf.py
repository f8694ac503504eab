"""How the pages become a site: `make docs`."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

from sidelong import __version__

project = "sidelong"
author = "The sidelong developers"
project_copyright = "the sidelong developers"
release = version = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
extensions += ["code_names", "contents", "docstrings", "http_api"]  # these and the next are in _ext
extensions += ["learners", "mathematics", "notebooks", "pictures"]
exclude_patterns = ["_build", "figures"]
source_suffix = {".md": "markdown"}
myst_enable_extensions = ["colon_fence", "deflist", "attrs_block", "dollarmath"]
html_math_renderer = "mathml"
myst_heading_anchors = 3

html_theme = "furo"
html_title = "sidelong"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/icon.svg"
html_show_sourcelink = False
html_copy_source = False
highlight_language = "text"
pygments_style, pygments_dark_style = "tango", "monokai"

# Docstrings: `name` is a name, linked where it leads somewhere.
default_role = "py:obj"
autodoc_member_order = "bysource"
autodoc_mock_imports = ["litellm"]  # its packages do not agree with those of the site
autodoc_typehints = "none"  # the signature of a NamedTuple of arrays helps nobody; docstrings say what is wanted
autodoc_default_options = {"members": True}
napoleon_numpy_docstring = False  # they are in the style of Google
napoleon_use_rtype = False
