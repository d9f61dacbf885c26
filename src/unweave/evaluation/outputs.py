"""The codes in what an encoder returns: a tensor, a pair, a dictionary or a record with named outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, TypeAlias

from unweave.evaluation.posteriors import EncoderError

# The name of an output or of a layer, the position of an output, or a function that picks the codes.
Output: TypeAlias = str | int | Callable[[Any], Any] | None

# Names of outputs that hold one vector an image, or one a patch; the first that is there is taken.
KNOWN = ("pooler_output", "image_embeds", "embeddings", "last_hidden_state")


def pick_codes(result: Any, output: Output = None) -> Any:
    """Codes (n, d), or a pair (mean, log_var).

    A record with `mean` and `log_var` is a pair. Of a named output with further axes the mean is taken: over
    patches (n, patches, d), or over positions (n, d, h, w).
    """
    if callable(output):
        return output(result)
    if isinstance(output, int):
        return _at(result, output)
    named = _named(result)
    if output is None and not named:
        return result
    if output is None and named.get("mean") is not None and named.get("log_var") is not None:
        return named["mean"], named["log_var"]
    name = output or next((known for known in KNOWN if named.get(known) is not None), None)
    if name is None and len(named) == 1:
        [name] = named
    if name is None or named.get(name) is None:
        raise EncoderError(
            f'the encoder has no output "{name}"; it has {", ".join(named) or "one without a name"}.'
            if name
            else f"the encoder has the outputs {', '.join(named)}. Choose one: output={next(iter(named))!r}."
        )
    return pooled(named[name])


def pooled(values: Any) -> Any:
    """One vector an image: the mean over patches (n, patches, d) or over positions (n, d, h, w)."""
    axes = {3: 1, 4: (2, 3)}.get(values.ndim)
    return values if axes is None else values.mean(axes)


def _at(result: Any, position: int) -> Any:
    values = list(_named(result).values()) or result
    if not isinstance(values, tuple | list) or not -len(values) <= position < len(values):
        raise EncoderError(f"the encoder has no output {position}; it returned {type(result).__name__}.")
    return pooled(values[position])


def _named(result: Any) -> dict[str, Any]:
    """The outputs by name; none for tensors, arrays and plain tuples."""
    if isinstance(result, Mapping):
        return dict(result)
    if is_dataclass(result) and not isinstance(result, type):
        return {field.name: getattr(result, field.name) for field in fields(result)}
    if hasattr(result, "log_var"):
        return {"mean": result.mean, "log_var": result.log_var}
    return {}
