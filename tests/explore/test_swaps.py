"""Content of one image, style of another: what the server gives, and what the reader sees."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import unweave
from explore.browser import Browser
from explore.conftest import Serve
from explore.test_server import ask, error, run_address
from training.tiny import TINY
from unweave.data import from_arrays
from unweave.display.pictures import to_bytes
from unweave.errors import UnweaveError
from unweave.explore import run_view
from unweave.explore.export import export_page
from unweave.explore.model import RunModel
from unweave.explore.run_view import CONTENTS, STYLES, view_of, view_on
from unweave.methods import GVAE, LORD, M2, MLVAE, AdversarialSplit, BetaVAE, DrNet, StyleGAN2
from unweave.methods.method import Method
from unweave.runs.run import Run
from unweave.runs.store import write_tensors

CANVAS = "document.querySelector('.swaps canvas')"
SHOWN = CANVAS + "?.dataset.sheet === '{}'"
OTHERS = "document.querySelector('.swaps button').click()"
NOTHING = "swaps need true images, and a method whose codes are content and style."
LEFT, TOP, SIZE = 118, 92, 84  # where the decoded images begin on the canvas, and how far apart they are
# The pixels of an enlarged image; of two that are equally near, the one before.
TILE = np.ceil((np.arange(SIZE - 2) + 0.5) * 32 / (SIZE - 2)).astype(int) - 1


@pytest.fixture(scope="session")
def split_run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run whose code is two latents of content and two of style; each of them changes its images."""
    settings: dict[str, Any] = {"steps": 2, "batch": 4, "latents": 4}
    run = unweave.train(GVAE(), TINY, out=tmp_path_factory.mktemp("runs"), device="cpu", **settings)
    larger = {name: 2.5 * weight for name, weight in run.folder.weights().items()}
    write_tensors(run.path / "weights.safetensors", larger)
    return Run(run.folder, data=TINY)


@pytest.fixture
def opened(split_run: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    """The same, with its data at hand when its folder is opened."""
    monkeypatch.setattr(run_view, "open_run", lambda *_: view_of(split_run))
    return split_run


def pair(run: Run, contents: NDArray[Any], styles: NDArray[Any]) -> NDArray[Any]:
    """The decoded image, (h, w), of content of one image and style of another, each (1, c, h, w)."""
    (a,), (b,) = run.encode(contents), run.encode(styles)
    return np.asarray(255 * run.decode(np.array([[a[0], a[1], b[2], b[3]]]))[0, 0])


def drawn(browser: Browser, row: int, column: int) -> NDArray[Any]:
    """What the canvas shows of a decoded image, enlarged; row and column -1 are the images they come from."""
    x = LEFT + column * SIZE if column >= 0 else LEFT - 8 - SIZE
    y = TOP + row * SIZE if row >= 0 else 0
    script = f"Array.from({CANVAS}.getContext('2d').getImageData({x}, {y}, {SIZE - 2}, {SIZE - 2}).data)"
    return np.array(browser.evaluate(script)).reshape(SIZE - 2, SIZE - 2, 4)[..., 0]


def enlarged(image: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(image[TILE][:, TILE])


def test_each_image_has_the_content_of_its_row_and_the_style_of_its_column(opened: Run, serve: Serve) -> None:
    sheets = []
    with serve(opened.path) as server:
        at = run_address(server)
        described = json.loads(ask(server, at)[1])["swap"]
        assert described == {"content": 2, "rows": 4, "columns": 8, "sheets": len(TINY) // 12}
        for sheet in (0, 4):
            status, body, headers = ask(server, f"{at}/swap", {"sheet": sheet})
            assert (status, headers["X-Shape"]) == (200, "44,1,32,32")
            sheets.append(np.frombuffer(body, np.uint8).reshape(44, 1, 32, 32))
        for wrong in (-1, 5, 1.5, True, None):
            status, said = error(ask(server, f"{at}/swap", {"sheet": wrong}))
            assert (status, said) == (409, f"sheet must be a number from 0 to 4; got {wrong}.")
    for images in sheets:
        contents, styles, made = images[:4], images[4:12], images[12:].reshape(4, 8, 32, 32)
        for row, column in ((0, 0), (0, 7), (3, 0), (2, 5)):
            expected = pair(opened, contents[[row]], styles[[column]])
            assert made[row, column] == pytest.approx(expected, abs=0.51)
        assert np.ptp(made[:, 0], axis=0).max() > 20, "content matters"
        assert np.ptp(made[0], axis=0).max() > 20, "and so does style"
    assert not np.array_equal(sheets[0][:12], sheets[1][:12]), "another sheet has other images"


@pytest.mark.parametrize(
    "method",
    [MLVAE(content=1), AdversarialSplit(), LORD(points=20), DrNet(), M2(factors="size")],
    ids=lambda m: m.name,
)
def test_every_method_with_two_parts_swaps_them(method: Method, tmp_path: Path) -> None:
    run = unweave.train(method, TINY, out=tmp_path, device="cpu", steps=2, batch=4, latents=4)
    view = view_of(run)
    assert view.description["swap"]["content"] == method.content_dimensions(4) > 0
    assert view.swaps(0).shape == (CONTENTS + STYLES + CONTENTS * STYLES, 1, 32, 32)


@pytest.mark.parametrize("method", [BetaVAE(1.0), MLVAE(content=4)], ids=lambda m: m.name)
def test_a_code_of_one_part_has_nothing_to_swap(method: Method, tmp_path: Path) -> None:
    run = unweave.train(method, TINY, out=tmp_path, device="cpu", steps=2, batch=4, latents=4)
    assert view_of(run).description["swap"] is None


def test_what_cannot_be_swapped_is_one_sentence(run_folder: Path, serve: Serve, tmp_path: Path) -> None:
    with serve(run_folder) as server:
        assert error(ask(server, f"{run_address(server)}/swap", {"sheet": 0})) == (409, NOTHING)
    run = unweave.train(GVAE(), TINY, out=tmp_path, device="cpu", steps=2, batch=4, latents=4)
    with serve(run.path) as server:  # which cannot open these data by their name
        assert json.loads(ask(server, run_address(server))[1])["swap"] is None
        assert error(ask(server, f"{run_address(server)}/swap", {"sheet": 0})) == (409, NOTHING)


def test_the_page_shows_swaps_and_others_on_demand(opened: Run, serve: Serve, browser: Browser) -> None:
    with serve(opened.path) as server:
        browser.open(server.url)
        browser.wait_for(SHOWN.format(0))
        hint = browser.evaluate("document.querySelector('.swaps .hint').textContent")
        assert hint.startswith("Content (z0 to z1) from the row, style (z2 to z3) from the column")
        browser.evaluate(OTHERS)
        browser.wait_for(SHOWN.format(1))
        view = server.subject.view(opened.spec.id)
        images = view.swaps(1)
        assert np.array_equal(drawn(browser, 2, -1), enlarged(images[2, 0]))
        assert np.array_equal(drawn(browser, -1, 5), enlarged(images[4 + 5, 0]))
        expected = pair(opened, images[[2]], images[[4 + 5]])
        assert drawn(browser, 2, 5) == pytest.approx(enlarged(expected), abs=0.51)
        before = browser.evaluate(f"{CANVAS}.toDataURL()")
        browser.wait_for("location.hash.includes('sheet=1')")
        browser.open(browser.evaluate("location.href"))
        browser.wait_for(SHOWN.format(1))
        assert browser.evaluate(f"{CANVAS}.toDataURL()") == before, "a shared address shows the same"
        browser.resize(360, 700)
        assert browser.evaluate("document.documentElement.scrollWidth") <= 360
    assert browser.errors == []


def test_an_exported_page_swaps_too(split_run: Run, tmp_path: Path, browser: Browser) -> None:
    export_page(view_of(split_run), tmp_path / "page.html")
    browser.offline()
    browser.open((tmp_path / "page.html").as_uri())
    browser.wait_for(SHOWN.format(0))
    first = browser.evaluate(f"{CANVAS}.toDataURL()")
    browser.evaluate(OTHERS)
    browser.wait_for(SHOWN.format(1))
    assert browser.evaluate(f"{CANVAS}.toDataURL()") != first
    record = json.loads(browser.evaluate("document.getElementById('record').textContent"))
    codes = [record["examples"][i]["code"] for i in (5 + 3, (5 + 4 + 6) % 12)]  # of row 3, column 6
    expected = 255 * split_run.decode(np.array([codes[0][:2] + codes[1][2:]], np.float32))[0, 0]
    assert drawn(browser, 3, 6) == pytest.approx(enlarged(expected), abs=1)
    assert browser.errors == []


def test_few_images_are_swapped_on_a_smaller_sheet(
    split_run: Run, tmp_path: Path, serve: Serve, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    images, run = TINY.observe(TINY.factors_at(np.arange(0, 60, 6))), split_run
    for count, rows, columns in ((1, 0, 0), (2, 1, 1), (5, 1, 4), (6, 2, 4), (10, 3, 7)):
        view = view_on(RunModel(run), from_arrays(images[:count]))
        if not rows:
            assert view.description["swap"] is None
            continue
        expected = {"content": 2, "rows": rows, "columns": columns, "sheets": 1}
        assert view.description["swap"] == expected
        sheet = view.swaps(0)
        assert sheet.shape == (rows + columns + rows * columns, 1, 32, 32)
        codes = run.encode(sheet[: rows + columns])
        last = np.concatenate([codes[rows - 1, :2], codes[rows + columns - 1, 2:]])[None]
        assert np.array_equal(sheet[-1:], to_bytes(run.decode(last)))
        if count in (5, 10):
            export_page(view, tmp_path / "page.html")
            browser.open((tmp_path / "page.html").as_uri())
            browser.wait_for(SHOWN.format(0))
            first = browser.evaluate(f"{CANVAS}.toDataURL()")
            browser.evaluate(OTHERS)
            browser.wait_for(SHOWN.format(1))
            assert browser.evaluate(f"{CANVAS}.toDataURL()") != first
    monkeypatch.setattr(run_view, "open_run", lambda *_: view)
    with serve(run.path) as server:
        browser.open(server.url)
        browser.wait_for(SHOWN.format(0))
        assert browser.evaluate("document.querySelector('.swaps button').hidden"), "there is one sheet"
    assert browser.errors == []


def test_a_page_without_two_parts_has_no_such_panel(run_folder: Path, serve: Serve, browser: Browser) -> None:
    with serve(run_folder) as server:
        browser.open(server.url)
        browser.wait_for("document.querySelector('.traversal canvas')?.dataset.drawn")
        assert browser.evaluate("document.querySelector('.swaps')") is None
    assert browser.errors == []


@pytest.fixture(scope="module")
def levels_run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run whose codes have the levels 4x4, 8x8, 16x16 and 32x32."""
    settings: dict[str, Any] = {"steps": 2, "batch": 4, "latents": 4, "device": "cpu"}
    method = StyleGAN2(mapping_layers=2, channel_base=128, channel_max=16)
    return unweave.train(method, TINY, out=tmp_path_factory.mktemp("runs"), **settings)


def test_levels_of_a_code_are_swapped_from_the_level_that_is_chosen(
    levels_run: Run, serve: Serve, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = view_of(levels_run)
    monkeypatch.setattr(run_view, "open_run", lambda *_: view)
    with serve(levels_run.path) as server:
        at = run_address(server)
        described = json.loads(ask(server, at)[1])["swap"]
        assert described["levels"] == ["4x4", "8x8", "16x16", "32x32"]
        _, body, _ = ask(server, f"{at}/swap", {"sheet": 2, "levels": 0})
        assert view.sample is not None
        images = view.sample.images[24:36]
        expected = to_bytes(levels_run.mix(images[:4], images[4:], 1))
        assert np.array_equal(np.frombuffer(body, np.uint8).reshape(44, 1, 32, 32)[12:], expected)
        for wrong in (3, None):
            said = f"levels must be a number from 0 to 2; got {wrong}."
            assert error(ask(server, f"{at}/swap", {"sheet": 0, "levels": wrong})) == (409, said)
        browser.open(server.url)
        browser.wait_for(SHOWN.format(0))
        hint = browser.evaluate("document.querySelector('.swaps .hint').textContent")
        assert hint.startswith("Coarse levels of the code from the row, the others from the column")
        assert browser.evaluate(f"{CANVAS}.dataset.levels") == "1", "half of the levels"
        choose = "const select = document.querySelector('.swaps select'); select.value = 0;"
        browser.evaluate(f"(() => {{ {choose} select.dispatchEvent(new Event('change')); }})()")
        browser.wait_for(f"{CANVAS}.dataset.levels === '0'")
        found = drawn(browser, 1, 3)
        images = view.swaps(0, 1)
        assert np.array_equal(found, enlarged(images[12 + 8 + 3, 0]))
    assert browser.errors == []


def test_an_exported_page_has_no_swaps_of_levels(levels_run: Run, tmp_path: Path, browser: Browser) -> None:
    export_page(view_of(levels_run), tmp_path / "page.html")
    browser.offline()
    browser.open((tmp_path / "page.html").as_uri())
    browser.wait_for("document.querySelector('.traversal canvas')?.dataset.drawn")
    assert browser.evaluate("document.querySelector('.swaps')") is None
    assert browser.errors == []


def test_other_codes_have_no_levels(split_run: Run, levels_run: Run) -> None:
    assert split_run.levels == ()
    images = TINY.sample_images(3, 0)
    with pytest.raises(UnweaveError, match="codes of gvae have no levels, so there is nothing to mix"):
        split_run.mix(images, images, 1)
    with pytest.raises(UnweaveError, match="levels must be a whole number from 1 to 3; got 4"):
        levels_run.mix(images, images, 4)
