"""How the pages are built: `sphinx-build -W -b html docs docs/_build`, without a warning and offline."""

from unweave import __version__

project = "unweave"
author = "The unweave authors"
version = release = __version__

extensions = ["myst_parser"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 2
exclude_patterns = ["_build"]

html_theme = "furo"
html_title = f"unweave {__version__}"
html_show_copyright = False
