"""More comes than can be served: what is accepted is answered soon, and the rest is refused."""

import contextlib
import os
import re
import signal
import subprocess
import threading
import time

import pytest

from conftest import SMALL
from gatling import Server, eventually

SHORT = 256  # ACCEPT_QUEUE_SHORT


@contextlib.contextmanager
def slowed(server):
    """The server gets a millisecond of fifty."""
    ended = threading.Event()

    def run():
        while not ended.wait(0.001):
            os.kill(server.pid, signal.SIGSTOP)
            ended.wait(0.05)
            os.kill(server.pid, signal.SIGCONT)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        os.kill(server.pid, signal.SIGCONT)


def queue_limit(server):
    listed = subprocess.run(["ss", "-ltnH", "sport", "=", f":{server.port}"], capture_output=True, text=True, check=True).stdout
    return int(listed.split()[2])


def burst(server, count):
    connections = [server.connect() for _ in range(count)]
    for c in connections:
        c.send(b"GET /small.bin HTTP/1.1\r\nHost: a\r\n\r\n")
    return connections


def take(connections):
    for c in connections:
        assert c.response().body == SMALL
        c.close()


def serves(server, count):
    """Whether none of so many is closed."""
    try:
        take(burst(server, count))
        return True
    except (ConnectionResetError, BrokenPipeError, AssertionError):
        return False


@pytest.mark.alone
def test_what_has_waited_too_long_is_refused_and_the_queue_is_short(plain, files):
    with Server(plain, files, "-j", "1", "-n") as server:
        limit = queue_limit(server)
        command = [plain / "bench" / "crowd", "-R", "6000", "-d", "6", "-t", "1", "--patience", "2", server.url("/small.bin")]
        with slowed(server), subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as crowd:
            eventually(lambda: queue_limit(server) == SHORT)
            out = crowd.stdout.read()
        total = dict(re.findall(r"^# (\w+)\t(\S+)", out, re.MULTILINE))
        assert int(total["answered"]) > 100 and int(total["refused"]) > 0, out
        # There is time for all before overload is over. A burst may come together with those that the kernel had kept in
        # handshakes, and whose clients have ended.
        assert eventually(lambda: serves(server, 60) and queue_limit(server)) == SHORT
        eventually(lambda: any(re.search(r"overload: refused \d+ new connections", line) for line in server.errors))
        eventually(lambda: serves(server, 1) and queue_limit(server) == limit)  # ACCEPT_OVERLOAD_MS


@pytest.mark.clear
def test_a_burst_is_served_however_long_it_had_to_wait(build, files):
    with Server(build, files, "-j", "1", "-n") as server:
        server.signal(signal.SIGSTOP)
        waiting = burst(server, 300)
        time.sleep(2)  # longer than ACCEPT_INTERVAL_MS
        server.signal(signal.SIGCONT)
        take(waiting)
