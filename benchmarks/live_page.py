"""The page of `benchmarks/live.py`: a server of the folder, and a client that asks like a browser.

    python benchmarks/live_page.py serve FOLDER
    python benchmarks/live_page.py ask URL START SECONDS PAIRS

Both are processes of their own, so that they take no time of the Python process that trains. They need no
command line package.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from urllib.request import urlopen

ASK_EVERY = 2.0  # seconds, as the page does
CURVES = 8  # runs whose curves are shown


def watched_segments(pairs: int) -> list[bool]:
    """Whether each of 2 x pairs segments is watched: one of each pair, in random but fixed order."""
    order = random.Random(0)  # noqa: S311  no secret
    return [segment for _ in range(pairs) for segment in order.choice([(True, False), (False, True)])]


def serve(folder: Path) -> None:
    """Print the address of the page of a folder, and serve it until the process ends."""
    from unweave.explore.server import ExploreServer
    from unweave.explore.subject import subject_at

    with ExploreServer(subject_at(folder, wait=True)) as server:
        print(server.url, flush=True)
        server.serve_forever()


class Client:
    """What the page knows: the version of the last answer, and how far each shown log was read."""

    def __init__(self, url: str) -> None:
        self.url, self.version, self.cursors = url, 0, dict[str, str]()

    def ask(self) -> float:
        """Ask what changed; return the seconds until the answer."""
        shown = ",".join(f"{key}~{cursor}" for key, cursor in self.cursors.items())
        start = time.monotonic()
        with urlopen(f"{self.url}api/live?since={self.version}&shown={shown}", timeout=60) as answer:  # noqa: S310
            record = json.load(answer)
        seconds = time.monotonic() - start
        self.version = record["version"]
        keys = list(self.cursors) or [run["key"] for run in record["runs"][:CURVES]]
        self.cursors = {key: record["shown"].get(key, {}).get("cursor", "") for key in keys}
        return seconds


def ask(url: str, start: float, seconds: float, pairs: int) -> list[float]:
    """Ask every two seconds in the watched segments; return the seconds that each answer took."""
    client, delays = Client(url), list[float]()
    for number, is_watched in enumerate(watched_segments(pairs)):
        begins, asked = start + number * seconds, 0
        while is_watched and (asked + 0.5) * ASK_EVERY < seconds:
            time.sleep(max(0.0, begins + (asked + 0.5) * ASK_EVERY - time.monotonic()))
            delays.append(client.ask())
            asked += 1
    return delays


def main(words: Sequence[str]) -> None:
    """Serve, or ask and print the times of all answers as JSON."""
    if words[0] == "serve":
        serve(Path(words[1]))
    else:
        url, start, seconds, pairs = words[1:]
        print(json.dumps(ask(url, float(start), float(seconds), int(pairs))))


if __name__ == "__main__":
    main(sys.argv[1:])
