"""Answers over HTTP/3: files, fields, priorities, many at a time, and what the log and the status page say of them."""

import gzip
import itertools
import json
import random
import re
import socket

import pytest

from answers import expect_every_kind
from frames import ENABLE_CONNECT_PROTOCOL, HEADERS, MAX_FIELD_SECTION_SIZE, PRIORITY_UPDATE, frame, number, request, section
from gatling import Connection, Root, eventually, trusting
from page_cache import make_cold
from prepared import MISSING, PACKED, TEXT
from served import BIG, SMALL


HUGE = random.Random(3).randbytes(20_000_000)
STREAMS_MAX = 128


def test_the_server_says_what_it_takes(c):
    assert c.handshake.alpn_protocol == "h3" and c.settings == {MAX_FIELD_SECTION_SIZE: 16384}


def test_extended_connect_is_offered_with_an_upstream_alone(http3, client, files):
    with http3.serve(files, "--upstream", "127.0.0.1") as server, client.Client(server) as c:
        assert c.settings[ENABLE_CONNECT_PROTOCOL] == 1


def test_a_file_in_memory_and_a_large_one(c):
    small, big, empty = c.answers(c.ask("/small.bin"), c.ask("/big.bin"), c.ask("/empty.txt"))
    assert (small.status, small.body) == (200, SMALL) and (big.status, big.body) == (200, BIG)
    assert (empty.status, empty.body) == (200, b"")
    assert small["content-length"] == "1024" and small["content-type"] and small["etag"] and small["server"] == "gatling"


@pytest.mark.parametrize("path", ["/small.bin", "/big.bin", "/none", "/dir/", "/list/", "/dir", "/old", "/alias", "/text.css", "/packed.js", "/%zz"])
@pytest.mark.parametrize("coding", [None, "gzip"])
def test_the_answer_is_that_of_http_1_over_tls(server, c, path, coding):
    fields = [("accept-encoding", coding)] if coding else []
    with Connection(("127.0.0.1", server.tls_port), tls=trusting()) as other:
        lines = [f"{name}: {value}" for name, value in fields]
        theirs = [other.get(path, *lines) for _ in range(2)][1]  # after what the first one may have begun: a hash, compression
    ours = c.get(path, *fields)
    assert (ours.status, ours.body) == (theirs.status, theirs.body)
    expected = {name.lower(): value for name, value in theirs.fields if name.lower() not in ("date", "connection", "alt-svc")}
    assert {name: value for name, value in ours.fields if name not in (":status", "date", "alt-svc")} == expected


def test_every_kind_of_answer(c):
    expect_every_kind(c)


def test_what_the_owner_says_in_files(c):
    moved = c.get("/old")
    assert (moved.status, moved["location"]) == (301, "/small.bin")
    assert c.get("/alias").body == SMALL and c.get("/small.bin")["x-own"] == "of the owner"
    missing = c.get("/none")
    assert (missing.status, missing.body) == (404, MISSING)


def test_codings(c):
    packed = c.get("/packed.js", ("accept-encoding", "gzip"))
    assert packed["content-encoding"] == "gzip" and gzip.decompress(packed.body) == PACKED
    made = c.get("/text.css", ("accept-encoding", "gzip"))
    assert made["content-encoding"] == "gzip" and gzip.decompress(made.body) == TEXT
    assert c.get("/text.css").body == TEXT


def test_the_fields_of_a_request_may_be_indexed(c):
    """From the static table: GET, https, and a path by the name in it."""
    block = b"\0\0" + bytes([0xC0 | 17, 0xC0 | 23, 0x50 | 0]) + b"\x09localhost" + bytes([0x50 | 1]) + b"\x0a/small.bin"
    assert c.answer(c.ask_as(block)).body == SMALL


@pytest.mark.parametrize("cold", [False, True])
def test_very_large_files(http3, client, cold):
    root = Root({"huge.bin": HUGE, "small.bin": SMALL})
    path = root.path / "huge.bin"
    with http3.serve(root, "-j", "1", "--limit", "cache=1M") as server, client.Client(server) as c:
        assert c.get("/huge.bin", method="HEAD")["content-length"] == str(len(HUGE))
        if cold:
            make_cold(path, lambda: c.get("/small.bin"))
        huge, small, part = c.answers(c.ask("/huge.bin"), c.ask("/small.bin"), c.ask("/huge.bin", ("range", "bytes=15000000-")))
        assert huge.body == HUGE and small.body == SMALL and part.body == HUGE[15_000_000:]
    root.remove()


def test_a_connection_carries_any_number_of_requests(c):
    for _ in range(3 * STREAMS_MAX):
        assert c.get("/small.bin").body == SMALL


def test_as_many_requests_at_a_time_as_are_allowed(c):
    """See STREAMS_MAX. What is asked for beyond that waits at the client, until the server allows more."""
    streams = [c.ask("/small.bin") for _ in range(STREAMS_MAX + 1)]
    assert {bytes(answer.body) for answer in c.answers(*streams)} == {SMALL}


def test_a_stream_that_was_not_allowed_ends_the_connection(client, server):
    with client.Client(server) as c:
        c.quic._remote_max_streams_bidi = 1000  # pylint: disable=protected-access
        c.send(4 * STREAMS_MAX, frame(HEADERS, request("/small.bin")), end=True)
        assert c.ended() == 4  # STREAM_LIMIT_ERROR


def test_hosts(http3, client):
    root = Root({"index.html": b"any", "one.example/index.html": b"one", "two.example/index.html": b"two"})
    with http3.serve(root, "-j", "1") as server, client.Client(server) as c:
        assert c.get("/", host="one.example").body == b"one" and c.get("/", host="TWO.example:443").body == b"two"
        assert c.get("/", host="three.example").body == b"any"
        block = section((":method", "GET"), (":scheme", "https"), (":path", "/"), ("host", "one.example"))
        assert c.answer(c.ask_as(block)).body == b"one"
    root.remove()


# --- priorities ---


@pytest.fixture(scope="module")
def pages(http3):
    root = Root({f"{n}.bin": bytes([n]) * 200_000 for n in range(8)})
    with http3.serve(root, "-j", "1") as server:
        for n in range(8):
            server.get(f"/{n}.bin", method="HEAD")  # now they are hashed
        yield server
    root.remove()


def turns(c, streams):
    """Has the server begin when all requests are there. Returns the streams in the order in which they ended."""
    c.sync()
    for stream in streams[::-1]:
        c.quic._streams[stream].max_stream_data_local = 1 << 24  # pylint: disable=protected-access
    c.order.clear()
    c.answers(*streams)
    last = {stream: max(i for i, s in enumerate(c.order) if s == stream) for stream in streams}
    return sorted(streams, key=last.get)


@pytest.mark.parametrize("way", ["field", "frame", "frame before it"])
def test_the_more_urgent_comes_first(client, pages, way):
    """RFC 9218: u=0 to u=7, in a field or a PRIORITY_UPDATE, which may come before its request."""
    urgencies = [7, 0, 6, 1, 5, 2, 4, 3]
    with client.Client(pages, window=0) as c:
        updates = [frame(PRIORITY_UPDATE, number(4 * n) + b"u=%d" % u) for n, u in enumerate(urgencies)]
        if way == "frame before it":
            c.send(c.client_control, b"".join(updates))
            c.sync()
        streams = [c.ask(f"/{n}.bin", *([("priority", f"u={u}")] if way == "field" else [])) for n, u in enumerate(urgencies)]
        if way == "frame":
            c.sync()
            c.send(c.client_control, b"".join(updates))
        ended = turns(c, streams)
        assert [urgencies[stream // 4] for stream in ended] == sorted(urgencies)


@pytest.mark.parametrize("incremental", [False, True])
def test_incremental_answers_take_turns(client, pages, incremental):
    with client.Client(pages, window=0) as c:
        streams = [c.ask(f"/{n}.bin", ("priority", "u=3, i" if incremental else "u=3")) for n in range(4)]
        turns(c, streams)
        changes = sum(a != b for a, b in itertools.pairwise(c.order))
        assert changes > 30 if incremental else changes < 12


# --- logs and figures ---


LOGS = {
    "common": r'^127\.0\.0\.1 - - \[[^]]+\] "GET /small.bin HTTP/3.0" 200 1024 [\d.]+$',
    "combined": r'^127\.0\.0\.1 - - \[[^]]+\] "GET /small.bin HTTP/3.0" 200 1024 "http://r/" "u"$',
    "json": r'HTTP/3\.0',
}  # fmt: skip


@pytest.mark.parametrize("form", LOGS)
def test_the_log_says_http_3(http3, client, files, form):
    with http3.serve(files, "-j", "1", *(("--log", form) if form != "common" else ())) as server, client.Client(server) as c:
        c.get("/small.bin", ("referer", "http://r/"), ("user-agent", "u"))
        c.get("/none", method="HEAD")
        lines = eventually(lambda: len(server.lines) == 2 and server.lines)
        assert re.search(LOGS[form], lines[0]), lines
        if form == "common":
            assert '"HEAD /none HTTP/3.0" 404 - ' in lines[1]


def test_the_client_is_the_one_that_a_trusted_proxy_names(http3, client):
    root = Root({"a.txt": b"a", "d/a.txt": b"a", "d/.htaccess": b"allow 192.0.2.0/24\n"})
    with http3.serve(root, "-j", "1", "--trust", "127.0.0.1") as server:
        with client.Client(server) as c, client.Client(server, source="127.0.0.2") as other:
            statuses = {c.get("/d/a.txt", ("x-forwarded-for", named)).status: named for named in ("192.0.2.7", "198.51.100.1")}
            assert statuses == {200: "192.0.2.7", 403: "198.51.100.1"}
            assert other.get("/d/a.txt", ("x-forwarded-for", "192.0.2.7")).status == 403
        lines = eventually(lambda: len(server.lines) == 3 and server.lines)
        assert [line.split()[0] for line in lines] == ["192.0.2.7", "198.51.100.1", "127.0.0.2"]
    root.remove()


def test_requests_that_end_in_a_reset_are_logged(http3, client, files):
    with http3.serve(files, "-j", "1") as server, client.Client(server, window=0) as c:
        server.get("/big.bin", method="HEAD")  # now it is hashed
        taken_back = c.ask("/big.bin?taken-back")
        c.answers(c.ask_as(request("/x", ("Upper", "case"))), c.ask("/lied", ("content-length", "3")))
        c.stop(taken_back, 0x10C) if taken_back in c.quic._streams else None  # pylint: disable=protected-access
        c.reset(taken_back, 0x10C)
        c.sync()
    assert sum('"GET /big.bin?taken-back HTTP/3.0" 200' in line for line in server.lines) == 1
    assert sum('"-" 400' in line for line in server.lines) == 1
    assert sum('"GET /lied HTTP/3.0" 400' in line for line in server.lines) == 1


@pytest.fixture
def shown(http3, files):
    """A server whose status page is at a socket. Yields it and a function that asks for a page there."""
    sockets = Root()
    sockets.path.chmod(0o777)
    path = sockets.path / "status"

    def ask(page):
        with Connection(str(path), family=socket.AF_UNIX) as s:
            return s.get(page).body.decode()

    with http3.serve(files, "-j", "2", "--status", f"unix:{path}") as server:
        yield server, ask
    sockets.remove()


def test_the_metrics_name_it(client, shown):
    server, ask = shown
    with client.Client(server) as c:
        for _ in range(3):
            c.get("/small.bin")

        def sums():
            found = re.findall(r'^(gatling_\w+){worker="\d",(?:protocol|state)="http/?3"} (\d+)$', ask("/metrics"), re.MULTILINE)
            return {name: sum(int(n) for other, n in found if other == name) for name, _ in found}

        eventually(lambda: sums() == {"gatling_requests_total": 3, "gatling_connections": 1})


def test_the_status_page_counts_it(client, shown):
    server, ask = shown

    def total():
        return json.loads(ask("/json"))["total"]

    with client.Client(server) as c:
        for _ in range(10):
            c.get("/small.bin")
        c.get("/none")
        seen = eventually(lambda: (t := total())["requests"]["http/3"] == 11 and t["answers"] and t)
        assert seen["answers"] == {"200": 10, "404": 1} and seen["connections"]["http3"] == 1
        assert seen["sent_bytes"] > 10 * 1024 and seen["accepted_connections"] == 1
    eventually(lambda: total()["connections"]["http3"] == 0)
