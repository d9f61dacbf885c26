"""Every block of Python code in the pages runs in a test, or has a reason why not."""

import ast
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import unweave
from unweave.methods import Method
from unweave.runs.spec import RunSpec, spec_of

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
# Pages whose blocks another test runs. (Blocks of pycon are doctests: see test_docs.py.)
RUN_ELSEWHERE = {
    "README.md": "tests/notebooks/test_kernel.py",
    "docs/integrations.md": "tests/integrations/test_page.py",
    "docs/plugins.md": "tests/plugins/test_page.py",
}
# Pages whose blocks are not run, and tests of the same calls on what is there.
NOT_RUN = {
    "docs/data/cars3d.md": "needs official files; tests/data/test_cars3d.py has small ones",
    "docs/data/celeba.md": "needs official files; tests/data/test_celeba.py has small ones",
    "docs/data/chairs3d.md": "needs official files; tests/data/test_rendered_sets.py has small ones",
    "docs/data/faces3d.md": "needs renders; tests/data/test_rendered_sets.py has small ones",
    "docs/data/falcor3d.md": "needs official files; tests/data/test_rendered_sets.py has small ones",
    "docs/data/mnist.md": "needs official files; tests/data/test_mnist.py has small ones",
    "docs/data/mpi3d.md": "needs official files; tests/data/test_mpi3d.py has small ones",
    "docs/data/own.md": "needs pictures; tests/data/test_own_folder.py has some",
    "docs/data/shapes3d.md": "needs official files; tests/data/test_shapes3d.py has small ones",
    "docs/data/smallnorb.md": "needs official files; tests/data/test_smallnorb.py has small ones",
    "docs/data/three_d_ident.md": "needs official files; tests/data/test_rendered_sets.py has small ones",
    "docs/data/yale_b.md": "needs official files; tests/data/test_yale_b.py has small ones",
    "docs/evaluation.md": "needs an encoder; tests/evaluation/test_evaluate.py has one",
    "docs/directions.md": "needs a trained run; tests/directions/test_directions.py has one",
    "docs/downstream.md": "needs a trained run; tests/evaluation/test_downstream_curves.py has one",
    "docs/few_labels.md": "needs a study; tests/report/test_few_labels.py has a table",
    "docs/follow_up_studies.md": "trains for minutes; tests/study/test_presets.py makes the same calls",
    "docs/generalisation.md": "needs a trained run; tests/evaluation/test_held_out.py has one",
    "docs/explore.md": "opens a page until Ctrl-C; tests/explore/test_models.py opens pages",
    "docs/python.md": "trains for hours; tests/test_api.py makes the same calls",
    "docs/reasoning.md": "needs a GPU; tests/reasoning/test_reason.py makes the same calls",
    "docs/report.md": "needs a study; tests/report/test_page.py has one",
    "docs/selection.md": "needs a study; tests/selection/test_select.py has one",
    "docs/symmetry.md": "needs a trained run; tests/evaluation/test_symmetry.py has one",
    "docs/studies_on_clusters.md": "needs a cluster; tests/study/test_slurm.py has a stand-in",
    "docs/training.md": "needs a GPU; tests/nn/test_architectures.py trains in the same way",
}
# Statements of methods' pages that need a trained run, by how they start.
NEEDS_A_RUN = {
    "found = found_clusters(run": "tests/evaluation/test_clusters.py",
    "directions = latents.attribute_directions()": "tests/methods/test_glow.py",
    "known = unweave.evaluation.score_layers(run)": "tests/evaluation/test_layer_scores.py",
    "label_accuracy(run)": "tests/methods/test_m1.py",
    "layers = run.layers(images)": "tests/evaluation/test_layer_scores.py",
    "latents = unweave.evaluation.FlowLatents(run)": "tests/methods/test_glow.py",
    "samples = latents.sample(": "tests/methods/test_glow.py",
    "scores = unweave.evaluate(run)": "tests/evaluation/test_evaluate.py",
    "together = one.spec.method.group_posterior(": "tests/methods/test_group_vae.py",
    "top, middle, bottom = ": "tests/methods/test_vlae.py",
}


def blocks_of(page: Path) -> list[str]:
    return BLOCK.findall(page.read_text(encoding="utf-8"))


PAGES = [page for page in [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))] if blocks_of(page)]
METHODS = [page for page in PAGES if page.parent.name == "methods"]


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def test_every_page_with_code_is_run_or_has_a_reason() -> None:
    known = {*RUN_ELSEWHERE, *NOT_RUN, *map(name_of, METHODS)}
    assert {name_of(page) for page in PAGES} == known
    for text in (*RUN_ELSEWHERE.values(), *NOT_RUN.values(), *NEEDS_A_RUN.values()):
        [test] = re.findall(r"tests/[\w/.]*\w", text)
        assert (ROOT / test).exists(), test


@pytest.mark.parametrize("page", NOT_RUN)
def test_code_that_is_not_run_imports_what_exists(page: str) -> None:
    for block in blocks_of(ROOT / page):
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("unweave"):
                module = import_module(node.module)
                assert all(hasattr(module, alias.name) for alias in node.names), ast.unparse(node)


@pytest.mark.parametrize("page", METHODS, ids=lambda page: page.stem)
def test_code_of_methods_describes_a_run(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    described: list[RunSpec] = []

    def train(method: Method, data: str, **settings: Any) -> None:
        described.append(spec_of(method, data=data, **settings))

    monkeypatch.setattr(unweave, "train", train, raising=False)
    for block in blocks_of(page):
        tree = ast.parse(block)
        tree.body = [node for node in tree.body if not ast.unparse(node).startswith(tuple(NEEDS_A_RUN))]
        exec(compile(tree, page.name, "exec"), {"unweave": unweave})  # noqa: S102
    assert described
