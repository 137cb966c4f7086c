"""Who takes most of a worker's time comes after the others."""

import contextlib
import signal

from conftest import SMALL
from gatling import Root, Server, eventually

MANY, ROUNDS = 300, 5  # enough for a sample of the calls to know the address
NEW = 50  # fewer than a turn takes
GREEDY, OTHER = "127.8.0.1", "127.9.0.1"


REQUEST = b"GET /%s HTTP/1.1\r\nHost: a\r\n\r\n"


@contextlib.contextmanager
def beside_a_greedy_one(build):
    """A server that knows GREEDY, and connections of it."""
    root = Root({"greedy": SMALL, "other": SMALL})
    with Server(build, root, "-j", "1") as server:
        connections = [server.connect(source=GREEDY) for _ in range(MANY)]
        for _ in range(ROUNDS):
            ask_all(connections)
            take_all(connections)
        yield server, connections
    root.remove()


def ask_all(connections):
    for connection in connections:
        connection.send(REQUEST % b"greedy")


def take_all(connections):
    for connection in connections:
        assert connection.response().status == 200


def answered_before(server, requests):
    """How many of the last requests were answered before the one for /other."""
    eventually(lambda: len(server.lines) == MANY * ROUNDS + requests)
    return next(n for n, line in enumerate(server.lines) if "/other" in line) - MANY * ROUNDS


def test_one_with_many_requests_does_not_keep_another_waiting(build):
    with beside_a_greedy_one(build) as (server, connections), server.connect(source=OTHER) as other:
        server.signal(signal.SIGSTOP)
        ask_all(connections)
        other.send(REQUEST % b"other")
        server.signal(signal.SIGCONT)
        take_all([other, *connections])
        assert answered_before(server, MANY + 1) < MANY / 2


def test_one_with_many_new_connections_does_not_keep_another_waiting(first_build):
    with beside_a_greedy_one(first_build) as (server, connections):
        server.signal(signal.SIGSTOP)
        new = [server.connect(source=GREEDY) for _ in range(NEW)]
        ask_all(new)
        with server.connect(source=OTHER) as other:
            other.send(REQUEST % b"other")
            server.signal(signal.SIGCONT)
            take_all([other, *new])
        assert answered_before(server, NEW + 1) == 0
