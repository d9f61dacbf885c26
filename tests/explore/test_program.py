"""What methods do to a code, written down for a page: it computes the same numbers there."""

import base64
import json
from collections.abc import Callable, Iterator
from dataclasses import fields
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

import unweave
from explore.browser import Browser
from methods.variants import SIZES
from training.tiny import TINY
from unweave.errors import UnweaveError
from unweave.explore.export import export_page
from unweave.explore.program import MAPS, PAIRS, Program, program_of, trace_program
from unweave.explore.run_view import view_of
from unweave.methods import METHODS, BetaVAE, EncDiff, Method
from unweave.nn.distributions.likelihood import LIKELIHOODS
from unweave.nn.networks.coding import Decodes
from unweave.runs.run import Run
from unweave.streams import Stream


def computed(browser: Browser, program: Program, codes: NDArray[np.float32]) -> NDArray[np.float64]:
    """By the page's script, in a browser."""
    script = (files("unweave.explore") / "pages" / "run" / "decoder.js").read_text(encoding="utf-8")
    numbers = base64.b64encode(program.numbers.tobytes()).decode()
    found = browser.evaluate(
        f"(() => {{ {script.replace('export ', '')}\n"
        f"const bytes = Uint8Array.from(atob('{numbers}'), (letter) => letter.charCodeAt(0));\n"
        f"const run = computing({json.dumps(program.words)}, new Float32Array(bytes.buffer));\n"
        f"return {json.dumps(codes.tolist())}.map((code) => Array.from(run(code))); }})()"
    )
    return np.array(found)


def drawn(rows: int, columns: int) -> NDArray[np.float32]:
    return Stream.of(0).child("codes").normal(rows, columns).astype(np.float32)


def made(kind: type[Method]) -> Method:
    names = {field.name for field in fields(kind)}
    few = {name: value for name, value in {"labels": 20, "layers": 2, "depth": 2}.items() if name in names}
    return kind(**SIZES.get(kind.name, {}), **few)


def runs_with_different_decoders(folder: Path) -> Iterator[Run]:
    """A run for each decoder: methods share one if its code, its layers and their sizes agree."""
    seen = set()
    settings: dict[str, Any] = {"steps": 2, "batch": 4, "latents": 4, "learning_rate": 1e-2}
    kinds = {(kind.name if kind.own_networks else "", kind.networks, kind.decode): kind for kind in METHODS}
    for kind in kinds.values():
        if not kind.exportable:
            continue
        run = unweave.train(made(kind), TINY, out=folder / kind.name, device="cpu", **settings)
        networks = [network for network in run.networks.values() if isinstance(network, Decodes)]
        sizes = [tuple(tensor.shape) for network in networks for tensor in network.state_dict().values()]
        decoder = (kind.decode, *map(repr, networks), *sizes)
        if decoder not in seen:
            seen.add(decoder)
            yield run


def test_pages_compute_what_every_method_decodes(tmp_path: Path, browser: Browser) -> None:
    codes = 2 * drawn(3, 4)
    for run in runs_with_different_decoders(tmp_path):
        expected = run.logits(codes).reshape(3, -1)
        assert expected.std(0).max() > 1e-3, "a mistake could be seen"
        found = computed(browser, program_of(run), codes)
        scale = float(np.abs(expected).max())
        assert found == pytest.approx(expected, rel=1e-4, abs=1e-5 * scale), run.spec.method.name


class Function(nn.Module):
    """A module that is a function of one row of numbers."""

    def __init__(self, of: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.of = of

    def forward(self, x: Tensor) -> Tensor:
        return self.of(x)


COLUMN = torch.tensor([[0.5], [-2.0], [3.0]])
KERNELS = torch.from_numpy(Stream.of(1).normal(2 * 3, 25)).float().view(2, 3, 5, 5)
WEIGHT, BIAS = COLUMN @ torch.tensor([[1.0, 2.0, -1.0, 0.3]]), COLUMN.flatten()


def _moved(x: Tensor) -> Tensor:
    parts = x.view(2, 2).expand(3, 2, 2).unbind()
    crossed: Tensor = torch.cat([part.t() for part in parts], 1)[:, 1:5:2].flatten()
    return torch.split(crossed, [1, 3])[1]


def _nearest(x: Tensor) -> Tensor:
    distances = (x[:, None] - COLUMN.T).abs()
    return torch.tensor([[3.0, 1.0, 4.0]] * 4).gather(-1, distances.argmin(-1, keepdim=True))


FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "abs": torch.abs,
    "clamp": lambda x: torch.cat([x.clamp(-0.5, 0.5), x.clamp(min=0.2), x.clamp(max=0.2)]),
    "exp": torch.exp,
    "gelu": lambda x: F.gelu(4 * x),
    "leaky_relu": lambda x: F.leaky_relu(F.leaky_relu(x, 0.3)),
    "log": lambda x: x.abs().log(),
    "neg": torch.neg,
    "reciprocal": lambda x: 1 / x,
    "relu": torch.relu,
    "round": lambda x: torch.cat([x.round(), (x.round() + 0.5).round(), (x.round() - 0.5).round()]),
    "rsqrt": lambda x: x.abs().rsqrt(),
    "sigmoid": torch.sigmoid,
    "sqrt": lambda x: x.abs().sqrt(),
    "tanh": torch.tanh,
    "add": lambda x: COLUMN + x,
    "div": lambda x: x / COLUMN,
    "eq": lambda x: (x.round().unsqueeze(-1) == torch.arange(-2, 3)).float() * 2,
    "maximum": lambda x: torch.maximum(x, -x),
    "minimum": lambda x: torch.minimum(x[:2], x[2:]),
    "mul": lambda x: (x.view(2, 1, 2) * COLUMN).permute(1, 0, 2),
    "sub": lambda x: 2 - x - COLUMN,
    "moves": _moved,
    "nearest": _nearest,
    "chosen": lambda x: x.gather(0, torch.tensor([2, 0, 2])),
    "linear": lambda x: F.linear(x, WEIGHT, BIAS) * F.linear(x, WEIGHT),
    "products": lambda x: torch.addmm(BIAS, x.view(1, 4), WEIGHT.T) @ COLUMN,
    "mean": lambda x: torch.cat([x.view(2, 2).mean(0), x.view(2, 2).mean((0, 1), keepdim=True)[0]]),
    "moments": lambda x: torch.cat(torch.var_mean(x.view(2, 1, 2), dim=(0, -1), correction=0, keepdim=True)),
    "transposed": lambda x: F.conv_transpose2d(x.view(1, 2, 1, 2), KERNELS, BIAS, stride=3, padding=1),
    "convolved": lambda x: F.conv2d(x.view(1, 1, 2, 2), KERNELS[:, :1, :3, :3], BIAS[:2], padding=1),
    "continuous_bernoulli": lambda x: LIKELIHOODS["continuous_bernoulli"].mean(x),
    "constant": lambda x: x.new_zeros(4) + torch.ones_like(x).sum() + x,
}


def test_pages_compute_what_torch_does(browser: Browser) -> None:
    codes = drawn(5, 4)
    functions = list(FUNCTIONS.values())
    together = Function(lambda x: torch.cat([function(x).flatten() for function in functions]))
    found = computed(browser, trace_program(together, 4, "all"), codes)
    start = 0
    for name, function in FUNCTIONS.items():
        expected = np.array([function(torch.from_numpy(code)).flatten().tolist() for code in codes])
        part, start = found[:, start : start + expected.shape[1]], start + expected.shape[1]
        assert part == pytest.approx(expected, rel=1e-5, abs=1e-6), name
    assert start == found.shape[1]


@pytest.mark.parametrize("name", ["moves", "exp"])
def test_a_page_computes_one_operation(name: str, browser: Browser) -> None:
    """A program without steps, and one whose last step is the output."""
    codes = drawn(5, 4)
    expected = [FUNCTIONS[name](torch.from_numpy(code)).flatten().tolist() for code in codes]
    found = computed(browser, trace_program(Function(FUNCTIONS[name]), 4, name), codes)
    assert found == pytest.approx(np.array(expected), rel=1e-5, abs=1e-6)


def test_every_operation_that_is_known_is_tried() -> None:
    assert FUNCTIONS.keys() >= MAPS | PAIRS


def test_a_decoder_of_many_passes_is_refused(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"steps": 1, "batch": 2, "latents": 2}
    run = unweave.train(EncDiff(model_channels=8, levels=1), TINY, out=tmp_path, device="cpu", **settings)
    with pytest.raises(UnweaveError, match="enc_diff decodes in many passes, which a page cannot"):
        program_of(run)


def test_what_cannot_be_written_down_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = unweave.train(BetaVAE(1.0), TINY, out=tmp_path, device="cpu", steps=2, batch=4, latents=3)
    decode = BetaVAE.decode
    monkeypatch.setattr(BetaVAE, "decode", lambda own, parts, codes: decode(own, parts, codes.cumsum(-1)))
    with pytest.raises(UnweaveError, match="beta_vae decodes by cumsum, which a page cannot compute"):
        export_page(view_of(run), tmp_path / "page.html")
    assert not (tmp_path / "page.html").exists()


def test_what_depends_on_the_code_itself_cannot_be_recorded(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UnweaveError, match=r"What mine does to a code cannot be recorded: .+ Use unweave"):
        trace_program(Function(lambda x: x if x.sum() > 0 else -x), 4, "mine")
    assert "def forward" not in capsys.readouterr().err, "the sentence is all that is said"


@pytest.mark.parametrize(
    ("function", "what"),
    [
        (lambda x: F.conv_transpose2d(x.view(2, 2, 1, 1), KERNELS), "a convolution of several images"),
        (
            lambda x: F.conv_transpose2d(x.view(1, 4, 1, 1), KERNELS.repeat(2, 1, 1, 1), groups=2),
            "a convolution",
        ),
        (
            lambda x: F.conv2d(x.view(1, 1, 2, 2), KERNELS[:, :1, :2, :2], stride=2),
            "a convolution with strides",
        ),
        (lambda x: torch.bmm(x.view(2, 1, 2), COLUMN[:2, None].expand(2, 2, 1)), "a batch of products"),
        (lambda x: x.view(2, 2).argmin(0).float(), "argmin over any axis but the last"),
        (lambda x: torch.add(x, x, alpha=2), "add"),
        (lambda x: x.long().float(), "_to_copy"),
    ],
)
def test_what_is_not_computed_as_torch_does_is_refused(
    function: Callable[[Tensor], Tensor], what: str
) -> None:
    with pytest.raises(UnweaveError, match=f"mine decodes by {what}"):
        trace_program(Function(function), 4, "mine")
