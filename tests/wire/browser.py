"""Chromium without a window, driven through a pipe (https://chromedevtools.github.io/devtools-protocol/)."""

import base64
import json
import os
import select
import subprocess
import time

from gatling import TIMEOUT, Root

COMMAND = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-proxy-server",
           "--remote-debugging-pipe"]  # fmt: skip
COMMANDS_AT, EVENTS_AT = 3, 4  # the descriptors that the browser expects


class Browser:
    """One page. messages holds the output on its console, and what it could not load. profile: a directory that stays, for a
    browser that is started again with what it has kept. flags: more of its command line; while it ignores all errors of
    certificates it keeps nothing of what comes over HTTPS."""

    def __init__(self, profile=None, flags=("--ignore-certificate-errors",)):
        self.profile = None if profile else Root({})
        commands, self.commands = os.pipe()
        self.events, events = os.pipe()
        # above the numbers that they will get
        commands, events = (os.dup(os.dup(os.dup(fd))) for fd in (commands, events))

        def arrange():
            os.dup2(commands, COMMANDS_AT)
            os.dup2(events, EVENTS_AT)

        self.process = subprocess.Popen([*COMMAND, *flags, f"--user-data-dir={profile or self.profile.path}"], stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, close_fds=False, preexec_fn=arrange)  # fmt: skip
        os.close(commands)
        os.close(events)
        self.buffer, self.last, self.session, self.messages, self.loaded = b"", 0, None, [], 0
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.commands)
        os.close(self.events)
        self.process.kill()
        self.process.wait()
        if self.profile:
            self.profile.remove()

    def _next(self):
        """Returns the browser's next message."""
        deadline = time.monotonic() + 3 * TIMEOUT
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.events], [], [], max(0, deadline - time.monotonic()))
            assert ready, "the browser says nothing"
            data = os.read(self.events, 1 << 20)
            assert data, "the browser has ended"
            self.buffer += data
        line, self.buffer = self.buffer.split(b"\0", 1)
        message = json.loads(line)
        if message.get("method") in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"):
            self.messages.append(message["params"])
        self.loaded += message.get("method") == "Page.loadEventFired"
        return message

    def call(self, method, **parameters):
        self.last += 1
        command = {"id": self.last, "method": method, "params": parameters}
        if self.session:
            command["sessionId"] = self.session
        data = json.dumps(command).encode() + b"\0"
        assert os.write(self.commands, data) == len(data)
        while True:
            message = self._next()
            if message.get("id") == self.last:
                assert "error" not in message, message
                return message["result"]

    def _until_loaded(self, before):
        while self.loaded == before:
            self._next()

    def go(self, url):
        before = self.loaded
        self.call("Page.navigate", url=url)
        self._until_loaded(before)

    def reload(self):
        """As the button does: the page is asked for again, other files only if they are not fresh."""
        before = self.loaded
        self.call("Page.reload")
        self._until_loaded(before)

    def run(self, expression):
        """Returns the value of a script; waits for a promise."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def wait(self, expression):
        """Waits until a script's value is true."""
        deadline = time.monotonic() + TIMEOUT
        while not self.run(f"new Promise(done => {{ const look = n => ({expression}) || !n ? done(n) : setTimeout(look, 10, n - 1); look(100); }})"):
            assert time.monotonic() < deadline, (expression, self.run("[location.href, document.body.textContent]"), self.messages)

    def follow(self, selector):
        """Clicks on a link."""
        before = self.loaded
        self.run(f"document.querySelector({json.dumps(selector)}).click()")
        self._until_loaded(before)

    def press(self, key, code):
        for kind in ("keyDown", "keyUp"):
            text = {"text": "\r"} if key == "Enter" and kind == "keyDown" else {}
            self.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **text)

    def resize(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=True)

    def screenshot(self, path):
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))
