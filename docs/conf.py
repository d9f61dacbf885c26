"""How the pages are built: `sphinx-build -W -b html docs docs/_build`, without a warning and offline."""

import os
import sys
from pathlib import Path

from sphinx.application import Sphinx

from unweave import __version__

sys.path.insert(0, str(Path(__file__).parent))
from generated import fill_page, restructure

project = "unweave"
author = "The unweave authors"
version = release = __version__

extensions = [
    "myst_nb",
    "notfound.extension",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx_copybutton",
]
myst_enable_extensions = ["deflist", "dollarmath"]
myst_heading_anchors = 3
# tests/project/test_tutorials.py runs the cells of notebooks.
nb_execution_mode = "off"
exclude_patterns = ["_build", "_templates"]

autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_typehints_format = "short"
autodoc_type_aliases = {"ArrayLike": "ArrayLike", "NDArray": "NDArray"}
autosummary_generate = False
toc_object_entries = False  # hundreds of names would slow down every page
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
# Links into other projects need their inventories, which are downloaded: only where the pages are published.
intersphinx_mapping = (
    {
        "numpy": ("https://numpy.org/doc/stable/", None),
        "pandas": ("https://pandas.pydata.org/docs/", None),
        "python": ("https://docs.python.org/3/", None),
        "torch": ("https://docs.pytorch.org/docs/stable/", None),
    }
    if os.environ.get("READTHEDOCS") or os.environ.get("UNWEAVE_DOCS_ONLINE")
    else {}
)

html_theme = "furo"
html_title = f"unweave {__version__}"
html_show_copyright = False
html_static_path = ["_static"]
html_css_files = ["tables.css"]
templates_path = ["_templates"]
# Links to other versions in the sidebar, where a site has several: see CONTRIBUTING.md.
listed = os.environ.get("UNWEAVE_DOCS_VERSIONS", "").split()
html_context = {"other_versions": [entry.split("=", 1) for entry in listed]}
notfound_urls_prefix = None


def setup(app: Sphinx) -> None:
    """Fill in the generated parts of the reference."""

    def read(_app: Sphinx, _page: str, source: list[str]) -> None:
        source[0] = fill_page(source[0])

    def docstring(_app: Sphinx, what: str, *rest: object) -> None:
        lines = rest[-1]
        if isinstance(lines, list):
            restructure(what, lines)

    app.connect("source-read", read)
    app.connect("autodoc-process-docstring", docstring)
