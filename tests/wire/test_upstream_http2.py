"""HTTP/2 requests that are passed on to an upstream."""

import collections
import json
import socket
import struct
import threading
import time

import pytest

from gatling import TIMEOUT, eventually
from http2 import (
    DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, INTERNAL_ERROR, NO_ERROR, PADDED, PROTOCOL_ERROR, RST_STREAM,
    SETTINGS, WINDOW_UPDATE, Http2, block, frame,
)  # fmt: skip
from system_calls import calls_of
from test_guard import HASHES, basic
from test_upstream import READERS, makes_zstd, passing, script, stopped
from upstream import Upstream, echo, ends_tunnel

pytestmark = [pytest.mark.clear, pytest.mark.moving]  # over TLS there are curl, browsers, and all requests of one server in front of another

WINDOW, CONNECT_PROTOCOL = 65535, 8
CANCEL = 8
PIECE = 8192  # of content, which is written by itself


class Client(Http2):
    """A client that sends only as much content as the windows allow."""

    def __init__(self, server, **options):
        super().__init__(server, **options)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.windows = collections.defaultdict(lambda: WINDOW)
        self.settings, self.waiting = {}, []

    def frame(self):
        if self.waiting:
            return self.waiting.pop(0)
        return self._note(super().frame())

    def _note(self, f):
        if f and f.type == WINDOW_UPDATE:
            self.windows[f.stream] += int.from_bytes(f.payload)
        elif f and f.type == SETTINGS and not f.flags:
            self.settings = dict(struct.iter_unpack(">HI", f.payload))
        return f

    def next(self, *kinds):
        """Returns the next frame of these kinds."""
        while f := self.frame():
            if f.type in kinds:
                return f
        raise AssertionError("the connection has ended")

    def room(self, stream):
        return min(self.windows[0], self.windows[stream])

    def put(self, stream, content, end=True, piece=16384):
        """Sends content as the windows allow; frames that come meanwhile are left for frame()."""
        later = []
        while content:
            while not self.room(stream):
                f = self._note(super().frame())
                assert f and (f.stream != stream or f.type != RST_STREAM), f
                later.append(f)
            n = min(piece, self.room(stream), len(content))
            self.send(frame(DATA, END_STREAM if end and n == len(content) else 0, stream, content[:n]))
            content = content[n:]
            self.windows[0] -= n
            self.windows[stream] -= n
        self.waiting += later
        return self

    def connect(self, path="/api/ws", protocol="websocket", *fields, end=False):
        stream, self.next_stream = self.next_stream, self.next_stream + 2
        head = block((":method", "CONNECT"), (":protocol", protocol), (":scheme", "https"), (":authority", "localhost"), (":path", path),
                     ("sec-websocket-version", "13"), ("origin", "https://localhost"), *fields)  # fmt: skip
        self.send(frame(HEADERS, END_HEADERS | (END_STREAM if end else 0), stream, head))
        return stream

    def head(self, stream):
        """Returns the next header block of the stream, and whether the stream ends with it."""
        f = self.next(HEADERS)
        assert f.stream == stream and f.flags & END_HEADERS
        return dict(f.fields), bool(f.flags & END_STREAM)


# --- requests and responses ---


def test_nothing_waits_for_answers_that_are_not_taken(build):
    with Upstream(lambda link: (link.head(), link.answer(b"x" * 100_000))) as upstream, passing(build, upstream) as server, Client(server, window=0) as c:
        streams = [c.ask(f"/api/{n}") for n in range(20)]
        assert {c.next(HEADERS).stream for _ in streams} == {*streams}


@pytest.mark.parametrize("ask", [lambda c: c.ask("/api/x"), Client.connect], ids=["request", "tunnel"])
def test_who_takes_the_only_request_back_is_idle(build, ask):
    came = threading.Event()
    with Upstream(lambda link: (link.head(), came.set(), link.ended())) as upstream:
        with passing(build, upstream, flags=("--limit", "keepalive-timeout=1")) as server, Client(server) as c:
            stream = ask(c)
            assert came.wait(TIMEOUT)
            c.send(frame(RST_STREAM, stream=stream, payload=CANCEL.to_bytes(4)))
            begun = time.monotonic()
            assert c.ended() == NO_ERROR and time.monotonic() - begun < 5


@pytest.mark.parametrize("fields", [(("content-length", "30001"),), ()], ids=["length", "frames"])
def test_content_that_is_longer_than_the_operator_says_is_refused(build, fields):
    with Upstream() as upstream, passing(build, upstream, flags=("--limit", "body=30000")) as server, Client(server) as c:
        stream = c.ask("/api/x", *fields, method="POST", end=False)
        c.put(stream, bytes(30_001))
        (answer,) = c.answers(stream)
        assert answer.status == 413
        assert c.get("/api/x").status == 200 and [request.line for request in upstream.requests if request.body] == []


def test_a_request_is_one_of_http_1_for_the_upstream(build):
    fields = [("accept", "a/b"), ("cookie", "a=b"), ("x-forwarded-for", "192.0.2.1"), ("te", "trailers"), ("cookie", "c=d"), ("proxy", "evil"),
              ("x_forwarded_for", "192.0.2.1"), ("user-agent", "u")]  # fmt: skip
    with Upstream() as upstream, passing(build, upstream) as server, Client(server) as c:
        answer = c.get("/api/a%20b/c?d=e&f", *fields, host="www.example.org:81", method="PUT")
        assert answer.status == 200 and answer["server"] == "gatling" and answer["date"] and int(answer["content-length"]) == len(answer.body)
        assert answer.body.decode().split("\n") == [
            "PUT /a%20b/c?d=e&f HTTP/1.1",
            "Host: www.example.org:81",
            "accept: a/b",
            "user-agent: u",
            "cookie: a=b; c=d",
            "X-Forwarded-For: 127.0.0.1",
            "X-Real-IP: 127.0.0.1",
            "X-Forwarded-Proto: http",
            "X-Forwarded-Host: www.example.org:81",
            'Forwarded: for=127.0.0.1;proto=http;host="www.example.org:81"',
            "Content-Length: 0",
            "Connection: TE",
            "TE: trailers",
            "",
            "",
        ]
        assert c.get("/there.txt").body == b"there" and c.get("/").body == b"hello"
        eventually(lambda: len(server.lines) == 3)
        assert '"PUT /api/a%20b/c?d=e&f HTTP/2.0" 200 ' in server.lines[0]


@pytest.mark.parametrize("announced", [True, False])
@pytest.mark.parametrize("length", [0, 1, 65535, 65536, 3_000_000])
def test_content_goes_through_in_both_directions(build, length, announced):
    content = (bytes(range(256)) * (length // 256 + 1))[:length]
    with Upstream() as upstream, passing(build, upstream) as server, Client(server) as c:
        stream = c.ask("/api/x", *([("content-length", str(length))] if announced else []), method="POST", end=False)
        c.put(stream, content)
        if not length:
            c.send(frame(DATA, END_STREAM, stream))
        answer = c.answers(stream)[0]
        assert answer.body.split(b"\n\n", 1)[1] == content
        assert upstream.requests[0]["Transfer-Encoding"] == (None if announced else "chunked")


@pytest.mark.parametrize("announced", [True, False], ids=["length", "chunks"])
def test_content_in_many_small_frames_takes_few_system_calls(plain, tmp_path, announced):
    """Each frame would take one, for ten bytes from the client."""
    n = 5000
    fields = [("content-length", str(n))] if announced else []

    def client(server):
        with Client(server) as c:
            assert c.get("/api/").status == 200  # so there is a connection, which takes each piece at once
            stream = c.ask("/api/", *fields, method="POST", end=False)
            c.send(b"".join(frame(DATA, END_STREAM if i == n - 1 else 0, stream, b"a") for i in range(n)))
            (answer,) = c.answers(stream)
            assert answer.body.endswith(b"\n\n" + b"a" * n)

    with Upstream() as upstream, passing(plain, upstream) as server:
        calls = calls_of(server, tmp_path / "calls", client)
    assert sum(calls[name] for name in ("sendto", "sendmsg", "write", "writev")) < n / 20, calls


def test_content_in_frames_of_one_octet_and_with_padding(build):
    with Upstream() as upstream, passing(build, upstream) as server, Client(server) as c:
        stream = c.ask("/api/x", method="POST", end=False)
        c.put(stream, b"0123456789" * 200, end=False, piece=1)
        c.send(frame(DATA, PADDED, stream, b"\x03abc\0\0\0") + frame(DATA, PADDED | END_STREAM, stream, b"\0d"))
        assert c.answers(stream)[0].body.endswith(b"0123456789abcd")


@pytest.mark.parametrize("trailers,passed", [
    ([("x-sum", "1"), ("host", "evil"), ("x_sum", "2"), ("empty", ""), ("x-sum", "3")], [("x-sum", "1"), ("empty", ""), ("x-sum", "3")]),
    ([("x-sum", "a" * 8000)], [("x-sum", "a" * 8000)]),
    ([("x-real-ip", "evil"), ("x-forwarded-port", "1"), ("true-client-ip", "evil"), ("x-sum", "1")], [("x-sum", "1")]),
    ([("cookie", "a=b"), ("content-length", "7")], []),
    ([("if-none-match", "*"), ("if-x", "1"), ("max-forwards", "0"), ("vary", "*"), ("x-sum", "1")], [("x-sum", "1")]),
], ids=["some", "long", "of proxies", "none", "conditions"])  # fmt: skip
def test_trailers_are_passed_on(build, trailers, passed):
    def handle(link):
        link.request()
        fields = "".join(f"{name}: {value}\r\n" for name, value in trailers)
        link.send(f"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n{fields}\r\n".encode())

    with Upstream(handle) as upstream, passing(build, upstream) as server, Client(server) as c:
        stream = c.ask("/api/x", ("te", "trailers"), method="POST", end=False)
        c.put(stream, b"hello", end=False)
        c.send(frame(HEADERS, END_HEADERS | END_STREAM, stream, block(*trailers)))
        answer = c.answers(stream)[0]
        assert answer.body == b"abc" and answer.trailers == passed
        assert upstream.requests[0].body == b"hello" and upstream.requests[0].trailers == passed
        assert upstream.requests[0]["TE"] == "trailers"


def test_trailers_that_come_while_a_password_is_checked_are_kept(build):
    files = {"api/.htaccess": f"Realm\nann:{HASHES['bcrypt']}\n".encode(), "api/x": b""}
    with Upstream() as upstream, passing(build, upstream, rule="/api/* http://{}/:splat 200!", files=files) as server, Client(server) as c:
        name, value = basic("ann").split(": ", 1)
        stream = c.ask("/api/x", (name.lower(), value), method="POST", end=False)
        c.put(stream, b"hello", end=False)
        c.send(frame(HEADERS, END_HEADERS | END_STREAM, stream, block(("x-sum", "1"))))
        assert c.answers(stream)[0].body.endswith(b"\n\nhello") and upstream.requests[0].trailers == [("x-sum", "1")]


@pytest.mark.parametrize("answer,fields,body", [
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-A:b\r\n\r\n3\r\nabc\r\n0\r\n\r\n", {"x-a": "b"}, b"abc"),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", {"content-length": None}, b""),
    (b"HTTP/1.0 200 OK\r\nX-A:   b  \r\n\r\nabc", {"x-a": "b", "content-length": None}, b"abc"),
    (b"HTTP/1.1 204 No Content\r\nConnection: x-hop\r\nX-Hop: 1\r\nKeep-Alive: 1\r\n\r\n", {"x-hop": None, "keep-alive": None, "connection": None}, b""),
    (b"HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n\r\n", {"etag": '"a"'}, b""),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nSET-Cookie: a\r\n\r\n", {"content-length": "0", "set-cookie": "a"}, b""),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nX-Long: " + b"a" * 30000 + b"\r\n\r\nabc", {"x-long": "a" * 30000}, b"abc"),
])  # fmt: skip
def test_a_response_comes_back_whole(build, answer, fields, body):
    with Upstream(script(answer)) as upstream, passing(build, upstream) as server, Client(server) as c:
        got = c.get("/api/x")
        assert got.status == int(answer[9:12]) and got.body == body
        assert {name: got[name] for name in fields} == fields


def test_the_answer_to_a_head_has_its_length_and_no_content(build):
    with Upstream(script(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")) as upstream, passing(build, upstream) as server, Client(server) as c:
        answer = c.get("/api/x", method="HEAD")
        assert answer["content-length"] == "5" and not answer.body


def test_interim_responses_come_before_the_final_one(build):
    def handle(link):
        request = link.head()
        link.send(b"HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n")
        link.answer(link.body(request).body)

    with Upstream(handle) as upstream, passing(build, upstream) as server, Client(server) as c:
        stream = c.ask("/api/x", ("expect", "100-continue"), ("content-length", "5"), method="POST", end=False)
        assert c.head(stream) == ({":status": "103", "link": "a"}, False)
        assert c.head(stream) == ({":status": "100"}, False)
        c.put(stream, b"hello")
        assert c.answers(stream)[0].body == b"hello"


def test_streams_do_not_wait_for_each_other(build):
    release = threading.Event()

    def handle(link):
        if "slow" in link.head().line:
            release.wait(20)
        link.answer(b"done")

    with Upstream(handle) as upstream, passing(build, upstream) as server, Client(server) as c:
        slow = c.ask("/api/slow")
        for n in range(20):
            assert c.get(f"/api/{n}").body == b"done"
        assert c.get("/there.txt").body == b"there"
        release.set()
        assert c.answers(slow)[0].body == b"done"


def test_a_response_that_is_cut_short_is_reset(build):
    with Upstream(script(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab")) as upstream, passing(build, upstream) as server, Client(server) as c:
        answer = c.answers(c.ask("/api/x"), until_reset=True)[0]
        assert answer.body == b"ab" and answer.reset == INTERNAL_ERROR
        assert c.get("/there.txt").body == b"there"


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_what_cannot_be_passed_on_has_the_page_of_the_site(build, method):
    with Upstream(lambda link: (link.head(), link.send(b"nonsense\r\n\r\n"))) as upstream:
        with passing(build, upstream, flags=("--log", "json")) as server, Client(server) as c:
            stream = c.ask("/api/x", method=method, end=method == "GET")
            answer = c.answers(stream)[0]
            assert answer.status == 502 and answer.body == b"our page"
            if method == "POST":  # the rest is not wanted
                assert c.next(RST_STREAM).payload == struct.pack(">I", NO_ERROR)
            assert c.get("/there.txt").body == b"there"
            eventually(lambda: len(server.lines) == 2)
            line = json.loads(server.lines[0])
            assert line["status"] == 502 and line["upstream"] == upstream.address and "upstream_status" not in line


def test_an_answer_may_come_before_the_content(build):
    with Upstream(lambda link: (link.head(), link.answer(b"early"), link.ended())) as upstream, passing(build, upstream) as server:
        with Client(server) as c:
            stream = c.ask("/api/x", method="POST", end=False)
            assert c.answers(stream)[0].body == b"early"
            assert c.next(RST_STREAM).payload == struct.pack(">I", NO_ERROR)


def test_a_client_that_cancels_ends_the_request(build):
    ended = threading.Event()
    with Upstream(lambda link: (link.head(), link.ended(), ended.set())) as upstream, passing(build, upstream) as server:
        with Client(server) as c:
            stream = c.ask("/api/x")
            eventually(lambda: upstream.requests)
            c.send(frame(RST_STREAM, 0, stream, struct.pack(">I", CANCEL)))
            assert ended.wait(20) and c.get("/there.txt").body == b"there"
            eventually(lambda: any('"GET /api/x HTTP/2.0" 499 ' in line for line in server.lines))


@pytest.mark.parametrize("sent,announced", [(b"abcdef", "5"), (b"abc", "5")])
def test_content_of_another_length_than_announced_is_no_request(build, sent, announced):
    with Upstream() as upstream, passing(build, upstream) as server, Client(server) as c:
        stream = c.ask("/api/x", ("content-length", announced), method="POST", end=False)
        c.put(stream, sent)
        assert c.next(RST_STREAM).payload == struct.pack(">I", PROTOCOL_ERROR)
        assert c.get("/there.txt").body == b"there"
        assert len(upstream.requests) <= 1


@pytest.mark.parametrize("announced,sent", [("5", None), ("3", b"a" * 10), ("0", b"a"), ("20000", b"a"), ("5", b"")])
def test_an_upstream_sees_nothing_of_a_request_whose_length_is_wrong_from_the_start(build, announced, sent):
    with Upstream() as upstream, passing(build, upstream) as server, Client(server) as c:
        stream = c.ask("/api/x", ("content-length", announced), method="POST", end=sent is None)
        if sent is not None:
            assert c.get("/there.txt").body == b"there"  # the head has been seen
            assert not upstream.links
            c.send(frame(DATA, END_STREAM, stream, sent))
        assert c.next(RST_STREAM).payload == struct.pack(">I", PROTOCOL_ERROR)
        assert c.get("/there.txt").body == b"there"
        assert c.get("/api/y").status == 200
        assert [request.line for request in upstream.requests] == ["GET /y HTTP/1.1"]


def test_an_upstream_of_a_request_that_becomes_too_long_is_not_used_again(build):
    def handle(link):
        if link.head().line.startswith("POST "):
            link.ended()
        else:
            link.answer()

    with Upstream(handle) as upstream, passing(build, upstream) as server, Client(server) as c:
        stream = c.ask("/api/x", ("content-length", "5"), method="POST", end=False)
        c.send(frame(DATA, 0, stream, b"abc"))
        eventually(lambda: upstream.requests)
        c.send(frame(DATA, END_STREAM, stream, b"defGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"))
        assert c.next(RST_STREAM).payload == struct.pack(">I", PROTOCOL_ERROR)
        assert c.get("/api/y").body == b"ok"
        assert [request.line for request in upstream.requests] == ["POST /x HTTP/1.1", "GET /y HTTP/1.1"] and len(upstream.links) == 2


@pytest.mark.parametrize("length", ["3", None])
def test_a_client_that_expects_a_100_gets_that_of_the_upstream(build, length):
    """Its head is passed on before its content, which waits for that."""

    def handle(link):
        request = link.head()
        assert request["Expect"] == "100-continue"
        link.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        link.answer(link.body(request).body)

    with Upstream(handle) as upstream, passing(build, upstream) as server, Client(server) as c:
        fields = [("content-length", length)] if length else []
        stream = c.ask("/api/x", ("expect", "100-Continue"), *fields, method="POST", end=False)
        assert c.head(stream) == ({":status": "100"}, False)
        c.put(stream, b"abc")
        assert c.answers(stream)[0].body == b"abc"


def test_a_client_without_content_expects_nothing(build):
    with Upstream() as upstream, passing(build, upstream) as server, Client(server) as c:
        assert c.get("/api/x", ("expect", "100-continue"), method="POST").status == 200
        assert c.get("/api/x", ("expect", "something")).status == 417
        (request,) = upstream.requests
        assert request["Expect"] is None and request["Content-Length"] == "0"


def test_options_of_the_server_are_its_own(build):
    with Upstream() as upstream, passing(build, upstream, rule="/* http://{}/:splat 200!") as server, Client(server) as c:
        assert c.get("*", method="OPTIONS").status == 204
        assert not upstream.requests


def test_passwords_come_first_and_content_that_comes_meanwhile_is_kept(build):
    files = {"api/.htaccess": f"Realm\nann:{HASHES['bcrypt']}\n".encode(), "api/x": b""}
    rule = "/api/* http://{}/:splat 200!"
    content = b"a" * 60000
    with Upstream() as upstream, passing(build, upstream, rule=rule, files=files) as server, Client(server) as c:
        assert c.get("/api/x").status == 401
        name, value = basic("ann").split(": ", 1)
        stream = c.ask("/api/x", (name.lower(), value), method="POST", end=False)
        c.put(stream, content)
        assert c.answers(stream)[0].body.endswith(b"\n\n" + content)
        assert len(upstream.requests) == 1


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_answers_are_compressed_as_far_as_there_is_memory(build, coding):
    if coding == "zstd" and not makes_zstd(build):
        pytest.skip("this build has no zstd")

    text = b"a line of a text that repeats itself\n" * 3000
    answer = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n" % len(text) + text
    full = threading.Barrier(30)

    def handle(link):
        link.request()
        full.wait(TIMEOUT)
        link.send(answer)

    with Upstream(handle) as upstream, passing(build, upstream, flags=("--upstream-gzip",)) as server, Client(server) as c:
        streams = [c.ask("/api/x", ("accept-encoding", coding)) for _ in range(30)]
        answers = c.answers(*streams)
        packed = [answer for answer in answers if answer["content-encoding"] == coding]
        assert packed and all(READERS[coding]().decompress(answer.body) == text for answer in packed)
        assert all(answer.body == text and int(answer["content-length"]) == len(text) for answer in answers if answer not in packed)
        assert all(answer["vary"] == "Accept-Encoding" for answer in answers)


# --- what one client can make the server hold ---


def test_an_upstream_that_does_not_read_holds_its_own_stream_up(build):
    release = threading.Event()

    def handle(link):
        request = link.head()
        if "slow" in request.line:
            release.wait(20)
        link.answer(str(len(link.body(request).body)).encode())

    with Upstream(handle) as upstream, passing(build, upstream) as server, Client(server) as c:
        stream = c.ask("/api/slow", method="POST", end=False)
        c.socket.settimeout(1)
        sent = 0
        try:
            while sent < 64 << 20:
                c.put(stream, b"a" * 16384, end=False)
                sent += 16384
        except TimeoutError:
            pass
        assert 65535 <= sent < 32 << 20  # what sockets hold, and the server's 64 KB
        c.socket.settimeout(20)
        c.buffer = c.buffer or b""
        other = c.ask("/api/fast", method="POST", end=False)
        c.put(other, b"b" * 30000)
        assert c.answers(other)[0].body == b"30000"
        release.set()
        c.put(stream, b"end")
        assert int(c.answers(stream)[0].body) >= sent


def test_responses_that_are_not_read_hold_up_only_themselves(build):
    def handle(link):
        while True:
            link.answer(b"a" * 200_000 if "large" in link.request().line else b"small")

    with Upstream(handle) as upstream, passing(build, upstream) as server, Client(server, window=1000) as c:
        large = [c.ask("/api/large") for _ in range(11)]
        for n in range(5):
            assert c.get(f"/api/{n}").body == b"small"
        for stream in large:
            c.send(frame(WINDOW_UPDATE, 0, stream, struct.pack(">I", 1 << 30)))
        assert {len(answer.body) for answer in c.answers(*large)} <= {199_000, 200_000}  # the rest may have come before


def test_many_responses_whose_windows_are_shut_hold_up_nobody(build):
    def handle(link):
        while True:
            link.answer(b"a" * 200_000 if "large" in link.request().line else b"small")

    with Upstream(handle) as upstream, passing(build, upstream) as server, Client(server, window=WINDOW) as c:
        large, got = [c.ask("/api/large") for _ in range(40)], 0
        while got < len(large) * WINDOW:
            got += len(c.next(DATA).payload)
        for n in range(5):
            assert c.get(f"/api/{n}").body == b"small"
        for stream in large:
            c.send(frame(WINDOW_UPDATE, 0, stream, struct.pack(">I", 1 << 30)))
        assert {len(answer.body) for answer in c.answers(*large)} == {200_000 - WINDOW}


def test_a_hundred_large_responses_at_once(build):
    def handle(link):
        while True:
            link.answer(b"a" * 300_000 if "large" in link.request().line else b"small")

    with Upstream(handle) as upstream, passing(build, upstream) as server, Client(server, window=200_000) as c:
        large = [c.ask("/api/large") for _ in range(100)]
        for stream in large:
            c.send(frame(WINDOW_UPDATE, 0, stream, struct.pack(">I", 1 << 30)))
        assert [len(answer.body) for answer in c.answers(*large)] == [300_000] * 100


def test_responses_that_stay_open_leave_room_for_others_when_they_are_taken(build):
    def handle(link):
        while True:
            if "open" in link.request().line:
                link.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1388\r\n" + b"a" * 5000 + b"\r\n")
                link.ended()
            else:
                link.answer(b"small")

    with Upstream(handle) as upstream, passing(build, upstream) as server, Client(server, window=1000) as c:
        streams = [c.ask("/api/open") for _ in range(14)]
        small = c.ask("/api/small")
        got = collections.Counter()
        while sum(got.values()) < 12 * 1000:
            f = c.next(DATA)
            got[f.stream] += len(f.payload)
        for stream in streams:
            c.send(frame(WINDOW_UPDATE, 0, stream, struct.pack(">I", 1 << 20)))
        while got[small] < 5 or sum(got.values()) < 14 * 5000 + 5:
            f = c.next(DATA)
            got[f.stream] += len(f.payload)


@pytest.mark.parametrize("cookie,window,length", [(1200, 1 << 20, 150_000), (2500, 1000, 30_000)])
def test_a_browser_with_many_requests_and_a_slow_line_stays(build, cookie, window, length):
    ready = threading.Barrier(100)

    def handle(link):
        link.request()
        ready.wait(20)
        link.answer(b"a" * length)

    # with a '!', since otherwise each waits until it is known that there is no such file, and only STREAMS_WAITING bytes may
    with Upstream(handle) as upstream, passing(build, upstream, rule="/api/* http://{}/:splat 200!") as server, Client(server, window=window) as c:
        streams = [c.ask(f"/api/{n}", ("cookie", "c" * cookie)) for n in range(100)]
        eventually(lambda: len(upstream.requests) == 100)
        eventually(lambda: ready.n_waiting == 0)
        for stream in streams if window < length else []:
            c.send(frame(WINDOW_UPDATE, 0, stream, struct.pack(">I", 1 << 20)))
        assert [len(answer.body) for answer in c.answers(*streams)] == [length] * 100


def test_nobody_waits_for_a_client_whose_window_is_shut(build):
    """Three uploads to an upstream that pauses close the connection's window for a fourth one."""
    release = threading.Event()

    def handle(link):
        request = link.head()
        release.wait(20)
        link.answer(str(len(link.body(request).body)).encode())

    with Upstream(handle) as upstream, passing(build, upstream, flags=("-T", "2")) as server, Client(server) as c:
        *busy, last = [c.ask("/api/x", method="POST", end=False) for _ in range(4)]
        c.socket.settimeout(4)  # longer than -T
        try:
            while True:
                for stream in busy:
                    c.put(stream, b"a" * c.room(stream), end=False)
                while not any(c.room(stream) for stream in busy):
                    c.waiting.append(c._note(super(Client, c).frame()))  # pylint: disable=protected-access
        except TimeoutError:
            pass
        assert c.windows[0] == 0 and any(c.windows[stream] for stream in busy)
        c.socket.settimeout(20)
        release.set()
        for stream in busy:
            c.put(stream, b"end")
        c.put(last, b"last")
        assert int(c.answers(last)[0].body) == 4


def test_an_upstream_does_not_wait_for_a_stream_while_others_of_its_connection_go_on(plain):
    """On one stream no content comes, on one a byte at a time, and one has closed its window."""
    begun, held = time.monotonic(), []

    def handle(link):
        request = link.head()
        link.socket.settimeout(90)
        if request.line.startswith("GET /long"):
            link.answer(bytes(100_000))
        elif request.line.startswith("POST"):
            link.ended()
            held.append(time.monotonic() - begun)
        else:
            link.answer()

    with Upstream(handle) as upstream, passing(plain, upstream, flags=("-T", "3")) as server, Client(server, window=1000) as c:
        none, bytewise = (c.ask("/api/up", method="POST", end=False) for _ in range(2))
        shut = c.ask("/api/long")
        ended = {}
        while len(ended) < 3 and time.monotonic() - begun < 90:
            if bytewise not in ended:
                c.put(bytewise, b"a", end=False)
            turn = c.ask("/there.txt")
            while (f := c.next(HEADERS, DATA, RST_STREAM)).stream != turn or not f.flags & END_STREAM:
                if f.stream != turn and (f.type == RST_STREAM or f.type == HEADERS and f.stream != shut):
                    ended.setdefault(f.stream, f.type)
            time.sleep(1)
        assert ended == {none: HEADERS, bytewise: HEADERS, shut: RST_STREAM}
        assert len(held) == 2 and all(59 < after < 75 for after in held)


@pytest.mark.parametrize("length", [1000, 100_000])
def test_content_of_a_request_that_waits_for_files_is_dropped(build, length):
    files = {f"big{n}.bin": bytes(3_000_000) for n in range(5)}
    with Upstream() as upstream, passing(build, upstream, files=files) as server, Client(server, window=1000) as c:
        held = [c.ask(f"/big{n}.bin") for n in range(4)]
        stream = c.ask("/big4.bin", method="GET", end=False)
        c.put(stream, b"a" * length)
        for one in held:
            c.send(frame(RST_STREAM, 0, one, struct.pack(">I", CANCEL)))
        c.send(frame(WINDOW_UPDATE, 0, stream, struct.pack(">I", 1 << 30)))
        assert len(c.answers(stream)[0].body) == 3_000_000


def test_a_client_that_has_said_all_gets_what_is_under_way(build):
    release = threading.Event()

    def handle(link):
        if "large" in link.request().line:
            link.answer(b"a" * 5000)
        release.wait(20)
        link.answer(b"late")

    with Upstream(handle) as upstream, passing(build, upstream) as server, Client(server, window=1000) as c:
        c.ask("/api/large")
        late = c.ask("/api/late")
        assert len(c.next(DATA).payload) == 1000
        c.half_close()
        release.set()
        f = c.next(DATA)
        assert f.stream == late and f.payload == b"late"


# --- WebSocket ---


def websocket(link):
    request = link.head()
    assert request.line == "GET /ws HTTP/1.1" and request["Connection"] == "upgrade" and request["Upgrade"] == "websocket"
    assert len(request["Sec-WebSocket-Key"]) == 24 and request["sec-websocket-version"] == "13"
    link.send(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Protocol: p\r\n\r\nfirst")
    while True:
        link.send(link.take(4))


def test_a_websocket_goes_both_ways(build):
    with Upstream(websocket) as upstream, passing(build, upstream) as server, Client(server) as c:
        stream = c.connect()
        fields, ended = c.head(stream)
        assert c.settings[CONNECT_PROTOCOL] == 1
        assert fields[":status"] == "200" and fields["sec-websocket-protocol"] == "p" and not ended
        assert "upgrade" not in fields and "connection" not in fields
        assert c.next(DATA).payload == b"first"
        for n in range(100):
            c.put(stream, b"%4d" % n, end=False)
            assert c.next(DATA).payload == b"%4d" % n
        assert c.get("/there.txt").body == b"there"
        c.put(stream, b"last")
        assert c.next(DATA).payload == b"last"
        end = c.next(DATA)  # the upstream has seen the end
        assert not end.payload and end.flags & END_STREAM and end.stream == stream
        eventually(lambda: any('"CONNECT /api/ws HTTP/2.0" 200 ' in line for line in server.lines))


def test_many_bytes_go_through_a_websocket(build):
    def handle(link):
        link.head()
        link.send(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
        while data := link.socket.recv(1 << 16):
            link.send(data)

    content = bytes(range(256)) * 8192
    with Upstream(handle) as upstream, passing(build, upstream) as server, Client(server) as c:
        stream = c.connect()
        assert c.head(stream)[0][":status"] == "200"
        received = bytearray()
        c.put(stream, content)
        while len(received) < len(content):
            received += c.next(DATA).payload
        assert bytes(received) == content


@pytest.mark.parametrize("answer,status", [(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno", 403),
                                           (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno", 502),
                                           (b"HTTP/1.1 204 No Content\r\n\r\n", 502),
                                           (b"HTTP/1.1 101 S\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n", 502),
                                           (b"HTTP/1.1 101 S\r\n\r\n", 502)])  # fmt: skip
def test_a_websocket_that_is_refused_is_no_tunnel(build, answer, status):
    with Upstream(script(answer)) as upstream, passing(build, upstream) as server, Client(server) as c:
        assert c.answers(c.connect())[0].status == status
        assert c.get("/there.txt").body == b"there"


def test_what_is_no_websocket_of_an_upstream_is_refused(build):
    with Upstream(websocket) as upstream, passing(build, upstream) as server, Client(server) as c:
        assert c.answers(c.connect("/there.txt"))[0].status == 501
        assert c.answers(c.connect(protocol="connect-ip"))[0].status == 501
        assert not upstream.requests


def test_bytes_of_a_tunnel_that_is_not_there_are_never_a_request(build):
    with Upstream(lambda link: (link.head(), link.ended())) as upstream, passing(build, upstream) as server, Client(server) as c:
        stream = c.connect()
        c.send(frame(DATA, 0, stream, b"GET /evil HTTP/1.1\r\nHost: a\r\n\r\n"))
        assert int.from_bytes(c.next(RST_STREAM).payload) in (PROTOCOL_ERROR, INTERNAL_ERROR)
        assert len(upstream.requests) <= 1


def test_a_websocket_has_no_length_and_no_key_of_the_client(build):
    """Otherwise the upstream would take the next request for content."""
    with Upstream(script(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")) as upstream, passing(build, upstream) as server:
        with Client(server) as c:
            c.connect("/api/ws", "websocket", ("content-length", "60"))
            assert c.next(RST_STREAM).payload == struct.pack(">I", PROTOCOL_ERROR)
            assert c.answers(c.connect("/api/ws", "websocket", ("sec-websocket-key", "mine")))[0].status == 403
        (request,) = upstream.requests
        assert request["Content-Length"] is None and len(request["Sec-WebSocket-Key"]) == 24


def test_an_upstream_that_ends_a_websocket_ends_the_stream(build):
    with Upstream(script(b"HTTP/1.1 101 S\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\nbye")) as upstream, passing(build, upstream) as server:
        with Client(server) as c:
            stream = c.connect()
            answer = c.answers(stream)[0]
            assert answer.status == 200 and answer.body == b"bye"
            assert c.next(RST_STREAM).payload == struct.pack(">I", NO_ERROR)


@pytest.mark.parametrize("sends", [False, True], ids=["silent", "sending"])
@pytest.mark.parametrize("breaks_off", [False, True], ids=["FIN", "RST"])
def test_a_websocket_ends_for_the_client_as_for_the_upstream(build, breaks_off, sends):
    """RFC 8441, section 5: in order or not, but after what it has said. sends: the client has, too, and a write may find the end first."""
    goes = threading.Event()
    with Upstream(ends_tunnel(goes, breaks_off)) as upstream, passing(build, upstream) as server, Client(server) as c:
        stream = c.connect()
        assert c.head(stream)[0][":status"] == "200"
        with stopped(server):
            if sends:
                c.put(stream, bytes(2 * PIECE), end=False, piece=PIECE)
            goes.set()
            upstream.threads[-1].join()
        assert c.next(RST_STREAM, DATA).payload == b"bye"
        end = c.next(RST_STREAM, DATA)
        assert end.payload == struct.pack(">I", CANCEL) if breaks_off else end.type == DATA and end.flags & END_STREAM
        assert c.get("/there.txt").body == b"there"


# --- the end of the server ---


def test_a_request_under_way_is_answered_before_the_server_ends(build):
    release = threading.Event()

    def handle(link):
        link.head()
        release.wait(20)
        link.answer(b"done")

    with Upstream(handle) as upstream, passing(build, upstream) as server, Client(server) as c:
        stream = c.ask("/api/x")
        eventually(lambda: upstream.requests)
        server.signal()
        c.next(GOAWAY)
        release.set()
        assert c.next(HEADERS).stream == stream
        body = c.next(DATA)
        assert body.payload == b"done"
