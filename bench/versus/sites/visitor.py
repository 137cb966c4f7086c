"""A visitor: Chromium with a profile that stays when it is started again. Says what each response took on the wire."""

import http.client
import json
import os
import select
import ssl
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[3] / "tests" / "wire"))

from browser import Browser

QUIET_S = 1  # without a request under way: Chromium and scripts use idle time for prefetches
VISIT_S = 60
END_S = 20


class Response:
    """What came for a request: octets is what the browser counted, of its head and its body; whole is the length of the body,
    decoded; kept says that it came from the browser's cache, without a request."""

    def __init__(self, url):
        self.url, self.status, self.headers, self.request, self.mime = url, 0, {}, {}, ""
        self.octets = self.whole = 0
        self.kept = self.failed = False

    @property
    def coding(self):
        return self.headers.get("content-encoding", "")


def lower(headers):
    return {name.lower(): value for name, value in headers.items()}


class Visitor(Browser):
    """responses: by the identity of the request, in the order in which they were made. key: the SHA-256 of the key of the
    certificate, in base64."""

    def __init__(self, profile, key):
        self.responses, self.under_way, self.last_event = {}, set(), time.monotonic()
        super().__init__(profile, [f"--ignore-certificate-errors-spki-list={key}", "--disable-quic"])
        self.call("Network.enable")
        self.call("Target.setAutoAttach", autoAttach=True, waitForDebuggerOnStart=True, flatten=True)  # workers

    def __exit__(self, *exception):
        """Ends the browser in order, so that it keeps what it has."""
        if not exception[0]:
            self.session = None
            self.tell("Browser.close")
            self.process.wait(END_S)
        super().__exit__(*exception)

    def tell(self, method, session=None, **parameters):
        """Sends a command whose answer does not matter."""
        self.last += 1
        command = {"id": self.last, "method": method, "params": parameters} | ({"sessionId": session} if session else {})
        os.write(self.commands, json.dumps(command).encode() + b"\0")

    def _next(self):
        message = super()._next()
        of, method = message.get("params", {}), message.get("method", "")
        if method == "Target.attachedToTarget" and self.session:
            self.tell("Network.enable", of["sessionId"])
            self.tell("Runtime.runIfWaitingForDebugger", of["sessionId"])
        if method.startswith("Network.") and "requestId" in of:
            self.last_event = time.monotonic()
            self._note(method.partition(".")[2], of, of["requestId"])
        return message

    def _response(self, identity, url=""):
        found = self.responses.setdefault(identity, Response(url))
        found.url = found.url or url
        return found

    def _note(self, event, of, identity):
        if event == "requestWillBeSent":
            if not of["request"]["url"].startswith("http"):
                return
            if "redirectResponse" in of:  # the one before has ended
                self.responses[f"{identity} {len(self.responses)}"] = before = self.responses.pop(identity)
                before.octets = of["redirectResponse"]["encodedDataLength"]
            self._response(identity, of["request"]["url"])
            if not of["request"]["url"].endswith("/favicon.ico"):  # the browser does not always say that it has ended
                self.under_way.add(identity)
        elif event == "requestWillBeSentExtraInfo":
            self._response(identity).request = lower(of["headers"])
        elif event == "requestServedFromCache":
            self._response(identity).kept = True
        elif event == "responseReceivedExtraInfo":
            found = self._response(identity)
            found.status, found.headers = of["statusCode"], lower(of["headers"])
        elif event == "responseReceived":
            found, answer = self._response(identity), of["response"]
            found.url, found.mime = answer["url"], answer["mimeType"]
            found.kept |= answer.get("fromDiskCache", False) and found.status != 304 or answer.get("fromPrefetchCache", False)
            if not found.status:
                found.status, found.headers = answer["status"], lower(answer["headers"])
        elif event == "dataReceived":
            self._response(identity).whole += of["dataLength"]
        elif event in ("loadingFinished", "loadingFailed"):
            self._response(identity).octets = of.get("encodedDataLength", 0)
            self._response(identity).failed = event == "loadingFailed"
            self.under_way.discard(identity)

    def settle(self):
        """Waits until nothing is under way for QUIET_S."""
        deadline = time.monotonic() + VISIT_S
        while self.under_way or time.monotonic() - self.last_event < QUIET_S:
            if b"\0" in self.buffer or select.select([self.events], [], [], 0.1)[0]:
                self._next()
            assert time.monotonic() < deadline, [self.responses[identity].url for identity in self.under_way]

    def visit(self, url, links):
        """Goes to a page, and then follows links, which are selectors. Returns the responses."""
        self.go(url)
        self.settle()
        for link in links:
            self.run(f"document.querySelector({json.dumps(link)}).click()")
            self.last_event = time.monotonic()
            self.settle()
        return [response for response in self.responses.values() if response.url.startswith("http")]


def replay(port, responses):
    """Makes the requests of a visit again, over HTTP/1.1. Returns the length of all that was answered."""
    connection = http.client.HTTPSConnection("127.0.0.1", port, context=ssl._create_unverified_context(), timeout=VISIT_S)
    length = 0
    for response in responses:
        if response.kept or not response.request:
            continue
        headers = {name: value for name, value in response.request.items() if name[0] != ":" and name not in ("host", "connection")}
        authority, path = response.url.split("/", 3)[2:]
        connection.request("GET", "/" + path.partition("#")[0], headers={"Host": authority, **headers})
        length += len(connection.getresponse().read())
    connection.close()
    return length
