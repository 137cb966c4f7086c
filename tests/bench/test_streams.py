"""httpbench over HTTP/2: each request is a stream, and the fate of one does not affect the
others."""

import os
import socket
import threading

import pytest

from gatling import Root, Server
from http2 import DATA, END_HEADERS, END_STREAM, HEADERS, INTERNAL_ERROR, NO_ERROR, REFUSED_STREAM, frame
from http2_origin import Http2Origin
from origin import Origin, certificate, speaking
from running import failures, httpbench

pytestmark = pytest.mark.decided

MAX_CONCURRENT_STREAMS, WINDOW, PUSH = 3, 4, 2


def run(build, tmp_path, origin, *arguments, **options):
    return httpbench(build, "--http2", *arguments, origin.url, tmp_path=tmp_path, **options)


def secure(tmp_path, protocols):
    context = speaking(certificate(tmp_path, "address", "IP:127.0.0.1"))
    context.set_alpn_protocols(protocols)
    return context


@pytest.mark.parametrize("rate", [[], ["-R", 2000]], ids=["closed", "open"])
@pytest.mark.parametrize("tls", [False, True], ids=["clear", "tls"])
def test_every_request_is_a_stream_and_answered_once(build, tmp_path, rate, tls):
    with Http2Origin(context=secure(tmp_path, ["h2"]) if tls else None) as origin:
        result = run(build, tmp_path, origin, "-n", 500, "-c", 3, "-p", 7, "--insecure", *rate)
        assert result["sent"] == result["answered"] == origin.requests == 500 and not failures(result)
        assert result["connected"] == len(origin.connections) == 3 and result["protocol"] == "HTTP/2" and result["pipeline"] == 7
        assert result["durations"]["whole"]["samples"] == result["durations"]["first_byte"]["samples"] == 500


def test_a_request_is_what_was_asked_for(build, tmp_path):
    asked = []
    with Http2Origin(lambda stream: (asked.append(stream), stream.answer())) as origin:
        (tmp_path / "content").write_bytes(os.urandom(300_000))
        run(build, tmp_path, origin, "-n", 4, "-c", 1, "-p", 2, "-H", "X-Name: some value", "-H", "Priority: u=1",
            "--body", tmp_path / "content")  # fmt: skip
        authority = origin.url.split("/")[2]
        for stream in asked:
            assert stream.fields == {":method": "POST", ":scheme": "http", ":path": "/", ":authority": authority,
                                     "x-name": "some value", "priority": "u=1", "content-length": "300000"}  # fmt: skip
            assert stream.content == (tmp_path / "content").read_bytes()
        httpbench(build, "--http2", "-n", 1, "-H", "Host: example.org", origin.url + "a?b=c")
        assert asked[-1].fields == {":method": "GET", ":scheme": "http", ":path": "/a?b=c", ":authority": "example.org"}


def test_each_stream_is_measured_by_itself(build, tmp_path):
    """One of four is answered after 50 ms, the others immediately."""

    def behave(stream):
        if stream.order % 4 == 1:
            threading.Timer(0.05, stream.answer).start()
        else:
            stream.answer()

    with Http2Origin(behave) as origin:
        result = run(build, tmp_path, origin, "-n", 100, "-c", 1, "-p", 4)
        percentiles = result["durations"]["whole"]["percentiles_ns"]
        assert result["answered"] == 100 and percentiles["99"] >= 50e6
        assert percentiles["50"] < 50e6


def test_streams_that_were_refused_are_asked_again(build, tmp_path):
    def behave(stream):
        if stream.order % 5 == 0:
            stream.reset(REFUSED_STREAM)
        else:
            stream.answer()

    with Http2Origin(behave) as origin:
        result = run(build, tmp_path, origin, "-n", 100, "-c", 2, "-p", 4)
        assert result["answered"] == result["sent"] == 100 and origin.requests > 100 and not failures(result)


def test_a_server_that_refuses_all_streams_fails(build, tmp_path):
    with Http2Origin(lambda stream: stream.reset(REFUSED_STREAM)) as origin:
        result = run(build, tmp_path, origin, "-n", 20, "-c", 2, "-p", 4, status=1)
        assert failures(result) == {"reset": 20} and result["answered"] == 0
    with Http2Origin(lambda stream: stream.connection.goaway(0)) as origin:
        result = run(build, tmp_path, origin, "-n", 20, "-c", 2, "-p", 4, status=1)
        assert sum(failures(result).values()) == 20


def test_what_ends_without_its_end_is_no_answer(build, tmp_path):
    """The server sends a part of the content, and then RST_STREAM with NO_ERROR."""

    def behave(stream):
        if stream.order % 2:
            stream.connection.send(frame(HEADERS, END_HEADERS, stream.number, b"\x88") + frame(DATA, 0, stream.number, b"hel"))
            stream.reset(NO_ERROR)
        else:
            stream.answer()

    with Http2Origin(behave) as origin:
        result = run(build, tmp_path, origin, "-n", 20, "-c", 1, "-p", 1, status=1)
        assert failures(result) == {"short": 10} and result["answered"] == 10


@pytest.mark.parametrize("rate", [[], ["-R", 2000]], ids=["closed", "open"])
def test_streams_that_end_while_something_is_sent(build, tmp_path, rate):
    """The response has a wrong length, so nghttp2 resets the stream when it sends the next time."""

    def behave(stream):
        if stream.order % 3 == 0:
            length = b"\x0f\x0d\x019"  # content-length: 9
            stream.connection.send(frame(HEADERS, END_HEADERS, stream.number, b"\x88" + length) + frame(DATA, END_STREAM, stream.number, b"hi"))
        else:
            stream.answer()

    with Http2Origin(behave) as origin:
        result = run(build, tmp_path, origin, "-n", 60, "-c", 1, "-p", 1, "-k", 7, *rate, status=1)
        assert result["answered"] == 40 and failures(result) == {"not_http": 20}


def test_after_goaway_the_rest_goes_to_another_connection(build, tmp_path):
    def behave(stream):
        if stream.number == 19:
            stream.connection.goaway(19)
        if stream.number <= 19:
            stream.answer()

    with Http2Origin(behave) as origin:
        result = run(build, tmp_path, origin, "-n", 60, "-c", 1, "-p", 4)
        assert result["answered"] == 60 and not failures(result)
        assert result["connected"] == len(origin.connections) == 6


def test_behind_an_error_with_goaway_the_rest_is_asked_again(build, tmp_path):
    def behave(stream):
        if stream.number == 1:
            stream.connection.goaway(1)
            stream.answer(status=b"\x8d")  # 404

    with Http2Origin(behave) as origin:
        result = run(build, tmp_path, origin, "-n", 60, "-c", 2, "-p", 16, status=1)
        assert failures(result) == {"wrong_status": 60} and result["connected"] == 60


def test_one_stream_fails_and_the_others_do_not(build, tmp_path):
    def behave(stream):
        if stream.order == 7:
            stream.reset(INTERNAL_ERROR)
        elif stream.order == 8:
            stream.answer(status=b"\x8d")  # 404
        elif stream.order == 9:
            stream.answer(b"olleh")
        else:
            stream.answer()

    with Http2Origin(behave) as origin:
        (tmp_path / "expected").write_bytes(b"hello")
        result = run(build, tmp_path, origin, "-n", 50, "-c", 1, "-p", 4, "--expect", tmp_path / "expected", status=1)
        assert result["answered"] == 47 and result["connected"] == 1
        assert failures(result) == {"reset": 1, "wrong_status": 1, "wrong_bytes": 1}


def test_what_is_not_http2_is_said(build, tmp_path):
    with Http2Origin(lambda stream: stream.connection.send(frame(HEADERS, END_HEADERS, stream.number, b"\xff\xff\xff\xff"))) as origin:
        result = run(build, tmp_path, origin, "-n", 1, "-c", 1, status=1)
        assert failures(result) == {"not_http": 1}
    with Origin(lambda connection, number, request: b"HTTP/1.1 400 Bad Request\r\n\r\n") as origin:
        result = run(build, tmp_path, origin, "-n", 1, "-c", 1, status=1)
        assert failures(result) == {"not_http": 1}


def test_a_server_without_http2_is_named(build, tmp_path):
    with Origin(context=secure(tmp_path, ["http/1.1"])) as origin:
        done = httpbench(build, "--http2", "--insecure", "-n", 1, origin.url, status=2)
        assert "the server does not speak HTTP/2" in done.stdout + done.stderr


def test_no_more_streams_than_the_server_allows(build, tmp_path):
    waiting, most = [], []

    def behave(stream):
        waiting.append(stream)
        if stream.connection.settings and stream.order > 8:
            most.append(len(waiting))
        if len(waiting) >= 2 or stream.order == 40:
            while waiting:
                waiting.pop().answer()

    with Http2Origin(behave, settings=[(MAX_CONCURRENT_STREAMS, 2)]) as origin:
        result = run(build, tmp_path, origin, "-n", 40, "-c", 1, "-p", 8)
        assert result["answered"] == 40 and max(most) <= 2


def test_the_windows_are_those_that_were_asked_for(build, tmp_path):
    with Http2Origin() as origin:
        run(build, tmp_path, origin, "-n", 1, "-c", 1, "--window", 1000, "--connection-window", 100_000)
        assert origin.connections[0].settings == {PUSH: 0, WINDOW: 1000}


def test_a_file_of_gatling_comes_whole(build, tmp_path):
    root = Root({"file": os.urandom(3_000_000)})
    with Server(build, root, "-j", "1", "-n") as server:
        result = httpbench(build, "--http2", "-n", 20, "-c", 2, "-p", 3, "--window", 20_000, "--expect", root.path / "file",
                           server.url("/file"), tmp_path=tmp_path)  # fmt: skip
        assert result["answered"] == 20 and not failures(result)


REFUSED = {
    "HTTP/2 and HTTP/3 have no field Connection": ["--http2", "-H", "Connection: close"],
    "--window and --connection-window are of HTTP/2 and HTTP/3": ["--window", "1000"],
    "--connection-window": ["--http2", "--connection-window", "100"],
    "is empty": ["--body", "/dev/null"],
    "cannot read": ["--body", "/nonexistent"],
}


@pytest.mark.parametrize("says", REFUSED)
def test_bad_options_are_named(build, says):
    assert says in httpbench(build, *REFUSED[says], "http://127.0.0.1:1/", status=2).stderr


def accepting(length, seen):
    """Reads requests with that much content, and answers each one."""

    def serve(connection):
        with connection, connection.makefile("rb") as reader:
            while line := reader.readline():
                head = line
                while (line := reader.readline()) != b"\r\n":
                    head += line
                seen.append((head, reader.read(length)))
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    return lambda connection: threading.Thread(target=serve, args=(connection.dup(),), daemon=True).start()


def test_content_over_http1(build, tmp_path):
    content, seen = os.urandom(200_000), []
    (tmp_path / "content").write_bytes(content)
    listener = socket.create_server(("127.0.0.1", 0))
    serve = accepting(len(content), seen)

    def accept():
        while True:
            with listener.accept()[0] as connection:
                serve(connection)

    threading.Thread(target=accept, daemon=True).start()
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
    result = httpbench(build, "-n", 6, "-c", 2, "-p", 2, "--body", tmp_path / "content", url, tmp_path=tmp_path)
    assert result["answered"] == result["sent"] == 6 and not failures(result)
    for head, body in seen:
        assert head.startswith(b"POST / ") and b"Content-Length: 200000\r\n" in head and body == content


def test_an_answer_before_the_connection_was_closed_counts(build, tmp_path):
    def refuse(connection, _, __):
        connection.sendall(b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n")

    (tmp_path / "content").write_bytes(bytes(50_000_000))
    with Origin(refuse) as origin:  # closing with unread content resets
        result = httpbench(build, "-n", 5, "-c", 1, "--body", tmp_path / "content", origin.url, status=1, tmp_path=tmp_path)
        assert sum(failures(result).values()) == 5 and set(failures(result)) <= {"wrong_status", "reset"}


def test_an_answer_before_the_content_was_sent_counts(build, tmp_path):
    ended = threading.Event()

    def refuse(connection, _, __):
        connection.sendall(b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n")
        ended.wait()  # it reads no more

    (tmp_path / "content").write_bytes(bytes(50_000_000))
    with Origin(refuse) as origin:
        result = httpbench(build, "-n", 2, "-c", 1, "--body", tmp_path / "content", origin.url, status=1, tmp_path=tmp_path)
        ended.set()
        assert failures(result) == {"wrong_status": 2} and result["connected"] == 2


@pytest.mark.parametrize("rate", [[], ["-R", 400]], ids=["closed", "open"])
def test_a_stream_without_an_answer_in_time_fails_alone(build, tmp_path, rate):
    """Its answer comes later, and counts as little as one that never comes."""

    def behave(stream):
        if stream.order % 100 != 50:
            threading.Timer(0.02, stream.answer).start()
        elif stream.order == 50:
            threading.Timer(1.2, stream.answer).start()

    with Http2Origin(behave) as origin:
        result = run(build, tmp_path, origin, "-n", 1000, "-c", 1, "-p", 16, "-T", 0.7, *rate, status=1)
        assert failures(result) == {"timed_out": 10} and result["answered"] == 990
        assert len(origin.connections) == 1 and origin.requests == 1000


def test_a_connection_on_which_nothing_comes_is_closed(build, tmp_path):
    """The server's settings may come after the first requests were sent, but nothing later."""
    with Http2Origin(lambda stream: len(stream.connection.origin.connections) > 1 and stream.answer()) as origin:
        result = run(build, tmp_path, origin, "-n", 40, "-c", 1, "-p", 4, "-T", 0.5, status=1)
        late = failures(result)["timed_out"]
        assert late in (4, 8) and result["answered"] == 40 - late and len(origin.connections) == 2


@pytest.mark.parametrize("protocol", [[], ["--http2"]], ids=["http1", "http2"])
def test_in_open_loop_connections_can_be_held(build, tmp_path, protocol):
    """Few requests find all connections open, which they would not need."""
    root = Root({"file": b"x"})
    with Server(build, root, "-j", "1", "-n") as server:
        result = httpbench(build, "-R", 50, "-c", 200, "--hold", "-d", 1, *protocol, server.url("/file"), tmp_path=tmp_path)
    root.remove()
    assert result["connected"] == 200 and 20 <= result["answered"] <= 90 and not failures(result)
