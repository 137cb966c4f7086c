"""Request bodies are read to their end, so that the next request is found."""

import signal
import socket
import time

import pytest

from gatling import Connection, Server, eventually, listening
from served import SMALL

BODIES = {
    "length": ("Content-Length: 5", b"GET /"),
    "chunks": ("Transfer-Encoding: chunked", b"5\r\nGET /\r\n0\r\n\r\n"),
    "chunks with extensions and trailers": (
        "Transfer-Encoding: chunked",
        b'3;a="b"\r\nGET\r\n002;c\r\n /\r\n0;d\r\nTrailer: x\r\nHost: b\r\n\r\n',
    ),
    "nothing": ("Content-Length: 0", b""),
    "the longest": ("Content-Length: 1048576", b"x" * 1048576),
}


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("method,status", [("GET", 200), ("POST", 405), ("BREW", 501), ("OPTIONS", 204)])
def test_a_body_on_any_method_leaves_the_connection_in_step(connection, name, method, status):
    field, body = BODIES[name]
    connection.send(f"{method} /small.bin HTTP/1.1\r\nHost: a\r\n{field}\r\n\r\n".encode() + body)
    assert connection.response(method).status == status
    connection.assert_in_step()


def test_a_body_may_come_byte_by_byte(connection):
    field, body = BODIES["chunks with extensions and trailers"]
    connection.send(f"GET /small.bin HTTP/1.1\r\nHost: a\r\n{field}\r\n\r\n".encode())
    for byte in body:
        connection.send(bytes([byte]))
    assert connection.response().status == 200
    connection.assert_in_step()


def test_requests_with_bodies_can_be_pipelined(connection):
    one = b"GET /small.bin HTTP/1.1\r\nHost: a\r\n"
    connection.send((one + b"Content-Length: 3\r\n\r\nabc" + one + b"\r\n") * 20)
    for _ in range(40):
        assert connection.response().status == 200
    connection.assert_in_step()


def test_the_answer_before_a_request_with_a_body_does_not_wait_for_the_body(connection):
    one = b"GET /small.bin HTTP/1.1\r\nHost: a\r\n"
    connection.send(one + b"\r\n" + one + b"Content-Length: 3\r\n\r\n")
    assert connection.response().status == 200
    connection.send(b"abc")
    assert connection.response().status == 200
    connection.assert_in_step()


def test_a_client_that_expects_a_100_gets_it_and_then_the_answer(connection):
    connection.send(b"GET /small.bin HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n")
    assert connection.response().status == 100
    connection.send(b"abc")
    assert connection.response().status == 200
    connection.assert_in_step()


def test_the_last_answer_comes_after_its_100(connection):
    connection.send(b"GET /small.bin HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n")
    begun = time.monotonic()
    assert connection.response().status == 100
    assert time.monotonic() - begun < 0.15  # with MSG_MORE the kernel would wait for 200 ms
    connection.send(b"abc")
    response = connection.response()
    assert response.status == 200 and response["Connection"] == "close" and response.body == SMALL
    connection.assert_closed()


def test_the_last_answer_comes_after_its_100_while_the_server_ends(build, files):
    with Server(build, files, "-j", "1") as server, server.connect() as c:
        c.send(b"GET /small.bin HTTP/1.1\r\nHost: a\r\nContent-Le")
        server.signal(signal.SIGQUIT)
        eventually(lambda: not listening(server.port))
        c.send(b"ngth: 3\r\nExpect: 100-continue\r\n\r\n")
        assert c.response().status == 100
        c.send(b"abc")
        assert c.response().body == SMALL
        c.assert_closed()


def test_a_100_waits_for_room_in_the_socket(build, files):
    one = b"GET /small.bin HTTP/1.1\r\nHost: a\r\n"
    path = files.path / "socket"
    files.path.chmod(0o777)
    with Server(build, files, "-j", "1", address=("-i", f"unix:{path}")):
        for length in range(0, 30_000, 300):  # some of them leave no room for 25 bytes
            with Connection(str(path), family=socket.AF_UNIX) as c:
                part = b"GET /big.bin HTTP/1.1\r\nHost: a\r\nRange: bytes=0-%d\r\n\r\n"
                c.send(part % 180_000 + part % length + one + b"Content-Length: 3\r\nExpect: 100-continue\r\n\r\n")
                time.sleep(0.002)  # so that the socket is full before it is read
                assert len(c.response().body) == 180_001 and len(c.response().body) == length + 1
                assert c.response().status == 100
                c.send(b"abc")
                assert c.response().body == SMALL
    path.unlink()


def test_no_100_when_the_body_is_there_already(connection):
    connection.send(b"GET /small.bin HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\nabc")
    assert connection.response().status == 200
    connection.assert_in_step()


def test_who_expects_a_100_and_is_refused_learns_it_at_once(connection):
    connection.send(b"POST /small.bin HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n")
    response = connection.response()
    assert response.status == 405 and response["Connection"] == "close"
    connection.half_close()
    connection.assert_closed()


def test_a_body_too_long_is_answered_while_the_client_still_sends(connection):
    connection.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3000000\r\n\r\n")
    connection.send(b"x" * 3_000_000)
    assert connection.response().status == 413


@pytest.mark.parametrize("body", [b"0\r\n\rX", b"0\r\n\nX", b"1\r\nab\r\n", b"0\r\nT: x\rX"])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_broken_body_has_no_answer_but_the_refusal(connection, method, body):
    connection.send(f"{method} /small.bin HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n".encode() + body)
    assert connection.response(method).status == 400
    connection.assert_closed()


def test_a_chunked_body_that_grows_too_long_is_refused(connection):
    connection.send(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
    chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
    connection.send(chunk * 17)
    assert connection.response().status == 413


def test_allow_names_the_methods(connection):
    for method in ("POST", "PUT", "DELETE", "PATCH", "TRACE", "OPTIONS"):
        response = connection.get("/", method=method)
        assert response["Allow"] == "GET, HEAD, OPTIONS"
        assert response.status == (204 if method == "OPTIONS" else 405)
    assert connection.get("*", method="OPTIONS").status == 204
    assert connection.get("localhost:80", method="CONNECT").status == 405
    connection.assert_in_step()
