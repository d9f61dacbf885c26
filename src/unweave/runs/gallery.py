"""The pictures of a trained run: reconstructions, and what each dimension of its code does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from unweave.display.notebook import heading, picture
from unweave.display.pictures import labelled_sheet, moving_sheet, save
from unweave.layout import (
    PICTURES_FOLDER,
    RECONSTRUCTIONS_FILE,
    SWAPS_FILE,
    TRAVERSALS_ANIMATION_FILE,
    TRAVERSALS_FILE,
)
from unweave.runs.run import Run, load
from unweave.runs.views import (
    can_swap,
    example_images,
    reconstructions,
    swap_title,
    swaps,
    title,
    traversal_title,
    traversals,
)

LAST = TRAVERSALS_ANIMATION_FILE  # the picture that is drawn last: where it is, the others are


@dataclass(frozen=True, eq=False)
class Pictures(Mapping[str, Path]):
    """The picture files of a run by name: pictures["traversals.png"]. A notebook shows the still ones."""

    folder: Path
    names: tuple[str, ...]

    def __getitem__(self, name: str) -> Path:
        if name not in self.names:
            raise KeyError(f"there is no picture {name!r}; there are {', '.join(self.names)}")
        return self.folder / name

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def image(self, name: str) -> Image.Image:
        """One of the pictures as a Pillow image."""
        with Image.open(self[name]) as opened:
            opened.load()
            return opened

    def _repr_html_(self) -> str:
        shown = [name for name in self.names if name.endswith(".png")]
        parts = [heading(name) + picture(self[name].read_bytes(), name) for name in shown]
        return "".join(parts)


def draw(run: Run | str | Path) -> Pictures:
    """Draw the pictures of a run, given as an object or by its folder, into its folder."""
    paths = draw_pictures(run if isinstance(run, Run) else load(run))
    return Pictures(paths[0].parent, tuple(path.name for path in paths))


def draw_missing_pictures(run: Run) -> None:
    """Draw the pictures of a run, unless it has them."""
    if not (run.path / PICTURES_FOLDER / LAST).exists():
        draw_pictures(run)


def draw_pictures(run: Run) -> list[Path]:
    """Write reconstructions.png, traversals.png and traversals.gif into the run's folder.

    And swaps.png, if the method splits its code into content and style, or into levels.
    """
    images = example_images(run)
    folder = run.path / PICTURES_FOLDER
    save(labelled_sheet(title(run), reconstructions(run, images)), folder / RECONSTRUCTIONS_FILE)
    if can_swap(run):
        save(labelled_sheet(swap_title(run), swaps(run, images)), folder / SWAPS_FILE)
    rows = traversals(run, images)
    save(labelled_sheet(traversal_title(run), rows), folder / TRAVERSALS_FILE)
    save(moving_sheet(traversal_title(run), rows), folder / LAST)
    return sorted(folder.iterdir())
