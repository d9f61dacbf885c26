"""Runs side by side: what the server answers, and the page in a real browser."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unweave
from command_line import run_here
from explore.browser import Browser
from explore.compared import ORDER, SIGNS, change_spec, permuted_copy, write_scores
from explore.conftest import Serve
from explore.test_server import ask, error
from unweave.errors import UnweaveError
from unweave.explore import run_view
from unweave.explore.compared import MOST, comparison_at
from unweave.explore.model import RunModel
from unweave.explore.server import ExploreServer
from unweave.runs.spec import RunSpec
from unweave.runs.store import RunFolder
from unweave.streams import Stream
from unweave.study.folder import StudyFolder
from unweave.study.spec import StudySpec

READY = "document.querySelector('.compared-traversals canvas')?.dataset.drawn"
MOVED = "[...document.querySelectorAll('canvas[data-run]')]"
DATA = "getContext('2d').getImageData(0, 0, 64, 64).data"
PIXELS = f"{MOVED}.map((c) => Array.from(c.{DATA}).filter((_, i) => i % 4 === 0))"
CODES = f"{MOVED}.map((c) => c.dataset.codes)"
ROW = "document.querySelector('tr[data-row=\"0\"]')"


@pytest.fixture(scope="module")
def three(run_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A run and two copies with permuted and flipped latents, with scores of two protocols."""
    folder = tmp_path_factory.mktemp("three")
    first = folder / "first"
    shutil.copytree(run_folder, first)
    second = permuted_copy(first, folder / "second", seed=1)
    third = permuted_copy(first, folder / "third", (1, 2, 3, 0), (1, -1, -1, -1), seed=1, steps=70)
    write_scores(first, 0.1)
    write_scores(second, 0.3)
    write_scores(third, 0.2)
    return [first, second, third]


def ids(folders: list[Path]) -> str:
    return ",".join(RunFolder(folder).spec.id for folder in folders)


def asked(server: ExploreServer, folders: list[Path]) -> dict[str, Any]:
    status, body, _ = ask(server, f"/api/compare?runs={ids(folders)}")
    assert status == 200, body
    record: dict[str, Any] = json.loads(body)
    return record


def test_the_known_permutation_is_found(three: list[Path], serve: Serve) -> None:
    with serve(comparison_at(three)) as server:
        record = asked(server, three[:2])
        assert json.loads(ask(server, "/api/subject")[1])["runs"] == ids(three).split(",")
    live = [row[0]["latent"] for row in record["rows"]]
    assert live
    assert sorted([*live, *record["codes"][0]["dead"]]) == [0, 1, 2, 3]
    for first, second in record["rows"]:
        place = ORDER.index(first["latent"])
        assert second == {"latent": place, "correlation": pytest.approx(SIGNS[place], abs=1e-3)}
        spread = [
            codes["deviation"][k] for codes, k in zip(record["codes"], (first["latent"], place), strict=True)
        ]
        assert spread[0] == pytest.approx(spread[1], abs=1e-3)


def test_settings_and_scores_are_those_of_the_folders(
    three: list[Path], serve: Serve, tmp_path: Path
) -> None:
    other = shutil.copytree(three[2], tmp_path / "other")
    write_scores(other, 0.2, "mig[bins20,n600,mean]")
    with serve(comparison_at([*three[:2], other])) as server:
        record = asked(server, [*three[:2], other])
        comparable = asked(server, three[:2])["scores"]
    assert record["settings"] == [
        {"name": "seed", "values": ["0", "1", "1"]},
        {"name": "steps", "values": ["60", "60", "70"]},
    ]
    (score,) = record["scores"]
    assert not score["comparable"]
    assert sorted(score["protocols"]) == ["mig[bins20,mean]", "mig[bins20,n600,mean]"]
    (score,) = comparable
    assert score["comparable"]
    assert [(value["value"], value["low"]) for value in score["values"]] == [
        (0.1, pytest.approx(0.09)),
        (0.3, pytest.approx(0.29)),
    ]


def test_runs_that_cannot_be_compared_are_refused(three: list[Path], serve: Serve, tmp_path: Path) -> None:
    rooms = shutil.copytree(three[0], tmp_path / "rooms")
    change_spec(rooms, data="rooms")
    refusals = {
        f"2 to {MOST} runs can be compared; got 1.": [three[0]],
        f"2 to {MOST} runs can be compared; got {MOST + 1}.": [three[0]] * (MOST + 1),
        "first and first are the same run": [three[0], three[0]],
        "first was trained on dsprites, rooms on rooms": [three[0], rooms],
        "is not the folder of a run: it has no spec.json": [three[0], tmp_path],
    }
    for sentence, folders in refusals.items():
        with pytest.raises(UnweaveError, match=re.escape(sentence)):
            comparison_at(folders)
    done = run_here("explore", three[0], rooms)
    assert (done.returncode, done.stdout) == (2, "")
    assert "only runs on the same data set can be compared" in done.stderr
    done = run_here("explore", *three, "--export", tmp_path / "page.html")
    assert done.returncode == 2
    assert "--export writes the page of one run" in done.stderr
    with serve(comparison_at(three[:2])) as server:
        assert error(ask(server, "/api/compare")) == (409, f"2 to {MOST} runs can be compared; got 0.")
        assert ask(server, f"/api/compare?runs={ids(three)}")[0] == 409, "the third run is not served"


def test_a_folder_that_leads_elsewhere_is_not_opened(three: list[Path], serve: Serve, tmp_path: Path) -> None:
    linked = shutil.copytree(three[1], tmp_path / "linked")
    (linked / "weights.safetensors").unlink()
    (linked / "weights.safetensors").symlink_to(three[1] / "weights.safetensors")
    with serve(comparison_at([three[0], linked])) as server:
        status, sentence = error(ask(server, f"/api/compare?runs={ids([three[0], linked])}"))
    assert status == 409
    assert "leads out of" in sentence


def test_a_slider_moves_all_runs_in_step(three: list[Path], serve: Serve, browser: Browser) -> None:
    with serve(comparison_at(three)) as server:
        browser.open(server.url)
        browser.wait_for(READY)
        assert browser.evaluate("document.querySelector('h1').textContent") == "3 runs on dSprites dsprites"
        before, codes = browser.evaluate(PIXELS), browser.evaluate(CODES)
        browser.evaluate(f"{ROW}.querySelector('input').focus()")
        browser.evaluate(
            f"(() => {{ const s = {ROW}.querySelector('input'); s.value = 2.5; "
            "s.dispatchEvent(new Event('input', {bubbles: true})); })()"
        )
        browser.wait_for(f"{CODES}.every((now, k) => now !== {json.dumps(codes)}[k])")
        after = browser.evaluate(PIXELS)
        for k in range(3):
            assert after[k] != before[k]
            # The copies are the same model with other names and signs of its latents.
            assert np.abs(np.array(after[k]) - np.array(after[0])).max() <= 2
        flipped = browser.evaluate(
            f"[...{ROW}.querySelectorAll('td')].map((c) => c.textContent.includes('flipped'))"
        )
        first = int(browser.evaluate(f"{ROW}.querySelector('td b').textContent")[1:])
        assert flipped == [
            False,
            SIGNS[ORDER.index(first)] < 0,
            (1, -1, -1, -1)[(1, 2, 3, 0).index(first)] < 0,
        ]
        browser.wait_for("new URLSearchParams(location.hash.slice(1)).get('moves') === '0:2.5'")
        browser.open(browser.evaluate("location.href"))
        browser.wait_for(READY)
        browser.wait_for(f"{CODES}.every(Boolean)")
        assert browser.evaluate(PIXELS) == after, "a shared address shows the same"
        browser.evaluate("document.querySelector('.compared-traversals canvas').focus()")
        for key in ("ArrowRight", "Enter"):  # from 0 to half a standard deviation
            browser.press(key)
        browser.wait_for("new URLSearchParams(location.hash.slice(1)).get('moves') === '0:0.5'")
        browser.evaluate("document.querySelector('.compared-latents .reset').click()")
        browser.wait_for(f"{CODES}.every((now, k) => now === {json.dumps(codes)}[k])")
    assert browser.errors == []


def test_another_image_is_shown_in_all_runs(three: list[Path], serve: Serve, browser: Browser) -> None:
    with serve(comparison_at(three[:2])) as server:
        browser.open(server.url)
        browser.wait_for(READY)
        codes = browser.evaluate(CODES)
        browser.evaluate(
            "(() => { const s = document.querySelectorAll('.factor input')[3]; s.value = 31; "
            "s.dispatchEvent(new Event('input', {bubbles: true})); })()"
        )
        browser.wait_for(f"{CODES}.every((now, k) => now !== {json.dumps(codes)}[k])")
        browser.wait_for("new URLSearchParams(location.hash.slice(1)).get('f') === '1,3,20,31,16'")
    assert browser.errors == []


def test_scores_are_sorted_and_protocols_that_differ_are_named(
    three: list[Path], serve: Serve, browser: Browser, tmp_path: Path
) -> None:
    other = shutil.copytree(three[2], tmp_path / "other")
    write_scores(other, 0.2, "mig[bins20,n600,mean]")
    cells = "[...document.querySelectorAll('.compared-scores tbody td')].map((c) => c.textContent)"
    with serve(comparison_at([three[0], three[1]])) as server:
        browser.open(server.url)
        browser.wait_for(READY)
        assert browser.evaluate(cells) == ["0.100 (0.090 to 0.110)", "0.300 (0.290 to 0.310)", "0.200"]
        browser.evaluate("document.querySelectorAll('.compared-scores .sort')[1].click()")
        sort = "document.querySelectorAll('.compared-scores th[scope=col]')[1].getAttribute('aria-sort')"
        assert browser.evaluate(sort) == "descending"
        assert browser.errors == []
    with serve(comparison_at([three[0], other])) as server:
        browser.open(server.url)
        browser.wait_for(READY)
        *_, last = browser.evaluate(cells)
        assert last.startswith("Not compared: the protocols differ (A mig[bins20,mean]; B mig[bins20,n600")
        assert browser.errors == []


def test_runs_of_a_study_are_compared_by_their_ids(
    three: list[Path], serve: Serve, browser: Browser, tmp_path: Path
) -> None:
    specs: tuple[RunSpec, ...] = tuple(RunFolder(folder).spec for folder in three)
    study = StudyFolder.create(tmp_path, StudySpec("small", specs, "mig"))
    for folder, spec in zip(three, specs, strict=True):
        shutil.copytree(folder, study.run_path(spec.id), dirs_exist_ok=True)
    with serve(tmp_path) as server:
        browser.open(f"{server.url}#compare={ids(three[:2])}")
        browser.wait_for(READY)
        assert browser.evaluate("document.querySelector('h1').textContent") == "2 runs on dSprites dsprites"
        assert browser.evaluate("document.getElementById('home').textContent") == "← all runs"
        browser.open(f"{server.url}#compare={specs[0].id}")
        alert = browser.wait_for("document.querySelector('main > [role=alert]')?.textContent")
        assert alert == f"2 to {MOST} runs can be compared; got 1."


def test_without_images_settings_and_scores_remain(
    three: list[Path], serve: Serve, browser: Browser, tmp_path: Path
) -> None:
    copies = [shutil.copytree(folder, tmp_path / folder.name) for folder in three[:2]]
    for folder in copies:
        change_spec(folder, data="no_such_data")
    with serve(comparison_at(copies)) as server:
        browser.open(server.url)
        hint = browser.wait_for("document.querySelector('h1 ~ .hint')?.textContent")
        assert hint.startswith("No true images: ")
        assert hint.endswith("Images and latents cannot be compared without them.")
        assert browser.evaluate("document.querySelectorAll('.compared-table').length") == 2
    assert browser.errors == []


def test_data_without_factors_have_images_to_choose_from(
    three: list[Path], serve: Serve, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    images = Stream.of(0).bytes(20, 64 * 64).reshape(20, 1, 64, 64)
    data = unweave.data.from_arrays(images)
    monkeypatch.setattr(run_view, "view_of", lambda run, tell: run_view.view_on(RunModel(run), data, tell))
    with serve(comparison_at(three[:2])) as server:
        browser.open(server.url)
        browser.wait_for(READY)
        codes = browser.evaluate(CODES)
        browser.evaluate("document.querySelectorAll('.tiles button')[7].click()")
        browser.wait_for(f"{CODES}.every((now, k) => now !== {json.dumps(codes)}[k])")
        browser.wait_for("new URLSearchParams(location.hash.slice(1)).get('image') === '7'")
        truth = f"Array.from(document.querySelector('[aria-label=\"the true image\"]').{DATA})"
        browser.wait_for(f"{truth}[4] === {images[7, 0, 0, 1]} && {truth}[400] === {images[7, 0, 1, 36]}")
    assert browser.errors == []
