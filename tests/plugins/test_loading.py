"""Parts from outside the package are found by their place or by entry points; mistakes are one sentence."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import unweave
from plugins.outside import install, write_plugin
from unweave.data.catalogue import plugin_entries
from unweave.data.opening import open_data
from unweave.errors import MissingFileError, UnweaveError
from unweave.methods import BetaVAE, method_named, plugin_methods
from unweave.metrics.lookup import metric_named, metrics_named, plugin_metrics
from unweave.metrics.metric import Metric
from unweave.nn.distributions.likelihood import likelihood_named
from unweave.nn.networks.architectures import architecture_named
from unweave.plugins.loading import (
    Plugin,
    absolute,
    failures_named,
    is_reference,
    load_reference,
    origin_of,
)


@pytest.mark.parametrize("text", ["a.py:Name", "/x y/a-b.py:Name", "package.module:Name", "module:_name"])
def test_places_are_told_from_names(text: str) -> None:
    assert is_reference(text)


@pytest.mark.parametrize("text", ["beta_vae", "a.py", "a.npz:x.y", "x:", ":x", "a b:c", "mig,a.py:f", 3])
def test_names_are_told_from_places(text: object) -> None:
    assert not is_reference(text)


def test_a_file_is_executed_once_and_anew_after_an_edit(tmp_path: Path) -> None:
    path = write_plugin(tmp_path)
    first = method_named(f"{path}:MyVAE")
    assert method_named(f"{path}:MyVAE") is first
    write_plugin(tmp_path, "# another version\n")
    assert method_named(f"{path}:MyVAE") is not first


def test_a_relative_place_gets_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_plugin(tmp_path / "parts")
    monkeypatch.chdir(tmp_path)
    assert method_named("parts/mine.py:MyVAE").name == "my_vae"
    assert absolute("mine.py:MyVAE", tmp_path / "parts") == f"{tmp_path.resolve()}/parts/mine.py:MyVAE"
    assert absolute("package.module:Name", tmp_path) == "package.module:Name"


def test_every_kind_of_part_is_found_in_a_file(tmp_path: Path) -> None:
    path = write_plugin(tmp_path)
    assert metric_named(f"{path}:mean_size").name == "mean_size"
    assert open_data(f"{path}:squares").name == "my_squares"
    assert likelihood_named(f"{path}:SQUARED").name == "my_squared"
    assert architecture_named(f"{path}:MY_MLP").name == "my_mlp"
    assert [metric.name for metric in metrics_named(f"mig, {path}:mean_size")] == ["mig", "mean_size"]


def test_a_module_of_the_path_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_plugin(tmp_path).rename(tmp_path / "mine_in_a_module.py")
    monkeypatch.syspath_prepend(tmp_path)
    kind = method_named("mine_in_a_module:MyVAE")
    assert origin_of(kind, "method").place == f"{tmp_path.resolve()}/mine_in_a_module.py:MyVAE"
    assert method_named(origin_of(kind, "method").place) is kind


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("{folder}/no.py:MyVAE", "expected the method in .*no.py, and there is no such file"),
        ("{folder}/mine.py:Other", 'there is no method "Other" in .*mine.py. Check the name'),
        ("{folder}/broken.py:MyVAE", "cannot load the method in .*broken.py: ZeroDivisionError: division"),
        ("{folder}/mine.py:mean_size", "mine.py:mean_size is not a method. A method is a frozen dataclass"),
        ("{folder}/mine.py:Shadow", 'has the name of a built-in method, "beta_vae". Choose another name'),
        ("no_such_module:MyVAE", "cannot import the method no_such_module:MyVAE: ModuleNotFoundError"),
        ("beta_vea", 'there is no method "beta_vea". Did you mean "beta_vae"?'),
    ],
)
def test_mistakes_in_the_name_of_a_method(tmp_path: Path, name: str, sentence: str) -> None:
    write_plugin(tmp_path)
    (tmp_path / "broken.py").write_text("1 / 0\n")
    with pytest.raises(UnweaveError, match=sentence):
        method_named(name.format(folder=tmp_path))


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("amount: Setting", "amount of the method .*bad.py:Bad must have a default; it has none"),
        (
            "strength: float = 1.0",
            "strength of the method .* must be a Setting .* its type is float",
        ),
        ("sizes: tuple[int, int] = (1, 2)", "sizes of the method .* must be a Setting"),
        ("amount: Unknown = 1.0", "a type in the method .*bad.py:Bad is unknown: name 'Unknown'"),
    ],
)
def test_mistakes_in_a_setting(tmp_path: Path, setting: str, sentence: str) -> None:
    (tmp_path / "bad.py").write_text(
        "from __future__ import annotations\n"
        "from dataclasses import dataclass\n"
        "from typing import ClassVar\n"
        "from unweave.methods.method import Losses, Method, Setting, StepContext\n"
        "@dataclass(frozen=True)\n"
        "class Bad(Method):\n"
        "    name: ClassVar[str] = 'bad'\n"
        "    citation: ClassVar[str] = ''\n"
        f"    {setting}\n"
        "    def losses(self, step: StepContext) -> Losses: ...\n"
    )
    with pytest.raises(UnweaveError, match=sentence):
        method_named(f"{tmp_path}/bad.py:Bad")


@pytest.mark.parametrize(
    ("find", "sentence"),
    [
        (metric_named, "mine.py:SQUARED is not a metric. A metric is"),
        (open_data, "mine.py:SQUARED is not a data set. A data set is"),
        (
            architecture_named,
            "mine.py:SQUARED does not name a usable architecture: expected a record Architecture",
        ),
    ],
)
def test_a_part_of_another_kind_is_refused(tmp_path: Path, find: object, sentence: str) -> None:
    assert callable(find)
    with pytest.raises(UnweaveError, match=sentence):
        find(f"{write_plugin(tmp_path)}:SQUARED")


def test_the_scores_of_two_versions_of_a_metric_are_told_apart(tmp_path: Path) -> None:
    one = metric_named(f"{write_plugin(tmp_path)}:mean_size").protocol()
    two = metric_named(f"{write_plugin(tmp_path, '# other')}:mean_size").protocol()
    assert one.startswith("mean_size[source-")
    assert one != two


def test_a_metric_can_be_given_as_a_record() -> None:
    factors = np.stack(np.meshgrid(np.arange(4), np.arange(5), indexing="ij"), axis=-1).reshape(-1, 2)
    record = Metric("rows", lambda codes, _factors: float(len(codes)), "rows[all]", "codes", "", "")
    scores = unweave.evaluate(factors, factors, metrics=["mig", record])
    assert dict(scores)["rows"] == 20
    assert dict(unweave.evaluate(factors, factors, metrics=record)) == {"rows": 20}


def test_data_is_known_by_its_images_not_by_its_file(tmp_path: Path) -> None:
    before = open_data(f"{write_plugin(tmp_path)}:squares")
    assert open_data(f"{write_plugin(tmp_path, '# a remark')}:squares").source == before.source
    path = tmp_path / "mine.py"
    path.write_text(path.read_text().replace("np.uint8(255)", "np.uint8(254)"))
    assert open_data(f"{path}:squares").source != before.source


def test_installed_plugins_are_listed_and_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    groups = {
        "unweave.methods": {"my_vae": "listed_plugin:MyVAE"},
        "unweave.metrics": {"mean_size": "listed_plugin:mean_size"},
        "unweave.data": {"my_squares": "listed_plugin:squares"},
        "unweave.likelihoods": {"my_squared": "listed_plugin:SQUARED"},
        "unweave.architectures": {"my_mlp": "listed_plugin:MY_MLP"},
    }
    install(tmp_path, "listed_plugin", groups)
    monkeypatch.syspath_prepend(tmp_path)
    problems: list[str] = []
    assert [kind.name for kind in plugin_methods(problems.append)] == ["my_vae"]
    assert [metric.name for metric in plugin_metrics(problems.append)] == ["mean_size"]
    assert [entry.name for entry in plugin_entries(problems.append)] == ["my_squares"]
    assert not problems
    origin = origin_of(method_named("my_vae"), "method")
    assert (origin.place, origin.version) == ("listed_plugin:MyVAE", "1.5")
    assert open_data("my_squares").reference is not None
    assert likelihood_named("my_squared").name == "my_squared"
    assert architecture_named("my_mlp").name == "my_mlp"


def test_a_broken_plugin_breaks_no_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    methods = {
        "beta_vae": "poor_plugin:MyVAE",
        "gone": "poor_plugin:Gone",
        "my_vae": "poor_plugin:MyVAE",
        "renamed": "poor_plugin:MyVAE",
    }
    install(tmp_path, "poor_plugin", {"unweave.methods": methods})
    monkeypatch.syspath_prepend(tmp_path)
    problems: list[str] = []
    assert [kind.name for kind in plugin_methods(problems.append)] == ["my_vae"]
    assert method_named("beta_vae") is BetaVAE
    shadow, gone, renamed = problems
    assert 'has the name of a built-in method, "beta_vae"' in shadow
    assert 'there is no method "Gone" in poor_plugin' in gone
    assert 'calls itself "my_vae"' in renamed


def test_two_plugins_of_one_name_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("twin_one", "twin_two"):
        install(tmp_path, name, {"unweave.methods": {"my_vae": f"{name}:MyVAE"}})
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UnweaveError, match="twin_one:MyVAE and twin_two:MyVAE"):
        method_named("my_vae")
    assert method_named("twin_one:MyVAE").name == "my_vae"


def test_a_missing_file_of_a_likelihood_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(
        MissingFileError, match=r"expected the likelihood in .*gone.py, and there is no such file"
    ):
        likelihood_named(f"{tmp_path}/gone.py:SQUARED")


def test_a_script_trains_its_own_method(tmp_path: Path) -> None:
    path = write_plugin(
        tmp_path,
        "\nimport unweave\n"
        "run = unweave.train(MyVAE(), squares(), steps=2, batch=4, out='runs', progress=False)\n"
        "print(type(run.spec.method) is MyVAE, run.spec.plugins[0].place)\n",
    )
    done = subprocess.run(
        [sys.executable, path], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.stdout == f"True {path.resolve()}:MyVAE\n", done.stderr


def test_mistakes_of_a_data_set_are_one_sentence(tmp_path: Path) -> None:
    place = tmp_path / "wrong.py"
    place.write_text(
        "import numpy as np\n"
        "from unweave.data.grid import Card, Factor, GroundTruth\n"
        "def made(render, factors=(Factor('row', 8),)):\n"
        "    card = Card('wrong', 'CC0-1.0', '')\n"
        "    return lambda: GroundTruth('wrong', factors, (1, 8, 8), render, card, 'rendered')\n"
        "small = made(lambda f, s: np.zeros((len(f), 1, 4, 4), np.uint8))\n"
        "floats = made(lambda f, s: np.zeros((len(f), 1, 8, 8)))\n"
        "nothing = made(lambda f, s: None)\n"
        "broken = made(lambda f, s: 1 / 0)\n"
        "narrow = made(lambda f: f)\n"
        "bare = made(lambda f, s: f, ())\n"
        "def asks(x): return x\n"
    )
    for name, sentence in (
        (
            "small",
            "must render uint8 images of shape (64, 1, 8, 8); it rendered uint8 of shape (64, 1, 4, 4)",
        ),
        ("floats", "it rendered float64 of shape (64, 1, 8, 8)"),
        ("nothing", "it rendered NoneType"),
        ("broken", "failed to render images: ZeroDivisionError: division by zero. It is called with"),
        ("narrow", "takes 1 positional argument but 2 were given. It is called with factors (n, k)"),
        ("bare", "must have at least one factor; it has none"),
        ("asks", "wrong.py:asks failed: TypeError: asks() missing 1 required positional argument"),
    ):
        with pytest.raises(UnweaveError, match=re.escape(sentence)):
            open_data(f"{place}:{name}")


def test_what_fails_in_a_part_names_it_and_the_line(tmp_path: Path) -> None:
    source = tmp_path / "part.py"
    source.write_text("\ndef losses():\n    return 1 / 0\n")
    part = load_reference(f"{source}:losses", "method")
    plugin = Plugin("method", f"{source}:losses", str(source), "0")
    sentence = f"the method {source}:losses failed in line 3 of part.py: ZeroDivisionError: division by zero."
    with pytest.raises(UnweaveError, match=re.escape(sentence)), failures_named([plugin]):
        part()
    with pytest.raises(UnweaveError, match=r"failed: KeyError: 'players'\. Check"), failures_named([plugin]):
        raise KeyError("players")
    for error in (UnweaveError("as it is"), OSError("as it is")):
        with pytest.raises(type(error), match=r"^as it is$"), failures_named([plugin]):
            raise error
    with pytest.raises(ZeroDivisionError), failures_named([]):
        part()
