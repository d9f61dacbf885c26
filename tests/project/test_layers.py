"""Imports point downwards only, and the packages that promise to stay apart do."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"

# A module may import from its own part and from the parts above it in this list.
LAYERS = [
    {"errors", "lazy", "layout", "progress", "display.notebook", "display.inline_figure", "display.theme"},
    {"cpu_settings"},
    {"places", "files", "column_mapping"},
    {"plugins.loading", "zoo"},
    {"compilation"},
    {"locks", "streams", "results", "display.progress"},
    {"data", "metrics", "nn"},
    {"display.pictures"},
    {"methods"},
    {"runs.spec"},
    {"runs.card", "runs.modules"},
    {"runs.store"},
    {"training"},
    {"runs.views", "runs.summary", "runs.exporting"},
    {"runs.figures"},
    {"runs.run"},
    {"runs.train"},
    {"evaluation"},
    {"impossibility", "sparse", "reasoning", "integrations", "migration"},
    {"directions"},
    {"runs.gallery", "plugins.contract"},
    {"study"},
    {"selection"},
    {"report"},
    {"explore"},
    {"commands"},
    {"cli"},
]
LEVEL = {part: level for level, layer in enumerate(LAYERS) for part in layer}
WITHOUT_TORCH = {
    "errors",
    "lazy",
    "layout",
    "cpu_settings",
    "progress",
    "display.notebook",
    "display.inline_figure",
    "display.theme",
    "display.progress",
    "display.pictures",
    "places",
    "files",
    "column_mapping",
    "plugins.loading",
    "zoo",
    "compilation",
    "locks",
    "results",
    "data",
    "metrics",
    "impossibility",
    "report",
}


def part_of(module: str) -> str:
    """unweave.data.grid -> data, unweave.runs.spec -> runs.spec."""
    words = module.split(".")[1:]
    return ".".join(words[:2]) if ".".join(words[:2]) in LEVEL else ".".join(words[:1])


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


LAZY = [f"unweave.{part}__init__" for part in ("", "display.", "plugins.", "runs.")]
FILES = sorted(path for path in SOURCE.rglob("*.py") if path.name != "__main__.py")


def wrong_imports(path: Path) -> Iterator[str]:
    """What a module imports and must not."""
    module = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
    if module in LAZY:
        return  # these name their modules, and import them when asked
    here = part_of(module)
    if here not in LEVEL:
        yield f"{here} is not in the list of layers"
        return
    for imported in imports(path):
        if imported.split(".")[0] == "torch":
            if here in WITHOUT_TORCH:
                yield f"{module} imports torch"
            continue
        if imported.split(".")[0] != "unweave" or imported == "unweave.__version__":
            continue
        there = part_of(imported)
        if there != here and LEVEL[there] >= LEVEL[here]:
            yield f"{module} imports {imported}"


def test_imports_point_downwards() -> None:
    assert [wrong for path in FILES for wrong in wrong_imports(path)] == []


def module_graph() -> dict[str, set[str]]:
    """Which modules each module imports, anywhere in its file; a package stands for its __init__."""
    names = {".".join(path.relative_to(SOURCE).with_suffix("").parts): path for path in FILES}
    modules = {name.removesuffix(".__init__"): path for name, path in names.items()}
    graph: dict[str, set[str]] = {}
    for module, path in modules.items():
        graph[module] = set()
        tree = ast.parse(path.read_text())
        typed = {id(part) for node in ast.walk(tree) if _is_for_types(node) for part in ast.walk(node)}
        for node in ast.walk(tree):
            if id(node) in typed or not isinstance(node, ast.ImportFrom):
                continue
            if (node.module or "").split(".")[0] == "unweave":
                below = {f"{node.module}.{name.name}" for name in node.names}
                graph[module] |= {name if name in modules else str(node.module) for name in below}
    return graph


def _is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def test_there_is_no_import_cycle() -> None:
    graph = module_graph()
    done: set[str] = set()

    def visit(module: str, path: tuple[str, ...]) -> None:
        assert module not in path, " -> ".join((*path[path.index(module) :], module))
        if module not in done:
            for imported in sorted(graph.get(module, set()) - {"unweave"}):
                visit(imported, (*path, module))
            done.add(module)

    for module in graph:
        if module != "unweave":
            visit(module, ())


def layers_table() -> str:
    """The table of layers in docs/architecture.md."""
    rows = ["| part | torch |", "|---|---|"]
    for layer in LAYERS:
        for torch in ("never", "allowed"):
            parts = [f"`{p}`" for p in sorted(layer) if (p in WITHOUT_TORCH) == (torch == "never")]
            rows += [f"| {', '.join(parts)} | {torch} |"] if parts else []
    return "\n".join(rows)


def test_the_docs_have_the_table_of_layers() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    shown = page.partition("<!-- layers -->\n")[2].partition("\n<!-- end of layers -->")[0]
    assert shown == layers_table(), f"put this between the marks of docs/architecture.md:\n{layers_table()}"


def test_no_room_for_odds_and_ends() -> None:
    forbidden = {"utils", "util", "misc", "helpers", "common", "base"}
    assert not [path for path in FILES if path.stem in forbidden or path.parent.name in forbidden]
