"""`unweave downstream`: how well factors are predicted from codes, against the number of labels."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from unweave.commands.command_app import PICTURE, check_device, check_output
from unweave.commands.console import console, progress
from unweave.errors import UnweaveError
from unweave.zoo import run_path


def downstream_run(
    run: Path,
    /,
    *,
    split: str | None = None,
    sizes: str = "10,100,1000",
    repeats: int = 5,
    test: int = 5_000,
    predictor: Literal["trees", "logistic"] = "trees",
    model: Literal["kernel", "linear", "mlp"] = "kernel",
    seed: int = 0,
    csv: Path | None = None,
    plot: Path | None = None,
    device: str = "auto",
    data: str | None = None,
    data_root: Path | None = None,
) -> None:
    """Predict factors from the codes of a run with few and many labels, with 95% intervals.

    Parameters
    ----------
    run
        Folder of a run, or a trained model (zoo:NAME).
    split
        Fit predictors without these combinations of factors, and test on both parts: "hold(x>=16)".
    sizes
        Numbers of labelled images, separated by commas.
    repeats
        Number of sets of labelled images, over which means and intervals are taken.
    test
        Number of test images.
    predictor
        Classifier for the accuracy: boosted trees, or logistic regression.
    model
        Regression for R2 and angular errors; kernel uses at most the first 2,000 labelled images.
    seed
        Seed of the images and of everything else that is random.
    csv
        Also write the numbers to this file.
    plot
        Also draw the curves into this file.
    device
        Device that encodes: auto, cpu, cuda or cuda:1.
    data
        The new path of your own data, if it has moved since the run was trained.
    data_root
        Folder of the official files of data sets.
    """
    from unweave.evaluation.downstream import downstream
    from unweave.runs.run import load

    numbers = [word.strip() for word in sizes.split(",")]
    if not all(word.isdecimal() for word in numbers):
        raise UnweaveError(f"--sizes takes whole numbers, as in 10,100,1000; got {sizes}.")
    check_device(device)
    check_output(csv)
    check_output(plot, PICTURE)
    path = run_path(run)
    if not path.is_dir():
        raise UnweaveError(f"there is no folder {path}. Give the folder of a run.")
    with progress(f"predicting factors from codes of {path.name}") as tell:
        curves = downstream(
            load(path, device, data_root, data),
            split=split,
            sizes=[int(word) for word in numbers],
            repeats=repeats,
            test=test,
            predictor=predictor,
            model=model,
            seed=seed,
            tell=tell,
        )
    print(curves)
    sets = f"means over {repeats} sets of labelled images with 95% intervals"
    if repeats == 1:
        sets = "one set of labelled images, so no intervals"
    console().print(f"{sets}, tested on {test:,} other images", style="dim", highlight=False)
    if csv is not None:
        curves.frame().to_csv(csv, index=False)
        print(f"-> {csv}")
    if plot is not None:
        curves.plot(plot)
        print(f"-> {plot}")
