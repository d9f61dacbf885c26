"""`evaluate`: scores of codes, of any encoder, or of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from unweave.data import Collection, GroundTruth
from unweave.data.opening import open_data
from unweave.errors import UnweaveError
from unweave.evaluation.arrays import ArraySource, collection_source
from unweave.evaluation.choice import Wanted
from unweave.evaluation.effort import POINTS, REPRESENTATIONS, Effort
from unweave.evaluation.encoders import encoder_of, factor_encoder, frozen_encoder
from unweave.evaluation.frozen import EncoderOptions, FrozenEncoder
from unweave.evaluation.inputs import read_block_factors, read_blocks
from unweave.evaluation.likelihoods import Bits
from unweave.evaluation.meaningless import meaningless_numbers
from unweave.evaluation.measuring import measure_choice, measure_source
from unweave.evaluation.onnx_model import SUFFIX, OnnxModel
from unweave.evaluation.outputs import Output
from unweave.evaluation.parts import Part, check_part, part_of
from unweave.evaluation.read_encoder import ReadEncoder, ReadOut
from unweave.evaluation.scores import Scores
from unweave.evaluation.sources import (
    BlocksOfCodes,
    FactorsOfBlocks,
    GroundTruthSource,
    Source,
    columns_of_blocks,
)
from unweave.evaluation.standardising import Columns
from unweave.evaluation.tokens import flat_codes, tokens_of
from unweave.metrics.kinds import KindLike
from unweave.metrics.lookup import Asked
from unweave.metrics.swap_consistency import Judge
from unweave.metrics.table import METRICS
from unweave.progress import Progress
from unweave.streams import Stream
from unweave.zoo import run_path

__all__ = ["POINTS", "REPRESENTATIONS", "Effort", "evaluate", "measure_source", "source_of"]


def evaluate(
    subject: Any,
    factors: Any = None,
    *,
    data: str | Path | GroundTruth | Collection | None = None,
    on: Part = "training",
    metrics: Asked = "headline",
    representation: str = "mean",
    log_var: Any = None,
    test: tuple[Any, Any] | None = None,
    blocks: Mapping[str, Sequence[int]] | None = None,
    block_factors: Mapping[str, Sequence[str]] | None = None,
    kinds: Mapping[str, KindLike] | None = None,
    standardise: bool | None = None,
    points: tuple[int, int] = POINTS,
    repeats: int = 0,
    seed: int | Stream = 0,
    jobs: int | None = None,
    transform: Any = None,
    output: Output = None,
    batch: int | None = None,
    device: str | None = None,
    cache: bool = True,
    tell: Progress | None = None,
) -> Scores:
    """Scores of codes and factors, of an encoder on a data set, or of a run.

    - `evaluate(codes, factors)`: arrays, tensors or data frames (n, d) and (n, k). Factors are whole or
      real numbers, NaN where one is missing, or words, which are numbered in sorted order; columns of data
      frames keep their names. `kinds` states kinds that are not to be inferred, such as
      {"angle": ("circular", 360), "year": "continuous"}; see `unweave.metrics.kinds`. At most `points`
      rows, chosen at random, are used to train and to test on; a third is held out from what is fitted,
      unless `test=(codes, factors)` is given. Metrics that intervene look for rows that share a factor, or
      look points up if all combinations are there.
    - `evaluate(encode, data="dsprites")`: a function, a torch module, an ONNX file or a transformer of
      scikit-learn; see `unweave.evaluation.encoders.encoder_of` for how each is called.
    - `evaluate(run)`, `evaluate("runs/...")`: a run, on the data that it was trained on, or on `data`.
    - `evaluate(tokens, factors)`: codes (n, k, d) are k blocks of d numbers, and get the scores of blocks.

    `on` says which part of data with a condition is measured: "training" is what the data draws, "all" are
    all combinations of factors, and "held_out" is what was held out. Metrics that fit something then fit it
    on training data and test it on what was held out. Protocols state "on:all" or "on:held_out".

    `metrics` are names, or quick, headline, study or all, or your own: functions of (codes, factors), or
    records (`Metric`). Of a suite, what cannot be measured is left out and noted; a metric that is asked for
    by name is refused.
    `representation` is mean, or sampled: codes are then drawn from q(z|x). With `repeats`, each score is
    measured so many times more, on fresh points or on random halves of the given rows, and gets a 95%
    interval for its mean over fresh samples of the same size; its value stays the same.
    `blocks` names groups of codes, such as {"content": [0, 1], "style": [2, 3]}, for metrics that compare
    them, and `block_factors` the factors that a block should hold, such as {"content": ["shape"]}; the one
    block that is left out gets all others. Runs of methods that split their codes know both.

    With `standardise`, metrics that depend on the scale of codes get codes of mean 0 and deviation 1, and
    their protocols say so. By default this is done for runs of methods without a prior, such as `ae`, whose
    codes have no scale. Use it for other codes of this kind.

    For networks and functions, `transform` prepares images in [0, 1]: a `Preprocessing` (size, channels,
    mean, std), an image processor of transformers, or a function of tensors (n, c, h, w); without it, what
    the model says about its images is done. `output` chooses what of the result, or which layer, is the
    codes: a name, a number or a function. `batch` images are encoded at once, on `device`. Codes of networks
    are kept in the cache folder, unless `cache` is false, so that a further metric encodes nothing.

    >>> import numpy as np
    >>> factors = np.stack(np.meshgrid(*map(np.arange, (4, 5, 6)), indexing="ij"), axis=-1).reshape(-1, 3)
    >>> scores = evaluate(factors * 0.5, factors, metrics="mig, factor_vae_score")
    >>> scores["mig"], scores["factor_vae_score.eval_accuracy"]
    (1.0, 1.0)
    """
    effort, wanted = Effort(points, repeats, seed, jobs), Wanted.of(metrics)
    options = EncoderOptions(transform, output, batch, device, cache)
    opened = open_source(
        open_subject(subject, device),
        effort,
        options,
        factors=factors,
        data=data,
        on=on,
        log_var=log_var,
        test=test,
        blocks=blocks,
        block_factors=block_factors,
        kinds=kinds,
        standardise=standardise,
        lenient=wanted.lenient,
        tell=tell,
    )
    choice = replace(wanted.possible(opened.source), approximate=True)
    scores, left_out = measure_choice(opened.source, choice, representation, effort, opened.name, tell)
    notes = (*left_out, *opened.notes, *scores.notes)
    if not scores:
        raise nothing_measured(notes)
    return replace(scores, notes=notes)


class OpenedSource(NamedTuple):
    """What is measured: its name, what can be asked about it, and the network that encodes, if any."""

    name: str
    source: Source
    encoder: FrozenEncoder | ReadEncoder[ReadOut] | None
    code_notes: tuple[str, ...] = ()  # which codes of a run are measured

    @property
    def notes(self) -> tuple[str, ...]:
        """How images were prepared, known once some were encoded; and how directions were fitted."""
        return self.encoder.notes if self.encoder else self.code_notes


def open_source(
    subject: Any, effort: Effort, options: EncoderOptions, *, factors: Any = None, **given: Any
) -> OpenedSource:
    """The source of a subject as `source_of` makes it; a network is made an encoder first."""
    encoder = frozen_encoder(subject, options) if factors is None or options.given else None
    source = source_of(encoder or subject, effort, factors=factors, **given)
    reading = subject if isinstance(subject, ReadEncoder) else encoder
    return OpenedSource(_name_of(subject), source, reading, getattr(subject, "code_notes", ()))


def nothing_measured(notes: Sequence[str]) -> UnweaveError:
    """The error where nothing of a suite can be measured."""
    without = [metric.name for metric in METRICS if not metric.inputs.needs_factors]
    return UnweaveError(
        f"nothing that was asked for can be measured. {' '.join(notes)} Metrics that need no factors: "
        f"{', '.join(without)}."
    )


def source_of(
    subject: Any,
    effort: Effort,
    *,
    factors: Any = None,
    data: str | Path | GroundTruth | Collection | None = None,
    on: Part = "training",
    log_var: Any = None,
    test: tuple[Any, Any] | None = None,
    blocks: Mapping[str, Sequence[int]] | None = None,
    block_factors: Mapping[str, Sequence[str]] | None = None,
    kinds: Mapping[str, KindLike] | None = None,
    standardise: bool | None = None,
    lenient: bool = False,
    tell: Progress | None = None,
) -> Source:
    """What can be asked about a subject.

    If `lenient`, factors that no metric can measure are left out and noted; otherwise they are refused.
    """
    is_run = hasattr(subject, "spec")
    check_part(on)
    if factors is not None:
        _refuse_two_subjects(subject, data, is_run)
        _refuse_part(on, "codes")
        source: Source = _array_source(subject, factors, log_var, test, lenient, kinds)
    else:
        chosen = _data_of(subject, data, log_var is not None or test is not None)
        source = _encoder_source(subject, chosen, effort, lenient, tell, kinds, on)
    source.discrete = is_run and subject.spec.method.discrete_codes
    source.bits = _bits_of_run(subject) if is_run else None
    source.meaningless = meaningless_numbers(subject) if is_run else {}
    source.unscaled = _unscaled_codes(subject, is_run, standardise)
    own_blocks = is_run and blocks is None
    read = read_blocks if source.tokens is None else source.tokens.blocks
    source.blocks = _blocks_of_run(subject) if own_blocks else read(blocks)
    if own_blocks and block_factors is None:
        source.block_factors = _block_factors_of_run(subject, source)
    else:
        source.block_factors = read_block_factors(block_factors, source.blocks, source.names)
    columns_of_blocks(source)  # refuses factors that two blocks should hold
    return source


def _array_source(
    codes: Any,
    factors: Any,
    log_var: Any,
    test: tuple[Any, Any] | None,
    lenient: bool,
    kinds: Mapping[str, KindLike] | None,
) -> ArraySource:
    tokens = tokens_of(codes)
    if tokens is not None:
        codes, log_var, test = flat_codes(tokens, codes, log_var, test)
    source = ArraySource.of(codes, factors, log_var, test, lenient=lenient, kinds=kinds)
    if tokens is not None:
        source.tokens, source.code_names = tokens, tokens.names
    return source


def _encoder_source(
    subject: Any,
    data: str | Path | GroundTruth | Collection,
    effort: Effort,
    lenient: bool,
    tell: Progress | None,
    kinds: Mapping[str, KindLike] | None,
    on: Part,
) -> Source:
    encode = encoder_of(subject)
    opened = open_data(data) if isinstance(data, str | Path) else data
    losses = subject.losses if hasattr(subject, "spec") else None
    if isinstance(opened, Collection):
        _refuse_part(on, opened.name)
        most = sum(effort.points)
        rows = collection_source(encode, opened, most, effort.stream, losses, lenient, kinds)
        return _read_along(subject, rows)
    if kinds is not None:
        raise UnweaveError(
            "`kinds` belong to factors of your own; the factors of a data set are whole numbers. Pass kinds "
            "with evaluate(codes, factors, kinds=...)."
        )
    if not isinstance(opened, GroundTruth):
        raise UnweaveError(
            "data must be the name of a data set, the path of your own, or what "
            f"unweave.data.from_arrays(images, factors) returns; got {type(opened).__name__}."
        )
    fitted = opened if on == "held_out" else None
    source = GroundTruthSource(encode, part_of(opened, on), losses, tell=tell, part=on, fitted=fitted)
    source.encode_factors = factor_encoder(subject, opened)
    if hasattr(subject, "spec"):
        source.judge = partial(_judge_of_run, subject, source)
    return _read_along(subject, source)


def _read_along(subject: Any, source: ArraySource | GroundTruthSource) -> Source:
    """The source of an encoder; its protocols state the directions that codes were read along, if any."""
    if isinstance(subject, ReadEncoder):
        source.readout, source.code_names = subject.directions.word, subject.directions.code_names
    return source


def _refuse_part(on: Part, name: str) -> None:
    if on != "training":
        raise UnweaveError(
            f'on="{on}" is for data with a full grid of factors, such as dsprites:hold(shape=2); {name} has '
            "none. Leave `on` out."
        )


def _unscaled_codes(subject: Any, is_run: bool, standardise: bool | None) -> Columns | None:
    """The codes to standardise: all or none if the user says so; of a run, those that have no prior."""
    if standardise is None and isinstance(subject, ReadEncoder):
        return slice(None)  # no prior sets the scale of directions
    if standardise is not None or not is_run:
        return slice(None) if standardise else None
    return subject.spec.method.codes_without_prior(subject.spec.latents) or None


def _blocks_of_run(run: Any) -> BlocksOfCodes:
    """Content and style, if the method of the run separates them, or the resolutions of its codes."""
    blocks = run.spec.method.trained_blocks(run.networks, run.spec.latents)
    return {name: tuple(codes) for name, codes in blocks.items()}


def _block_factors_of_run(run: Any, source: Source) -> FactorsOfBlocks:
    """The factors that content should hold, if the method of the run states them and the data have them."""
    # Here, because torch takes seconds to import; a run has imported it already.
    from unweave.runs.views import content_factors

    if not isinstance(source, GroundTruthSource):
        return {}
    try:
        content = content_factors(run.spec, source.truth)
    except UnweaveError:  # these data lack a factor that the method names
        return {}
    return {"content": content} if content and set(content) <= set(source.names) else {}


def _bits_of_run(run: Any) -> Bits | None:
    """Bits per dimension of images, if the run is a flow."""
    from unweave.evaluation.flow_latents import FlowLatents, is_flow

    return FlowLatents(run).bits_per_dimension if is_flow(run) else None


def _judge_of_run(run: Any, source: GroundTruthSource) -> Judge:
    """A judge of the images that a run decodes; it is trained when it is asked for the first time."""
    from unweave.evaluation.judges import DecodedJudge, judge_of

    return DecodedJudge(run.decode, judge_of(source.truth, progress=source.tell), source.varied)


def _data_of(
    subject: Any, data: str | Path | GroundTruth | Collection | None, has_arrays: bool
) -> str | Path | GroundTruth | Collection:
    """The data to encode: what is given, or the encoder's own; an error if there is neither."""
    if has_arrays:
        raise UnweaveError(
            "log_var and test belong to codes: evaluate(codes, factors, test=...). An encoder gives its log "
            "variances itself, and its test points are drawn from the data."
        )
    if data is None and (hasattr(subject, "spec") or isinstance(subject, ReadEncoder)):
        data = subject.data
    if data is None and hasattr(subject, "__len__") and not callable(subject):
        raise UnweaveError(
            "codes need their factors: evaluate(codes, factors). Metrics that need none are functions of "
            "codes, such as unweave.metrics.total_correlation(codes)."
        )
    encoder_of(subject)
    if data is None:
        raise UnweaveError(
            "an encoder needs data to encode: evaluate(encode, data='dsprites'). Codes need their "
            "factors: evaluate(codes, factors)."
        )
    return data


def _refuse_two_subjects(subject: Any, data: Any, is_run: bool) -> None:
    if data is not None:
        raise UnweaveError(
            "give either factors or data: evaluate(codes, factors) measures the rows that are given, and "
            "evaluate(encode, data=...) encodes the images of a data set."
        )
    if is_run or callable(subject):
        raise UnweaveError(
            "factors belong to codes: evaluate(codes, factors). A run, a module or a function is measured on "
            f"a data set: evaluate(encode, data=...). Got factors with a {type(subject).__name__}."
        )


def open_subject(subject: Any, device: str | None) -> Any:
    """The run in a folder, or the network in an ONNX file; anything but a path is returned as it is."""
    if not isinstance(subject, str | Path):
        return subject
    path = run_path(subject)
    if path.suffix.lower() == SUFFIX:
        return OnnxModel(path, device)
    if not path.is_dir():
        raise UnweaveError(
            f"a text or path must be the folder of a run or an ONNX file; {path} is "
            f"{'another file' if path.exists() else 'not there'}. Load codes from a file first: "
            "evaluate(codes, factors)."
        )
    # Here, because torch takes seconds to import and codes need none of it.
    from unweave.runs.run import load

    return load(path)


def _name_of(subject: Any) -> str:
    if hasattr(subject, "spec"):
        return str(subject.path)
    if isinstance(subject, OnnxModel):
        return str(subject.path)
    if isinstance(subject, ReadEncoder):
        return subject.name
    if callable(subject) or hasattr(subject, "transform"):
        return type(subject).__name__
    return "codes"
