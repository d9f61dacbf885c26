"""A run's page as one file: it works from a disk, without a server and without a network."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import unweave
from explore.browser import Browser
from explore.dots import dots, encode
from training.tiny import TINY
from unweave.data.grid import Factors, Images
from unweave.errors import UnweaveError
from unweave.explore.export import export_page
from unweave.explore.own_model import OwnParts
from unweave.explore.run_view import open_run, view_of, view_on
from unweave.methods import BetaVAE
from unweave.streams import Stream

DECODED = "document.querySelector('.pictures figure:last-of-type canvas')"


def _coloured(factors: Factors, stream: Stream) -> Images:
    grey = TINY.render(factors, stream)
    return np.concatenate([grey, grey // 2, 255 - grey], axis=1)


COLOURED = replace(TINY, name="coloured", shape=(3, 32, 32), render=_coloured, binary=False)


@pytest.mark.parametrize(("data", "architecture"), [(COLOURED, "table2"), (TINY, "mlp")])
def test_an_exported_page_decodes_as_the_run_does(
    data: Any, architecture: str, tmp_path: Path, browser: Browser
) -> None:
    settings: dict[str, Any] = {"steps": 5, "batch": 8, "latents": 3, "learning_rate": 3e-3}
    run = unweave.train(
        BetaVAE(1.0), data, out=tmp_path / "runs", device="cpu", architecture=architecture, **settings
    )
    export_page(view_of(run), tmp_path / "page.html")
    codes = np.array([[1.25, -2, 0.5]], np.float32)
    browser.offline()
    browser.open(f"{(tmp_path / 'page.html').as_uri()}#z=1.25,-2,0.5")
    browser.wait_for(f"{DECODED}?.dataset.codes === '1.25,-2.00,0.50'")
    seen = browser.evaluate(f"Array.from({DECODED}.getContext('2d').getImageData(0, 0, 32, 32).data)")
    image = np.moveaxis(np.array(seen).reshape(32, 32, 4)[..., :3], -1, 0)
    expected = np.broadcast_to(run.decode(codes)[0] * 255, (3, 32, 32))
    assert expected.std() > 0.5, "an image on which a mistake could be seen"
    assert image == pytest.approx(expected, abs=0.51)
    assert browser.errors == []


def test_the_page_of_a_users_torch_module(tmp_path: Path, browser: Browser) -> None:
    torch.manual_seed(0)
    layers = [nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 64), nn.Dropout(0.5), nn.Sigmoid()]
    decoder = nn.Sequential(*layers, nn.Unflatten(1, (1, 8, 8))).train()
    model = OwnParts(encode, decoder, name="<places>").on(dots())
    export_page(view_on(model, dots()), tmp_path / "page.html")
    browser.offline()
    browser.open(f"{(tmp_path / 'page.html').as_uri()}#z=1.25,3")
    browser.wait_for(f"{DECODED}?.dataset.codes === '1.25,3.00'")
    seen = browser.evaluate(f"Array.from({DECODED}.getContext('2d').getImageData(0, 0, 8, 8).data)")
    [expected] = model.decode(np.array([[1.25, 3]], np.float32))[0]
    assert np.array(seen).reshape(8, 8, 4)[..., 0] == pytest.approx(expected, abs=1)
    assert expected.std() > 5, "an image on which a mistake could be seen"
    assert browser.evaluate("document.title") == "<places>"
    assert browser.errors == []
    assert decoder.training, "the user's module is left as it was"


def test_an_exported_page_can_be_explored_with_the_network_off(exported_page: Path, browser: Browser) -> None:
    browser.offline()
    browser.open(exported_page.as_uri())
    browser.wait_for(f"{DECODED}?.dataset.codes && document.querySelector('.traversal canvas').dataset.drawn")
    start = browser.evaluate(f"{DECODED}.dataset.codes")
    before = browser.evaluate(f"{DECODED}.toDataURL()")
    browser.evaluate(
        "(() => { const s = document.querySelector('[data-latent] input'); s.value = 2.5; "
        "s.dispatchEvent(new Event('input')); })()"
    )
    browser.wait_for(f"{DECODED}.dataset.codes.includes('2.50')")
    assert browser.evaluate(f"{DECODED}.toDataURL()") != before
    browser.evaluate("document.querySelector('.examples button').click()")
    browser.wait_for(f"{DECODED}.dataset.codes === {start!r}")
    browser.evaluate("document.querySelectorAll('.examples button')[3].click()")
    browser.wait_for(f"{DECODED}.dataset.codes !== {start!r}")
    third = browser.evaluate(f"{DECODED}.dataset.codes")
    truth = "document.querySelector('[aria-label=\"the true image\"]')"
    small = "document.querySelectorAll('.examples canvas')[3]"
    browser.wait_for(f"{truth}.toDataURL() === {small}.toDataURL()")
    browser.evaluate(
        "(() => { const s = document.querySelector('[data-latent] input'); s.value = 2.5; "
        "s.dispatchEvent(new Event('input')); })()"
    )
    browser.wait_for(f"{DECODED}.dataset.codes.includes('2.50')")
    browser.evaluate("document.querySelector('.reset').click()")
    browser.wait_for(f"{DECODED}.dataset.codes === {third!r}")
    browser.evaluate("document.querySelector('[data-cell=\"1,4\"]').click()")
    browser.wait_for("document.querySelector('.finding').textContent.startsWith('Changing y moves z')")
    asked = [url for url in browser.requests if not url.startswith(("about:", "data:", "blob:"))]
    assert {url.partition("#")[0] for url in asked} == {exported_page.as_uri()}
    assert browser.errors == []


def test_a_run_whose_data_are_not_here_can_still_be_exported(tmp_path: Path, browser: Browser) -> None:
    settings: dict[str, Any] = {"steps": 2, "batch": 4, "latents": 3}
    run = unweave.train(BetaVAE(1.0), TINY, out=tmp_path / "</script>", device="cpu", **settings)
    view = open_run(run.path)
    assert view.truth is None
    assert "cannot be opened by its name" in view.note
    export_page(view, tmp_path / "page.html")
    browser.open((tmp_path / "page.html").as_uri())
    browser.wait_for(f"{DECODED}?.dataset.codes === '0.00,0.00,0.00'")
    assert "cannot be opened by its name" in browser.evaluate("document.querySelector('.hint').textContent")
    assert browser.errors == []


def test_an_exported_page_names_nothing_outside(run_folder: Path, exported_page: Path) -> None:
    text = exported_page.read_text()
    assert re.findall(r"https?://", text) == []
    assert re.findall(r"^(?:import|export) ", text, re.MULTILINE) == []
    assert str(run_folder.parent) not in text, "it does not tell where it was made"


def test_a_page_needs_the_name_of_a_file(run_folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UnweaveError, match=r"is a folder\. Give the name of a file, such as"):
        export_page(open_run(run_folder), tmp_path)
