"""`unweave directions`: directions in the codes of a run or network, written to a file."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from unweave.commands.command_app import check_device, check_output
from unweave.commands.console import console, progress, say_next
from unweave.errors import UnweaveError
from unweave.zoo import run_path

if TYPE_CHECKING:
    from unweave.directions import Directions

SUFFIX = ".safetensors"
# What the numbers of a table are, by how directions were found.
EXPLAINED = {"sefa": "share of the squared weights", "linear": "R2, leaving one image out"}


def directions(
    encoder: Path,
    /,
    *,
    by: Literal["pca", "ica", "linear", "sefa", "sparse"] = "pca",
    k: Annotated[int | None, Parameter(name=["--k", "-k"])] = None,
    images: int = 10_000,
    seed: int = 0,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    device: str = "auto",
    data: str | None = None,
    data_root: Path | None = None,
) -> None:
    """Find directions in the codes of a trained run or network, and write them for evaluate and explore.

    Parameters
    ----------
    encoder
        Folder of a run, a trained model (zoo:NAME), or a network in an .onnx file, which needs --data.
    by
        Principal components; independent components; a linear read-out of the known factors; SeFa, from the
        first weights of the decoder; or the features of a sparse autoencoder.
    k
        Number of directions. Default: as many as there are codes. A linear read-out has one for each factor.
    images
        Number of images whose codes the directions are fitted to.
    seed
        Seed of the images and of everything else that is random.
    output
        The file to write (.safetensors). Default: pca.safetensors and so on in the current folder.
    device
        Device that encodes: auto, cpu, cuda or cuda:1.
    data
        The data set of an .onnx file: a name, or the path of your own. For a run: the new path of your own
        data, if it has moved since the run was trained.
    data_root
        Folder of the official files of data sets.
    """
    target = Path(f"{by}{SUFFIX}") if output is None else output
    check_device(device)
    check_output(target, (SUFFIX,))
    path = run_path(encoder)
    if not path.exists():
        raise UnweaveError(f"there is no {path}. Give the folder of a run, or a network model.onnx.")
    # Here, because torch takes seconds to import.
    from unweave.directions import fit
    from unweave.directions.fitting import open_path

    with progress(f"finding directions in {path.name}") as tell:
        subject, opened = open_path(path, data=data, data_root=data_root, device=device)
        reading = fit(subject, by, k, data=opened, images=images, seed=seed, tell=tell)
    show(reading.directions)
    reading.directions.save(target)
    print(f"-> {target}")
    name = shlex.quote(str(target))
    say_next([("measure them", f"unweave evaluate {name}"), ("move along them", f"unweave explore {name}")])


def show(found: Directions) -> None:
    """Print how much each direction explains."""
    from rich.markup import escape

    from unweave.commands.listing import Listing

    screen = console()
    table = Listing("direction", EXPLAINED.get(found.fitted.by, "share of the variance"))
    for name, share in zip(found.names or range(len(found)), found.explained, strict=True):
        table.add_row(escape(str(name)), f"{share:.4f}")
    screen.print(table)
    screen.print(escape(found.note), style="dim")
