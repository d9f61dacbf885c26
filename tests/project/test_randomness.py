"""All randomness comes from streams: nothing in the package draws from a generator with a state."""

import re
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src"

GENERATORS = re.compile(
    r"np\.random|numpy\.random|default_rng|RandomState|^import random|^from random"
    r"|torch\.manual_seed|torch\.Generator"
    r"|torch\.(rand|bernoulli|multinomial|normal\()|\.(normal|uniform|random|bernoulli|exponential|cauchy)_\("
    r"|dropout",
    re.MULTILINE,
)

# scikit-learn's convention: random_state may be a generator of the caller, which only gives the seed.
ALLOWED = {
    "unweave/integrations/estimator.py": {"np.random", "RandomState"},
    # The units that the Wild Relation Network drops are drawn from a stream.
    "unweave/commands/reason.py": {"dropout"},
    **{f"unweave/reasoning/{name}.py": {"dropout"} for name in ("spec", "training", "wren")},
}


def test_the_pattern_finds_what_it_should() -> None:
    for guilty in ("np.random.seed(0)", "torch.randn(3)", "import random", "w.uniform_(-1, 1)"):
        assert GENERATORS.search(guilty)
    assert not GENERATORS.search("stream.normal(3, 4); draws.uniform('noise', 1, 2)")


def test_no_generator_with_a_state_is_used() -> None:
    found = [
        f"{path.relative_to(SOURCE)}: {match[0]}"
        for path in SOURCE.rglob("*.py")
        for match in GENERATORS.finditer(path.read_text())
        if match[0] not in ALLOWED.get(path.relative_to(SOURCE).as_posix(), ())
    ]
    assert found == []
