"""Headless Chromium, driven from a test through its debugging pipe: nothing to install, no port to choose.

`with Browser(tmp_path) as page: page.open(url); page.wait_for("..."); page.evaluate("...")`. `new_page` opens
a page that knows nothing of the last one. Chromium speaks the DevTools protocol, JSON messages that end in a
zero byte, on its file descriptors 3 (in) and 4 (out).
"""

import base64
import fcntl
import json
import os
import shutil
import subprocess
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import pytest

PATIENCE = 60.0  # seconds; the machines of a test run are busy
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-extensions",
    "--no-first-run",
    "--remote-debugging-pipe",
)


def chromium() -> str:
    """Where the browser is; a test that needs it is skipped where there is none."""
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None or shutil.which("bash") is None:
        pytest.skip("there is no Chromium on this machine")
    return found


class Browser:
    """A browser with one page; `errors` has what the page wrote to its console as errors or threw."""

    def __init__(self, tmp: Path, width: int = 1280, height: int = 900) -> None:
        self.errors: list[str] = []
        self.requests: list[str] = []  # the addresses that the page asked for
        self._answers: dict[int, dict[str, Any]] = {}
        self._came = threading.Condition()
        self._last = 0
        self._session: str | None = None
        self._target: str | None = None
        self._size = (width, height)
        self._ended = False
        # High numbers, so that giving them the numbers 3 and 4 in the child overwrites neither.
        to_read, self._to = _pipe()
        self._from, to_write = _pipe()
        command = [
            chromium(),
            *FLAGS,
            f"--user-data-dir={tmp / 'chromium'}",
            f"--window-size={width},{height}",
        ]
        self._process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{to_read} 4>&{to_write}', "bash", *command, "about:blank"],
            pass_fds=(to_read, to_write),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(to_write)
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()
        self.new_page()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def new_page(self) -> None:
        """Close the page and open an empty one, with storage, errors and requests of its own.

        The page is a new tab. A browser context for each page would need a window, which takes half a second.
        """
        if self._session:
            self._forget()
        self._session = None
        closed, self._target = self._target, self.send("Target.createTarget", url="about:blank")["targetId"]
        if closed:
            self.send("Target.closeTarget", targetId=closed)
        self._session = self.send("Target.attachToTarget", targetId=self._target, flatten=True)["sessionId"]
        self.errors, self.requests = [], []
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.send(f"{domain}.enable")
        self.resize(*self._size)

    def _forget(self) -> None:
        """Delete the cookies, the cache, and what pages of all addresses that were asked for have stored."""
        self.send("Network.clearBrowserCookies")
        self.send("Network.clearBrowserCache")
        parts = [urlsplit(address) for address in self.requests]
        for origin in {f"{part.scheme}://{part.netloc}" for part in parts if part.scheme in ("http", "file")}:
            self.send("Storage.clearDataForOrigin", origin=origin, storageTypes="all")

    def open(self, url: str) -> None:
        """Go to an address, and wait until the page has loaded."""
        self.send("Page.navigate", url="about:blank")  # so that a change of the hash alone loads again
        self.wait_for('location.href === "about:blank"')
        self.send("Page.navigate", url=url)
        self.wait_for('location.href !== "about:blank" && document.readyState === "complete"')

    def evaluate(self, script: str) -> Any:
        """The value of a JavaScript expression in the page; a promise is waited for."""
        answer = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(_told(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def wait_for(self, script: str, seconds: float = PATIENCE) -> Any:
        """Wait until an expression is true; returns its value."""
        end = time.monotonic() + seconds
        while True:
            try:
                # An element has no value that could be sent; that it is there is enough.
                value = self.evaluate(f"Promise.resolve({script}).then((v) => v instanceof Node || v)")
            except RuntimeError as error:  # the page may not be there yet
                value = None
                last = str(error)
            else:
                last = repr(value)
            if value:
                return value
            if time.monotonic() > end:
                raise TimeoutError(f"never true: {script} (last {last}); errors of the page: {self.errors}")
            time.sleep(0.02)

    def press(self, key: str) -> None:
        """Press and release a key, such as ArrowRight or Enter, in the element that has the focus."""
        arrows = {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
        codes = {**arrows, "Enter": 13, " ": 32, "Tab": 9, "End": 35, "Home": 36, "Escape": 27}
        code = codes.get(key, ord(key[0].upper()))
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
        for kind in ("keyDown", "keyUp"):
            given: dict[str, Any] = {"type": kind, "key": key, "windowsVirtualKeyCode": code}
            self.send(
                "Input.dispatchKeyEvent", **given | ({"text": text} if text and kind == "keyDown" else {})
            )

    def move_mouse(self, x: float, y: float) -> None:
        """Move the pointer to a place in the window."""
        self.send("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def drag(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        """Press the mouse at one place and release it at another; the same place twice is a click."""
        self.move_mouse(*start)
        for kind, (x, y) in (("mousePressed", start), ("mouseMoved", end), ("mouseReleased", end)):
            self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def resize(self, width: int, height: int) -> None:
        """Give the page another size."""
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def shorten_waits(self) -> None:
        """Let timers of a second or more end ten times as soon in what this page opens from now on."""
        short = "(wait, ms, ...rest) => real(wait, ms < 1000 ? ms : ms / 10, ...rest)"
        script = f"window.setTimeout = ((real) => {short})(window.setTimeout);"
        self.send("Page.addScriptToEvaluateOnNewDocument", source=script)

    def prefer(self, scheme: str) -> None:
        """Prefer light or dark."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.send("Emulation.setEmulatedMedia", features=features)

    def offline(self, off: bool = True) -> None:
        """Take the network away, or give it back."""
        self.send(
            "Network.emulateNetworkConditions",
            offline=off,
            latency=0,
            downloadThroughput=-1,
            uploadThroughput=-1,
        )

    def downloads(self, folder: Path) -> None:
        """Let the page save files, into this folder."""
        self.send("Page.setDownloadBehavior", behavior="allow", downloadPath=str(folder))

    def screenshot(self, path: Path, whole: bool = False) -> None:
        """Write what is seen, or the whole page, as a PNG file."""
        answer = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(answer["data"]))

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command of the DevTools protocol, and wait for what it answers."""
        self._last += 1
        number = self._last
        message: dict[str, Any] = {"id": number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        with self._came:
            if not self._came.wait_for(lambda: number in self._answers or self._ended, PATIENCE):
                raise TimeoutError(f"Chromium does not answer {method}")
            if number not in self._answers:
                raise RuntimeError(f"Chromium ended before it answered {method}")
            answer = self._answers.pop(number)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        result: dict[str, Any] = answer["result"]
        return result

    def close(self) -> None:
        """End the browser."""
        os.close(self._to)  # Chromium ends when its pipe does
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._listener.join(10)
        os.close(self._from)

    def _listen(self) -> None:
        rest = b""
        while part := os.read(self._from, 1 << 16):
            *messages, rest = (rest + part).split(b"\0")
            for text in messages:
                self._receive(json.loads(text))
        with self._came:
            self._ended = True
            self._came.notify_all()

    def _receive(self, message: dict[str, Any]) -> None:
        if "id" in message:
            with self._came:
                self._answers[message["id"]] = message
                self._came.notify_all()
            return
        if message.get("sessionId") != self._session:
            return  # of a page that was closed
        method, params = message["method"], message["params"]
        if method == "Runtime.exceptionThrown":
            self.errors.append(_told(params["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and params["type"] == "error":
            self.errors.append(" ".join(str(arg.get("value", arg)) for arg in params["args"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.errors.append(f"{params['entry']['text']} {params['entry'].get('url', '')}")
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])


def _pipe() -> tuple[int, int]:
    ends = os.pipe()
    high = tuple(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 20) for end in ends)
    for end in ends:
        os.close(end)
    return high[0], high[1]


def _told(details: dict[str, Any]) -> str:
    exception = details.get("exception", {})
    return str(exception.get("description") or exception.get("value") or details.get("text"))
