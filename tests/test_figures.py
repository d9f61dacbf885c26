"""Figures of runs, and what a notebook shows of runs, data sets and pictures."""

import io
import itertools
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

import unweave
from training.tiny import TINY
from unweave.data import Collection, GroundTruth, from_arrays
from unweave.display.pictures import labelled_sheet, moving_sheet
from unweave.errors import UnweaveError
from unweave.methods import AE, MLVAE, BetaVAE, Method
from unweave.runs.figures import loss_figure, sheet_figure
from unweave.runs.run import Run
from unweave.runs.views import example_images, traversals

IMAGES = TINY.observe(TINY.factors_at(np.arange(60)))
SCRIPT = "<script>alert('$x$')</script>"


def train(folder: Path, method: Method | None = None, data: GroundTruth | Collection = TINY) -> Run:
    settings: dict[str, Any] = {"steps": 3, "batch": 4, "latents": 4, "device": "cpu", "progress": False}
    return unweave.train(method or BetaVAE(), data, out=folder, **settings)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return train(tmp_path_factory.mktemp("runs"))


def row_labels(figure: Any) -> list[str]:
    return [text.get_text() for text in figure.get_axes()[0].get_yticklabels()]


def test_traversals_show_the_rows_of_the_pictures(run: Run) -> None:
    figure = run.traversals(columns=3)
    rows = traversals(run, example_images(run), 3)
    assert row_labels(figure) == [label for label, _ in rows]
    [sheet] = figure.get_axes()[0].get_images()
    shown = np.asarray(sheet.get_array())
    assert shown.shape == (4 * 36 - 4, 3 * 36 - 4, 3)
    for r, (_, images) in enumerate(rows):
        assert np.array_equal(shown[r * 36 : r * 36 + 32, 36:68, 0], images[1, 0])


def test_dimensions_and_images_are_chosen(run: Run) -> None:
    all_rows = row_labels(run.traversals())
    assert row_labels(run.traversals(dimensions=2)) == all_rows[:2]
    chosen = row_labels(run.traversals(IMAGES[:1], dimensions=[3, 0]))
    assert [label.split()[0] for label in chosen] == ["z3", "z0"]
    for images in (IMAGES[:3] / 255, torch.from_numpy(IMAGES[:3])):
        figure = run.reconstructions(images, columns=2)
        assert row_labels(figure) == ["images", "reconstructions"] * 2
        shown = np.asarray(figure.get_axes()[0].get_images()[0].get_array())
        assert np.array_equal(shown[:32, 36:68, 0], IMAGES[1, 0])


def test_figures_are_pngs_without_pyplot(run: Run) -> None:
    figure: Any = run.plot_losses(["kl", "elbo"])
    assert [axes.get_title() for axes in figure.get_axes()] == ["kl", "elbo"]
    assert np.asarray(figure.get_axes()[0].get_lines()[0].get_xdata()).tolist() == [3]
    assert Image.open(io.BytesIO(figure._repr_png_())).format == "PNG"
    assert len(run.plot_losses().get_axes()) >= 3


def test_numbers_of_many_steps_stay_apart() -> None:
    steps = np.arange(3_000, 300_001, 3_000)
    log = pd.DataFrame({"step": steps, "kl": steps / 1e5, "elbo": steps / 1e5})
    figure = loss_figure(log, None, "a run")
    figure.savefig(io.BytesIO())  # lays out the panels
    for axes in figure.get_axes():
        labels = [label for label in axes.get_xticklabels() if label.get_text()]
        shown = [label.get_window_extent() for label in labels]
        assert len(shown) >= 3
        digit = shown[-1].width / len(labels[-1].get_text())
        assert all(left.x1 + digit < right.x0 for left, right in itertools.pairwise(shown))


def test_no_text_is_cut_off() -> None:
    """Labels and titles lie in the figure, and images keep their size, whatever the shape of the sheet."""
    title, log = "style_gan2 on a data set with a long name", pd.DataFrame({"step": [1, 2], "kl": [1.0, 2.0]})
    for columns, size, label in (
        (10, (64, 64), "content of the first"),
        (1, (16, 32), "a"),
        (3, (8, 8), "b\nc"),
    ):
        figure = sheet_figure(title, [(label, np.zeros((columns, 3, *size), np.uint8))] * 4)
        figure.savefig(io.BytesIO())
        [axes] = figure.get_axes()
        shown = [*axes.get_yticklabels(), axes.title, axes._left_title]  # type: ignore[attr-defined]
        whole, sheet = figure.bbox, axes.get_window_extent()
        for box in [text.get_window_extent() for text in shown if text.get_text()] + [sheet]:
            assert whole.x0 < box.x0 < box.x1 < whole.x1, (columns, label)
            assert whole.y0 < box.y0 < box.y1 < whole.y1, (columns, label)
        images = axes.get_images()[0].get_window_extent()
        assert images.height == pytest.approx(0.6 * figure.dpi * (4 * size[0] + 12) / size[0])
        assert images.width == pytest.approx(sheet.width)
    losses: Any = loss_figure(log, None, f"{title}, and more words that are wider than one panel")
    losses.savefig(io.BytesIO())
    box = losses._suptitle.get_window_extent()
    assert losses.bbox.x0 < box.x0 < box.x1 < losses.bbox.x1


def test_no_text_of_a_sheet_is_cut_off() -> None:
    """A long title widens the sheet, also of an animation; a long label moves the images to the right."""
    white = np.full((1, 1, 8, 8), 255, np.uint8)
    for label, title in (("a name of a factor that is longer than most", "t"), ("a", "a long title " * 4)):
        sheet = labelled_sheet(title, [(label, white)])
        inked = np.argwhere(np.asarray(sheet).max(axis=2) < 200)[:, 1]
        assert inked.max() < sheet.width - 8
        [tile] = np.unique(np.argwhere((np.asarray(sheet) == 255).all(axis=2))[:, 1]).reshape(1, -1)
        assert len(tile) == 16, "nothing covers the image, and the image covers nothing"
        left = np.argwhere(np.asarray(sheet)[44:].max(axis=2) < 200)[:, 1]
        assert left.max() < tile.min()
    [frame] = moving_sheet("a long title " * 4, [("a", white)])
    assert frame.width > 4 * len("a long title ") * 6
    assert labelled_sheet("t", [("a", white)]).width == 190 + 16 + 4, "others stay as they are"


def test_content_and_style(tmp_path: Path) -> None:
    figure = train(tmp_path, MLVAE(content=1)).swaps(rows=2, columns=4)
    assert row_labels(figure) == ["style of these", "content of the first", "content of the first"]


def test_wrong_options_are_one_sentence(run: Run, tmp_path: Path) -> None:
    deterministic = train(tmp_path, AE())
    calls: dict[str, Any] = {
        "beta_vae does not split its code into content and style": lambda: run.swaps(),
        "2 rows and 3 columns of swaps need 4 images; got 3. Give more images, or fewer": lambda: train(
            tmp_path, MLVAE(content=1)
        ).swaps(IMAGES[:3], rows=2, columns=3),
        "the code has dimensions 0 to 3; got 4": lambda: run.traversals(dimensions=[0, 4]),
        "dimensions must be a whole number >= 1; got 0": lambda: run.traversals(dimensions=0),
        "columns must be a whole number >= 1; got 1.5": lambda: run.traversals(columns=1.5),  # type: ignore[arg-type]
        "rows must be a whole number >= 1; got 0": lambda: run.reconstructions(rows=0),
        "there is nothing to show: images has no rows": lambda: run.reconstructions(IMAGES[:0]),
        "images must be (n, 1, 32, 32); got (3, 3)": lambda: run.traversals(np.zeros((3, 3))),
        'the log has no quantity "kll". Did you mean "kl"?': lambda: run.plot_losses("kll"),
        "name at least one quantity of the log": lambda: run.plot_losses([]),
        "so give 2 or more images; got 1": lambda: deterministic.traversals(IMAGES[:1]),
        "ae cannot draw images: its codes have no prior": lambda: deterministic.sample(3),
        "sample(n) draws n images, a whole number >= 0; got -1": lambda: run.sample(-1),
        "sample(n) draws n images, a whole number >= 0; got 2.0": lambda: run.sample(2.0),  # type: ignore[arg-type]
    }
    for message, call in calls.items():
        with pytest.raises(UnweaveError, match=re.escape(message)):
            call()


def test_a_run_in_a_notebook(run: Run, tmp_path: Path) -> None:
    shown = run._repr_html_()
    for words in ("beta_vae on tiny, seed 0: finished", "beta", "learning_rate", "Losses at step 3", "kl"):
        assert words in shown
    assert "codes drawn from the prior" in shown
    assert "data:image/png;base64," in shown
    pictures = unweave.draw(run)
    assert sorted(pictures) == ["reconstructions.png", "traversals.gif", "traversals.png"]
    assert pictures.image("traversals.png").width > 300
    assert pictures._repr_html_().count("<img") == 2
    with pytest.raises(KeyError, match=r"there are reconstructions\.png"):
        pictures["traversals"]
    assert 'alt="traversals"' in run._repr_html_()
    assert "prior" not in train(tmp_path, AE())._repr_html_()


def test_a_diverged_run_in_a_notebook(tmp_path: Path) -> None:
    broken = unweave.train(
        BetaVAE(1e38), TINY, out=tmp_path, steps=4, batch=4, learning_rate=1e20, device="cpu", progress=False
    )
    shown = broken._repr_html_()
    assert "diverged" in shown
    assert "not finite" in shown
    assert "<img" not in shown


def test_names_cannot_inject_html(tmp_path: Path) -> None:
    factors = tuple(replace(factor, name=SCRIPT) for factor in TINY.factors)
    evil = replace(TINY, name=SCRIPT, factors=factors, source=SCRIPT, drawn=SCRIPT)
    run = train(tmp_path, data=evil)
    run.traversals()._repr_png_()  # type: ignore[attr-defined]
    own = from_arrays(IMAGES)
    assert isinstance(own, Collection)
    collection = replace(own, name=SCRIPT, source=SCRIPT)
    for shown in (evil, run, collection):
        assert "<script" not in shown._repr_html_()
        assert "&lt;script&gt;" in shown._repr_html_()


def test_data_sets_in_a_notebook() -> None:
    shown = TINY._repr_html_()
    for words in ("tiny: 60 combinations of factors", "size", "ordinal", "1 x 32 x 32", "uniformly", "<img"):
        assert words in shown
    rows = np.column_stack([np.linspace(0, 1, 60), np.arange(60) % 2])
    mixed = from_arrays(IMAGES, rows, names=["angle", "colour"], grid=False)
    assert isinstance(mixed, Collection)
    for words in ("60 images", "angle", "0 to 1", "continuous", "colour", "<img"):
        assert words in mixed._repr_html_()

    def refuse(*_: object) -> Any:
        raise UnweaveError("the file has gone.")

    assert "No image can be shown: the file has gone." in replace(TINY, render=refuse)._repr_html_()
    empty = np.zeros((10, 2, 32, 32), np.uint8)
    assert "<img" not in replace(TINY, shape=(2, 32, 32), render=lambda *_: empty)._repr_html_()
