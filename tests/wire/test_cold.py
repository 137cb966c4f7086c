"""Files that are not in memory: a thread reads them, and nobody else waits for the disk."""

import os
import random
import re
import time

import pytest

from conftest import SMALL
from gatling import Root, Server, eventually

SIZE = 5_000_000
CONTENT = random.Random(2).randbytes(SIZE)
CLIENTS = 8


def in_memory(path, offset):
    file = os.open(path, os.O_RDONLY)
    try:
        return os.preadv(file, [bytearray(1)], offset, os.RWF_NOWAIT) == 1
    except BlockingIOError:
        return False
    finally:
        os.close(file)


def make_cold(path):
    """Drops a file from memory; skips the test where that cannot be done."""
    file = os.open(path, os.O_RDONLY)
    os.fsync(file)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(file)
    if in_memory(path, os.path.getsize(path) // 2):
        pytest.skip("files of this file system stay in memory")


@pytest.fixture
def cold():
    root = Root({"small.bin": SMALL, **{f"{n}.bin": CONTENT for n in range(CLIENTS)}})
    for n in range(CLIENTS):
        make_cold(root.path / f"{n}.bin")
    yield root
    root.remove()


def test_cold_files_arrive_whole(build, cold):
    with Server(build, cold, "-j", "1") as server:
        connections = [server.connect().send(b"GET /%d.bin HTTP/1.1\r\nHost: a\r\n\r\n" % n) for n in range(CLIENTS)]
        assert server.get("/small.bin").body == SMALL
        for connection in connections:
            assert connection.response().body == CONTENT
            assert connection.get("/small.bin").body == SMALL
            connection.close()


def test_who_goes_away_while_the_disk_is_read_leaves_nothing_behind(build, cold):
    with Server(build, cold, "-j", "1", "-n") as server:
        for n in range(CLIENTS):  # what the cache keeps open, and the thread that reads
            assert server.get(f"/{n}.bin").body == CONTENT
            make_cold(cold.path / f"{n}.bin")
        before = server.descriptors()
        for turn in range(4):
            for n in range(CLIENTS):
                server.connect().send(b"GET /%d.bin HTTP/1.1\r\nHost: a\r\n\r\n" % n).reset()
            assert server.get(f"/{turn}.bin").body == CONTENT
            make_cold(cold.path / f"{turn}.bin")
        eventually(lambda: server.descriptors() <= before)


SLOW_DISK = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=splice", "-e", "inject=splice:delay_enter=400000"]


def test_the_time_that_the_disk_takes_is_not_the_clients(build, cold):
    path = cold.write("slow.bin", CONTENT[: 1 << 20])
    make_cold(path)
    with Server(build, cold, "-j", "1", "-n", "-T", "1", tracer=SLOW_DISK) as server:
        started = time.monotonic()
        assert server.get("/slow.bin").body == CONTENT[: 1 << 20]
        assert time.monotonic() - started > 2


def test_races_between_a_worker_and_its_reader(threads, cold):
    with Server(threads, cold, "-j", "2") as server:
        connections = [server.connect().send(b"GET /%d.bin HTTP/1.1\r\nHost: a\r\n\r\n" % n) for n in range(CLIENTS)]
        connections.pop().reset()
        for connection in connections:
            assert connection.response().body == CONTENT
            connection.close()


def test_the_worker_sends_only_what_is_in_memory(traced, files, tmp_path):
    path = files.write("cold.bin", CONTENT)
    make_cold(path)

    def client(server):
        assert server.get("/cold.bin").body == CONTENT

    traced(client)
    calls = (tmp_path / "calls").read_text()
    senders = set(re.findall(r"^(\d+) +sendfile\(", calls, re.MULTILINE))
    readers = set(re.findall(r"^(\d+) +splice\(", calls, re.MULTILINE))
    assert senders and readers and not senders & readers
