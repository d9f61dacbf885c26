"""`unweave.explore(...)`: the explorer from Python, also for a model or arrays that unweave did not make."""

from __future__ import annotations

import sys
import threading
import webbrowser
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from unweave.errors import UnweaveError
from unweave.evaluation.encoders import is_run
from unweave.evaluation.frozen import EncoderOptions
from unweave.evaluation.onnx_model import SUFFIX
from unweave.evaluation.outputs import Output
from unweave.evaluation.read_encoder import ReadEncoder
from unweave.explore.in_memory import subject_of_code_file, subject_of_model, subject_of_parts, subject_of_run
from unweave.explore.server import ExploreServer
from unweave.explore.subject import Subject, subject_at
from unweave.plugins.loading import is_reference
from unweave.zoo import is_zoo_name

ARRAYS = ".npz"


def explore(
    subject: Any = None,
    *,
    encode: Any = None,
    decode: Any = None,
    data: Any = None,
    codes: Any = None,
    images: Any = None,
    factors: Any = None,
    log_var: Any = None,
    scores: Mapping[str, float] | None = None,
    content: int = 0,
    name: str = "",
    transform: Any = None,
    output: Output = None,
    device: str | None = None,
    host: str = "127.0.0.1",
    port: int = 0,
    open_page: bool = True,
    wait: bool = True,
) -> Explorer:
    """Open the explorer's page on a run, a study, a model of your own, or codes and images in arrays.

    - `explore(run)`, `explore("runs/...")`, `explore("studies/small")`: a run or a study, or its folder.
    - `explore(encode=encode, decode=decode, data="dsprites")`: functions of arrays, torch modules, ONNX files
      or `file.py:Name`. `encode` gets float32 images (n, c, h, w) in [0, 1] and returns codes (n, d), or a
      pair (mean, log_var); `decode` gets float32 codes (n, d) and returns images in [0, 1], or uint8. Without
      `decode`, the page shows the true image whose code is nearest.
    - `explore(model, data="dsprites")`: an object with the methods `encode` and `decode`, or an encoder; what
      `unweave.directions.fit(...)` returns has its own data.
    - `explore({"mine": model, "theirs": (encode, decode)}, data="dsprites")`: 2 to 8 models side by side;
      also folders of runs.
    - `explore(codes=codes, images=images, factors=factors)`: arrays of n rows; factors are optional.

    `data` is the name of a data set, a path, or what `unweave.data.from_arrays` returns. `scores` are shown
    in the heading, such as those of `unweave.evaluate`. `content` is how many of the first latents are
    content; the page then swaps content and style of images. `transform`, `output` and `device` are those of
    `unweave.evaluate`.

    With `wait`, the call returns when it is interrupted (Ctrl-C); otherwise at once. `close` of the returned
    `Explorer` ends it.
    """
    options = EncoderOptions(transform, output, None, device, cache=False)
    if codes is not None:
        _refuse(subject is not None or encode is not None or data is not None, "codes", "a model or data")
        chosen = _subject_of_codes(codes, images, factors, log_var, name, scores)
    elif isinstance(subject, Mapping):
        _refuse(encode is not None or decode is not None, "models by name", "encode or decode")
        chosen = _subject_of_models(subject, data, options)
    elif encode is None and _is_result(subject):
        chosen = subject_of_run(subject) if is_run(subject) else subject_at(Path(subject), device or "cpu")
    else:
        _refuse(subject is not None and encode is not None, "a model", "encode")
        encoder = subject if encode is None else encode
        chosen = _subject_of_model(encoder, decode, data, name, content, scores or {}, options)
    explorer = Explorer(chosen, host, port)
    sys.stdout.write(f"{chosen.path.name}: {explorer.url}\n")
    sys.stdout.flush()
    if open_page:
        webbrowser.open(explorer.url)
    if wait:
        explorer.wait()
    return explorer


class Explorer:
    """A page of the explorer that is served in the background, at `url`, until `close`."""

    def __init__(self, subject: Subject, host: str = "127.0.0.1", port: int = 0) -> None:
        self.server = ExploreServer(subject, host, port)
        self._thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self._thread.start()

    def __repr__(self) -> str:
        return f"Explorer({self.url!r})"

    @property
    def url(self) -> str:
        """The address of the page, with the token where one is needed."""
        return self.server.url

    def wait(self) -> None:
        """Wait until Ctrl-C, then close."""
        try:
            self._thread.join()
        except KeyboardInterrupt:
            self.close()

    def close(self) -> None:
        """Stop serving the page."""
        self.server.shutdown()
        self.server.server_close()
        self._thread.join()


def _is_result(subject: Any) -> bool:
    """Whether something is a run, or the path of a run, a study or a table, and no model."""
    if is_zoo_name(subject):
        return True
    if isinstance(subject, str | Path):
        return not is_reference(subject) and Path(subject).suffix.lower() not in (SUFFIX, ARRAYS)
    return is_run(subject)


def _refuse(twice: bool, first: str, second: str) -> None:
    if twice:
        raise UnweaveError(f"explore opens one thing at a time; got {first} and {second}. Leave one out.")


def _subject_of_codes(
    codes: Any, images: Any, factors: Any, log_var: Any, name: str, scores: Mapping[str, float] | None
) -> Subject:
    from unweave.explore.code_table import code_table

    if images is None:
        raise UnweaveError("codes need their images: explore(codes=codes, images=images).")
    model, data = code_table(codes, images, factors, log_var=log_var, name=name or "codes", scores=scores)
    return subject_of_model(model, data)


def _subject_of_models(models: Mapping[str, Any], data: Any, options: EncoderOptions) -> Subject:
    from unweave.explore.compared_models import comparison_of

    return comparison_of(models, data, options)


def _subject_of_model(
    encode: Any,
    decode: Any,
    data: Any,
    name: str,
    content: int,
    scores: Mapping[str, float],
    options: EncoderOptions,
) -> Subject:
    from unweave.explore.own_model import OwnParts

    if encode is None:
        raise UnweaveError(
            "name what to explore: a run or a study, a model (encode=..., decode=..., data=...), or arrays "
            "(codes=..., images=...)."
        )
    if isinstance(encode, str | Path) and Path(encode).suffix.lower() == ARRAYS:
        return subject_of_code_file(Path(encode))
    if isinstance(encode, ReadEncoder):
        data, name = encode.data if data is None else data, name or encode.name
    return subject_of_parts(OwnParts(encode, decode, name, content, scores, options), data)
