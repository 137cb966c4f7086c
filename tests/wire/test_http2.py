"""HTTP/2: requests and answers, priorities, windows, the end, and floods, each with its limit."""

import contextlib
import gzip
import re
import signal
import struct
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from answers import expect_every_kind
from gatling import Root, Server, certificate, eventually
from http2 import (
    ACK, COMPRESSION_ERROR, CONTINUATION, DATA, END_HEADERS, END_STREAM, ENHANCE_YOUR_CALM, FLOW_CONTROL_ERROR,
    FRAME_SIZE_ERROR, GOAWAY, HEADERS, NO_ERROR, PING, PREFACE, PRIORITY, PRIORITY_UPDATE, PROTOCOL_ERROR,
    REFUSED_STREAM, RST_STREAM, SETTINGS, STREAM_CLOSED, WINDOW_UPDATE, Http2, block, frame, integer, request, settings,
)  # fmt: skip
from served import BIG, SMALL

LONG = 30_000_000


@pytest.fixture
def c(server):
    with Http2(server) as connection:
        yield connection


pytestmark = pytest.mark.clear  # HTTP/2 without TLS; with TLS, h2spec, curl and browsers test it


# --- answers ---


def test_a_file_in_memory_and_a_large_one(c):
    small, big, empty = c.answers(c.ask("/small.bin"), c.ask("/big.bin"), c.ask("/empty.txt"))
    assert (small.status, small.body) == (200, SMALL) and (big.status, big.body) == (200, BIG)
    assert (empty.status, empty.body) == (200, b"")
    assert small["content-length"] == "1024" and small["content-type"] and small["etag"] and small["server"] == "gatling"


@pytest.mark.parametrize("path", ["/small.bin", "/big.bin", "/none", "/dir/"])
def test_the_fields_are_those_of_http_1(server, c, path):
    ours = {name: value for name, value in c.get(path).fields if name not in (":status", "date")}
    theirs = {name.lower(): value for name, value in server.get(path).fields if name != "Date"}
    assert ours == theirs


def test_every_kind_of_answer(c):
    expect_every_kind(c)


def test_a_long_location_takes_several_frames(build, root):
    for _ in range(15):
        root.mkdir("/".join(["\N{SNOWMAN}" * 80] * 15))
    with Server(build, root, "-j", "1") as server, Http2(server) as c:
        path = "/".join(["%E2%98%83" * 80] * 11)
        assert c.get("/" + path)["location"] == f"/{path}/"


def test_a_connection_that_has_begun_with_http_1_stays_so(server):
    with Http2(server, start=False) as c:
        c.send(b"GET /small.bin HTTP/1.1\r\nHost: a\r\n\r\n")
        assert c.response().status == 200
        c.send(PREFACE + frame(SETTINGS))
        assert c.response().status == 505
    with Http2(server, start=False) as c:
        c.send(b"\r\n" + PREFACE + frame(SETTINGS))
        assert c.response().status == 505


@pytest.mark.parametrize("size", [1, 5, 23])
def test_the_preface_may_come_in_pieces(server, size):
    with Http2(server, start=False) as c:
        for i in range(0, len(PREFACE), size):
            c.send(PREFACE[i : i + size])
        c.send(frame(SETTINGS))
        assert c.get("/small.bin").status == 200


def test_virtual_hosts_go_by_authority_or_host(build, root):
    root.write("one.example/index.html", b"one")
    with Server(build, root, "-j", "1") as server, Http2(server) as c:
        assert c.get("/", host="one.example").body == b"one" and c.get("/", host="ONE.example:80").body == b"one"
        c.send(frame(HEADERS, END_HEADERS | END_STREAM, 5, block((":method", "GET"), (":scheme", "http"), (":path", "/"), ("host", "one.example"))))
        assert c.answers(5)[0].body == b"one"


def test_requests_with_content_are_answered_when_it_has_come(c):
    stream = c.ask("/small.bin", ("content-length", "30000"), end=False)
    c.send(frame(DATA, 0, stream, b"x" * 15000))
    assert c.get("/empty.txt").status == 200
    c.send(frame(DATA, END_STREAM, stream, b"x" * 15000))
    assert c.answers(stream)[0].body == SMALL
    stream = c.ask("/small.bin", end=False)
    c.send(frame(HEADERS, END_HEADERS | END_STREAM, stream, block(("x-checksum", "1"))))
    assert c.answers(stream)[0].body == SMALL


def test_windows_are_opened_for_content_that_is_dropped(c):
    stream = c.ask("/none", method="POST", end=False)
    for _ in range(50):
        c.send(frame(DATA, 0, stream, b"x" * 16384))
    c.send(frame(DATA, END_STREAM, stream))
    assert c.answers(stream)[0].status == 405


@pytest.mark.parametrize("path,method,status", [("/small.bin", "GET", 200), ("/small.bin", "POST", 405), ("/none", "GET", 404)])
def test_who_expects_a_100_gets_it_or_the_answer(c, path, method, status):
    stream = c.ask(path, ("expect", "100-continue"), method=method, end=False)
    if status == 200:
        while (f := c.frame()).type != HEADERS:
            pass
        assert f.fields == [(":status", "100")]
        c.send(frame(DATA, END_STREAM, stream, b"x"))
    assert c.answers(stream, until_reset=status != 200)[0].status == status


def test_who_is_refused_while_sending_content_reads_the_answer_and_goes_on(c):
    """Section 8.1: RST_STREAM with NO_ERROR after a complete answer; what is still under way is
    dropped."""
    stream = c.ask("/small.bin", ("content-length", "20000000"), method="POST", end=False)
    for _ in range(600):
        c.send(frame(DATA, 0, stream, b"x" * 16000))
    refused = c.answers(stream, until_reset=True)[0]
    assert refused.status == 413 and refused.reset == NO_ERROR
    assert c.get("/small.bin").body == SMALL


def test_the_log_knows_requests_of_http_2(build, files):
    with Server(build, files, "-j", "1", "--limit", "cache=1M") as server, Http2(server) as c:
        c.answers(c.ask("/small.bin"), c.ask("/big.bin"), c.ask("/none", method="HEAD"))
        eventually(lambda: len(server.lines) == 3)
        for path, status, size in (("/small.bin", 200, 1024), ("/big.bin", 200, 3000000)):
            assert any(re.search(rf'"GET {path} HTTP/2.0" {status} {size} [\d.]+$', line) for line in server.lines)
        assert any('"HEAD /none HTTP/2.0" 404 - ' in line for line in server.lines)


# --- priorities and windows ---


def test_streams_with_long_lines_in_the_log_may_wait(build, files):
    with Server(build, files, "-j", "1", "--limit", "cache=1M", "--log", "json") as server, Http2(server, window=0) as c:
        fields = ("referer", "r" * 450), ("user-agent", "u" * 120)
        streams = [c.ask("/small.bin?" + "q" * 450, *fields) for _ in range(100)]
        c.send(frame(SETTINGS, payload=settings(window=1 << 30)))
        assert all(answer.status == 200 for answer in c.answers(*streams))


def test_what_is_more_urgent_is_not_behind_what_came_first(build, files):
    """RFC 9218: the stylesheet does not wait for the video."""
    with Server(build, files, "-j", "1", "--limit", "cache=1M") as server, Http2(server, window=0) as c:
        video, style, picture = c.ask("/big.bin", ("priority", "u=5")), c.ask("/small.bin", ("priority", "u=1")), c.ask("/big.bin")
        c.send(frame(SETTINGS, payload=settings(window=1 << 30)))
        c.answers(video, style, picture)
        last = {stream: max(i for i, s in enumerate(c.order) if s == stream) for stream in (video, style, picture)}
        assert last[style] < last[picture] < last[video]
        data = [s for s in c.order if s != style][2:]  # behind the heads
        assert data == sorted(data, key=(picture, video).index)


@pytest.mark.parametrize("incremental", [False, True])
def test_incremental_answers_take_turns(build, files, incremental):
    with Server(build, files, "-j", "1", "--limit", "cache=1M") as server, Http2(server, window=0) as c:
        streams = [c.ask("/big.bin", ("priority", "u=3, i" if incremental else "u=3")) for _ in range(3)]
        c.send(frame(SETTINGS, payload=settings(window=1 << 30)))
        c.answers(*streams)
        changes = sum(a != b for a, b in zip(c.order, c.order[1:]))
        assert changes > 300 if incremental else changes < 10


def test_a_priority_can_be_changed(build, files):
    with Server(build, files, "-j", "1", "--limit", "cache=1M") as server, Http2(server, window=0) as c:
        first, second = c.ask("/big.bin"), c.ask("/big.bin")
        c.send(frame(PRIORITY_UPDATE, payload=struct.pack(">I", second) + b"u=0"))
        c.send(frame(SETTINGS, payload=settings(window=1 << 30)))
        c.answers(first, second)
        assert c.order[-1] == first


def test_no_more_is_sent_than_the_windows_allow(server):
    with Http2(server, window=1000) as c:
        stream = c.ask("/big.bin")
        got = 0
        while got < 1000:
            f = c.frame()
            got += len(f.payload) if f.type == DATA else 0
        c.send(frame(PING, payload=b"12345678"))
        assert got == 1000 and c.frame().type == PING
        c.send(frame(SETTINGS, payload=settings(window=500)))  # now it is negative
        c.send(frame(WINDOW_UPDATE, stream=stream, payload=struct.pack(">I", 501)))
        while (f := c.frame()).type != DATA:
            pass
        assert len(f.payload) == 1
        c.send(frame(WINDOW_UPDATE, stream=stream, payload=struct.pack(">I", 1 << 30)))
        assert c.answers(stream)[0].ended


def test_a_stream_that_is_reset_is_forgotten(c):
    c.send(frame(SETTINGS, payload=settings(window=10)))
    streams = [c.ask("/big.bin") for _ in range(20)]
    for stream in streams:
        c.send(frame(RST_STREAM, stream=stream, payload=struct.pack(">I", 8)))
    c.send(frame(SETTINGS, payload=settings(window=1 << 20)))
    assert c.get("/small.bin").body == SMALL


def test_a_file_that_shrinks_ends_its_stream_alone(build, root):
    path = root.write("shrinks", b"x" * 5_000_000)
    with Server(build, root, "-j", "1") as server, Http2(server, window=100_000) as c:
        stream = c.ask("/shrinks")
        while c.frame().type != DATA:
            pass
        with open(path, "r+b") as file:
            file.truncate(1000)
        c.send(frame(WINDOW_UPDATE, stream=stream, payload=struct.pack(">I", 1 << 30)))
        while (f := c.frame()).type != RST_STREAM:
            pass
        assert c.get("/index.html").body == b"hello"


# --- wrong ---

GET = request("/small.bin")
OPEN = frame(HEADERS, END_HEADERS | END_STREAM, 1, GET)
WRONG = {
    "no settings first": (None, PROTOCOL_ERROR, PREFACE + frame(PING, payload=b"12345678")),
    "another preface": (None, PROTOCOL_ERROR, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r!"),
    "an even stream": (True, PROTOCOL_ERROR, frame(HEADERS, END_HEADERS | END_STREAM, 2, GET)),
    "a stream again": (True, STREAM_CLOSED, OPEN + OPEN),
    "a lower stream": (True, PROTOCOL_ERROR, frame(HEADERS, END_HEADERS | END_STREAM, 5, GET) + frame(HEADERS, END_HEADERS | END_STREAM, 3, GET)),
    "data before a request": (True, PROTOCOL_ERROR, frame(DATA, END_STREAM, 1, b"x")),
    "too much padding": (True, PROTOCOL_ERROR, frame(HEADERS, END_HEADERS | END_STREAM | 8, 1, b"\xff" + GET[:50])),
    "a long frame": (True, FRAME_SIZE_ERROR, frame(DATA, 0, 1, b"x" * 16385)),
    "a broken block": (True, COMPRESSION_ERROR, frame(HEADERS, END_HEADERS | END_STREAM, 1, b"\xff" * 20)),
    "a continuation of nothing": (True, PROTOCOL_ERROR, frame(CONTINUATION, END_HEADERS, 1, GET)),
    "a frame inside a block": (True, PROTOCOL_ERROR, frame(HEADERS, END_STREAM, 1, GET) + frame(PING, payload=b"12345678")),
    "a window of nothing more": (True, PROTOCOL_ERROR, frame(WINDOW_UPDATE, payload=b"\0\0\0\0")),
    "a window too large": (True, FLOW_CONTROL_ERROR, frame(WINDOW_UPDATE, payload=b"\x7f\xff\xff\xff") * 2),
    "more content than the window": (True, FLOW_CONTROL_ERROR, frame(HEADERS, END_HEADERS, 1, GET)
                                     + b"".join(frame(DATA, 0, 1, b"x" * 16384) for _ in range(2)) * 0 + frame(SETTINGS, payload=settings(window=1 << 31))),
    "a short priority of an idle stream": (True, FRAME_SIZE_ERROR, frame(PRIORITY, 0, 3, b"\0\0\0\0") + frame(HEADERS, END_HEADERS | END_STREAM, 3, GET)),
    "an idle stream before itself": (True, PROTOCOL_ERROR, frame(PRIORITY, 0, 3, b"\0\0\0\3\0")),
    "a push": (True, PROTOCOL_ERROR, frame(5, END_HEADERS, 1, GET)),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_with_a_connection_ends_it(server, name):
    start, error, data = WRONG[name]
    with Http2(server, start=bool(start)) as c:
        c.send(data)
        assert c.ended() == error


MALFORMED = {
    "upper case": request("/", ("X-Upper", "x")),
    "a connection field": request("/", ("connection", "close")),
    "te": request("/", ("te", "gzip")),
    "no method": block((":scheme", "http"), (":path", "/")),
    "no path": block((":method", "GET"), (":scheme", "http")),
    "an empty path": request(""),
    "a relative path": request("x"),
    "two paths": request("/", (":path", "/")),
    "a pseudo-field behind": request("/", ("a", "b"), (":scheme", "http")),
    "an unknown pseudo-field": request("/", (":who", "me")),
    "an empty name": request("/", ("", "x")),
    "a blank before a value": request("/", ("a", " x")),
    "a line break in the scheme": block((":method", "GET"), (":scheme", "a\r\nb"), (":path", "/"), (":authority", "a")),
    "a blank in a name": request("/", ("a b", "x")),
    "another host": request("/", ("host", "other.example")),
    "content that does not come": request("/", ("content-length", "5")),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_request_ends_its_stream_alone(c, name):
    c.send(frame(HEADERS, END_HEADERS | END_STREAM, 1, MALFORMED[name]))
    c.next_stream = 3
    wrong, right = c.answers(1, c.ask("/small.bin"))
    assert wrong.reset == PROTOCOL_ERROR and right.body == SMALL


@pytest.mark.parametrize("field", [("x", "a\rb"), ("x", "a\nb"), ("x", "a\0b"), ("host", "a/b")])
def test_octets_that_split_requests_elsewhere_are_refused(c, field):
    answer = c.get("/", field)
    assert answer.reset == PROTOCOL_ERROR or answer.status == 400


def test_frames_may_come_byte_by_byte(server):
    with Http2(server, start=False) as c:
        for byte in PREFACE + frame(SETTINGS) + OPEN:
            c.send(bytes([byte]))
        assert c.answers(1)[0].body == SMALL


def test_unknown_frames_and_settings_are_ignored(c):
    c.send(frame(0x77, 0xFF, 0, b"x" * 100) + frame(0x78, 0, 99, b"") + frame(SETTINGS, payload=struct.pack(">HI", 0x7777, 1)))
    assert c.get("/small.bin").body == SMALL


def test_the_size_of_the_table_is_said_in_the_block_that_is_sent_first(server):
    with Http2(server, window=0) as c:
        c.inflate.library.nghttp2_hd_inflate_change_table_size(c.inflate.inflater, 0)
        c.send(frame(SETTINGS, payload=settings(table=0)) + frame(HEADERS, END_HEADERS | END_STREAM, 1, request("/none", ("priority", "u=7")))
               + frame(HEADERS, END_HEADERS | END_STREAM, 3, request("/big.bin", ("priority", "u=0")))
               + frame(SETTINGS, payload=settings(window=1 << 30)))  # fmt: skip
        none, big = c.answers(1, 3)
        assert none.status == 404 and big.body == BIG


def test_a_client_without_a_dynamic_table_is_told_that_it_is_not_used(c):
    """See RFC 7541, section 4.2; nghttp2 would reject the block otherwise."""
    c.inflate.library.nghttp2_hd_inflate_change_table_size(c.inflate.inflater, 0)
    c.send(frame(SETTINGS, payload=settings(table=0)))
    assert c.get("/small.bin").body == SMALL and c.get("/big.bin").status == 200


# --- floods ---


@pytest.fixture
def calm(first_build, files):
    with Server(first_build, files, "-j", "1", "-n") as server:
        yield server


FLOODS = {
    "HTTP2_PINGS": lambda n: frame(PING, payload=b"12345678"),
    "HTTP2_SETTINGS": lambda n: frame(SETTINGS),
    "HTTP2_SETTINGS, answers": lambda n: frame(SETTINGS, ACK),
    "HTTP2_RESETS: rapid reset": lambda n: frame(HEADERS, END_HEADERS | END_STREAM, 2 * n + 1, request("/big.bin"))
    + frame(RST_STREAM, stream=2 * n + 1, payload=b"\0\0\0\x08"),
    "HTTP2_RESETS: made to reset": lambda n: frame(HEADERS, END_HEADERS | END_STREAM, 2 * n + 1, request("", ("a", "b"))),
    "HTTP2_EMPTY: data": lambda n: (frame(HEADERS, END_HEADERS, 1, GET) if n == 0 else b"") + frame(DATA, 0, 1),
    "HTTP2_EMPTY: continuations": lambda n: frame(HEADERS, END_STREAM, 1, GET) if n == 0 else frame(CONTINUATION, 0, 1),
    "HTTP2_BLOCK_MAX": lambda n: frame(HEADERS, END_STREAM, 1, GET) if n == 0 else frame(CONTINUATION, 0, 1, b"\0\1a\1b" * 3000),
    "HTTP2_CONTINUATIONS_MAX": lambda n: frame(HEADERS, END_STREAM, 1, GET) if n == 0 else frame(CONTINUATION, 0, 1, b"\0\1a\1b"),
    "HTTP2_UPDATES: of the connection": lambda n: frame(WINDOW_UPDATE, payload=b"\0\0\0\1"),
    "HTTP2_UPDATES: of a stream": lambda n: (frame(SETTINGS, payload=settings(window=0)) + frame(HEADERS, END_HEADERS | END_STREAM, 1, request("/big.bin"))
                                             if n == 0 else frame(WINDOW_UPDATE, stream=1, payload=b"\0\0\0\1")),
    "HTTP2_OTHERS: priorities": lambda n: frame(PRIORITY, stream=1, payload=b"\0\0\0\0\x10"),
    "HTTP2_OTHERS: updates of priorities": lambda n: frame(PRIORITY_UPDATE, payload=b"\0\0\0\1u=1"),
    "HTTP2_OTHERS: unknown": lambda n: frame(0x55, payload=b"x"),
    "HTTP2_FIELDS_MAX": lambda n: frame(HEADERS, END_HEADERS | END_STREAM, 2 * n + 1, GET + b"\x82" * 8000),
}  # fmt: skip


@pytest.mark.parametrize("name", FLOODS)
def test_floods_are_ended(calm, name):
    """These send only what is cheap to send. The server keeps nothing of it, and answers others
    meanwhile (how fast, beside other servers: bench/versus/floods.py)."""
    rounds, waited, octets = 3, [], b"".join(FLOODS[name](n) for n in range(20_000))

    def flood():
        for _ in range(rounds):
            with Http2(calm) as c:
                c.flood(octets, 1)
                assert c.ended() in (ENHANCE_YOUR_CALM, None)  # None: a reset overtook it

    with Http2(calm) as good, ThreadPoolExecutor(1) as flooder:
        assert good.get("/small.bin").body == SMALL
        used, memory = calm.cpu_seconds(), calm.resident()
        flooding = flooder.submit(flood)
        while not (flooding.done() and waited):
            started = time.monotonic()
            assert good.get("/small.bin").body == SMALL
            waited.append(time.monotonic() - started)
        flooding.result()
    with Http2(calm) as after:
        assert after.get("/small.bin").body == SMALL
    assert sorted(waited)[len(waited) // 2] < 0.5
    assert calm.cpu_seconds() - used < 2 and calm.resident() - memory < 30_000_000


def test_a_bomb_of_references_is_no_request(c):
    """HPACK: 4,000 octets in the dynamic table, referred to by one octet each. REQUEST_LIST_MAX does
    not allow a second one."""
    fill = b"\x40" + integer(1, 7) + b"x" + integer(3900, 7) + b"y" * 3900
    c.send(frame(HEADERS, END_HEADERS | END_STREAM, 1, request("/small.bin") + fill))
    assert c.answers(1)[0].body == SMALL
    bomb = request("/small.bin") + b"\xbe" * 900
    c.send(frame(HEADERS, END_HEADERS | END_STREAM, 3, bomb) + frame(HEADERS, END_HEADERS | END_STREAM, 5, bomb))
    answer = c.answers(3)[0]
    assert answer.status == 431 and answer.ended and c.ended() == ENHANCE_YOUR_CALM


@pytest.mark.parametrize("scheme", ["ht tp", "https://x", "1http", "", "h\u00e9"])
def test_a_scheme_is_one(c, scheme):
    fields = block((":method", "GET"), (":scheme", scheme), (":authority", "a"), (":path", "/small.bin"))
    c.send(frame(HEADERS, END_HEADERS | END_STREAM, 1, fields))
    assert c.answers(1)[0].reset == PROTOCOL_ERROR


def test_streams_beyond_the_limit_are_refused(c):
    """See STREAMS_MAX."""
    c.send(frame(SETTINGS, payload=settings(window=0)))
    streams = [c.ask("/big.bin") for _ in range(130)]
    c.send(frame(SETTINGS, payload=settings(window=1 << 30)))
    answers = c.answers(*streams)
    assert [a.reset for a in answers] == [None] * 128 + [REFUSED_STREAM] * 2 and answers[127].body == BIG


def test_listings_are_shared_by_those_who_ask_at_the_same_time(build, root):
    for i in range(500):
        root.write(f"list/{i}", b"")
    with Server(build, root, "-j", "1") as server, Http2(server, window=0) as c:
        streams = [c.ask("/list/") for _ in range(10)]
        c.send(frame(SETTINGS, payload=settings(window=1 << 30)))
        answers = c.answers(*streams)
        assert {(a.status, a.body.count(b"<tr>")) for a in answers} == {(200, 502)}
        assert c.get("/list/").status == 200 and c.get("/a.txt").body == b"a"


def test_what_comes_on_streams_that_were_reset_is_dropped(c):
    """Section 5.1: there are more of these frames than HTTP2_RESETS would allow if they counted."""
    c.send(frame(SETTINGS, payload=settings(window=0)))
    busy = [c.ask("/big.bin") for _ in range(128)]
    refused = [c.ask("/small.bin", end=False) for _ in range(200)]
    for stream in refused:
        c.send(frame(DATA, 0, stream, b"x") + frame(DATA, END_STREAM, stream, b"x"))
        c.send(frame(HEADERS, END_HEADERS | END_STREAM, stream, block(("trailer", "x"))))
    c.send(frame(PING, payload=b"12345678"))
    resets = []
    while (f := c.frame()).type != PING:
        assert f.type in (SETTINGS, RST_STREAM, HEADERS), f
        resets += [f.stream] if f.type == RST_STREAM else []
    assert resets == refused and len(busy) == 128


def test_a_connect_is_answered_without_its_content(c):
    fields = block((":method", "CONNECT"), (":authority", "a:80"))
    c.send(frame(HEADERS, END_HEADERS, 1, fields))
    answer = c.answers(1, until_reset=True)[0]
    assert answer.status == 405 and answer.reset == NO_ERROR


def write_large_files(root, count):
    """Returns the paths of files that are not kept in memory."""
    for i in range(count):
        root.write(f"f{i}", bytes([i]) * 70_000)
    return [f"/f{i}" for i in range(count)]


def streams_answered(c, count):
    """Returns as many streams on which a response has begun."""
    seen = set()
    while len(seen) < count:
        if (f := c.frame()).type == HEADERS:
            seen.add(f.stream)
    return seen


def test_nothing_waits_for_downloads_that_are_not_read(build, root):
    paths = write_large_files(root, 20)
    with Server(build, root, "-j", "1", "-n") as server, Http2(server, window=0) as c:
        streams = [c.ask(path) for path in paths]
        assert streams_answered(c, 20) == {*streams}
        c.send(frame(WINDOW_UPDATE, stream=streams[-1], payload=struct.pack(">I", 1 << 20)))
        assert len(c.answers(streams[-1])[0].body) == 70_000


def test_contents_that_are_unpacked_take_turns(build, root):
    """See STREAMS_HELD."""
    for i in range(20):
        root.write(f"f{i}.gz", gzip.compress(bytes([i]) * 70_000))
    with Server(build, root, "-j", "1", "-n") as server, Http2(server, window=0) as c:
        streams = [c.ask(f"/f{i}") for i in range(20)]
        first = streams_answered(c, 4)
        head = c.ask("/f0", method="HEAD")  # nothing stands in its way
        assert streams_answered(c, 1) == {head} and first < {*streams}
        c.send(frame(SETTINGS, payload=settings(window=1 << 30)))
        assert [len(answer.body) for answer in c.answers(*streams)] == [70_000] * 20
        other = [c.ask(f"/f{i}") for i in range(20)]
        for stream in other[:10]:
            c.send(frame(RST_STREAM, stream=stream, payload=b"\0\0\0\x08"))
        for i, answer in enumerate(c.answers(*other[10:])):
            assert answer.body == bytes([10 + i]) * 70_000


def test_requests_that_end_in_a_reset_are_logged(build, root):
    root.write("big.bin.gz", gzip.compress(BIG))  # it is unpacked while it is sent
    with Server(build, root, "-j", "1") as server, Http2(server, window=0) as c:
        server.get("/big.bin", method="HEAD")  # now it is hashed
        stream = c.ask("/big.bin?taken-back")
        c.send(frame(RST_STREAM, stream=stream, payload=b"\0\0\0\x08"))
        c.send(frame(HEADERS, END_HEADERS | END_STREAM, c.next_stream, request("/x", ("Upper", "case"))))
        c.next_stream += 2
        c.send(frame(HEADERS, END_HEADERS | END_STREAM, c.next_stream, request("/lied", ("content-length", "3"))))
        c.next_stream += 2
        streams = [c.ask("/big.bin?n") for _ in range(129)]
        c.send(frame(PING, payload=b"12345678"))
        while c.frame().type != PING:
            pass
        assert len(streams) == 129
    assert sum('"GET /big.bin?taken-back HTTP/2.0" 200' in line for line in server.lines) == 1
    assert sum('"-" 400' in line for line in server.lines) == 1
    assert sum('"GET /lied HTTP/2.0" 400' in line for line in server.lines) == 1
    assert sum('"GET /big.bin?n HTTP/2.0" 503' in line for line in server.lines) == 1
    assert sum('"GET /big.bin?n HTTP/2.0" 200' in line for line in server.lines) == 4
    assert sum('"GET /big.bin?n HTTP/2.0" 499' in line for line in server.lines) == 124  # gone while they waited


PRIORITIES = {
    "of a pushed stream": frame(PRIORITY_UPDATE, payload=b"\0\0\0\2u=1"),
    "of more streams than may be open": b"".join(frame(PRIORITY_UPDATE, payload=struct.pack(">I", 2 * n + 1) + b"u=1") for n in range(129)),
}  # fmt: skip


@pytest.mark.parametrize("name", PRIORITIES)
def test_priorities_of_streams_that_cannot_be_end_the_connection(c, name):
    c.send(PRIORITIES[name])
    assert c.ended() == PROTOCOL_ERROR


def test_a_priority_may_come_before_its_request(c):
    c.get("/big.bin", method="HEAD")  # now it is hashed
    c.send(frame(SETTINGS, payload=settings(window=0)))
    c.send(frame(PRIORITY_UPDATE, payload=b"\0\0\0\7u=0") + frame(PRIORITY_UPDATE, payload=b"\0\0\0\7u=1"))
    first, second, third = (c.ask("/big.bin") for _ in range(3))
    c.send(frame(SETTINGS, payload=settings(window=1 << 30)))
    c.answers(first, second, third)
    assert c.order[:4] == [first, second, third, third]  # three header blocks, then content


def test_the_settings_of_a_frame_count_together(server):
    with Http2(server, window=100) as c:
        stream = c.ask("/big.bin")
        c.send(frame(SETTINGS, payload=b"".join(settings(window=n) for n in (0, 2**31 - 1, 1, 1 << 30) * 600)))
        assert c.answers(stream)[0].body == BIG


def test_more_content_than_anybody_needs_is_refused(c):
    """See BODY_MAX."""
    stream = c.ask("/none", method="POST", end=False)
    c.flood(frame(DATA, 0, stream, b"x" * 16384), 70)
    assert c.answers(stream)[0].reset == ENHANCE_YOUR_CALM
    assert c.get("/small.bin").body == SMALL


def test_who_does_not_read_answers_is_cut_off(plain, files):
    """See HTTP2_UNSENT_MAX, which limits frames; the content of streams is not read before it can
    be sent."""
    with Server(plain, files, "-j", "1", "-n", "-T", "2") as server:
        memory = server.resident()
        stuck = [Http2(server, receive_buffer=4096) for _ in range(50)]
        for c in stuck:
            for _ in range(100):
                c.ask("/big.bin")
        eventually(lambda: server.resident() - memory < 50 * 400_000)
        assert server.get("/small.bin").body == SMALL
        eventually(lambda: server.descriptors() < 50)
        for c in stuck:
            c.close()


# --- the end ---


def goaway(f):
    """Returns the last stream and the error of a GOAWAY."""
    assert f.type == GOAWAY
    return int.from_bytes(f.payload[:4]), int.from_bytes(f.payload[4:8])


def test_the_end_is_announced_and_what_is_under_way_is_finished(build, files):
    """RFC 9113, section 6.8: first a GOAWAY that ends no stream and then, when it has been
    received, the final one."""
    with Server(build, files, "-j", "1", "--limit", "cache=1M") as server, Http2(server, window=100_000) as busy, Http2(server) as idle:
        assert idle.get("/small.bin").body == SMALL
        stream = busy.ask("/big.bin")
        while (f := busy.frame()).type != DATA:
            pass
        got = len(f.payload)
        server.signal()
        while (f := busy.frame()).type != GOAWAY:
            got += len(f.payload)
        assert goaway(f) == (2**31 - 1, NO_ERROR)
        ping = busy.frame()
        assert ping.type == PING and not ping.flags
        crossed = busy.ask("/small.bin")  # on its way when the end was announced
        busy.send(frame(PING, ACK, payload=ping.payload))
        while (f := busy.frame()).type != GOAWAY:
            assert f.stream == crossed
        assert goaway(f) == (crossed, NO_ERROR)
        late = busy.ask("/small.bin", end=False)  # refused by the number in the GOAWAY, whatever follows
        busy.send(frame(DATA, 0, late, b"x") + frame(WINDOW_UPDATE, stream=late, payload=b"\0\0\0\1"))
        busy.send(frame(RST_STREAM, stream=late, payload=b"\0\0\0\x08"))
        busy.send(frame(SETTINGS, payload=settings(window=1 << 30)))
        while f := busy.frame():
            assert f.stream != late and f.type != GOAWAY
            got += len(f.payload) if f.type == DATA and f.stream == stream else 0
        assert got == len(BIG)
        assert goaway(idle.frame()) == (2**31 - 1, NO_ERROR) and idle.frame().type == PING
        assert goaway(idle.frame()) == (1, NO_ERROR) and idle.frame() is None  # HTTP2_DRAIN_MS later


def test_a_client_that_sends_nothing_more_gets_its_answers(server):
    with Http2(server) as c:
        streams = [c.ask("/big.bin"), c.ask("/small.bin"), c.ask("/small.bin", end=False)]
        c.half_close()
        big, small = c.answers(*streams[:2])
        assert big.body == BIG and small.body == SMALL
        while f := c.frame():
            assert f.stream == 0


def test_a_client_that_sends_nothing_more_and_gives_no_window_is_not_waited_for(build, files):
    with Server(build, files, "-j", "1", "--limit", "cache=1M", "-T", "3600") as server, Http2(server, window=10) as c:
        c.ask("/big.bin")
        c.half_close()
        assert c.ended() is None


def test_a_client_that_says_that_it_leaves_is_answered_first(server):
    with Http2(server, window=1000) as c:
        stream = c.ask("/big.bin")
        c.send(frame(GOAWAY, payload=b"\0" * 8))
        other = c.ask("/small.bin", ("priority", "u=0"))
        c.send(frame(SETTINGS, payload=settings(window=1 << 30)))
        big, small = c.answers(stream, other)
        assert big.body == BIG and small.body == SMALL and c.ended() in (NO_ERROR, None)


def test_an_idle_connection_is_ended_in_time(build, files):
    with Server(build, files, "-j", "1", "--limit", "cache=1M", "-T", "1") as server, Http2(server) as c:
        assert c.get("/small.bin").body == SMALL
        started = time.monotonic()
        assert c.ended() == NO_ERROR and 0.8 < time.monotonic() - started < 5


def test_a_window_that_stays_shut_is_not_waited_for(build, files):
    with Server(build, files, "-j", "1", "--limit", "cache=1M", "-T", "1") as server, Http2(server, window=0) as c:
        c.ask("/big.bin")
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            for _ in range(12):  # these move no deadline
                c.send(frame(PING, payload=b"12345678"))
                time.sleep(0.1)
        assert c.ended() in (NO_ERROR, None)


def test_a_header_block_has_its_time_whatever_is_sent_meanwhile(build, root):
    root.write("long.bin", bytes(LONG))
    with Server(build, root, "-j", "1", "--limit", "head-timeout=1") as server, Http2(server, receive_buffer=16384) as c:
        c.ask("/long.bin")
        c.send(frame(HEADERS, 0, c.next_stream, request("/small.bin")[:1]))
        got = 0
        with contextlib.suppress(AssertionError):  # it may end within a frame
            while (f := c.frame()) and f.type != GOAWAY:
                got += len(f.payload)
                time.sleep(0.005)  # so it is still reading after that time
        assert got < LONG


@pytest.mark.parametrize("parts", [1, 2])
def test_a_headers_frame_that_comes_octet_by_octet_has_the_time_of_a_head(build, files, parts):
    """It begins with the frame, and a second one that begins where the first ends has its own."""
    limits = ("--limit", "head-timeout=2", "--limit", "keepalive-timeout=60")
    with Server(build, files, "-j", "1", *limits) as server, Http2(server) as c:
        assert c.get("/small.bin").body == SMALL
        whole = frame(HEADERS, END_HEADERS | END_STREAM, c.next_stream, request("/small.bin"))
        next_one = frame(HEADERS, END_HEADERS | END_STREAM, c.next_stream + 2, request("/small.bin"))
        started = time.monotonic()
        c.send(whole[:10])
        if parts == 2:
            time.sleep(1.2)
            c.send(whole[10:] + next_one[:10])
            assert c.answers(c.next_stream)[0].body == SMALL
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            for octet in next_one[10:40]:
                time.sleep(0.2)
                c.send(bytes([octet]))
        least = 1.8 if parts == 1 else 3.0
        assert c.ended() in (NO_ERROR, None) and least < time.monotonic() - started < least + 3


@pytest.mark.parametrize("told", [False, True], ids=["timeout", "drain"])
def test_who_reads_slowly_gets_everything(build, files, told):
    """When everything has been handed to the kernel, the connection is idle for the server, but
    frames from the client would reset it."""
    with Server(build, files, "-j", "1", "--limit", "cache=1M", "-T", "1") as server, Http2(server, receive_buffer=65536) as c:
        stream = c.ask("/big.bin")
        got, started = 0, time.monotonic()
        while got < len(BIG):
            f = c.frame()
            got += len(f.payload) if f.type == DATA else 0
            if f.type == DATA:
                c.send(frame(WINDOW_UPDATE, payload=struct.pack(">I", len(f.payload))))
                time.sleep(max(0, started + 3 * got / len(BIG) - time.monotonic()))
            if told and got > 1_000_000:
                server.signal(signal.SIGQUIT)
                told = False
        assert f.stream == stream and f.flags & END_STREAM


def test_who_pauses_at_the_end_keeps_the_last_bytes(build, files):
    """The server has sent everything and lingers; frames from the client arrive, and nothing is
    acknowledged for longer than that."""
    with Server(build, files, "-j", "1", "--limit", "cache=1M", "-T", "20") as server, Http2(server, receive_buffer=16384) as c:
        c.get("/big.bin", method="HEAD")
        stream = c.ask("/big.bin", ("range", "bytes=0-299999"))
        c.send(frame(GOAWAY, payload=b"\0" * 8))  # so the server closes when it has sent all
        for _ in range(13):
            time.sleep(0.5)
            c.send(frame(WINDOW_UPDATE, payload=b"\0\0\1\0"))
        assert c.answers(stream)[0].body == BIG[:300_000]


# --- others ---


def test_h2spec(first_build, venv, files, h2spec):
    cert, key = certificate()
    with Server(first_build, files, "-j", "1", "-n", "--cert", cert, "--key", key, "--tls-port", "0") as server:
        for port, flags in ((server.plain_port, ()), (server.tls_port, ("-t", "-k"))):
            done = subprocess.run([h2spec, "-S", "-o", "5", "-h", "127.0.0.1", "-p", str(port), "-P", "/small.bin", *flags],
                                  capture_output=True, text=True, timeout=300, check=False)  # fmt: skip
            # without TLS, an invalid preface is taken for HTTP/1.1, and answered
            failed = 0 if flags else 1
            assert f"146 tests, {146 - failed} passed, 0 skipped, {failed} failed" in done.stdout, done.stdout[-3000:]
            assert failed == 0 or "3.5. HTTP/2 Connection Preface\n      × 2:" in done.stdout


def test_curl(build, files):
    cert, key = certificate()
    out = Root({}).path
    with Server(build, files, "-j", "1", "--limit", "cache=1M", "--cert", cert, "--key", key, "--tls-port", "0") as server:
        both = [("/big.bin", BIG), ("/small.bin", SMALL)]
        # curl 7.88 cannot use a connection in clear text a second time
        for flags, url, paths in [(["--http2", "-k", "-Z"], f"https://127.0.0.1:{server.tls_port}", both),
                                  *((["--http2-prior-knowledge"], f"http://127.0.0.1:{server.plain_port}", [one]) for one in both)]:  # fmt: skip
            words = [word for path, _ in paths for word in (f"{url}{path}", "-o", out / path[1:])]
            done = subprocess.run(["curl", "-sS", "--noproxy", "*", *flags, "-w", "%{http_version} %{http_code}\n", *words],
                                  capture_output=True, text=True, timeout=60, check=True)  # fmt: skip
            assert done.stdout == "2 200\n" * len(paths)
            for path, content in paths:
                assert (out / path[1:]).read_bytes() == content
