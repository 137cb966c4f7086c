"""More comes than can be served: accepted requests are answered soon, and the rest is refused."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gatling import Connection, Server, certificate, eventually
from served import SMALL
from test_restart import answers, first, take_over


@contextlib.contextmanager
def beside(step):
    """Calls step(ended) again and again in a thread, until the end."""
    ended = threading.Event()

    def run():
        while not ended.is_set():
            step(ended)

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(run)
        try:
            yield
        finally:
            ended.set()
        done.result()


@contextlib.contextmanager
def slowed(server, stopped_s=0.05):
    """Lets the server run for a millisecond of processor time, or fifty milliseconds if it needs
    less, and then stops it for stopped_s; again and again."""
    clock = (~server.pid << 3) | 2  # its processor time, see clock_getcpuclockid(3)

    def step(ended):
        with contextlib.suppress(OSError):  # it has ended
            begun, limit = time.clock_gettime(clock), time.monotonic() + 0.05
            while time.clock_gettime(clock) < begun + 0.001 and time.monotonic() < limit and not ended.wait(0.0005):
                pass
            os.kill(server.pid, signal.SIGSTOP)
            ended.wait(stopped_s)
            os.kill(server.pid, signal.SIGCONT)

    with beside(step):
        yield


@contextlib.contextmanager
def thief(port):
    """Tries to get the port all the time. Yields a list of the times at which it succeeded."""
    got = []

    def step(_ended):
        with socket.socket() as s, contextlib.suppress(OSError):
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            s.bind(("127.0.0.1", port))
            got.append(time.monotonic())

    with beside(step):
        yield got


def dropped():
    """Returns how many connections the kernel did not put into the queue of a listening socket;
    their clients try again after a second."""
    names, values = (line.split() for line in Path("/proc/net/netstat").read_text().splitlines()[:2])
    return int(values[names.index("ListenDrops")])


def crowd(server, plain, visitors=6000, files=1):
    """Runs a crowd of that many visitors a second for six seconds, who request that many files
    each. Returns the load generator's counts."""
    command = [plain / "bench" / "crowd", "-R", str(visitors), "-d", "6", "-t", "1", "--patience", "2", *files * [server.url("/small.bin")]]
    out = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False).stdout
    return {name: int(value) for name, value in re.findall(r"^# (answered|refused)\t(\d+)", out, re.MULTILINE)}


def overload(server, plain, stopped_s=0.05, **load):
    """Sends more than the server can answer."""
    with slowed(server, stopped_s):
        return crowd(server, plain, **load)


def listening(server):
    """Returns how many sockets listen on the port of a server."""
    rows = (line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:])
    return sum(row[1].endswith(f":{server.port:04X}") and row[3] == "0A" for row in rows)


def line(server, pattern):
    """Returns the match of a pattern in a line that the server writes sooner or later."""
    return eventually(lambda: next(filter(None, (re.search(pattern, text) for text in server.errors)), None))


REQUEST = b"GET /small.bin HTTP/1.1\r\nHost: a\r\n\r\n"


def burst(server, count):
    connections = [server.connect() for _ in range(count)]
    for c in connections:
        c.send(REQUEST)
    return connections


def local(path):
    """Sends a request on a new connection to a unix socket."""
    connection = Connection(str(path), family=socket.AF_UNIX)
    connection.send(REQUEST)
    return connection


def take(connections):
    for c in connections:
        assert c.response().body == SMALL
        c.close()


def serves(server, count):
    """Returns whether none of count connections is closed."""
    try:
        take(burst(server, count))
        return True
    except (ConnectionError, AssertionError):
        return False


@pytest.mark.alone
@pytest.mark.parametrize("flags", [("-j", "1"), ("-j", "2"), ("-j", "2", "--upstream", "127.0.0.1")], ids=["1", "2", "upstream"])
def test_what_has_waited_too_long_is_refused_and_the_queue_is_never_full(plain, files, flags):
    with Server(plain, files, *flags, "-n") as server:
        before = dropped()
        total = overload(server, plain)
        assert total["answered"] > 100 and total["refused"] > 0, total
        assert dropped() == before
        assert not any("overload is over" in text for text in server.errors)
        assert line(server, r"overload: refused at least \d+ new connections")
        eventually(lambda: serves(server, 50))  # they may come together with those whose handshake was not complete
        refused = int(line(server, r"overload is over after \d+ s: refused at least (\d+)")[1])
        assert 0 < refused < total["refused"] * 1.1
        assert serves(server, 300)


@pytest.mark.alone
def test_overload_is_over_once_also_if_the_server_stands_still_meanwhile(plain, files):
    with Server(plain, files, "-j", "1", "-n") as server, ThreadPoolExecutor(1) as pool:
        with slowed(server):
            total = pool.submit(crowd, server, plain)
            assert line(server, "overload: refused")
        eventually(lambda: stands_still_while_shut(server))
        time.sleep(6)  # longer than ACCEPT_OVERLOAD_MS
        server.signal(signal.SIGCONT)
        begun = time.monotonic()
        assert line(server, "overload is over") and total.result()
        time.sleep(max(0, begun + 6 - time.monotonic()))
        assert sum("overload is over" in error for error in server.errors) == 1


def stands_still_while_shut(server):
    """Stops a server; continues it if its socket listens."""
    server.signal(signal.SIGSTOP)
    if not listening(server):
        return True
    server.signal(signal.SIGCONT)
    return False


@pytest.mark.alone
def test_a_successor_serves_on_sockets_that_its_predecessor_has_shut(plain, root, place):
    with first(plain, root, place, "-j", "2", "-n") as old, ThreadPoolExecutor(1) as pool:
        with slowed(old):
            total = pool.submit(crowd, old, plain)
            assert line(old, "overload: refused")
            new = take_over(plain, old, "-j", "2")
        with new:
            old.wait()
            eventually(lambda: listening(new) == 2)
            assert total.result()
            for _ in range(20):
                assert answers(new)


@pytest.mark.alone
def test_few_who_ask_for_much_are_too_many(plain, files):
    """The kernel's queue is always short: the requests of accepted clients wait."""
    with Server(plain, files, "-j", "1", "-n") as server:
        total = overload(server, plain, stopped_s=0.1, visitors=300, files=15)
        assert total["answered"] > 0 and total["refused"] > 0, total


@pytest.mark.alone
def test_a_unix_socket_is_not_rationed(plain, files):
    """Nothing can be refused there: connections that are not accepted would fill the queue."""
    path = files.path / "socket"
    files.path.chmod(0o777)
    with Server(plain, files, "-j", "1", "-n", "-i", f"unix:{path}") as server, ThreadPoolExecutor() as pool:
        with beside(lambda _ended: take([local(path)])):
            total = pool.submit(overload, server, plain, stopped_s=0.1, visitors=300, files=15)
            assert line(server, "overload: refused")
            begun = time.monotonic()
            take([local(path) for _ in range(250)])
            took = time.monotonic() - begun
        assert total.result()["refused"] > 0
        assert took < 10  # with a ration of 10 a second about 25


@pytest.mark.alone
def test_handshakes_are_too_many_too(plain, files):
    """Accepted clients would wait for seconds until they give up, and everything computed for them
    would be lost."""
    cert, key = certificate(key=("rsa:3072",))
    result = files.path / "result.json"
    with Server(plain, files, "-j", "1", "-n", "--tls-port", "0", "--cert", cert, "--key", key) as server, slowed(server, 0.01):
        command = [plain / "bench" / "httpbench", "-R", "400", "-d", "8", "-k", "1", "-c", "6000", "-T", "3", "--insecure",
                   "--source", "127.1.0.0/16", "--json", result, f"https://127.0.0.1:{server.tls_port}/small.bin"]  # fmt: skip
        subprocess.run(command, capture_output=True, check=False)
        total = json.loads(result.read_text())
        assert line(server, "overload: refused")
    assert total["answered"] > 100 and total["failed"]["timed_out"] < total["answered"] / 4, total


@pytest.mark.alone
def test_no_other_gets_the_port_while_what_waits_is_reset(plain, files):
    with Server(plain, files, "-j", "1", "-n") as server:
        with thief(server.port) as got:
            assert overload(server, plain)["refused"] > 0
        assert not got
        eventually(lambda: serves(server, 50))


@pytest.mark.clear
def test_a_burst_is_served_however_long_it_had_to_wait(build, files):
    with Server(build, files, "-j", "1", "-n") as server:
        server.signal(signal.SIGSTOP)
        waiting = burst(server, 300)
        time.sleep(2)  # longer than ACCEPT_INTERVAL_MS
        server.signal(signal.SIGCONT)
        take(waiting)
