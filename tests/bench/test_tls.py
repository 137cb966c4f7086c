"""httpbench over TLS: which certificates it trusts, what it resumes, and what it counts."""

import os
import socket
import ssl
import subprocess

import pytest

from origin import OK, Origin, certificate, speaking
from running import failures, httpbench

pytestmark = pytest.mark.decided


@pytest.fixture(scope="module")
def for_address(tmp_path_factory):
    return certificate(tmp_path_factory.mktemp("tls"), "address", "IP:127.0.0.1")


@pytest.fixture(scope="module")
def for_name(tmp_path_factory):
    return certificate(tmp_path_factory.mktemp("tls"), "localhost", "DNS:localhost")


def trusting(path):
    return {"env": os.environ | {"SSL_CERT_FILE": str(path)}}


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=lambda v: v.name)
@pytest.mark.parametrize("rate", [[], ["-R", 2000]], ids=["closed", "open"])
def test_each_connection_shakes_hands_once(build, tmp_path, for_address, version, rate):
    with Origin(context=speaking(for_address, version)) as origin:
        result = httpbench(build, "-n", 300, "-c", 5, "-t", 2, *rate, origin.url, tmp_path=tmp_path, **trusting(for_address))
        assert result["answered"] == origin.requests == 300 and not failures(result)
        assert result["durations"]["handshake"]["samples"] == result["connected"] == len(origin.peers)
        assert result["tls"].startswith(version.name.replace("_", ".")) and result["resumed"] == 0


@pytest.mark.parametrize("depth", [1, 8])
def test_each_byte_of_a_large_answer_is_compared(build, tmp_path, for_address, depth):
    body = os.urandom(1_000_000)
    (tmp_path / "expected").write_bytes(body)
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    wrong = answer[:-1] + bytes([answer[-1] ^ 1])
    with Origin(lambda _, number, __: wrong if number == 10 else answer, context=speaking(for_address)) as origin:
        result = httpbench(build, "-n", 40, "-c", 2, "-p", depth, "--insecure", "--expect", tmp_path / "expected",
                           origin.url, status=1, tmp_path=tmp_path)  # fmt: skip
        assert result["answered"] == 39 and failures(result) == {"wrong_bytes": 1}


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=lambda v: v.name)
def test_sessions_are_resumed_when_asked(build, tmp_path, for_address, version):
    with Origin(context=speaking(for_address, version)) as origin:
        arguments = "-n", 20, "-c", 1, "-k", 1, "--insecure", origin.url
        assert httpbench(build, "--resume", *arguments, tmp_path=tmp_path)["resumed"] == 19
        assert httpbench(build, *arguments, tmp_path=tmp_path)["resumed"] == 0


def test_a_certificate_has_to_be_trusted_and_for_the_host(build, tmp_path, for_address, for_name):
    with Origin(context=speaking(for_address)) as by_address, Origin(context=speaking(for_name)) as by_name:
        port = by_name.listener.getsockname()[1]
        for url, trusted, reason in [
            (by_address.url, for_name, "self-signed certificate"),
            (f"https://127.0.0.1:{port}/", for_name, "IP address mismatch"),
            (by_address.url.replace("127.0.0.1", "localhost"), for_address, "hostname mismatch"),
        ]:
            done = httpbench(build, "-n", 2, "-c", 1, url, status=2, **trusting(trusted))
            assert f"failed: the certificate: {reason}" in done.stdout and "tls 2" in done.stdout
        httpbench(build, "-n", 2, f"https://localhost:{port}/", tmp_path=tmp_path, **trusting(for_name))


def test_a_server_that_speaks_no_tls_is_told(build):
    with Origin() as origin:
        done = httpbench(build, "-n", 1, "-T", 1, origin.url.replace("http:", "https:"), status=1)
        assert "timed_out 1" in done.stdout  # the server takes it for a request, and waits for more
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"https://127.0.0.1:{listener.getsockname()[1]}/"
        with subprocess.Popen([build / "bench" / "httpbench", "-n", "1", url], stdout=subprocess.PIPE, text=True) as process:
            listener.accept()[0].sendall(b"SSH-2.0-OpenSSH_9.2\r\n")
            output = process.communicate()[0]
        assert process.returncode == 2 and "failed: wrong version number" in output


ENDS = {
    "in the content": (lambda connection: connection.sendall(OK[:-2]), "short"),
    "before the answer": (lambda connection: None, "short"),
    "in the clear": (lambda connection: socket.socket.sendall(socket.socket(fileno=os.dup(connection.fileno())), OK), "tls"),
}


@pytest.mark.parametrize("end", ENDS)
def test_connections_that_break(build, tmp_path, for_address, end):
    breaks, kind = ENDS[end]

    def behave(connection, number, _):
        return OK if number % 10 else breaks(connection)

    with Origin(behave, context=speaking(for_address)) as origin:
        result = httpbench(build, "-n", 50, "-c", 2, "--insecure", origin.url, status=1, tmp_path=tmp_path)
        assert failures(result) == {kind: 5} and result["answered"] == 45


def test_content_that_ends_with_the_connection_needs_close_notify(build, tmp_path, for_address):
    def behave(connection, number, _):
        connection.sendall(b"HTTP/1.0 200 OK\r\n\r\nas long as it is")
        if number % 2:
            connection.unwrap()

    with Origin(behave, context=speaking(for_address)) as origin:
        result = httpbench(build, "-n", 20, "-c", 1, "--insecure", origin.url, status=1, tmp_path=tmp_path)
        assert result["answered"] == 10 and failures(result) == {"short": 10}
