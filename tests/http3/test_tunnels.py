"""WebSocket over HTTP/3 (RFC 9220): extended CONNECT to an upstream, which takes an Upgrade."""

import contextlib
import time

import pytest

from frames import DATA, MESSAGE_ERROR, REQUEST_CANCELLED, frame, section
from gatling import Root, eventually
from served import SMALL
from upstream import SWITCHES, Upstream


@contextlib.contextmanager
def passing(http3, upstream, *flags):
    """A server that passes /api/ on."""
    root = Root({"_redirects": f"/api/* http://{upstream.address}/:splat 200\n".encode(), "small.bin": SMALL})
    with http3.serve(root, "-j", "1", "--upstream", upstream.allowed, *flags) as server:
        yield server
    root.remove()


def connect(c, path="/api/ws", protocol="websocket", *fields):
    """Asks for a tunnel. Returns its stream."""
    block = section((":method", "CONNECT"), (":protocol", protocol), (":scheme", "https"), (":authority", "localhost"), (":path", path),
                    ("sec-websocket-version", "13"), ("origin", "https://localhost"), *fields)  # fmt: skip
    return c.ask_as(block, end=False)


def opened(c, *fields):
    stream = connect(c, "/api/ws", "websocket", *fields)
    answer = c.until(lambda: stream in c.found and c.found[stream].fields and c.found[stream])
    assert answer.status == 200 and not answer.ended
    return stream, answer


def put(c, stream, data, end=False):
    c.send(stream, frame(DATA, data) if data else b"", end)


def echo(link):
    request = link.head()
    assert request.line == "GET /ws HTTP/1.1" and request["Connection"] == "upgrade" and request["Upgrade"] == "websocket"
    assert len(request["Sec-WebSocket-Key"]) == 24 and request["sec-websocket-version"] == "13"
    link.send(SWITCHES + b"Sec-WebSocket-Protocol: p\r\n\r\n")
    while data := link.socket.recv(1 << 16):
        link.send(data)


def holding(link):
    """Opens the tunnel, and waits for its end."""
    link.head()
    link.send(SWITCHES + b"\r\n")
    link.ended()


def test_bytes_go_both_ways(http3, client):
    with Upstream(echo) as upstream, passing(http3, upstream) as server, client.Client(server) as c:
        stream, answer = opened(c)
        assert answer["sec-websocket-protocol"] == "p" and answer["upgrade"] is None and answer["connection"] is None
        for n in range(100):
            put(c, stream, b"%4d" % n)
            c.until(lambda: len(answer.body) == 4 * (n + 1))  # pylint: disable=cell-var-from-loop
        assert answer.body == b"".join(b"%4d" % n for n in range(100))
        assert c.get("/small.bin").body == SMALL
        put(c, stream, b"last", end=True)
        assert c.answer(stream).body.endswith(b"last") and answer.reset is None
        line = eventually(lambda: next((line for line in server.lines if "/api/ws" in line), None))
        assert '"CONNECT /api/ws HTTP/3.0" 200 404 ' in line


def test_many_bytes_go_through(http3, client):
    content = bytes(range(256)) * 8192
    with Upstream(echo) as upstream, passing(http3, upstream) as server, client.Client(server, window=100_000) as c:
        stream, _ = opened(c)
        put(c, stream, content, end=True)
        assert c.answer(stream).body == content


def test_the_client_ends_it(http3, client):
    """The upstream reads the end, and may say something yet."""

    def handle(link):
        holding(link)
        link.send(b"bye")

    with Upstream(handle) as upstream, passing(http3, upstream) as server, client.Client(server) as c:
        stream, answer = opened(c)
        put(c, stream, b"", end=True)
        assert c.answer(stream).body == b"bye" and answer.reset is None


def test_the_upstream_ends_it(http3, client):
    """Then nobody reads what the client sends: it is asked to stop."""
    with Upstream(lambda link: (link.head(), link.send(SWITCHES + b"\r\nbye"))) as upstream, passing(http3, upstream) as server:
        with client.Client(server) as c:
            answer = c.answer(connect(c))
            assert answer.status == 200 and answer.body == b"bye" and answer.reset is None
            assert c.until(lambda: answer.stopped is not None)
            assert c.get("/small.bin").body == SMALL


def test_an_upstream_that_breaks_off_resets_the_stream(http3, client):
    """RFC 9220, section 3: after what it has said."""

    def handle(link):
        link.head()
        link.send(SWITCHES + b"\r\n")
        link.take(1)
        link.send(b"bye")
        link.reset()

    with Upstream(handle) as upstream, passing(http3, upstream) as server, client.Client(server) as c:
        stream, _ = opened(c)
        put(c, stream, b"x")
        answer = c.answer(stream)
        assert answer.reset == REQUEST_CANCELLED and answer.body == b"bye"


@pytest.mark.parametrize("how", ["stream", "connection"])
def test_an_upstream_hears_of_a_client_that_breaks_off(http3, client, how):
    with Upstream(holding) as upstream, passing(http3, upstream) as server, client.Client(server) as c:
        stream, _ = opened(c)
        if how == "stream":
            c.reset(stream, REQUEST_CANCELLED)
            assert c.get("/small.bin").body == SMALL
        else:
            c.close()
        eventually(lambda: upstream.links[0].socket.fileno() == -1)  # its handler has seen the end


def test_one_that_is_silent_stays_open(http3, client):
    """Longer than requests and idle connections may be; see --limit upstream-tunnel."""
    with Upstream(echo) as upstream, passing(http3, upstream, "-T", "1", "--limit", "keepalive-timeout=1") as server:
        with client.Client(server) as c:
            stream, answer = opened(c)
            until = time.monotonic() + 3.5
            while (left := until - time.monotonic()) > 0:
                c.turn(left)
            put(c, stream, b"still there")
            c.until(lambda: answer.body)
            assert answer.body == b"still there" and c.end is None


@pytest.mark.parametrize("response, status", [
    (b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno", 403), (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno", 502),
    (b"HTTP/1.1 101 S\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n", 502), (b"HTTP/1.1 101 S\r\n\r\n", 502),
], ids=[403, 200, "h2c", 101])  # fmt: skip
def test_one_that_is_refused_is_no_tunnel(http3, client, response, status):
    with Upstream(lambda link: (link.head(), link.send(response))) as upstream, passing(http3, upstream) as server:
        with client.Client(server) as c:
            assert c.answer(connect(c)).status == status
            assert c.get("/small.bin").body == SMALL


def test_what_is_no_websocket_of_an_upstream_is_refused(http3, client):
    with Upstream(echo) as upstream, passing(http3, upstream) as server, client.Client(server) as c:
        for path, protocol in (("/small.bin", "websocket"), ("/api/ws", "connect-ip")):
            assert c.answer(connect(c, path, protocol)).status == 501
        assert not upstream.requests


def test_one_has_no_length_and_no_key_of_the_client(http3, client):
    """Otherwise the upstream would take the next request for content."""
    with Upstream(echo) as upstream, passing(http3, upstream) as server, client.Client(server) as c:
        assert c.answer(connect(c, "/api/ws", "websocket", ("content-length", "60"))).reset == MESSAGE_ERROR and not upstream.requests
        opened(c, ("sec-websocket-key", "mine"))
        (request,) = upstream.requests
        assert request["Content-Length"] is None and request["Sec-WebSocket-Key"] != "mine"
