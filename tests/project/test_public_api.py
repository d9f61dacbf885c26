"""The public API is stated in docs/api.md: a name is added or removed there, or not at all.

`python tests/project/test_public_api.py` writes the table of that page after a deliberate change.
"""

from importlib import import_module
from pathlib import Path

import unweave

PAGE = Path(__file__).parents[2] / "docs" / "api.md"

# Modules whose public names are those of their `__all__`.
MODULES = (
    "unweave",
    "unweave.data",
    "unweave.directions",
    "unweave.evaluation",
    "unweave.explore",
    "unweave.impossibility",
    "unweave.integrations",
    "unweave.methods",
    "unweave.metrics",
    "unweave.migration",
    "unweave.plugins",
    "unweave.reasoning",
    "unweave.report",
    "unweave.selection",
    "unweave.sparse",
    "unweave.study",
)
# Modules of which only these names are public: what pictures and plug-ins are made with.
SEAMS = {
    "unweave.gallery": ("draw", "draw_pictures"),
    "unweave.data.entry": ("Entry",),
    "unweave.data.variants": ("colour", "hide", "noise", "scream"),
    "unweave.methods.method": (
        "AUTOENCODER",
        "Adam",
        "AdamW",
        "Batch",
        "Blueprint",
        "Draws",
        "Forward",
        "LabelledCodes",
        "Losses",
        "Method",
        "Player",
        "Setting",
        "StepContext",
        "elbo_terms",
    ),
    "unweave.methods.sampling": ("Groups", "Images", "Labels", "Pairs", "Sequences"),
    "unweave.nn.distributions.likelihood": ("LIKELIHOODS", "Likelihood"),
    "unweave.training.loggers.logger": ("LOGGERS", "LoggedRun", "Logger", "hyper_parameters"),
    "unweave.nn.networks.architectures": ("ARCHITECTURES", "Architecture", "build_decoder", "build_encoder"),
}


def public_names() -> dict[str, tuple[str, ...]]:
    """The public names of each public module."""
    named = {module: tuple(import_module(module).__all__) for module in MODULES}
    return {module: tuple(sorted(names)) for module, names in (named | SEAMS).items()}


def api_table() -> str:
    """The table of public names in docs/api.md."""
    rows = ["| module | public names |", "|---|---|"]
    rows += [
        f"| `{module}` | {', '.join(f'`{name}`' for name in names)} |"
        for module, names in public_names().items()
    ]
    return "\n".join(rows)


START, END = "<!-- public names -->\n", "\n<!-- end of public names -->"


def test_the_page_lists_the_public_names() -> None:
    shown = PAGE.read_text().partition(START)[2].partition(END)[0]
    changed = sorted(set(shown.splitlines()) ^ set(api_table().splitlines()))
    assert shown == api_table(), "\n".join(["these rows of docs/api.md and the code differ:", *changed])


def test_every_public_name_exists_and_is_documented() -> None:
    for path, names in public_names().items():
        module = unweave
        for part in path.split(".")[1:]:
            module = getattr(module, part)  # works after `import unweave` alone
        assert module.__doc__, path
        for name in names:
            value = getattr(module, name)
            assert not callable(value) or value.__doc__, f"{path}.{name} has no docstring"


if __name__ == "__main__":
    before, _, rest = PAGE.read_text().partition(START)
    PAGE.write_text(before + START + api_table() + END + rest.partition(END)[2])
