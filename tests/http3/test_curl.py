"""HTTP/3 as curl speaks it: what is answered is what other protocols get; and datagrams that belong to no connection."""

import hashlib
import os
import re
import signal
import socket
import subprocess
import time

import pytest

from gatling import Root, eventually
from upstream import Upstream

SMALL, BIG = b"a small file\n", os.urandom(3_000_000)
HUGE = 50_000_000
UNKNOWN_VERSION, VERSION_1, VERSION_2 = b"\x1a\x2a\x3a\x4a", b"\0\0\0\x01", b"\x6b\x33\x43\xcf"


@pytest.fixture(scope="module")
def files():
    root = Root({"small.txt": SMALL, "big.bin": BIG, "_redirects": b"/old /small.txt 301\n", "404.html": b"<p>none here"})
    root.write("huge.bin", b"\0" * HUGE)
    yield root
    root.remove()


class Curl:
    """curl inside the root, with HTTP/3 alone."""

    def __init__(self, http3):
        self.command = [*http3.inside, "curl", "--silent", "--show-error", "--http3-only", "--insecure", "--max-time", "30"]

    def __call__(self, server, path, *options, send=None):
        """Returns what curl writes."""
        done = subprocess.run([*self.command, *options, f"https://127.0.0.1:{server.tls_port}{path}"], input=send, stdin=None if send is not None else subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    def head(self, server, path, *options):
        """Returns the status and the fields of a response."""
        lines = self(server, path, "--dump-header", "-", "--output", "/dev/null", *options).decode().splitlines()
        fields = dict(line.split(": ", 1) for line in lines[1:] if line)
        return int(lines[0].split()[1]), fields


@pytest.fixture(scope="module")
def curl(http3):
    return Curl(http3)


# --- answers ---


def test_files_arrive_whole(curl, server):
    assert curl(server, "/small.txt") == SMALL
    assert curl(server, "/big.bin") == BIG
    assert hashlib.sha256(curl(server, "/huge.bin")).digest() == hashlib.sha256(b"\0" * HUGE).digest()


def test_a_response_has_the_fields_that_it_has_over_http_2(curl, server):
    status, fields = curl.head(server, "/small.txt")
    assert status == 200 and fields["content-length"] == str(len(SMALL)) and fields["content-type"].startswith("text/plain")
    assert fields["server"] == "gatling" and fields["accept-ranges"] == "bytes" and fields["date"].endswith(" GMT")
    assert curl.head(server, "/small.txt", "--header", f"if-none-match: {fields['etag']}")[0] == 304
    assert curl(server, "/small.txt", "--range", "2-6") == SMALL[2:7]


def test_missing_files_redirects_and_methods(curl, server):
    assert curl.head(server, "/none")[0] == 404 and curl(server, "/none") == b"<p>none here"
    status, fields = curl.head(server, "/old")
    assert status == 301 and fields["location"].endswith("/small.txt")
    assert curl.head(server, "/small.txt", "--head")[1]["content-length"] == str(len(SMALL))
    assert curl.head(server, "/small.txt", "--data", "content")[0] == 405


def test_content_that_nobody_takes_is_refused(curl, server):
    status = curl(server, "/small.txt", "--data-binary", "@-", "--output", "/dev/null", "--write-out", "%{http_code}", send=b"x" * 1_500_000)
    assert status == b"413"


def test_many_requests_share_a_connection_and_each_worker_has_some(curl, server):
    urls = [f"https://127.0.0.1:{server.tls_port}/small.txt"] * 100
    assert curl(server, "/small.txt", "--parallel", "--parallel-max", "100", *urls) == SMALL * 101
    for _ in range(12):  # each has a connection of its own
        assert curl(server, "/small.txt") == SMALL


def test_the_log_says_http_3(curl, http3, files):
    with http3.serve(files) as server:
        curl(server, "/small.txt")
        line = eventually(lambda: server.lines)[0]
        assert re.search(rf'"GET /small.txt HTTP/3.0" 200 {len(SMALL)} [\d.]+$', line)


def test_clients_over_tcp_are_told(http3, curl, files):
    """As soon as the server has reached its own port."""
    with http3.serve(files) as server:
        command = [*http3.inside, "curl", "-sk", "--http2", "-D", "-", "-o", "/dev/null", f"https://127.0.0.1:{server.tls_port}/small.txt"]
        told = f'alt-svc: h3=":{server.tls_port}"; ma=86400\r\n'.encode()
        eventually(lambda: told in subprocess.run(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, check=True).stdout)
        assert curl(server, "/small.txt") == SMALL


# --- applications ---


@pytest.fixture(scope="module")
def application(http3):
    """A server that passes /app/ on to an upstream, which answers with what arrived."""
    with Upstream() as upstream:
        root = Root({"_redirects": f"/app/* http://{upstream.address}/:splat 200\n".encode()})
        with http3.serve(root, "--upstream", upstream.allowed) as server:
            yield server
        root.remove()


@pytest.mark.parametrize("length", [0, 1, 100_000, 30_000_000])
def test_content_is_passed_on_and_comes_back(curl, application, length):
    sent = os.urandom(length)
    got = curl(application, "/app/a?b", "--request", "PUT", "--data-binary", "@-", "--header", "expect:", send=sent)
    head, _, content = got.partition(b"\n\n")
    assert head.startswith(b"PUT /a?b HTTP/1.1\n") and content == sent
    assert b"\nforwarded: for=127.0.0.1" in head.lower() or b"\nx-forwarded-for: 127.0.0.1" in head.lower()


def test_content_of_unknown_length_is_passed_on(curl, application):
    sent = os.urandom(2_000_000)
    got = curl(application, "/app/a", "--request", "PUT", "--upload-file", "-", "--header", "expect:", send=sent)
    assert got.partition(b"\n\n")[2] == sent


# --- the end ---


def test_a_download_under_way_is_finished_before_the_server_ends(http3, curl, files):
    with http3.serve(files, drain_delay=None) as server:
        command = [*curl.command, "--limit-rate", "20M", f"https://127.0.0.1:{server.tls_port}/huge.bin"]
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as download:
            got = download.stdout.read(100_000)
            server.signal(signal.SIGTERM)
            while piece := download.stdout.read(1 << 20):
                got += piece
        assert download.returncode == 0 and len(got) == HUGE
        server.wait()


def is_ending(server):
    try:
        return server.get("/small.txt")["Connection"] == "close"
    except ConnectionError:
        return True


def test_a_client_is_told_that_the_server_is_gone(http3, curl, files):
    with http3.serve(files) as server:
        command = [*curl.command, "--limit-rate", "1M", f"https://127.0.0.1:{server.tls_port}/huge.bin"]
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as download:
            download.stdout.read(1000)
            server.signal(signal.SIGTERM)
            eventually(lambda: is_ending(server))
            server.signal(signal.SIGTERM)  # at once
            started = time.monotonic()
            while download.stdout.read(1 << 20):
                pass
            assert download.wait() != 0
            assert time.monotonic() - started < 10  # it does not wait for its idle time limit
        server.process.wait()


# --- datagrams of no connection ---


def datagram(server):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.connect(("127.0.0.1", server.tls_port))
    s.settimeout(5)
    return s


def initial(version, length):
    head = b"\xc0" + version + b"\x08" + os.urandom(8) + b"\x08" + os.urandom(8) + b"\0"
    return head + os.urandom(length - len(head))


def test_an_unknown_version_is_negotiated_and_small_datagrams_are_not(server):
    with datagram(server) as s:
        s.send(initial(UNKNOWN_VERSION, 1199))
        s.send(initial(UNKNOWN_VERSION, 1200))
        answer = s.recv(2000)
        assert answer[0] & 0x80 and answer[1:5] == b"\0\0\0\0" and answer[-8:] == VERSION_2 + VERSION_1 and len(answer) < 100
        s.settimeout(0.3)
        with pytest.raises(TimeoutError):
            s.recv(2000)


def test_garbage_costs_no_connection(http3, curl, files):
    with http3.serve(files, "-j", "1") as server, datagram(server) as s:
        for _ in range(2000):
            s.send(initial(VERSION_1, 1200))
        assert curl(server, "/small.txt") == SMALL
