"""The page of runs in training in a real browser."""

import json
import shutil
import threading
from pathlib import Path

import pytest

from explore.browser import Browser
from explore.conftest import Serve
from explore.live_folders import add_lines, end_run, locked, spec_of, write_run, write_study
from training.tiny import TINY
from unweave.explore.live.folders import spec_hash
from unweave.methods import BetaVAE
from unweave.runs.spec import RunSpec
from unweave.training.trainer import Plan, Report, train_runs

LABEL = "document.querySelector('.live-charts canvas')?.getAttribute('aria-label')"
STATUS = "document.querySelector('.live-summary [role=status]')?.textContent"
FACTS = "document.querySelector('.live-details p')?.textContent"
# Whether the first chart has pixels of the colour of its first curve.
HAS_CURVE = """(() => {
  const canvas = document.querySelector('.live-charts canvas');
  if (!canvas) return false;
  const hex = getComputedStyle(document.documentElement).getPropertyValue('--curve-0').trim();
  const wanted = [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
  const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  let hits = 0;
  for (let i = 0; i < data.length; i += 4) hits += wanted.every((one, c) => Math.abs(one - data[i + c]) < 4);
  return hits > 20;
})()"""


@pytest.fixture(autouse=True)
def frequent_polls(browser: Browser) -> None:
    """The page asks for news every 0.2 seconds instead of every 2."""
    browser.shorten_waits()


def text(browser: Browser, selector: str) -> list[str]:
    found: list[str] = browser.evaluate(
        f"[...document.querySelectorAll({selector!r})].map((one) => one.textContent.trim())"
    )
    return found


def test_a_run_is_watched_from_its_first_step_to_its_end(
    tmp_path: Path, serve: Serve, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A real training waits for the page twice: its curve appears and grows, then the page links to it."""
    monkeypatch.setattr("unweave.runs.run.reopen", lambda *_: TINY)
    spec = RunSpec(BetaVAE(1.0), "tiny", steps=30, batch=4, latents=2, architecture="mlp")
    logged, seen = threading.Semaphore(0), threading.Semaphore(0)

    def wait(report: Report) -> None:
        if report.step in (10, 20):
            logged.release()
            assert seen.acquire(timeout=60)

    plan = Plan("cpu", log_every=2, checkpoint_every=10)
    training = threading.Thread(
        target=train_runs, args=([spec], TINY, [tmp_path / "run"], plan, wait), daemon=True
    )
    training.start()
    assert logged.acquire(timeout=60)
    with serve(tmp_path / "run") as server:
        browser.open(server.url)
        browser.wait_for(HAS_CURVE)
        assert "training · step 10 of 30" in browser.wait_for(FACTS)
        assert text(browser, "h1") == ["Training: run"]
        before = browser.evaluate(LABEL)
        seen.release()
        assert logged.acquire(timeout=60)
        browser.wait_for(f"{LABEL} !== {json.dumps(before)}")
        seen.release()
        training.join(60)
        link = "document.querySelector('.live-summary .message:not([hidden]) a')"
        assert browser.wait_for(f"{link} && {link}.getAttribute('href')") == f"#run={spec.id}"
        assert "trained · step 30 of 30" in browser.wait_for(f"{FACTS}.includes('trained') && {FACTS}")
        browser.evaluate(f"{link}.click()")
        browser.wait_for("document.querySelector('.panels')")
        assert browser.evaluate("document.getElementById('training').checkVisibility()")
    assert browser.errors == []


def test_a_study_fills_its_grid(tmp_path: Path, serve: Serve, browser: Browser) -> None:
    specs = [spec_of(beta=beta, seed=seed) for beta in (1.0, 4.0) for seed in range(3)]
    write_study(tmp_path, *specs)
    first = write_run(tmp_path / "runs", specs[0], *({"step": s, "kl": 5.0 / s} for s in range(1, 50)))
    cells = "document.querySelectorAll('.live-grid td button')"
    with locked(first), serve(tmp_path) as server:
        browser.open(server.url)
        browser.wait_for(f"{cells}.length === 6")
        assert text(browser, ".live-grid tbody th") == ["β-VAE beta_vae beta=1", "β-VAE beta_vae beta=4"]
        assert text(browser, ".live-grid thead th") == ["seed", "0", "1", "2"]
        assert text(browser, ".live-summary li") == ["· 5 waiting", "▶ 1 training"]
        browser.wait_for(HAS_CURVE)
        second = write_run(tmp_path / "runs", specs[1], {"step": 1, "kl": 1.0})
        (second / "error.json").write_text(json.dumps({"doing": "train", "error": "<b>no memory</b>"}))
        third = write_run(tmp_path / "runs", specs[5], {"step": 1, "kl": 1.0})
        end_run(third, scores={"mig": 0.123456})
        browser.wait_for(f"{cells}[5].className.includes('live-measured')")
        assert browser.evaluate(f"{cells}[1].getAttribute('aria-label')") == "β-VAE beta=1, seed 1: failed"
        # One cell is in the order of the Tab key; arrows move between cells.
        assert browser.evaluate(f"[...{cells}].map((one) => one.tabIndex)") == [0, -1, -1, -1, -1, -1]
        browser.evaluate(f"{cells}[0].focus()")
        browser.press("ArrowRight")
        browser.press("Enter")
        alarm = "document.querySelector('.live-details [role=alert]')"
        assert browser.wait_for(f"!{alarm}.hidden && {alarm}.textContent") == "failed: <b>no memory</b>"
        browser.evaluate(f"{cells}[5].click()")
        browser.wait_for("document.querySelectorAll('.live-details td').length === 2")
        assert text(browser, ".live-columns td") == ["1", "0.1235"]
        assert text(browser, ".live-columns tbody th") == ["kl", "MIG mig"]
        assert browser.evaluate(FACTS).startswith("β-VAE beta=4, seed 2, dSprites: measured")
        assert len(text(browser, ".live-losses .live-legend button")) == 3
        assert spec_hash(specs[5]) in browser.evaluate("location.hash")
        assert browser.errors == []
        browser.offline()
        browser.wait_for("!document.querySelector('.failure').hidden")
        browser.offline(False)
        browser.evaluate("document.querySelector('.failure button').click()")
        browser.wait_for("document.querySelector('.failure').hidden")


def test_log_scale_smoothing_and_a_resumed_run(tmp_path: Path, serve: Serve, browser: Browser) -> None:
    folder = write_run(
        tmp_path / "runs", spec_of(), *({"step": s, "elbo": -float(s), "kl": 2.0**-s} for s in range(9))
    )
    with locked(folder), serve(tmp_path / "runs") as server:
        browser.open(server.url)
        browser.wait_for(HAS_CURVE)
        assert text(browser, ".live-charts h3") == ["elbo", "kl"]
        browser.evaluate("document.querySelector('.live-controls input[type=checkbox]').click()")
        assert text(browser, ".live-values") == ["All values are negative or 0: the scale is linear.", ""]
        assert browser.evaluate("location.hash") == "#live=&log=1"
        kl = "document.querySelectorAll('.live-charts canvas')[1].getAttribute('aria-label')"
        assert browser.evaluate(kl).endswith("seed 0: 0.003906.")
        shutil.copy(folder / "log.jsonl", tmp_path / "part")
        (tmp_path / "part").replace(folder / "log.jsonl")
        add_lines(folder, {"step": 9, "elbo": -10.0, "kl": 0.5})
        browser.wait_for(f"{kl}.endsWith('seed 0: 0.5.')")
        (folder / "log.jsonl").write_text(json.dumps({"step": 3, "elbo": -10.0, "kl": 0.25}) + "\n")
        browser.wait_for(f"{kl}.endsWith('seed 0: 0.25.')")
        assert "step 3 of 1,000" in browser.wait_for(FACTS)
