"""The README's snippet, a picture and a training bar in a real notebook kernel."""

import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[2]
# What the snippet takes as given: codes and factors of the user's, and an encoder.
GIVEN = """
import numpy as np
import torch

torch.set_num_threads(1)
my_factors = np.random.default_rng(0).integers(0, 4, (300, 2))
my_codes = my_factors + 0.1 * np.random.default_rng(1).normal(size=(300, 2))
my_torch_encoder = torch.nn.Sequential(torch.nn.AvgPool2d(32), torch.nn.Flatten())
"""


def short(code: str) -> str:
    """The same code with a few steps of training, and one metric on few points."""
    code = re.sub(r"steps=[\d_]+", "steps=3", code)
    return re.sub(
        r"unweave\.evaluate\(([^()]*)\)", r'unweave.evaluate(\1, metrics="mig", points=(60, 30))', code
    )


def outputs(cell: Any, kind: str) -> list[str]:
    """What a cell shows of one kind, such as text/html."""
    return [output.data[kind] for output in cell.outputs if kind in output.get("data", {})]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of nbclient's own dependencies
def test_the_readme_runs_in_a_notebook(tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert "unweave.train(" in blocks[0]
    sources = [GIVEN, short(blocks[0]), "scores", "run.traversals(columns=3)", "run", "sprites"]
    notebook: Any = nbformat.v4
    book = notebook.new_notebook(cells=[notebook.new_code_cell(source) for source in sources])
    client = NotebookClient(
        book, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute()
    _, snippet, scores, picture, run, data = book.cells
    [bar] = outputs(snippet, "text/html")
    assert '<progress max="1" value="1.0000"' in bar
    assert "3/3 steps" in bar
    assert "mig" in outputs(scores, "text/html")[0]
    [image] = outputs(picture, "image/png")
    assert image.startswith("iVBOR")  # a PNG file in base64
    assert "finished" in outputs(run, "text/html")[0]
    assert "orientation" in outputs(data, "text/html")[0]
    errors = [out.text for cell in book.cells for out in cell.outputs if out.get("name") == "stderr"]
    assert errors == []
