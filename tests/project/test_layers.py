"""Imports point downwards only, and the packages that promise to stay apart do."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"

# A module may import from its own layer's package and from the layers above it in this list.
LAYERS = [
    {"errors", "lazy", "notebook", "inline_figure"},
    {"places"},
    {"compilation"},
    {"locks", "progress", "streams", "results"},
    {"data", "metrics", "nn"},
    {"pictures"},
    {"methods"},
    {"spec"},
    {"card"},
    {"store"},
    {"training"},
    {"views", "run_summary"},
    {"figures"},
    {"run"},
    {"train_run"},
    {"evaluation"},
    {"impossibility"},
    {"gallery"},
    {"study"},
    {"selection"},
    {"report", "explore"},
    {"console", "listing"},
    {"command_app"},
    {
        "data_command",
        "train_command",
        "metrics_command",
        "evaluate_command",
        "study_command",
        "select_command",
        "impossibility_command",
        "report_command",
        "explore_command",
    },
    {"cli"},
]
WITHOUT_TORCH = {
    "errors",
    "lazy",
    "notebook",
    "inline_figure",
    "places",
    "compilation",
    "locks",
    "results",
    "data",
    "metrics",
    "pictures",
    "impossibility",
    "report",
}


def part_of(module: str) -> str:
    """unweave.data.grid -> data."""
    return module.split(".")[1] if "." in module else "unweave"


def imports(path: Path) -> list[str]:
    """All modules that a file imports anywhere, also inside functions; relative imports are not used."""
    found: list[str] = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += [name.name for name in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has a relative import"
            module = node.module or ""
            found += [f"unweave.{name.name}" for name in node.names] if module == "unweave" else [module]
    return found


FILES = sorted(path for path in SOURCE.rglob("*.py") if path.name != "__main__.py")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_point_downwards(path: Path) -> None:
    module = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
    if module == "unweave.__init__":
        return  # the front door names its rooms, and opens them when asked
    here = part_of(module)
    level = {part: i for i, layer in enumerate(LAYERS) for part in layer}
    assert here in level, f"{here} is not in the list of layers"
    for imported in imports(path):
        if imported.split(".")[0] == "torch":
            assert here not in WITHOUT_TORCH, f"{module} imports torch"
        if imported.split(".")[0] != "unweave" or imported == "unweave.__version__":
            continue
        there = part_of(imported)
        assert there == here or level[there] < level[here], f"{module} imports {imported}"


def test_no_room_for_odds_and_ends() -> None:
    forbidden = {"utils", "util", "misc", "helpers", "common", "base"}
    assert not [path for path in FILES if path.stem in forbidden or path.parent.name in forbidden]
