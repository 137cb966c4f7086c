"""A client that takes most of a worker's time comes after the others."""

import contextlib
import signal
import threading
from pathlib import Path

from gatling import TIMEOUT, Root, Server, eventually
from served import SMALL
from upstream import Upstream

MANY, ROUNDS = 300, 8  # enough for a sample of the calls to know the address
NEW = 50  # fewer than a turn takes
PASSED = 100  # fewer than connections to upstreams that there may be
GREEDY, OTHER = "127.8.0.1", "127.9.0.1"


REQUEST = b"GET /%s HTTP/1.1\r\nHost: a\r\n\r\n"


@contextlib.contextmanager
def beside_a_greedy_one(build, **files):
    """Yields a server that knows GREEDY, and connections from it."""
    root = Root({"greedy": SMALL, "other": SMALL, **files})
    with Server(build, root, "-j", "1", "--upstream", "127.0.0.1") as server:
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


def stop(server):
    """Stops the server, and waits until all of its threads stand still."""
    server.signal(signal.SIGSTOP)
    states = [Path(f"/proc/{server.pid}/task/{thread}/stat") for thread in server.thread_ids()]
    eventually(lambda: all(path.read_text().rsplit(") ", 1)[1][0] == "T" for path in states))


def answered_before(server, requests):
    """Returns how many of the last requests were answered before the one for /other."""
    eventually(lambda: len(server.lines) == MANY * ROUNDS + requests)
    return next(n for n, line in enumerate(server.lines) if "/other" in line) - MANY * ROUNDS


def test_one_with_many_requests_does_not_keep_another_waiting(build):
    with beside_a_greedy_one(build) as (server, connections), server.connect(source=OTHER) as other:
        stop(server)
        ask_all(connections)
        other.send(REQUEST % b"other")
        server.signal(signal.SIGCONT)
        take_all([other, *connections])
        assert answered_before(server, MANY + 1) < MANY / 2


def test_one_with_many_new_connections_does_not_keep_another_waiting(first_build):
    with beside_a_greedy_one(first_build) as (server, connections):
        stop(server)
        new = [server.connect(source=GREEDY) for _ in range(NEW)]
        ask_all(new)
        with server.connect(source=OTHER) as other:
            other.send(REQUEST % b"other")
            server.signal(signal.SIGCONT)
            take_all([other, *new])
        assert answered_before(server, NEW + 1) == 0


def test_downloads_of_a_greedy_one_go_on_beside_another(first_build):
    """The last one in a turn still gets its share, even while the others use up the time that all
    writers have together."""
    ended = threading.Event()

    def press():
        with server.connect(source=OTHER) as other:
            while not ended.is_set():
                other.send(REQUEST % b"kilobytes" * 64)
                for _ in range(64):
                    other.response()

    with beside_a_greedy_one(first_build, kilobytes=b"k" * 2000, large=b"l" * 20_000_000) as (server, _), contextlib.ExitStack() as stack:
        pressing = [threading.Thread(target=press) for _ in range(2)]
        stack.callback(lambda: (ended.set(), [thread.join() for thread in pressing]))
        for thread in pressing:
            thread.start()
        downloads = [server.connect(source=GREEDY, receive_buffer=4096) for _ in range(2)]
        for download in downloads:
            download.send(REQUEST % b"large")
        for download in downloads:
            assert len(download.response().body) == 20_000_000
            download.close()


def test_answers_of_an_upstream_to_a_greedy_one_do_not_keep_another_waiting(first_build):
    asked, sent, may_answer = threading.Semaphore(0), threading.Semaphore(0), threading.Event()

    def handle(link):
        link.request()
        asked.release()
        may_answer.wait()
        link.answer()
        sent.release()
        link.ended()

    def wait_for(semaphore):
        for _ in range(PASSED):
            assert semaphore.acquire(timeout=TIMEOUT)

    with Upstream(handle) as upstream:
        rules = f"/up/* http://{upstream.address}/ 200".encode()
        with beside_a_greedy_one(first_build, _redirects=rules) as (server, connections), server.connect(source=OTHER) as other:
            for connection in connections[:PASSED]:
                connection.send(REQUEST % b"up/greedy")
            wait_for(asked)
            stop(server)
            may_answer.set()
            wait_for(sent)
            other.send(REQUEST % b"other")
            server.signal(signal.SIGCONT)
            take_all([other, *connections[:PASSED]])
            assert answered_before(server, PASSED + 1) < PASSED / 2
