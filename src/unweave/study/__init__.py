"""Studies: many runs as one piece of work, killed and resumed at will, ending in one table."""

from unweave.study.folder import StudyFolder
from unweave.study.presets import PRESETS, preset_named
from unweave.study.spec import StudySpec, read_study

__all__ = ["PRESETS", "StudyFolder", "StudySpec", "preset_named", "read_study"]
