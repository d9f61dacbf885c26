"""The unweave command in the process of the tests: a process of its own takes seconds to import torch."""

import io
import sys
from contextlib import ExitStack, chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from subprocess import CompletedProcess
from unittest.mock import patch

from unweave.cli import main


def run_here(*arguments: object, cwd: Path | None = None) -> CompletedProcess[str]:
    """Run `unweave ...` up to its exit; its output goes to no terminal."""
    out, errors = io.StringIO(), io.StringIO()
    words = ["unweave", *map(str, arguments)]
    status: object = 0
    with ExitStack() as stack:
        for changed in (chdir(cwd or Path.cwd()), redirect_stdout(out), redirect_stderr(errors)):
            stack.enter_context(changed)
        stack.enter_context(patch.object(sys, "argv", words))
        try:
            main()
        except SystemExit as ended:
            status = ended.code or 0
    assert isinstance(status, int), status
    return CompletedProcess(words, status, out.getvalue(), errors.getvalue())
