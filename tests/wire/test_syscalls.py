"""What a request costs in system calls, counted by strace(1)."""

import re
import signal
import subprocess

import pytest

from conftest import SMALL
from gatling import Server, eventually

WAIT = "epoll_wait"
REQUEST = b"GET /small.bin HTTP/1.1\r\nHost: a\r\n\r\n"
LAST_REQUEST = b"GET /small.bin HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"


@pytest.fixture
def traced(plain, files, tmp_path):
    """A server with one worker that has the small file in its cache, and what counts its calls while a function runs."""

    def count(function):
        path = tmp_path / "calls"
        command = ["strace", "-f", "-qq", "-p", str(server.process.pid), "-o", str(path)]
        with subprocess.Popen(command) as strace:
            try:
                eventually(lambda: all(tracer(server, thread) == strace.pid for thread in server.thread_ids()))
                function(server)
            finally:
                strace.send_signal(signal.SIGINT)
        calls = {}
        for name in re.findall(r"^\d+ +(\w+)\(", path.read_text(), re.MULTILINE):
            calls[name] = calls.get(name, 0) + 1
        return calls

    with Server(plain, files, "-j", "1", "-n") as server:
        server.get("/small.bin")
        yield count


def tracer(server, thread):
    with open(f"/proc/{server.process.pid}/task/{thread}/status", encoding="ascii") as status:
        return int(re.search(r"TracerPid:\s*(\d+)", status.read()).group(1))


def test_a_request_on_a_connection_kept_open_is_a_read_and_a_write(traced):
    def client(server):
        with server.connect() as connection:
            for _ in range(500):
                connection.send(REQUEST)
                assert connection.response().body == SMALL

    calls = traced(client)
    waits = calls.pop(WAIT)
    assert waits <= 510
    assert 1000 <= sum(calls.values()) <= 1000 + 20, calls
    assert calls["read"] <= 510 and calls["writev"] <= 510


def test_pipelined_requests_share_their_calls(traced):
    def client(server):
        with server.connect() as connection:
            connection.send(REQUEST * 200)
            for _ in range(200):
                assert connection.response().body == SMALL

    assert sum(traced(client).values()) < 100


def test_a_request_that_comes_with_its_connection_never_meets_the_event_mechanism(traced):
    def client(server):
        server.signal(signal.SIGSTOP)
        connections = [server.connect().send(LAST_REQUEST) for _ in range(50)]
        server.signal(signal.SIGCONT)
        for connection in connections:
            assert connection.response().body == SMALL
            connection.assert_closed()

    calls = traced(client)
    assert calls["accept4"] >= 50
    assert "epoll_ctl" not in calls
