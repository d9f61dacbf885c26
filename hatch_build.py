"""What a build adds to the package: links that work on the page of a package index, and the citation file.

The address of the repository is written in one place, `repository-code` in CITATION.cff. Without it, the
package has no links of its own and those of the README stay relative.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

CITATION_FILE = "CITATION.cff"


def repository_address(citation: str) -> str | None:
    """The address of the repository in the text of a citation file."""
    line = re.search(r"""(?m)^repository-code:\s*["']?(https://[^\s"']+?)/?["']?\s*$""", citation)
    return line[1] if line else None


def links(address: str, version: str) -> dict[str, str]:
    """The links of the package at one version."""
    files = f"{address}/blob/v{version}"
    return {
        "Repository": address,
        "Documentation": f"{files}/docs/index.md",
        "Changelog": f"{files}/CHANGELOG.md",
        "Issues": f"{address}/issues",
    }


def with_absolute_links(text: str, address: str, version: str) -> str:
    """A Markdown page whose relative links and pictures point into the repository at one version."""

    def folder(is_picture: object) -> str:
        return f"{address}/{'raw' if is_picture else 'blob'}/v{version}"

    relative = r"(?!https?:|mailto:|#|/)"
    text = re.sub(
        rf"(!?)(\[[^\]\[]*\])\({relative}([^)\s]+)\)",
        lambda link: f"{link[1]}{link[2]}({folder(link[1])}/{link[3]})",
        text,
    )
    return re.sub(
        rf'\b(src|srcset|href)="{relative}([^"]+)"',
        lambda link: f'{link[1]}="{folder(link[1] != "href")}/{link[2]}"',
        text,
    )


class PackageLinks(MetadataHookInterface):
    """Fills in the readme and the links of the package."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set `readme` and `urls`."""
        root = Path(self.root)
        text = (root / "README.md").read_text(encoding="utf-8")
        address = repository_address((root / CITATION_FILE).read_text(encoding="utf-8"))
        metadata["urls"] = links(address, metadata["version"]) if address else {}
        if address:
            text = with_absolute_links(text, address, metadata["version"])
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


class CitationInWheel(BuildHookInterface[Any]):
    """Puts the citation file into the wheel, where `unweave cite` reads it."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the file; an editable installation reads it from the repository."""
        if version != "editable":
            build_data["force_include"][str(Path(self.root, CITATION_FILE))] = f"unweave/{CITATION_FILE}"
