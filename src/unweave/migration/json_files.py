"""JSON files of other tools, which may be damaged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from unweave.errors import UnweaveError


def read_json_object(path: Path) -> dict[str, Any]:
    """The object in a JSON file."""
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise UnweaveError(f"{path} cannot be read as JSON: {error}.") from error
    if not isinstance(content, dict):
        raise UnweaveError(f"{path} must hold a JSON object; got {type(content).__name__}.")
    return content
