"""Content of requests, and what ends before its time over HTTP/3: requests, streams, connections, and the server."""

import contextlib
import re
import signal
import threading
import time
from base64 import b64encode

import pytest

from frames import (
    DATA, EXCESSIVE_LOAD, GOAWAY_FIRST, HEADERS, NO_ERROR, REQUEST_CANCELLED, REQUEST_INCOMPLETE, REQUEST_REJECTED, frame, request,
)  # fmt: skip
from gatling import TIMEOUT, Root, eventually
from served import BIG, SMALL
from test_guard import hashed
from upstream import Upstream

BODY_MAX = 1 << 20
QUIC_LAST_S = 2
QUIC_WINDOW, UPLOAD = 256 << 10, 20_000
PAGE = b"x" * 200_000
LONG_UPLOAD = 20_000_000
BEGUN = 4  # streams whose answers have begun


# --- content ---


def test_requests_with_content_are_answered_when_it_has_come(c):
    stream = c.ask("/small.bin", ("content-length", "30000"), body=b"x" * 15000, end=False)
    assert c.get("/empty.txt").status == 200 and c.sync() is None and stream not in c.order
    c.send(stream, frame(DATA, b"x" * 15000), end=True)
    assert c.answer(stream).body == SMALL


def test_trailers_and_empty_data_are_taken(c):
    stream = c.ask_as(request("/small.bin"), body=b"", trailers=[("x-checksum", "1")])
    assert c.answer(stream).body == SMALL


def test_the_end_may_come_by_itself(c):
    stream = c.ask("/small.bin", end=False)
    c.sync()
    assert stream not in c.order
    c.send(stream, b"", end=True)
    assert c.answer(stream).body == SMALL


def test_windows_are_opened_for_content_that_is_dropped(c):
    stream = c.ask("/none", method="POST", end=False)
    for _ in range(50):
        c.send(stream, frame(DATA, b"x" * 16384))
    c.send(stream, b"", end=True)
    assert c.answer(stream).status == 405


def test_content_of_many_requests_passes_the_window_of_the_connection(c):
    for _ in range(10):
        streams = [c.ask("/small.bin", method="POST", body=b"x" * 60_000) for _ in range(20)]
        assert {answer.status for answer in c.answers(*streams)} == {405}


@pytest.mark.parametrize("path, method, status", [("/small.bin", "GET", 200), ("/small.bin", "POST", 405), ("/none", "GET", 404)])
def test_who_expects_a_100_gets_it_or_the_answer(c, path, method, status):
    stream = c.ask(path, ("expect", "100-continue"), method=method, end=False)
    if status == 200:
        c.until(lambda: stream in c.found and c.found[stream].interim)
        assert c.found[stream].interim == [[(":status", "100")]]
        c.send(stream, frame(DATA, b"x"), end=True)
    answer = c.answer(stream)
    assert answer.status == status and answer.reset is None
    assert status == 200 or c.until(lambda: answer.stopped) == NO_ERROR


def test_who_is_refused_while_sending_content_reads_the_answer_and_goes_on(c):
    """RFC 9114, section 4.1: after a complete answer the rest of the request is not needed."""
    stream = c.ask("/small.bin", ("content-length", "20000000"), method="POST", body=b"x" * 100_000, end=False)
    answer = c.answer(stream)
    assert answer.status == 413 and answer.reset is None and c.until(lambda: answer.stopped) == NO_ERROR
    assert c.get("/small.bin").body == SMALL


EARLY = {
    "an upstream": ("/app/x", (), "POST", lambda link: (link.head(), link.answer(PAGE), link.ended())),
    "no upstream": ("/app/x", (), "POST", lambda link: (link.head(), link.send(b"nonsense\r\n\r\n"))),
    "an error": ("/none", [("expect", "100-continue")], "GET", None),
}


@pytest.mark.parametrize("name", EARLY)
def test_an_answer_that_does_not_wait_for_content_is_complete(http3, client, name):
    """RFC 9114, section 4.1. The client is asked to end its request when it has been sent: some drop an answer otherwise."""
    path, fields, method, serve = EARLY[name]
    with Upstream(serve) as upstream:
        root = Root({"404.html": PAGE, "50x.html": PAGE, "_redirects": f"/app/* http://{upstream.address}/:splat 200\n".encode()})
        with http3.serve(root, "-j", "1", "--upstream", upstream.allowed) as server, client.Client(server, window=10_000, hold=True) as c:
            server.get("/none")  # now the page is in memory
            stream = c.ask(path, *fields, method=method, body=None if fields else b"x", end=False)
            c.until(lambda: stream in c.order)
            c.sync()
            assert c.found[stream].stopped is None and c.found[stream].reset is None
            c.widen(stream, 1 << 24)
            answer = c.answer(stream)
            assert answer.status and answer.reset is None and answer.body == PAGE
            assert c.until(lambda: answer.stopped) == NO_ERROR
        root.remove()


def test_more_content_than_anybody_needs_is_refused(c):
    """See BODY_MAX: without a length it is known only when it has come."""
    stream = c.ask("/none", method="POST", body=b"x" * (BODY_MAX + 1))
    assert c.answer(stream).reset == EXCESSIVE_LOAD
    assert c.get("/small.bin").body == SMALL


# --- requests ---


@pytest.mark.parametrize("how", ["reset", "stop", "both"])
def test_a_request_that_is_taken_back_ends_alone(client, server, how):
    with client.Client(server, window=1000, hold=True) as c:
        streams = [c.ask("/big.bin") for _ in range(20)]
        c.until(lambda: sum(stream in c.order for stream in streams) >= BEGUN)
        for stream in streams:
            if how != "reset":
                c.stop(stream, REQUEST_CANCELLED)
            if how != "stop":
                c.reset(stream, REQUEST_CANCELLED)
        assert c.sync() is None and c.get("/small.bin", ("range", "bytes=0-99")).body == SMALL[:100]


def test_streams_that_are_stopped_make_room_for_others(client, server):
    """Of their answers only a part could be sent, as their windows are closed; see STREAMS_MAX."""
    with client.Client(server, window=100, hold=True) as c:
        streams = [c.ask("/big.bin") for _ in range(120)]
        c.until(lambda: sum(stream in c.order for stream in streams) >= BEGUN)
        for stream in streams:
            c.stop(stream, REQUEST_CANCELLED)
        c.sync()
        others = [c.ask("/empty.txt") for _ in range(100)]
        c.until(lambda: all(stream in c.order for stream in others), 5)


def test_heads_that_do_not_come_keep_no_connection(http3, files, client):
    flags = ("--limit", "keepalive-timeout=1", "--limit", "head-timeout=5")
    with http3.serve(files, "-j", "1", *flags) as server, client.Client(server) as c:
        begun = time.monotonic()
        while c.end is None and time.monotonic() - begun < 8:
            stream = c.open()
            c.send(stream, b"\x01")
            again = time.monotonic() + 0.3
            while c.end is None and time.monotonic() < again:
                c.turn(again - time.monotonic())
            c.reset(stream, REQUEST_CANCELLED)
            c.turn(0.1)
        assert c.end and c.end.error_code == NO_ERROR


def test_a_head_that_has_begun_in_time_is_waited_for(http3, files, client):
    flags = ("--limit", "keepalive-timeout=2", "--limit", "head-timeout=8")
    with http3.serve(files, "-j", "1", *flags) as server, client.Client(server) as c:
        assert c.get("/small.bin").body == SMALL
        stream, head = c.open(), frame(HEADERS, request("/small.bin"))
        begun = time.monotonic()
        while time.monotonic() - begun < 1:
            c.turn(begun + 1 - time.monotonic())
        c.send(stream, head[:3])
        while c.end is None and time.monotonic() - begun < 5:
            c.turn(begun + 5 - time.monotonic())
        c.send(stream, head[3:], end=True)
        assert c.answer(stream).body == SMALL


def test_nothing_waits_for_downloads_that_are_not_read(http3, client):
    root = Root({f"f{i}": bytes([i]) * 70_000 for i in range(20)})
    with http3.serve(root, "-j", "1") as server, client.Client(server, window=1000, hold=True) as c:
        streams = [c.ask(f"/f{i}") for i in range(20)]
        c.until(lambda: all(stream in c.order for stream in streams), 5)
    root.remove()


def test_a_request_that_is_reset_before_its_end_is_not_answered(c):
    stream = c.ask("/small.bin", end=False)
    c.sync()
    c.reset(stream, REQUEST_CANCELLED)
    assert c.answer(stream).reset == REQUEST_CANCELLED
    assert c.get("/small.bin").body == SMALL


def test_an_answer_survives_the_reset_of_a_request_that_was_answered(c):
    """The server has answered 413 without the content."""
    stream = c.ask("/small.bin", ("content-length", "20000000"), method="POST", end=False)
    c.until(lambda: stream in c.order)
    c.reset(stream, REQUEST_CANCELLED)
    assert c.answer(stream).status == 413


def test_a_file_that_shrinks_ends_its_stream_alone(http3, client):
    root = Root({"shrinks": b"x" * 5_000_000, "small.bin": SMALL})
    with http3.serve(root, "-j", "1", "--limit", "cache=1M") as server, client.Client(server, window=100_000) as c:
        stream = c.ask("/shrinks")
        c.until(lambda: stream in c.order)
        with open(root.path / "shrinks", "r+b") as file:
            file.truncate(1000)
        answer = c.answer(stream)
        assert answer.reset is not None and c.get("/small.bin").body == SMALL
    root.remove()


# --- windows ---


def test_no_more_is_sent_than_the_windows_allow(client, server):
    with client.Client(server, window=1000) as c:
        stream = c.ask("/big.bin")
        c.quic._streams[stream].max_stream_data_local = 1000  # pylint: disable=protected-access
        c.until(lambda: stream in c.order)
        assert c.answer(stream).body == BIG and c.end is None  # aioquic ends a connection that sends more


def test_a_window_of_the_connection_that_is_closed_is_waited_for(client, server):
    with client.Client(server, total=10_000) as c:
        assert [answer.body for answer in c.answers(c.ask("/big.bin"), c.ask("/big.bin"), c.ask("/small.bin"))] == [BIG, BIG, SMALL]


def test_uploads_that_are_reset_give_their_part_of_the_window_back(http3, client):
    """Their content is kept until a password has been checked, which takes longer."""
    with Upstream(lambda link: (link.head(), link.ended())) as upstream:
        root = Root({"small.bin": SMALL, "app/.htaccess": b"A realm\nann:" + hashed("$6$rounds=200000$saltsalt").encode() + b"\n",
                     "_redirects": f"/app/* http://{upstream.address}/:splat 200\n".encode()})  # fmt: skip
        with http3.serve(root, "-j", "1", "--upstream", upstream.allowed) as server, client.Client(server) as c:
            for n in range(2 * QUIC_WINDOW // UPLOAD):
                stream = c.ask("/app/x", ("authorization", "Basic " + b64encode(b"ann:%d" % n).decode()), method="PUT", body=b"x" * UPLOAD, end=False)
                c.sync()
                c.reset(stream, REQUEST_CANCELLED)
                assert c.answer(stream).reset == REQUEST_CANCELLED
                c.acknowledge()
            assert c.answer(c.ask("/small.bin", method="PUT", body=b"x" * QUIC_WINDOW)).status == 405
        root.remove()


def test_an_upload_waits_for_its_upstream(http3, client):
    """Which takes nothing for a while, when the windows have grown (QUIC_WINDOW_MAX)."""
    go = threading.Event()

    def serve(link):
        link.head()
        link.take(LONG_UPLOAD // 2)
        assert go.wait(TIMEOUT)
        link.take(LONG_UPLOAD - LONG_UPLOAD // 2)
        link.answer(b"taken")
        link.ended()

    with Upstream(serve) as upstream:
        root = Root({"_redirects": f"/app/* http://{upstream.address}/:splat 200\n".encode()})
        with http3.serve(root, "-j", "1", "--upstream", upstream.allowed) as server, client.Client(server) as c:
            stream = c.ask("/app/x", ("content-length", str(LONG_UPLOAD)), method="PUT", body=b"x" * LONG_UPLOAD, end=True)
            sent = -1
            while sent < c.quic._remote_max_data_used:  # pylint: disable=protected-access
                sent = c.quic._remote_max_data_used  # pylint: disable=protected-access
                until = time.monotonic() + 0.5
                while time.monotonic() < until:
                    c.turn(0.1)
            assert LONG_UPLOAD // 2 < sent < LONG_UPLOAD and stream not in c.found
            go.set()
            assert c.answer(stream).body == b"taken"
        root.remove()


# --- connections ---


def test_a_client_that_leaves_is_forgotten(http3, client, files):
    with http3.serve(files, "-j", "1") as server:
        with client.Client(server, window=1000, hold=True) as c:
            stream = c.ask("/big.bin")
            c.until(lambda: stream in c.order)
        line = eventually(lambda: server.lines)[0]
        assert re.search(r'"GET /big.bin HTTP/3.0" 200 \d+ [\d.]+$', line), line


@pytest.mark.parametrize("error", [NO_ERROR, EXCESSIVE_LOAD, 0x12345678])
def test_a_client_may_leave_with_any_error(client, server, error):
    with client.Client(server) as c:
        assert c.get("/small.bin").body == SMALL
        c.close(error, "of a test")
    with client.Client(server) as c:
        assert c.get("/small.bin").body == SMALL


def test_an_idle_connection_is_ended_in_time(http3, client, files):
    with http3.serve(files, "-j", "1", "--limit", "keepalive-timeout=1") as server, client.Client(server) as c:
        assert c.get("/small.bin").body == SMALL
        started = time.monotonic()
        assert c.ended() == NO_ERROR and 0.8 < time.monotonic() - started < 5


def test_a_request_that_does_not_go_on_is_ended_in_time(http3, client, files):
    with http3.serve(files, "-j", "1", "-T", "1") as server, client.Client(server) as c:
        c.ask("/small.bin", end=False)
        started = time.monotonic()
        assert c.ended() == REQUEST_INCOMPLETE and 0.8 < time.monotonic() - started < 5


def test_a_window_that_stays_shut_is_not_waited_for(http3, client, files):
    with http3.serve(files, "-j", "1", "-T", "1") as server, client.Client(server, window=0) as c:
        c.ask("/big.bin")
        assert c.ended() == REQUEST_INCOMPLETE


# --- the server ---


def test_the_end_is_announced_and_what_is_under_way_is_finished(http3, client, files):
    """RFC 9114, section 5.2: the number in the GOAWAY is that of the first request that is not answered."""
    with http3.serve(files, "-j", "1", "--limit", "cache=1M", drain_delay=None) as server:
        with client.Client(server, window=0) as busy, client.Client(server) as idle:
            assert idle.get("/small.bin").body == SMALL
            streams = [busy.ask("/big.bin"), busy.ask("/small.bin", end=False)]
            busy.sync()
            server.signal(signal.SIGINT)
            assert busy.goaway() == 8
            late = busy.ask("/small.bin")
            assert busy.answer(late).reset == REQUEST_REJECTED
            busy.send(streams[1], b"", end=True)
            for stream in streams:
                busy.widen(stream, 1 << 24)
            big, small = busy.answers(*streams)
            assert big.body == BIG and small.body == SMALL
            assert busy.ended() == NO_ERROR and idle.ended() == NO_ERROR
        server.wait()


def test_a_client_that_asks_while_the_end_is_announced_is_answered(http3, client, files):
    with http3.serve(files, "-j", "1", drain_delay=None) as server, client.Client(server) as c:
        assert c.get("/small.bin").body == SMALL
        server.signal(signal.SIGTERM)
        assert c.goaway() == GOAWAY_FIRST
        assert c.get("/small.bin").body == SMALL
        assert c.ended() == NO_ERROR and c.goaways() == [GOAWAY_FIRST, 8]
        server.wait()


def test_what_was_sent_before_the_end_is_waited_for(http3, client, files):
    """Whatever is lost on the way, for longer than QUIC_LAST_S."""

    class Losing(client.Link):
        loses, lost = False, 0

        def received(self, datagram):
            self.lost += self.loses
            return [] if self.loses else [datagram]

    link = Losing()
    with http3.serve(files, "-j", "1", drain_delay=None) as server, client.Client(server, link) as c:
        assert c.get("/empty.txt").status == 200
        link.loses = True
        stream = c.ask("/small.bin")
        c.until(lambda: link.lost)
        server.signal(signal.SIGTERM)
        until = time.monotonic() + 2 * QUIC_LAST_S
        while time.monotonic() < until:
            c.turn(0.1)
        link.loses = False
        assert c.answer(stream).body == SMALL and c.ended() == NO_ERROR
        server.wait()


def test_a_client_that_is_gone_is_not_waited_for(http3, client, files):
    with http3.serve(files, "-j", "1", drain_delay=None) as server, client.Client(server) as c:
        assert c.get("/small.bin").body == SMALL
        c.acknowledge()
        c.socket.close()
        started = time.monotonic()
        server.signal(signal.SIGTERM)
        server.wait()
        assert time.monotonic() - started < 4 * QUIC_LAST_S
        c.end = True
