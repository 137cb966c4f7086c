"""Files that are not in memory: a thread reads them, and no other client waits for the disk."""

import contextlib
import os
import random
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from gatling import OverTls, Root, Server, descriptors_limited_to, eventually, runnable
from http2 import DATA, END_STREAM, Http2
from page_cache import in_memory, make_cold
from served import SMALL
from slow import slowed
from system_calls import tracer

SIZE = 5_000_000
CONTENT = random.Random(2).randbytes(SIZE)
CLIENTS = 8
FETCHES_MAX = 256


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
        for n in range(CLIENTS):  # so that files are cached, and the reading thread runs
            assert server.get(f"/{n}.bin").body == CONTENT
            make_cold(cold.path / f"{n}.bin", lambda: server.get("/small.bin"))
        before = server.descriptors()
        for turn in range(4):
            for n in range(CLIENTS):
                server.connect().send(b"GET /%d.bin HTTP/1.1\r\nHost: a\r\n\r\n" % n).reset()
            assert server.get(f"/{turn}.bin").body == CONTENT
            make_cold(cold.path / f"{turn}.bin")
        eventually(lambda: server.descriptors() <= before)


def on_slow_disk(path):
    """Returns a tracer that makes reads of the file take a while, and the loop's first attempts
    find that it is not in memory. A real disk may be so fast that the second attempt finds what the
    kernel has read ahead because of the first."""
    delays = ["-e", "inject=pread64:delay_enter=150000", "-e", "inject=splice:delay_enter=500000"]
    error = ["-e", "inject=preadv2:error=EAGAIN:when=1..3"]
    return ["strace", "-f", "-qq", "-o", "/dev/null", "-P", str(path), "-e", "trace=pread64,splice,preadv2", *delays, *error]


def test_the_time_that_the_disk_takes_is_not_the_clients(build, files):
    """The file is so large that nobody waits for its hash."""
    path = files.write("cold.bin", CONTENT)
    with Server(build, files, "-j", "1", "-n", "-T", "1", tracer=on_slow_disk(path)) as server:
        started = time.monotonic()
        assert server.get("/cold.bin").body == CONTENT
        assert time.monotonic() - started > 2


@pytest.mark.clear
def test_a_stream_whose_file_is_on_the_disk_does_not_hold_up_others(build, files):
    path, warm = files.write("cold.bin", CONTENT), CONTENT[:1_000_000]
    files.write("warm.bin", warm)
    with Server(build, files, "-j", "1", "-n", tracer=on_slow_disk(path)) as server:
        assert server.get("/warm.bin").body == warm
        with Http2(server) as c:
            slow, other, left = c.ask("/cold.bin"), c.ask("/warm.bin"), len(warm)
            while left:
                frame = c.frame()
                assert frame.type != DATA or frame.stream == other, f"DATA of {slow} came first"
                left -= len(frame.payload) * (frame.type == DATA)


@pytest.fixture(params=[Server.connect, Http2], ids=["http1", "http2"])
def hashed_slowly(build, request):
    """A server that takes four seconds to hash a file, for which its clients wait only one, and a
    connection to it."""
    if request.param is Http2 and isinstance(build, OverTls):
        pytest.skip("this client has no TLS")
    root = Root({"hashed.bin": CONTENT[:100_000], "small.bin": SMALL})
    delay = "inject=pread64:delay_enter=4000000:when=1"
    strace = ["strace", "-f", "-qq", "-o", "/dev/null", "-P", str(root.path / "hashed.bin"), "-e", "trace=pread64", "-e", delay]
    with Server(build, root, "-j", "1", "-n", "-T", "1", tracer=strace) as server, request.param(server) as connection:
        yield connection
    root.remove()


def test_a_request_that_waits_too_long_for_a_thread_is_answered_without(hashed_slowly):
    started = time.monotonic()
    http2 = isinstance(hashed_slowly, Http2)
    answer = hashed_slowly.get("/hashed.bin", ("if-none-match", '"x"') if http2 else 'If-None-Match: "x"', method="HEAD")
    assert answer.status == 200 and answer["content-length"] == "100000" and answer["etag"] is None
    assert 1 <= time.monotonic() - started < 3
    assert hashed_slowly.get("/small.bin").body == SMALL


def test_an_entity_tag_that_is_not_known_in_time_does_not_fail_to_match(hashed_slowly):
    http2 = isinstance(hashed_slowly, Http2)
    answer = hashed_slowly.get("/hashed.bin", ("if-match", '"x"') if http2 else 'If-Match: "x"', method="HEAD")
    assert answer.status == 503 and answer["retry-after" if http2 else "Retry-After"]


def test_other_streams_do_not_make_a_request_wait_longer(hashed_slowly):
    if not isinstance(hashed_slowly, Http2):
        pytest.skip("HTTP/1.1 has no streams")
    started = time.monotonic()
    waiting = hashed_slowly.ask("/hashed.bin", ("if-none-match", '"x"'), method="HEAD")
    hashed_slowly.socket.settimeout(0.3)
    while time.monotonic() - started < 3:
        hashed_slowly.ask("/small.bin")
        with contextlib.suppress(TimeoutError):
            while hashed_slowly.frame().stream != waiting:
                pass
            return
    pytest.fail("the other requests moved its deadline")


def test_races_between_a_worker_and_its_reader(threads, cold):
    with Server(threads, cold, "-j", "2") as server:
        connections = [server.connect().send(b"GET /%d.bin HTTP/1.1\r\nHost: a\r\n\r\n" % n) for n in range(CLIENTS)]
        connections.pop().reset()
        for connection in connections:
            assert connection.response().body == CONTENT
            connection.close()


def read_from_disk(server, threads):
    """Returns the bytes that these threads, and all others, have caused to be read from disk,
    proc(5)."""
    count = [0, 0]
    for thread in server.thread_ids():
        text = Path(f"/proc/{server.pid}/task/{thread}/io").read_text()
        count[thread not in threads] += int(re.search(r"^read_bytes: (\d+)$", text, re.MULTILINE)[1])
    return count


@pytest.mark.alone
@pytest.mark.parametrize("known", [True, False], ids=["known", "unknown"])
def test_a_thread_has_the_disk_read_and_not_the_loop(plain, files, known):
    """The kernel reads ahead for whoever reads, and continues where the loop reaches the page that
    it has marked. A disk may be so fast that what the loop tries to read is there before the
    attempt returns."""
    content, size = CONTENT * 20, SIZE * 20
    path = files.write("cold.bin", content)

    def is_cold():  # what has just been written is mapped, and stays in memory
        assert server.get("/cold.bin", method="HEAD")["ETag"]
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        return in_memory(path) < 10

    with Server(plain, files, "-j", "1", "-n") as server, Server(plain, files, "-j", "1", "-n") as other, open(path, "rb") as file:
        make_cold(path)
        loops = {server: server.thread_ids(), other: other.thread_ids()}
        eventually(lambda: server.get("/cold.bin", method="HEAD")["ETag"])  # it is hashed
        eventually(is_cold)
        served = server if known else other
        before = read_from_disk(served, loops[served])
        assert served.get("/cold.bin").body == content
        by_loop, by_others = (now - then for now, then in zip(read_from_disk(served, loops[served]), before))
        if not by_loop + by_others:
            pytest.skip("this file system has no disk")
        assert by_loop < size / 50 and by_others > size / 2


@pytest.mark.parametrize("pipes", [True, False], ids=["pipes", "none"])
def test_a_full_server_reads_cold_files_beside_its_loop_too(plain, cold, tmp_path, pipes):
    """With and without free descriptors for a pipe, and with thousands of requests that are
    cancelled at once."""
    with Server(plain, cold, "-j", "1", "-n", **descriptors_limited_to(128)) as server:
        assert server.get("/small.bin").body == SMALL
        path = tmp_path / "calls"
        command = ["strace", "-f", "-y", "-qq", "-p", str(server.pid), "-o", str(path), "-e", "trace=sendmsg,sendto,pread64,splice,pipe2"]
        command += [] if pipes else ["-e", "inject=pipe2:error=EMFILE"]
        with subprocess.Popen(command) as strace:
            try:
                eventually(lambda: all(tracer(server, thread) == strace.pid for thread in server.thread_ids()))
                idle = [server.connect() for _ in range(100)]  # after a second without a request they may be closed
                for n in range(CLIENTS):
                    idle[n].send(f"GET /{n}.bin HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
                for n in range(CLIENTS):
                    assert idle[n].response().body == CONTENT
            finally:
                strace.send_signal(signal.SIGINT)
        calls = path.read_text()
        senders = set(re.findall(r"^(\d+) +send\w+\(", calls, re.MULTILINE))
        readers = set(re.findall(rf"^(\d+) +{'splice' if pipes else 'pread64'}\(\d+<[^>]*\.bin>", calls, re.MULTILINE))
        assert senders and readers and not senders & readers and ("splice" in calls) == pipes
        for c in idle:
            c.close()


@pytest.fixture
def large():
    root = Root({f"{n}.bin": CONTENT for n in range(3)})
    root.write("_headers", b"/*\n  X-A: 0\n")
    yield root
    root.remove()


def open_files(server):
    """Returns the paths of all that the workers have open."""
    paths = []
    for thread in server.thread_ids():
        for fd in os.listdir(f"/proc/{server.pid}/task/{thread}/fd"):
            with contextlib.suppress(FileNotFoundError):
                paths.append(os.readlink(f"/proc/{server.pid}/task/{thread}/fd/{fd}"))
    return paths


def opened(server):
    """Returns the paths of the files that the workers keep open."""
    return {path for path in open_files(server) if ".bin" in path}


def test_files_that_are_gone_are_closed(build, large):
    with Server(build, large, "-j", "1", "-n") as server:
        for n in range(3):
            assert server.get(f"/{n}.bin").body == CONTENT
        assert len(opened(server)) == 3
        (large.path / "0.bin").unlink()
        (large.path / "1.new").write_bytes(b"x")
        (large.path / "1.new").rename(large.path / "1.bin")
        eventually(lambda: opened(server) == {str(large.path / "2.bin")}, 4)


@pytest.mark.parametrize("most", [2, 100])
def test_as_many_files_are_kept_open_as_the_owner_says(build, root, most):
    """Even if these are most of the descriptors."""
    for n in range(most + 3):
        root.write(f"{n}.bin", CONTENT[:70_000])
    with Server(build, root, "-j", "1", "-n", "--limit", f"cache-files={most}", **descriptors_limited_to(160)) as server:
        for n in range(most + 3):
            assert server.get(f"/{n}.bin").body == CONTENT[:70_000]
        eventually(lambda: len(opened(server)) == most)
        assert server.get("/0.bin").body == CONTENT[:70_000]


def test_files_take_no_descriptor_that_the_connections_need(plain, root):
    command = [runnable(plain), "-c", root.path, "-p", "0", "-i", "127.0.0.1", "-j", "1", "--limit", "cache-files=1000"]
    refused = subprocess.run(command, capture_output=True, text=True, check=False, timeout=10, **descriptors_limited_to(128))
    assert refused.returncode and "open files" in refused.stderr and "--limit cache-files" in refused.stderr


def test_files_whose_fields_have_changed_are_closed(build, large):
    with Server(build, large, "-j", "1", "-n") as server:
        for n in range(1, 4):
            assert server.get("/0.bin").body == CONTENT
            assert opened(server)
            large.write("_headers", b"/*\n  X-A: %d\n" % n)
            eventually(lambda n=n: server.get("/none")["X-A"] == f"{n}", 4)
            eventually(lambda: not opened(server), 4)


def test_files_that_nobody_asks_for_in_a_minute_are_closed(plain, large):
    with Server(plain, large, "-j", "1", "-n") as server:
        assert server.get("/0.bin").body == CONTENT
        assert opened(server)
        eventually(lambda: not opened(server), 75)


def held(server):
    """Returns the files that the server holds, open or mapped. The file system does not get the
    space of those back that are deleted."""
    files = open_files(server)
    with open(f"/proc/{server.pid}/maps", encoding="utf-8") as maps:
        files += maps.read().splitlines()
    return [file for file in files if "gatling-wire-" in file and ".bin" in file]


def deleted(server):
    """Returns the deleted ones of the files that the server holds."""
    return [file for file in held(server) if file.endswith("(deleted)")]


FILES = 40


@pytest.mark.parametrize("load", ["idle", "busy"])
def test_the_space_of_files_replaced_or_removed_is_given_back(build, load):
    """Files of virtual hosts, precompressed copies, those in a removed directory, and files
    replaced under load."""
    names = [f"{host}/{n}{suffix}" for host in ("a.example", "b.example", "gone.example") for n in range(FILES // 4) for suffix in (".bin", ".bin.gz")]
    root = Root({name: CONTENT[:200_000] for name in names})
    with Server(build, root, "-j", "2", "-n") as server, contextlib.ExitStack() as stack:
        clients = [stack.enter_context(server.connect()) for _ in range(2)]

        def ask_for_all():
            for name in names:
                host, path = name.split("/")
                for c in clients:
                    c.get("/" + path.removesuffix(".gz"), *["Accept-Encoding: gzip"] * path.endswith(".gz"), host=host)

        ask_for_all()
        assert held(server)
        assert not deleted(server)
        for name in names:
            new = root.write(name + ".new", CONTENT[:190_000])
            new.rename(root.path / name)
        shutil.rmtree(root.path / "gone.example")

        def given_back():
            if load == "busy":
                ask_for_all()
            return not deleted(server)

        eventually(given_back, 4)
    root.remove()


@pytest.fixture
def slow_disk():
    with slowed({"hot.txt": b"hot", **{f"{n}.jpg": SMALL for n in range(CLIENTS)}, "404.html": b"page"}) as root:
        yield root


def test_a_file_system_whose_server_is_gone_is_unavailable(build, slow_disk):
    with Server(build, slow_disk, "-j", "1") as server:
        assert server.get("/hot.txt").status == 200
        slow_disk.kill()
        gone = server.get("/1.jpg")  # which the kernel does not remember
        assert gone.status == 503 and gone["Retry-After"]


@pytest.mark.clear
def test_only_who_asks_for_what_is_on_a_slow_disk_waits_for_it(build, slow_disk):
    with Server(build, slow_disk, "-j", "1", "-T", "30") as server:
        assert server.get("/hot.txt").body == b"hot"  # the names of the site have been read, too
        slow_disk.take(0.5)
        connections = [server.connect().send(b"GET /%d.jpg HTTP/1.1\r\nHost: localhost\r\n\r\n" % n) for n in range(CLIENTS)]
        missing = server.connect().send(b"GET /missing HTTP/1.1\r\nHost: localhost\r\n\r\n")
        started = time.monotonic()
        assert server.get("/hot.txt").body == b"hot"
        assert time.monotonic() - started < 0.4
        slow_disk.take(0)
        for connection in connections:
            assert connection.response().body == SMALL
            connection.close()
        assert missing.response().body == b"page"
        missing.close()


@pytest.mark.clear
def test_hosts_that_are_new_hold_nobody_up(build, slow_disk):
    with Server(build, slow_disk, "-j", "1", "-T", "30") as server:
        assert server.get("/hot.txt").body == b"hot"
        slow_disk.take(0.5)
        others = [server.connect().send(b"GET /hot.txt HTTP/1.1\r\nHost: other%d\r\n\r\n" % n) for n in range(CLIENTS)]
        started = time.monotonic()
        assert server.get("/hot.txt").body == b"hot"
        assert time.monotonic() - started < 0.4
        slow_disk.take(0)
        for connection in others:
            assert connection.response().body == b"hot"
            connection.close()


@pytest.mark.clear
def test_the_rules_of_a_site_are_looked_at_beside_the_loop(build):
    """The kernel forgets what the disk returned within half a second, so that each look of the
    server is a new one."""
    with (
        slowed({"_redirects": b"/from /to 301!\n"}, "--remembered", "0.5") as root,
        Server(build, root, "-j", "1", "-T", "30") as server,
    ):
        assert server.get("/from")["Location"] == "/to"
        root.take(0.5)
        until = time.monotonic() + 4
        with server.connect() as connection:
            while time.monotonic() < until:
                started = time.monotonic()
                assert connection.get("/from")["Location"] == "/to"
                assert time.monotonic() - started < 0.4
                time.sleep(0.05)
        root.source.write("_redirects", b"/from /elsewhere 301!\n")
        root.take(0)
        eventually(lambda: server.get("/from")["Location"] == "/elsewhere")


@pytest.mark.clear
def test_who_is_too_many_for_a_slow_disk_is_refused(build):
    names = [f"no{n}" for n in range(FETCHES_MAX + 1)]
    with slowed({"hot.txt": b"hot", **dict.fromkeys(names, b"x")}) as root, Server(build, root, "-j", "1", "-T", "30") as server:
        assert server.get("/hot.txt").body == b"hot"
        root.take(0.5)
        connections = [server.connect().send(f"GET /{name} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()) for name in names]
        refused = connections[-1].response()
        assert refused.status == 503 and refused["retry-after"]
        assert server.get("/hot.txt").body == b"hot"
        root.take(0)
        assert connections[0].response().status == 200
        for connection in connections:
            connection.reset()
