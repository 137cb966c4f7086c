"""httpbench over HTTP/3: each request is a stream, failures are told apart, and certificates are verified as over TCP."""

import os
import re
import socket
import threading
import time

import pytest

from frames import DATA, EXCESSIVE_LOAD, INTERNAL_ERROR, NO_ERROR, REQUEST_REJECTED, frame
from gatling import Root, certificate, eventually
from running import failures, httpbench

BIG = os.urandom(3_000_000)
CONNECTION_REFUSED = 2  # RFC 9000, section 20.1
LOOPS = pytest.mark.parametrize("rate", [[], ["-R", 2000]], ids=["closed", "open"])


@pytest.fixture
def run(http3, tmp_path):
    """Returns a function that runs httpbench inside the root, and returns its JSON."""
    tmp_path.chmod(0o755)

    def run_there(url, *arguments, insecure=True, **options):
        accepting = ["--insecure"] if insecure else []
        return httpbench(http3.build, "--http3", *accepting, *arguments, url, launcher=http3.inside, **{"tmp_path": tmp_path, **options})

    return run_there


@pytest.fixture
def said(run):
    """The same; returns all that it says."""

    def run_there(url, *arguments, **options):
        done = run(url, *arguments, tmp_path=None, **options)
        return re.sub(r"\s+", " ", done.stdout + done.stderr)

    return run_there


@pytest.fixture(scope="module")
def files():
    root = Root({"small": b"hello", "big": BIG})
    yield root
    root.remove()


def url_of(server, path="/small"):
    return f"https://127.0.0.1:{server.tls_port}{path}"


# --- against gatling ---


@LOOPS
def test_every_request_is_a_stream_and_answered_once(run, server, rate):
    result = run(url_of(server), "-n", 1000, "-c", 4, "-p", 8, "-t", 2, *rate)
    assert result["sent"] == result["answered"] == 1000 and not failures(result) and result["connected"] == 4
    assert result["protocol"] == "HTTP/3" and result["pipeline"] == 8 and result["tls"].startswith("TLSv1.3")
    assert result["durations"]["whole"]["samples"] == result["durations"]["first_byte"]["samples"] == 1000
    assert result["durations"]["handshake"]["samples"] == 4 and not result["durations"]["connect"]["samples"]


def test_an_open_loop_keeps_its_rate(run, server):
    result = run(url_of(server), "-R", 500, "--arrival", "constant", "-d", 2, "-c", 4, "-p", 4)
    assert result["answered"] == 1000 and not failures(result)
    assert result["answered_per_s"] == pytest.approx(500, rel=0.05)


@pytest.mark.parametrize("resume", [[], ["--resume"]], ids=["full", "resumed"])
def test_a_connection_for_each_request(run, server, resume):
    result = run(url_of(server), "-n", 20, "-c", 2, "-k", 1, *resume)
    assert result["answered"] == result["connected"] == result["durations"]["handshake"]["samples"] == 20
    assert result["resumed"] >= 16 if resume else result["resumed"] == 0


def test_a_file_comes_whole_through_small_windows(run, http3, files):
    with http3.serve(files, "-j", "1") as server:
        result = run(url_of(server, "/big"), "-n", 20, "-c", 2, "-p", 3, "--window", 20_000, "--connection-window", 65_535, "--expect",
                     files.path / "big")  # fmt: skip
        assert result["answered"] == 20 and not failures(result)
        result = run(url_of(server, "/big"), "-n", 2, "-c", 1, "--expect", files.path / "small", status=1)
        assert failures(result) == {"wrong_bytes": 2}
        result = run(url_of(server, "/big"), "-n", 2, "-c", 1, "-X", "HEAD")
        assert result["answered"] == 2 and result["bytes"] < 100_000


def test_a_server_that_dies_is_reported(run, http3, files):
    server = http3.serve(files, "-j", "1")
    timer = threading.Timer(1, server.kill)
    timer.start()
    result = run(url_of(server), "-d", 3, "-c", 4, "-p", 4, status=1)
    timer.join()
    assert result["answered"] > 100 and failures(result)["reset"] == 16 and failures(result)["refused"] > 1
    assert set(failures(result)) == {"reset", "refused"}


# --- requests ---


def test_a_request_is_what_was_asked_for(run, origin, tmp_path):
    """Its content is larger than the server's window, which the server extends."""
    content, asked = os.urandom(300_000), []
    (tmp_path / "content").write_bytes(content)
    with origin(certificate(), lambda stream: (asked.append(stream), stream.answer()), max_stream_data=50_000) as server:
        result = run(server.url, "-n", 4, "-c", 1, "-p", 2, "-H", "X-Name: some value", "-H", "Priority: u=1", "--body", tmp_path / "content")
        assert result["answered"] == result["sent"] == 4
        for stream in asked:
            assert stream.fields == {":method": "POST", ":scheme": "https", ":path": "/", ":authority": f"127.0.0.1:{server.port}",
                                     "x-name": "some value", "priority": "u=1", "content-length": "300000"}  # fmt: skip
            assert stream.content == content
        run(server.url + "a?b=c", "-n", 1, "-c", 1, "-H", "Host: example.org")
        assert asked[-1].fields == {":method": "GET", ":scheme": "https", ":path": "/a?b=c", ":authority": "example.org"}
        eventually(lambda: server.ends == [NO_ERROR] * 2)


def test_an_answer_before_the_content_was_sent_counts(run, origin, tmp_path):
    """The server never lets the client send it whole."""
    (tmp_path / "content").write_bytes(bytes(1_000_000))
    with origin(certificate(), early=lambda stream: stream.answer(status=413), max_stream_data=1_000) as server:
        result = run(server.url, "-n", 6, "-c", 1, "-p", 2, "--body", tmp_path / "content", "-T", 5, status=1)
        assert failures(result) == {"wrong_status": 6} and result["statuses"] == {"413": 6} and result["connected"] == 1
        eventually(lambda: server.ends)
        assert 4 <= len(server.resets) <= 6 and set(server.resets) == {NO_ERROR}  # the end may come before the last two


def test_more_streams_than_the_server_allows_wait(run, origin):
    with origin(certificate(), streams=2) as server:
        result = run(server.url, "-n", 60, "-c", 1, "-p", 8)
        assert result["answered"] == 60 and not failures(result) and result["connected"] == 1


# --- the fate of one stream does not affect the others ---


def test_each_stream_is_measured_by_itself(run, origin):
    """One of four is answered after 100 ms, the others immediately."""

    def behave(stream):
        if stream.order % 4 == 1:
            stream.later(0.1, stream.answer)
        else:
            stream.answer()

    with origin(certificate(), behave) as server:
        result = run(server.url, "-n", 100, "-c", 1, "-p", 4)
        percentiles = result["durations"]["whole"]["percentiles_ns"]
        assert result["answered"] == 100 and percentiles["99"] >= 100e6
        assert percentiles["50"] < 100e6


def test_one_stream_fails_and_the_others_do_not(run, origin, tmp_path):
    (tmp_path / "expected").write_bytes(b"hello")

    def behave(stream):
        odd = {7: lambda: stream.reset(INTERNAL_ERROR), 8: lambda: stream.answer(status=404), 9: lambda: stream.answer(b"olleh"),
               10: lambda: stream.answer(b"hello", 200, ("content-length", "9")), 11: lambda: stream.send(stream.head() + frame(DATA, b"hello")[:-1], True),
               12: lambda: stream.send(stream.head() + b"\x21\0" + frame(DATA, b"hel"), True), 13: lambda: stream.send(b"", True),
               14: lambda: (stream.send(stream.head() + frame(DATA, b"hel")), stream.reset(NO_ERROR)),
               15: lambda: stream.answer(b"hello", 299, ("content-length", "4")), 16: lambda: stream.answer(b"hello", 600),
               17: lambda: stream.send(stream.head(103) + stream.head(418) + frame(DATA, b"hello"), True)}  # fmt: skip
        odd.get(stream.order, stream.answer)()

    with origin(certificate(), behave) as server:
        result = run(server.url, "-n", 50, "-c", 1, "-p", 4, "--expect", tmp_path / "expected", status=1)
        assert result["answered"] == 39 and result["connected"] == 1 and result["statuses"] == {"404": 1, "418": 1, "600": 1}
        assert failures(result) == {"reset": 1, "wrong_status": 3, "wrong_bytes": 2, "short": 3, "not_http": 2}


@LOOPS
def test_a_stream_without_an_answer_in_time_fails_alone(run, origin, rate):
    """Its answer comes later, and counts as little as one that never comes."""

    def behave(stream):
        if stream.order % 50 != 25:
            stream.later(0.02, stream.answer)
        elif stream.order == 25:
            stream.later(1.2, stream.answer)

    with origin(certificate(), behave) as server:
        result = run(server.url, "-n", 500, "-c", 1, "-p", 16, "-T", 0.7, *[400 if part == 2000 else part for part in rate], status=1)
        assert failures(result) == {"timed_out": 10} and result["answered"] == 490
        assert len(server.connections) == 1 and server.requests == 500


def test_streams_that_were_rejected_are_asked_again(run, origin):
    def behave(stream):
        if stream.order % 5 == 0:
            stream.reset(REQUEST_REJECTED)
        else:
            stream.answer()

    with origin(certificate(), behave) as server:
        result = run(server.url, "-n", 100, "-c", 2, "-p", 4)
        assert result["answered"] == result["sent"] == 100 and server.requests > 100 and not failures(result)
    with origin(certificate(), lambda stream: stream.reset(REQUEST_REJECTED)) as server:
        result = run(server.url, "-n", 20, "-c", 2, "-p", 4, status=1)
        assert failures(result) == {"reset": 20} and result["answered"] == 0


def test_after_goaway_the_rest_goes_to_another_connection(run, origin):
    def behave(stream):
        if stream.number == 36:
            stream.connection.goaway(40)
        if stream.number <= 36:
            stream.answer()

    with origin(certificate(), behave) as server:
        result = run(server.url, "-n", 60, "-c", 1, "-p", 4)
        assert result["answered"] == 60 and not failures(result) and result["connected"] == 6


# --- the end of connections ---

ENDS = {
    "connection closed by the server: H3_EXCESSIVE_LOAD": (lambda stream: stream.connection.close(EXCESSIVE_LOAD), {"reset": 4}),
    "connection closed by the server: H3_NO_ERROR": (lambda stream: stream.connection.close(), {"short": 1, "reset": 3}),
    "connection closed by the server: CONNECTION_REFUSED": (lambda stream: stream.connection.close(CONNECTION_REFUSED, 0), {"reset": 4}),
    "connection closed by the server: error 0x4321": (lambda stream: stream.connection.close(0x4321), {"reset": 4}),
    "stateless reset": (lambda stream: stream.connection.stateless_reset(), {"reset": 4}),
    "the server broke HTTP/3: H3_FRAME_UNEXPECTED": (lambda stream: stream.send(frame(DATA, b"hello")), {"not_http": 1, "reset": 3}),
    "the server broke HTTP/3: QPACK_DECOMPRESSION_FAILED": (lambda stream: stream.send(frame(1, b"\1\0\x80")), {"not_http": 1, "reset": 3}),
    "the server broke HTTP/3: H3_ID_ERROR": (lambda stream: stream.send(frame(5, b"\0\0\0")), {"not_http": 1, "reset": 3}),
}


@pytest.mark.parametrize("says", ENDS)
def test_the_end_of_a_connection_is_told_apart(run, said, origin, says):
    behave, kinds = ENDS[says]
    with origin(certificate(), behave) as server:
        assert failures(run(server.url, "-n", 4, "-c", 1, "-p", 4, status=1)) == kinds
        assert f"http3 failed: {says} " in said(server.url, "-n", 4, "-c", 1, "-p", 4, status=1)


def test_a_silent_server_is_an_idle_timeout(said, origin):
    with origin(certificate(), lambda stream: None, idle_timeout=1.0) as server:
        text = said(server.url, "-n", 2, "-c", 1, "-p", 2, "-T", 10, status=1)
        assert "failed 2: timed_out 2 http3 failed: idle timeout " in text


def test_a_handshake_without_an_answer_times_out(said):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        began = time.monotonic()
        text = said(f"https://127.0.0.1:{silent.getsockname()[1]}/", "-n", 2, "-c", 2, "-T", 0.5, status=1)
        assert "failed 2: timed_out 2 http3 failed: handshake timed out " in text and time.monotonic() - began < 5


def test_a_port_where_nobody_listens_is_named(said):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    assert f"httpbench: cannot connect to https://127.0.0.1:{port}/: Connection refused" in said(f"https://127.0.0.1:{port}/", "-d", 5, status=2)


def test_what_is_not_http3_is_named(said, origin):
    with origin(certificate(), alpn=["hq-interop"]) as server:
        assert "the server does not speak HTTP/3 (it has not agreed to h3 by ALPN)" in said(server.url, "-n", 1, "-c", 1, status=2)


# --- certificates ---


def test_a_certificate_is_verified(run, said, server, origin):
    url, own = url_of(server), certificate()[0]
    trusts = {"env": os.environ | {"SSL_CERT_FILE": str(own)}}
    assert run(url, "-n", 2, "-c", 1, insecure=False, **trusts)["answered"] == 2
    text = said(url, "-n", 2, "-c", 1, insecure=False, status=2)
    assert f"httpbench: no TLS with {url}: the certificate: self-signed certificate" in text
    with origin(certificate("DNS:other.example")) as other:
        trusts = {"env": os.environ | {"SSL_CERT_FILE": str(certificate("DNS:other.example")[0])}}
        assert "the certificate: IP address mismatch" in said(other.url, "-n", 1, "-c", 1, insecure=False, status=2, **trusts)


# --- options ---

REFUSED = {
    "--http3 takes https://": ["http://127.0.0.1:1/"],
    "--http2 and --http3 exclude each other": ["--http2", "https://127.0.0.1:1/"],
    "--http3 is over UDP": ["--unix", "/socket", "https://127.0.0.1:1/"],
    "--websocket is over HTTP/1.1": ["--websocket", "https://127.0.0.1:1/"],
}


@pytest.mark.parametrize("says", REFUSED)
def test_bad_options_are_named(said, says):
    *options, url = REFUSED[says]
    assert f"httpbench: {says}" in said(url, *options, status=2) or f": {says}" in said(url, *options, status=2)


def test_its_version_names_the_libraries(http3):
    assert re.search(r"; HTTP/3: ngtcp2 \d[\d.]*, nghttp3 \d[\d.]*\)\n", http3.run(http3.build / "bench/httpbench", "--version"))
