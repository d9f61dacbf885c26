"""What the tests of the terminal share."""

from collections.abc import Iterator

import pytest

from terminal.session import CommandServer


@pytest.fixture(scope="session")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandServer]:
    """The process that starts commands; one for all tests, because it takes seconds to start.

    Commands share a cache folder too, so that nothing is compiled or rendered twice.
    """
    server = CommandServer(tmp_path_factory.mktemp("cache"))
    yield server
    server.close()
