"""The study page in a real browser: filters, brush, hover, pins, keys, and the state in the address."""

import json
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import pandas as pd
import pytest

from explore.browser import Browser
from explore.conftest import Serve
from unweave.explore.server import ExploreServer
from unweave.explore.subject import subject_at

STATUS = 'document.querySelector("[role=status]")?.textContent'
CARD = 'document.querySelector(".study-run-text").textContent'
FRAMES = "(async () => { for (let i = 0; i < 5; i++) await new Promise(requestAnimationFrame); })()"
PIXELS = (  # a number for each plot, that changes when its picture does
    "[...document.querySelectorAll('.study-plot canvas:first-child')].map((c) => { const d = "
    "c.getContext('2d').getImageData(0, 0, c.width, c.height).data; let sum = 0; "
    "for (let i = 0; i < d.length; i++) sum = (sum * 31 + d[i]) % 1000003; return sum; })"
)


def write_study(folder: Path) -> None:
    """24 runs of two methods, two data sets and six seeds; mig is 0.00, 0.01, ... and sap one minus that."""
    rows: list[dict[str, Any]] = []
    for i in range(24):
        beta = i % 2 == 0
        run = {
            "source": "own",
            "run": f"{i:016x}",
            "data": "cars3d" if i < 12 else "dsprites",
            "method": "beta_vae" if beta else "factor_vae",
            "setting": "beta=4" if beta else "gamma=10",
            "strength": 4.0 if beta else 10.0,
            "seed": i // 4,
            "representation": "mean",
        }
        for score, value in (("mig", i / 100), ("sap", 1 - i / 100)):
            rows.append({**run, "score": score, "protocol": f"{score}[x]", "value": value})
        (folder / "runs" / f"run-{i:016x}" / "pictures").mkdir(parents=True)
    pd.DataFrame(rows).to_parquet(folder / "results.parquet", index=False)
    (folder / "study.json").write_text("{}")


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("study")
    write_study(folder)
    server = ExploreServer(subject_at(folder))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.url
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def page(browser: Browser, address: str) -> Browser:
    return opened(browser, address)


def opened(browser: Browser, address: str, **state: Any) -> Browser:
    browser.errors.clear()
    browser.open(f"{address}#study={quote(json.dumps(state))}")
    browser.wait_for(f'({STATUS} ?? "").includes(" of 24 runs")')
    browser.evaluate(FRAMES)  # a bar for scrolling may come, and then the plots are drawn in another width
    return browser


def address_state(page: Browser) -> dict[str, Any]:
    fragment = urlsplit(page.evaluate("location.href")).fragment
    state: dict[str, Any] = json.loads(parse_qs(fragment)["study"][0])
    return state


def listed(page: Browser, column: int) -> list[str]:
    """A column of the list of runs: 1 data, 2 method, 3 setting, 4 seed, 5 and 6 the scores."""
    row = 'document.querySelector(".study .study-scroll:not(.study-pair *) tbody").rows'
    cells: list[str] = page.evaluate(f"[...{row}].map((row) => row.cells[{column}].textContent)")
    return cells


def fill(page: Browser, label: str, value: str) -> None:
    box = f"document.querySelector('[aria-label=\"{label}\"]')"
    page.evaluate(f"{box}.value = '{value}'; {box}.dispatchEvent(new Event('input'))")


def place_of(page: Browser, x: float, y: float) -> tuple[float, float]:
    """Where on the window a run with that mig (across) and sap (up) is, in a plot of all 24 runs."""
    left, top, width, height = page.evaluate(
        '(() => { const r = document.querySelector(".study-plot canvas").getBoundingClientRect();'
        " return [r.left, r.top, r.width, r.height]; })()"
    )
    room = 0.05 * 0.23  # axes hold all values and 5 % more on both sides; the frame has fixed margins
    across = (x + room) / (0.23 + 2 * room)
    along = (y - 0.77 + room) / (0.23 + 2 * room)
    return left + 54 + across * (width - 64), top + (height - 40) - along * (height - 50)


def test_filters_change_the_plots(page: Browser) -> None:
    before = page.evaluate(PIXELS)
    page.evaluate('document.querySelector("[data-filter=method] input[value=beta_vae]").click()')
    page.wait_for(f'{STATUS} === "12 of 24 runs"')
    after = page.evaluate(PIXELS)
    assert all(old != new for old, new in zip(before, after, strict=True))
    assert set(listed(page, 2)) == {"FactorVAE"}
    fill(page, "seed from", "4")
    page.wait_for(f'{STATUS} === "4 of 24 runs"')
    assert sorted(set(listed(page, 4))) == ["4", "5"]
    page.evaluate('document.querySelector("[data-filter=data] input[value=dsprites]").click()')
    page.wait_for(f'{STATUS} === "0 of 24 runs"')
    page.evaluate("[...document.querySelectorAll('form button')].at(-1).click()")
    page.wait_for(f'{STATUS} === "24 of 24 runs"')
    assert page.evaluate(PIXELS) == before
    assert page.errors == []


def test_a_range_of_a_score_and_a_setting(page: Browser) -> None:
    add = "document.querySelector('[data-add=range]')"
    page.evaluate(f"{add}.value = 'mig'; {add}.dispatchEvent(new Event('change'))")
    fill(page, "MIG from", "0.20")
    page.wait_for(f'{STATUS} === "4 of 24 runs"')
    assert listed(page, 5) == ["0.23", "0.22", "0.21", "0.2"]
    choice = "document.querySelector('[data-filter=setting] select')"
    page.evaluate(f"{choice}.options[0].selected = true; {choice}.dispatchEvent(new Event('change'))")
    page.wait_for(f'{STATUS} === "2 of 24 runs"')
    assert set(listed(page, 3)) == {"beta=4"}
    assert address_state(page)["ranges"] == {"mig": [0.2, None]}


def test_a_brush_marks_runs_in_all_plots(browser: Browser, address: str) -> None:
    page = opened(browser, address, x="mig", y="sap")
    before = page.evaluate(PIXELS)
    page.drag(place_of(page, 0.095, 0.995), place_of(page, 0.145, 0.855))
    page.wait_for(f'{STATUS} === "24 of 24 runs, 5 of them marked"')
    assert all(old != new for old, new in zip(before, page.evaluate(PIXELS), strict=True))
    assert listed(page, 6) == ["0.1", "0.11", "0.12", "0.13", "0.14"]
    assert address_state(page)["brush"]["plot"] == 0
    page.evaluate('document.querySelector(".study-plot canvas").focus()')
    page.evaluate(
        'document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true }))'
    )
    page.wait_for(f'{STATUS} === "24 of 24 runs"')
    assert page.evaluate(PIXELS) == before


def test_the_run_under_the_pointer_is_described_and_a_click_opens_it(browser: Browser, address: str) -> None:
    page = opened(browser, address, x="mig", y="sap")
    spot = place_of(page, 0.05, 0.95)
    page.move_mouse(*spot)
    page.wait_for('!document.querySelector(".study-card").hidden')
    text = page.evaluate('document.querySelector(".study-card").textContent')
    assert "FactorVAE on Cars3D, gamma=10, seed 1" in text
    assert "SAP 0.95, MIG 0.05" in text
    page.drag(spot, spot)
    page.wait_for('location.hash.includes("run=0000000000000005")')


def click(page: Browser, selector: str, text: str, **keys: bool) -> None:
    """Click the element with a text that matches."""
    found = (
        f"[...document.querySelectorAll('{selector}')].find((e) => e.textContent.trim().startsWith('{text}'))"
    )
    options = json.dumps({"bubbles": True, **keys})
    page.evaluate(f"{found}.dispatchEvent(new MouseEvent('click', {options}))")


def test_the_legend_hides_and_shows_runs(page: Browser) -> None:
    click(page, ".study-legend button", "β-VAE")
    page.wait_for(f'{STATUS} === "12 of 24 runs"')
    box = 'document.querySelector("[data-filter=method] input[value=beta_vae]").checked'
    assert page.evaluate(box) is False, "the filter says the same"
    pressed = "[...document.querySelectorAll('.study-legend button')].map((b) => b.ariaPressed)"
    assert page.evaluate(pressed) == ["false", "true"]
    click(page, ".study-legend button", "β-VAE")
    page.wait_for(f'{STATUS} === "24 of 24 runs"')
    click(page, ".study-legend button", "FactorVAE", shiftKey=True)
    page.wait_for(f'{STATUS} === "12 of 24 runs"')
    assert set(listed(page, 2)) == {"FactorVAE"}


def test_the_table_is_sorted_and_filtered(browser: Browser, address: str) -> None:
    page = opened(browser, address, x="mig", y="sap")
    assert listed(page, 5)[:2] == ["1", "0.99"], "the vertical axis, highest first"
    click(page, ".study-sort", "SAP")
    page.wait_for("document.querySelector('th[aria-sort=ascending]')?.textContent.startsWith('SAP')")
    assert listed(page, 5)[0] == "0.77"
    click(page, ".study-sort", "data set")
    page.wait_for("document.querySelector('th[aria-sort=ascending]')?.textContent.startsWith('data set')")
    assert listed(page, 1)[0] == "Cars3D"
    assert address_state(page)["sort"] == {"by": "data", "descending": False}
    box = "document.querySelector('.study-find input')"
    page.evaluate(f"{box}.value = 'factor DSPRITES'; {box}.dispatchEvent(new Event('input'))")
    page.wait_for("document.querySelector('.study caption').textContent.startsWith('6 of 6 shown runs')")
    assert set(listed(page, 1)) == {"dSprites"}
    assert set(listed(page, 2)) == {"FactorVAE"}
    assert page.errors == []


def test_a_long_table_shows_more_rows(page: Browser) -> None:
    assert len(listed(page, 1)) == 20
    click(page, ".study-scroll button", "Show 4 more")
    assert len(listed(page, 1)) == 24


def test_runs_are_coloured_by_a_number(browser: Browser, address: str) -> None:
    page = opened(browser, address, x="mig", y="sap")
    before = page.evaluate(PIXELS)
    page = opened(browser, address, x="mig", y="sap", colour="mig")
    assert all(old != new for old, new in zip(before, page.evaluate(PIXELS), strict=True))
    stops = page.evaluate("[...document.querySelectorAll('.study-legend li')].map((li) => li.textContent)")
    assert stops == ["MIG:", "0", "0.0575", "0.115", "0.173", "0.23"]
    colours = page.evaluate(
        "[...document.querySelectorAll('.study-scroll td.study-mig')].map((td) => td.style.borderLeftColor)"
    )
    assert colours[0] != colours[-1]
    assert page.errors == []


def test_each_method_has_an_axis_with_its_own_setting(browser: Browser, address: str) -> None:
    page = opened(browser, address, x="mig", y="sap")
    label = "document.querySelectorAll('.study-plot canvas:first-child')[2].ariaLabel"
    assert page.evaluate(label).startswith("SAP against setting of each method")
    study = (
        "{runs: 4, words: {method: {names: ['a', 'b'], codes: [0, 0, 1, 1]}}, "
        "strengths: {a: 'beta', b: 'strength'}, numbers: {strength: [4, 1, 10, 10]}}"
    )
    axis = page.evaluate(
        f"import('/study/axes.js').then((m) => m.settingAxis({study}, [1, 1, 1, 1]))"
        ".then(({ values, ticks, groups }) => ({ values: [...values], ticks, groups }))"
    )
    assert axis["ticks"] == [[0, "1"], [1, "4"], [3, "10"]]
    assert axis["values"] == [1, 0, 3, 3]
    assert [(group["method"], group["setting"]) for group in axis["groups"]] == [
        ("a", "beta"),
        ("b", "strength"),
    ]


def test_plots_begin_with_a_score_that_is_not_saturated(
    browser: Browser, tmp_path: Path, serve: Serve
) -> None:
    write_study(tmp_path)
    table = pd.read_parquet(tmp_path / "results.parquet")
    table.loc[table["score"] == "mig", "value"] = 1.0
    table.to_parquet(tmp_path / "results.parquet", index=False)
    with serve(tmp_path) as server:
        page = opened(browser, server.url)
        label = "document.querySelector('.study-plot canvas').ariaLabel"
        assert page.evaluate(label).startswith("SAP against MIG")


def test_many_marks_are_clear(page: Browser) -> None:
    """One of 10,000 marks hides less of what is behind it than one of 100."""
    opacity = """import("/study/plots.js").then(({ drawPlot, layOut }) => [100, 10000].map((n) => {
      const values = new Float64Array(n);
      const axis = { name: "", values, low: -1, high: 1, ticks: [[0, "0"]] };
      const layout = layOut(400, 300, axis, axis, new Uint8Array(n).fill(1));
      let opacity = 0;
      const stamp = (look, size, alpha) => ((opacity = alpha), () => {});
      const pen = { line() {}, text() {}, marks: (draw) => draw(stamp) };
      drawPlot(pen, layout, { looks: [{}], codes: new Uint8Array(n), order: [], lit: null, theme: {} });
      return opacity;
    }))"""
    few, many = page.evaluate(opacity)
    assert few == 0.75
    assert 0.1 < many < 0.3


def test_two_runs_side_by_side(browser: Browser, address: str) -> None:
    page = opened(browser, address, x="mig", y="sap")
    for value, run in (("0", "0000000000000000"), ("0.01", "0000000000000001")):
        page.evaluate(
            "[...document.querySelector('.study .study-scroll:not(.study-pair *) tbody').rows]"
            f".find((row) => row.cells[6].textContent === '{value}').querySelectorAll('button')[1].click()"
        )
        page.wait_for(f'document.querySelector(".study-pair").textContent.includes("{run}")')
    row = "[...document.querySelectorAll('.study-pair tr')].find((r) => r.textContent.startsWith('MIG mig'))"
    cells = page.evaluate(f"[...{row}.cells].map((cell) => cell.textContent)")
    assert cells == ["MIG mig", "0", "0.01", "0.01"]
    assert address_state(page)["pins"] == ["0000000000000000", "0000000000000001"]
    link = "document.querySelector('.study-compare').getAttribute('href')"
    assert page.evaluate(link) == "#compare=0000000000000000,0000000000000001"


def test_up_to_eight_runs_are_pinned(browser: Browser, address: str) -> None:
    page = opened(browser, address, pins=[f"{i:016x}" for i in range(8)])
    heads = "[...document.querySelectorAll('.study-pair thead th')].map((th) => th.textContent)"
    assert page.evaluate(heads) == [f"run {i}" for i in range(1, 9)]
    assert page.evaluate("document.querySelector('.study-compare').href").count(",") == 7
    click(page, ".study-scroll:not(.study-pair *) button", "pin")
    page.wait_for("!location.href.includes('0000000000000000')")
    assert len(address_state(page)["pins"]) == 8


def test_differences_are_those_of_the_exact_numbers(browser: Browser, tmp_path: Path, serve: Serve) -> None:
    write_study(tmp_path)
    table = pd.read_parquet(tmp_path / "results.parquet")
    table.loc[table["score"] == "sap", "value"] = [1234.34 + 0.33 * i for i in range(24)]
    table.to_parquet(tmp_path / "results.parquet", index=False)
    shutil.rmtree(tmp_path / "runs" / "run-0000000000000001")
    with serve(tmp_path) as server:
        page = opened(browser, server.url, pins=["0000000000000000", "0000000000000001"])
        rows = "[...document.querySelectorAll('.study-pair tr')]"
        row = f"{rows}.find((r) => r.textContent.startsWith('SAP sap'))"
        cells = page.evaluate(f"[...{row}.cells].map((cell) => cell.textContent)")
        assert cells == ["SAP sap", "1234.34", "1234.67", "0.33"]
        buttons = (
            "[...document.querySelectorAll('.study-pair button')].filter((b) => b.textContent === 'open')"
        )
        styles = page.evaluate(
            f"{buttons}.map((b) => [b.disabled, getComputedStyle(b).cursor, getComputedStyle(b).opacity < 1])"
        )
        assert styles == [[False, "pointer", False], [True, "not-allowed", True]], "what is disabled looks it"


def test_a_logarithmic_axis_has_few_ticks_however_long_it_is(browser: Browser, address: str) -> None:
    page = opened(browser, address, x="mig", y="sap")

    def ticks(low: float, high: float) -> list[str]:
        axis = f"m.numberAxis('s', [{low}, {high}], [1, 1], {{log: true}})"
        found = page.evaluate(f"import('/study/axes.js').then((m) => {axis}.ticks.map((tick) => tick[1]))")
        return [str(text) for text in found]

    assert ticks(1, 50) == ["1", "2", "5", "10", "20", "50"]
    assert ticks(0.02, 5000) == ["0.1", "1", "10", "100", "1000"]
    assert ticks(1e-6, 1000) == ["1e\N{MINUS SIGN}6", "1e\N{MINUS SIGN}4", "0.01", "1", "100"]


def test_runs_can_be_reached_with_keys(browser: Browser, address: str) -> None:
    page = opened(browser, address, x="mig", y="sap")
    page.evaluate('document.querySelector(".study-plot canvas").focus()')
    page.press("ArrowRight")
    page.wait_for(f'{CARD} === "β-VAE on Cars3D, beta=4, seed 0: SAP 1"')
    page.press("ArrowRight")
    page.wait_for(f'{CARD} === "FactorVAE on Cars3D, gamma=10, seed 0: SAP 0.99"')
    page.press("p")
    page.wait_for('document.querySelector(".study-pair").textContent.includes("0000000000000001")')
    page.press("Enter")
    page.wait_for('location.hash.includes("run=0000000000000001")')


def test_every_control_has_a_name(page: Browser) -> None:
    nameless = page.evaluate(
        "[...document.querySelectorAll('.study :is(input, select, button, canvas[tabindex])')]"
        ".filter((each) => !each.labels?.length && !each.ariaLabel && !each.textContent.trim())"
        ".map((each) => each.outerHTML)"
    )
    assert nameless == []


def test_an_address_brings_the_view_back_and_wrong_ones_do_no_harm(browser: Browser, address: str) -> None:
    page = opened(browser, address, y="sap", only={"data": ["dsprites"]}, ranges={"seed": [4, None]})
    assert page.evaluate(STATUS) == "8 of 24 runs"
    wrong = {"y": "no", "only": {"data": "x"}, "ranges": {"mig": 3}, "brush": {"plot": 0, "x": 1}, "pins": 7}
    page = opened(browser, address, **wrong)
    assert page.evaluate(STATUS) == "24 of 24 runs"
    assert page.errors == []


def saved(page: Browser, folder: Path, kind: str) -> bytes:
    """The plots as a file of a kind, saved by the button of the page."""
    page.downloads(folder)
    buttons = "[...document.querySelectorAll('button')]"
    page.evaluate(f"{buttons}.find((b) => b.textContent === 'Save {kind.upper()}').click()")
    file = folder / f"study.{kind}"
    for _ in range(100):
        if file.exists():
            break
        page.evaluate("new Promise((done) => setTimeout(done, 50))")
    return file.read_bytes()


def test_the_plots_are_saved(page: Browser, tmp_path: Path) -> None:
    assert saved(page, tmp_path, "png").startswith(b"\x89PNG")
    drawing = saved(page, tmp_path, "svg")
    assert drawing.startswith(b"<svg")
    assert drawing.count(b"fill-opacity") == 3 * 24 + 2  # and the legend


def test_saved_plots_say_which_runs_they_show(browser: Browser, address: str, tmp_path: Path) -> None:
    page = opened(browser, address, only={"data": ["dsprites"]}, ranges={"seed": [4, None]})
    drawing = saved(page, tmp_path, "svg")
    assert b">8 of 24 runs; data set: dSprites; seed: 4 to highest</text>" in drawing


def test_a_study_without_a_table_shows_a_message(browser: Browser, tmp_path: Path, serve: Serve) -> None:
    (tmp_path / "study.json").write_text("{}")
    with serve(tmp_path) as server:
        browser.open(f"{server.url}#study={{}}")
        message = browser.wait_for('document.querySelector("[role=alert]")?.textContent')
    assert "has no table of results yet" in message
