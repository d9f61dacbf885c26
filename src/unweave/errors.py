"""The one error that users meet."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class UnweaveError(ValueError):
    """A mistake that the user can correct.

    The message is one sentence: what was expected, what came, what to do. The command line prints it
    without a traceback and exits with status 2.
    """


class MissingFileError(UnweaveError):
    """A file that a data set needs is not where it was looked for."""


class ChecksumError(UnweaveError):
    """A file is there but is not, byte for byte, the one that was expected."""


class DiskFullError(UnweaveError):
    """There is no room left to write to; nothing that was written before is lost."""


class PluginChangedWarning(UserWarning):
    """The source of a plug-in is not the one that a run was trained with."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ' Did you mean "..."?' if one of the known words is close, else the list of them.

    >>> did_you_mean("dsprite", ["dsprites", "rooms"])
    'Did you mean "dsprites"?'
    >>> did_you_mean("mnist", ["dsprites", "rooms"])
    'Known: dsprites, rooms.'
    """
    known = list(known)
    close = difflib.get_close_matches(word, known, n=1)
    return f'Did you mean "{close[0]}"?' if close else f"Known: {', '.join(known)}."
