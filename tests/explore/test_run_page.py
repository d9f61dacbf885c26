"""The page of a run in a real browser, as its reader meets it."""

import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import unweave
from explore.browser import Browser
from explore.conftest import Serve
from unweave.explore.run_view import view_of
from unweave.methods import AE, BetaVAE

PIXELS = (
    "Array.from(document.querySelector('.pictures figure:last-of-type canvas').getContext('2d')"
    ".getImageData(0, 0, 64, 64).data.filter((_, i) => i % 4 === 0))"
)
READY = (
    "document.querySelector('[aria-label^=\"the decoded\"]')?.dataset.codes "
    "&& document.querySelector('.traversal canvas').dataset.drawn "
    "&& document.querySelector('.finding').textContent"
)
CODES = "document.querySelector('.pictures figure:last-of-type canvas').dataset.codes"
ADDRESS = "new URLSearchParams(location.hash.slice(1)).get('{}')"


def slide(browser: Browser, selector: str, value: float) -> None:
    browser.evaluate(
        f"(() => {{ const s = document.querySelector({selector!r}); s.focus(); s.value = {value}; "
        "s.dispatchEvent(new Event('input', {bubbles: true})); })()"
    )


def test_a_slider_changes_the_picture(run_folder: Path, serve: Serve, browser: Browser) -> None:
    run = unweave.load(run_folder)
    with serve(run_folder) as server:
        browser.open(server.url)
        browser.wait_for(READY)
        rows = browser.evaluate("[...document.querySelectorAll('[data-latent]')].map(r => +r.dataset.latent)")
        before = browser.evaluate(PIXELS)
        slide(browser, f"[data-latent='{rows[0]}'] input", 2.5)
        browser.wait_for(f"{CODES}.split(',').includes('2.50')")
        after = browser.evaluate(PIXELS)
        assert after != before
        codes = np.array([browser.evaluate(CODES).split(",")], np.float32)
        assert codes[0, rows[0]] == 2.5
        assert np.array(after).reshape(64, 64) == pytest.approx(run.decode(codes)[0, 0] * 255, abs=2)
        browser.wait_for(f"{ADDRESS.format('z')}?.split(',').includes('2.5')")
        address = browser.evaluate("location.href")
        browser.open(address)
        browser.wait_for(READY)
        assert browser.evaluate(PIXELS) == after, "a shared address shows the same"
        browser.evaluate("document.querySelector('[data-latent] input').focus()")
        browser.press("ArrowLeft")
        browser.wait_for(f"{CODES}.split(',').includes('2.49')")
    assert browser.errors == []


def test_true_factors_give_the_code_to_go_on_from(run_folder: Path, serve: Serve, browser: Browser) -> None:
    run = unweave.load(run_folder)
    truth = run.data
    assert isinstance(truth, unweave.data.GroundTruth)
    with serve(run_folder) as server:
        browser.open(server.url)
        browser.wait_for(READY)
        slide(browser, ".factor:nth-of-type(1) input", 2)
        slide(browser, ".factor:nth-of-type(4) input", 31)
        browser.wait_for(f"{ADDRESS.format('f')} === '2,3,20,31,16'")
        expected = run.encode(truth.observe([[2, 3, 20, 31, 16]]))[0]
        words = ",".join(f"{value:.2f}" for value in expected)
        browser.wait_for(f"{CODES} === {words!r}")
        output = browser.evaluate("document.querySelector('.factor output').textContent")
        assert output == "heart"
        seen = browser.evaluate(PIXELS.replace("last-of-type", "first-of-type"))
        assert seen == truth.observe([[2, 3, 20, 31, 16]]).ravel().tolist()
        slide(browser, "[data-latent='0'] input", -3)
        browser.wait_for(f"{CODES}.startsWith('-3.00')")
        browser.press("r")
        browser.wait_for(f"{CODES} === {words!r}")
    assert browser.errors == []


def test_a_cell_selects_its_latent_and_its_factor(run_folder: Path, serve: Serve, browser: Browser) -> None:
    with serve(run_folder) as server:
        browser.open(server.url)
        browser.wait_for(READY)
        browser.evaluate("document.querySelector('[data-cell=\"2,3\"]').click()")
        assert browser.evaluate("document.querySelector('.latent.selected').dataset.latent") == "2"
        assert browser.evaluate("document.querySelector('.factor.selected label').textContent") == "x"
        browser.wait_for("document.querySelector('.finding').textContent.startsWith('Changing x moves z')")
        assert browser.evaluate("document.querySelector('.choice [aria-pressed=true]').textContent") == "x"
        browser.evaluate("document.querySelector('[data-cell=\"2,3\"]').focus()")
        browser.press("ArrowRight")
        browser.press("Enter")
        browser.wait_for(f"{ADDRESS.format('factor')} === '4'")
    assert browser.errors == []


def test_a_walk_moves_one_latent_until_it_is_stopped(
    run_folder: Path, serve: Serve, browser: Browser
) -> None:
    with serve(run_folder) as server:
        browser.open(server.url)
        browser.wait_for(READY)
        start = browser.evaluate(CODES).split(",")
        browser.evaluate("document.querySelector('[data-latent=\"1\"] button').click()")
        browser.wait_for(f"Math.abs({CODES}.split(',')[1] - {start[1]}) > 0.5")
        moved = browser.evaluate(CODES).split(",")
        assert [moved[i] for i in (0, 2, 3)] == [start[i] for i in (0, 2, 3)]
        pressed = "document.querySelector('[data-latent=\"1\"] button').getAttribute('aria-pressed')"
        assert browser.evaluate(pressed) == "true"
        browser.evaluate("document.querySelector('[data-latent=\"1\"] button').click()")
        browser.wait_for(f"{pressed} === 'false'")
        time.sleep(0.3)  # what was asked for before comes
        still = browser.evaluate(CODES)
        time.sleep(0.3)
        assert browser.evaluate(CODES) == still
    assert browser.errors == []


def test_codes_without_a_prior_go_over_the_range_that_images_have(
    tmp_path: Path, serve: Serve, browser: Browser
) -> None:
    run = unweave.train(AE(), out=tmp_path, device="cpu", steps=3, batch=8, latents=4)
    described = view_of(run).description
    most = described["order"][0]
    with serve(run.path) as server:
        browser.open(server.url)
        browser.wait_for(READY)
        canvas = "document.querySelector('.traversal canvas')"
        assert "over 95 % of the range" in browser.evaluate(f"{canvas}.getAttribute('aria-label')")
        browser.evaluate(
            f"(() => {{ const c = {canvas}, r = c.getBoundingClientRect(), s = c.clientWidth / 794;"
            "c.dispatchEvent(new MouseEvent('click', "
            "{clientX: r.left + 762 * s, clientY: r.top + 58 * s})); })()"
        )
        browser.wait_for(f"{CODES}.split(',')[{most}] === '{described['spans'][most][1]:.2f}'")
    assert browser.errors == []


def test_dead_latents_are_folded_away(run_folder: Path, serve: Serve, browser: Browser) -> None:
    with serve(run_folder) as server:
        described = server.subject.view(str(server.subject.describe()["run"])).description
        described["dead"] = [True, False, False, True]
        browser.open(server.url)
        browser.wait_for(READY)
        assert browser.evaluate("document.querySelector('.dead').open") is False
        text = browser.evaluate("document.querySelector('.dead summary').textContent")
        assert text.startswith("2 dead latents")
        inside = browser.evaluate(
            "[...document.querySelectorAll('.dead [data-latent]')].map((row) => row.dataset.latent).sort()"
        )
        assert inside == ["0", "3"]


def test_views_are_saved_as_png(run_folder: Path, serve: Serve, browser: Browser, tmp_path: Path) -> None:
    saved = tmp_path / "saved"
    saved.mkdir()
    browser.downloads(saved)
    with serve(run_folder) as server:
        browser.open(server.url)
        browser.wait_for(READY)
        names = ["", "-information", "-traversals", "-intervention"]
        for i, name in enumerate(names):
            selector = (
                ".heading button" if i == 0 else [".matrix", ".traversal", ".intervention"][i - 1] + " .save"
            )
            browser.evaluate(f"document.querySelector({selector!r}).click()")
            path = saved / f"{run_folder.name}{name}.png"
            end = time.monotonic() + 30
            while not path.exists() and time.monotonic() < end:
                time.sleep(0.05)
            with Image.open(path) as picture:
                assert min(picture.size) > 100
                assert len(set(np.asarray(picture.convert("L")).ravel().tolist())) > 10, "an empty picture"


def test_every_control_has_a_name(run_folder: Path, serve: Serve, browser: Browser) -> None:
    with serve(run_folder) as server:
        browser.open(server.url)
        browser.wait_for(READY)
        nodes = browser.send("Accessibility.getFullAXTree")["nodes"]
    shown = [node for node in nodes if not node["ignored"]]
    controls = [
        node for node in shown if node["role"]["value"] in ("slider", "button", "image", "img", "link")
    ]
    assert len(controls) > 40
    assert [node for node in controls if not node.get("name", {}).get("value")] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_small_screen_in_light_and_dark(
    scheme: str, run_folder: Path, serve: Serve, browser: Browser
) -> None:
    browser.resize(360, 700)
    browser.prefer(scheme)
    with serve(run_folder) as server:
        browser.open(server.url)
        browser.wait_for(READY)
        assert browser.evaluate("document.documentElement.scrollWidth") <= 360
        shade = browser.evaluate("parseInt(getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0])")
        assert (shade < 60) == (scheme == "dark")
        corner = browser.evaluate(
            "document.querySelector('.traversal canvas').getContext('2d').getImageData(1, 1, 1, 1).data[0]"
        )
        assert (corner < 60) == (scheme == "dark")


def test_a_broken_run_shows_a_message(
    run_folder: Path, serve: Serve, browser: Browser, tmp_path: Path
) -> None:
    broken = Path(shutil.copytree(run_folder, tmp_path / "broken"))
    (broken / "weights.safetensors").write_bytes(b"not weights")
    with serve(broken) as server:
        browser.open(server.url)
        browser.wait_for(
            "document.querySelector('[role=alert]')?.textContent.includes('cannot read the weights')"
        )
        shutil.copy(run_folder / "weights.safetensors", broken)
        browser.evaluate("document.querySelector('main button').click()")
        browser.wait_for(READY)


def test_a_server_that_has_ended_is_a_message_too(run_folder: Path, serve: Serve, browser: Browser) -> None:
    with serve(run_folder) as server:
        browser.open(server.url)
        browser.wait_for(READY)
    browser.offline()
    slide(browser, "[data-latent='0'] input", -2)
    browser.wait_for(
        "document.querySelector('[role=alert]').textContent.startsWith('The server does not answer')"
    )
    time.sleep(0.6)  # the address is written meanwhile, which needs no server
    assert browser.evaluate("document.querySelector('[role=alert]').checkVisibility()")
    assert browser.evaluate("document.querySelectorAll('[data-latent]').length") == 4, (
        "the page is still there"
    )


def test_a_server_that_answers_again_brings_the_page_up_to_date(
    run_folder: Path, serve: Serve, browser: Browser
) -> None:
    alarm, faint = "document.querySelector('[role=alert]')", "document.querySelector('.stale .picture')"
    with serve(run_folder) as server:
        browser.open(server.url)
        browser.wait_for(READY)
        browser.evaluate("document.querySelector('[data-latent=\"1\"] button').click()")
        browser.offline()
        browser.wait_for(f"{alarm}.checkVisibility() && {faint}")
        walking = "document.querySelector('[data-latent=\"1\"] button').getAttribute('aria-pressed')"
        assert browser.evaluate(walking) == "false", "nothing moves on without an image"
        slide(browser, "[data-latent='0'] input", -2)
        time.sleep(0.6)
        assert browser.evaluate(f"{alarm}.checkVisibility() && !{CODES}.startsWith('-2.00')")
        browser.offline(False)
        browser.evaluate(f"{alarm}.querySelector('button').click()")
        browser.wait_for(f"{CODES}.startsWith('-2.00') && !{alarm}.checkVisibility() && !{faint}")


def test_many_latents(tmp_path: Path, serve: Serve, browser: Browser) -> None:
    settings: dict[str, Any] = {"steps": 2, "batch": 4, "latents": 48, "architecture": "mlp"}
    run = unweave.train(BetaVAE(), out=tmp_path, device="cpu", **settings)
    with serve(run.path) as server:
        described = server.subject.view(run.spec.id).description
        described["dead"] = [i == described["order"][-1] for i in range(48)]
        browser.open(server.url)
        browser.wait_for(READY)
        heights = "[...document.querySelectorAll('.latent label')].map((label) => label.clientHeight)"
        assert len(set(browser.evaluate(heights)) - {0}) == 1, "z10 stays on one line"
        for panel, few, size in (("traversal", 20, 64), ("intervention", 10, 36)):
            said = f"document.querySelector('.{panel} .how-many')"
            assert browser.evaluate(f"{said}.textContent").startswith(f"{few} of 48 latents are shown: those")
            height = f"document.querySelector('.{panel} canvas').height"
            short = browser.evaluate(height)
            browser.evaluate(f"{said}.querySelector('button').click()")
            browser.wait_for(f"{height} === {short + size * (48 - few)}")
            assert browser.evaluate(f"{said}.textContent").startswith("All 48 latents are shown.")
        label = browser.evaluate("document.querySelector('.traversal canvas').getAttribute('aria-label')")
        assert label.count("z") == 48
    assert browser.errors == []


def test_a_dead_latent_has_no_colour_in_the_matrix(run_folder: Path, serve: Serve, browser: Browser) -> None:
    with serve(run_folder) as server:
        described = server.subject.view(str(server.subject.describe()["run"])).description
        described["dead"], described["information"] = [False, False, False, True], [[0.62] * 5] * 4
        browser.open(server.url)
        browser.wait_for(READY)
        share = "document.querySelector('[data-cell=\"{},3\"]').style.getPropertyValue('--share')"
        assert float(browser.evaluate(share.format(2))) == pytest.approx(0.62 / np.log(32))
        assert float(browser.evaluate(share.format(3))) == 0
        assert "Rows without colour are dead" in browser.evaluate(
            "document.querySelector('.matrix .hint').textContent"
        )
        assert browser.evaluate("document.querySelector('.dead summary').textContent") == (
            "1 dead latent: less than 0.01 nats of KL divergence from the prior"
        )


def test_a_saved_view_says_what_it_shows(run_folder: Path, serve: Serve, browser: Browser) -> None:
    with serve(run_folder) as server:
        browser.open(server.url)
        browser.wait_for(READY)
        slide(browser, "[data-latent='2'] input", -1.5)
        browser.wait_for(f"{CODES}.split(',')[2] === '-1.50'")
        codes = browser.evaluate(CODES).split(",")
        browser.evaluate(
            "window.written = []; CanvasRenderingContext2D.prototype.fillText = "
            "function (text) { window.written.push(text); }"
        )
        browser.evaluate("document.querySelector('.heading button').click()")
        written = "\n".join(browser.evaluate("window.written"))
    assert "Run: dSprites · beta 1 · seed 0 · 60 steps · id " in written
    assert "True image: shape ellipse · scale 4 of 6 · orientation 21 of 40 · x 17 of 32" in written
    assert "Sliders: " + " · ".join(f"z{i} {code}" for i, code in enumerate(codes)) in written
