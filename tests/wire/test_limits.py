"""The owner's limits: connections and requests, of an address and in total."""

import socket
import subprocess

import pytest

from gatling import Connection, Server, eventually, runnable
from http2 import RST_STREAM, Http2, frame
from served import BIG, SMALL

pytestmark = [pytest.mark.decided, pytest.mark.tcp]

OTHER = "127.0.0.2"


@pytest.fixture
def limited(build, files):
    """Starts servers with limits, and ends them."""
    running = []

    def start(*flags):
        running.append(Server(build, files, "-j", "2", *flags))
        return running[-1]

    yield start
    for server in running:
        server.stop()


def refused(response, status):
    return response.status == status and response["Retry-After"] == "1"


def test_an_address_has_its_rate_and_its_burst(limited):
    server = limited("--limit", "address-rate=1:3")
    with server.connect() as c, server.connect() as again, server.connect(source=OTHER) as other:
        assert [one.get("/small.bin").status for one in (c, again, c)] == [200, 200, 200]
        assert refused(c.get("/small.bin"), 429) and refused(again.get("/missing"), 429)
        assert other.get("/small.bin").body == SMALL
        eventually(lambda: c.get("/small.bin").status == 200)  # a token comes back each second
        assert refused(c.get("/small.bin"), 429)
    eventually(lambda: any("requests refused over --limit address-rate: 1, the last from 127.0.0.1" in line for line in server.errors))


def test_a_rate_may_be_of_a_minute(limited):
    server = limited("--limit", "address-rate=60/m:2")
    with server.connect() as c:
        assert [c.get("/small.bin").status for _ in range(3)] == [200, 200, 429]
        eventually(lambda: c.get("/small.bin").status == 200)  # a token comes back each second


@pytest.mark.clear
def test_streams_of_http2_count_as_requests(limited):
    server = limited("--limit", "address-rate=1:3")
    with Http2(server) as c, Http2(server, source=OTHER) as other:
        answers = c.answers(*(c.ask("/small.bin") for _ in range(4)))
        assert [answer.status for answer in answers] == [200, 200, 200, 429] and answers[3]["retry-after"] == "1"
        assert other.get("/small.bin").body == SMALL


def test_all_have_a_rate_together(limited):
    server = limited("--limit", "rate=1:2")
    with server.connect() as c, server.connect(source=OTHER) as other:
        assert c.get("/small.bin").status == other.get("/small.bin").status == 200
        assert refused(c.get("/small.bin"), 503) and refused(other.get("/small.bin"), 503)


@pytest.mark.clear
def test_a_proxy_on_a_unix_socket_is_no_address(limited, root):
    root.path.chmod(0o777)
    path = str(root.path / "socket")
    server = limited("--limit", "address-rate=1:1", "--limit", "address-connections=1", "--limit", "address-requests=1", "-i", f"unix:{path}")
    assert server.get("/small.bin").status == 200
    with Connection(path, socket.AF_UNIX) as c, Connection(path, socket.AF_UNIX) as other:
        assert all(one.get("/small.bin").status == 200 for one in (c, other) for _ in range(3))


@pytest.mark.clear
def test_an_address_has_so_many_connections(limited):
    server = limited("--limit", "address-connections=2")
    held = [server.connect() for _ in range(2)]
    assert all(c.get("/small.bin").status == 200 for c in held)
    with server.connect() as c, server.connect(source=OTHER) as other:
        assert refused(c.get("/small.bin"), 429)
        c.assert_closed()
        assert other.get("/small.bin").body == SMALL
    held.pop().close()
    eventually(lambda: server.get("/small.bin").status == 200)
    held.pop().close()
    eventually(lambda: any("connections refused over --limit address-connections: 1," in line for line in server.errors))


def test_an_address_has_so_many_requests_under_way(limited):
    server = limited("--limit", "address-requests=2")
    slow = [server.connect(receive_buffer=4096) for _ in range(2)]
    for c in slow:
        c.send(b"GET /big.bin HTTP/1.1\r\nHost: a\r\n\r\n")
        assert c.socket.recv(1) == b"H"
    assert refused(server.get("/small.bin"), 429)
    with server.connect(source=OTHER) as other:
        assert other.get("/small.bin").body == SMALL
    slow.pop().close()
    eventually(lambda: server.get("/small.bin").status == 200)
    c = slow.pop()
    c.buffer = b"H"
    assert c.response().body == BIG
    assert all(c.get("/small.bin").status == 200 for _ in range(3))
    c.close()


@pytest.mark.clear
def test_streams_under_way_count_until_they_end(limited):
    server = limited("--limit", "address-requests=2")
    with Http2(server, window=0) as c, server.connect() as other:
        held = [c.ask("/small.bin") for _ in range(2)]
        assert c.answers(c.ask("/small.bin", method="HEAD"))[0].status == 429
        assert refused(other.get("/small.bin"), 429)
        c.send(frame(RST_STREAM, 0, held[0], b"\0\0\0\x08"))
        eventually(lambda: other.get("/small.bin").status == 200)


@pytest.mark.clear
def test_a_pipeline_counts_as_it_comes(limited):
    server = limited("--limit", "address-rate=1:2")
    with server.connect() as c:
        c.send(3 * b"GET /small.bin HTTP/1.1\r\nHost: a\r\n\r\n")
        assert [c.response().status for _ in range(3)] == [200, 200, 429]


@pytest.mark.clear
def test_connections_are_limited_in_all(build, files):
    """The connection that has been idle longest is closed; if none has been idle for a second, new
    ones wait."""
    with Server(build, files, "-j", "1", "--limit", "connections=8", "--defer-accept", "off") as server:
        held = [server.connect() for _ in range(8)]
        assert all(c.get("/small.bin").status == 200 for c in held)
        with server.connect() as c:
            assert c.get("/small.bin").body == SMALL
        for c in held:
            c.close()


def line_about(build, *flags):
    """Returns the line with which the server refuses flags."""
    ended = subprocess.run([runnable(build), *flags], capture_output=True, text=True, check=False)
    assert ended.returncode == 2 and ended.stderr.count("\n") == 1
    return ended.stderr


@pytest.mark.parametrize("limit", ["rate=x", "rate=5:", "rate=5:0", "address-rate=-1", "address-rate=5:1x", "connections=0",
                                   "address-connections=-1", "address-requests=many", "cache=lots", "min-rate="])  # fmt: skip
def test_a_wrong_value_of_a_limit_is_named_in_one_line(first_build, limit):
    name, value = limit.split("=")
    line = line_about(first_build, "--limit", limit)
    assert line.startswith(f"gatling: --limit {name} takes a number") and f"not '{value}' (see gatling --help limits)" in line


@pytest.mark.parametrize("limit,told", [("adress-rate=5", "did you mean --limit address-rate=N[:BURST]?"), ("head=5", "did you mean --limit head-timeout=SECONDS?"),
                                        ("mime=5", "there are timeout, head-timeout, "), ("=5", "there are timeout, ")])  # fmt: skip
def test_of_an_unknown_limit_the_nearest_or_all_are_told(first_build, limit, told):
    line = line_about(first_build, "--limit", limit)
    assert line.startswith(f"gatling: unknown limit '{limit}': ") and told in line
    assert "there are" in told or "there are" not in line


@pytest.mark.parametrize("text", ["timeout", "5", ""])
def test_a_limit_without_a_value_is_refused(first_build, text):
    assert line_about(first_build, "--limit", text).startswith(f"gatling: --limit takes NAME=VALUE, such as head-timeout=30, not '{text}'")


@pytest.mark.parametrize("flags", [("-T", "1h"), *(("--limit", f"{name}=1h") for name in ("timeout", "head-timeout", "keepalive-timeout", "drain-delay")), ("--hsts", "1h")])
def test_a_time_is_refused_with_its_unit(first_build, flags):
    name = {"-T": "--limit timeout", "--limit": f"--limit {flags[1].split('=')[0]}"}.get(flags[0], flags[0])
    assert line_about(first_build, *flags).startswith(f"gatling: {name} takes a number of seconds from 0 to ")


def test_of_a_limit_that_is_repeated_the_last_value_counts(build, files):
    with Server(build, files, "-j", "1", "--limit", "rate=1:1", "--limit", "rate=1000") as server, server.connect() as c:
        assert [c.get("/small.bin").status for _ in range(5)] == [200] * 5


@pytest.mark.clear
def test_a_request_that_waits_behind_another_counts_until_it_is_answered(build, root):
    """When the first request has been answered, the second one, on the same connection, waits for
    its hash, and is then sent slowly."""
    root.write("big.bin", BIG)
    get = "GET /{} HTTP/1.1\r\nHost: a\r\n\r\n"
    with Server(build, root, "-j", "1", "--limit", "address-requests=2") as server:
        with server.connect(receive_buffer=4096) as c, server.connect(receive_buffer=4096) as other:
            c.send((get.format("a.txt") + get.format("big.bin")).encode())
            assert c.response().body == b"a"
            other.send(get.format("big.bin").encode())
            eventually(lambda: server.get("/a.txt").status == 429)
        eventually(lambda: server.get("/a.txt").status == 200)
