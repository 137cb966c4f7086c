"""Which connections a full worker closes first, and what clients can make it keep."""

import contextlib
import functools
import itertools
import os
import re
import select
import signal
import socket
import ssl
import struct
import subprocess
import time
from pathlib import Path

import pytest

from gatling import Connection, Root, Server, certificate, descriptors_limited_to, eventually, trusting
from http2 import (
    CONTINUATION, DATA, END_HEADERS, END_STREAM, ENHANCE_YOUR_CALM, GOAWAY, HEADERS, PING, PREFACE, PRIORITY_UPDATE,
    SETTINGS, WINDOW_UPDATE, Http2, block, frame, integer, request, settings,
)  # fmt: skip
from served import BIG, SMALL

pytestmark = pytest.mark.moving

PARTS = (b"GET /small.bin HTTP/1.1\r\nHost: a\r\nX", b"\x16\x03\x01", b"")


ADDRESSES = itertools.cycle(f"127.0.1.{n}" for n in range(1, 33))  # so many that none is heavy (HEAVY_PART)


def crowd(port, n, part):
    """Opens n connections, from many addresses, that send part of something."""
    found = []
    for _ in range(n):
        s = socket.create_connection(("127.0.0.1", port), source_address=(next(ADDRESSES), 0))
        s.sendall(part)
        s.setblocking(False)
        found.append(s)
    return found


def open_still(s):
    try:
        return s.recv(1) != b""
    except BlockingIOError:
        return True
    except ConnectionResetError:
        return False


@pytest.fixture
def small(build, files):
    """A server with few descriptors, and two ports."""
    cert, key = certificate()
    flags = ("-j", "1", "-n", "--defer-accept", "off", "--limit", "head-timeout=60", "--cert", cert, "--key", key, "--tls-port", "0")
    with Server(build, files, *flags, **descriptors_limited_to(200)) as server:
        yield server


@pytest.mark.clear
@pytest.mark.parametrize("secure", [False, True], ids=["heads", "handshakes"])
def test_heads_and_handshakes_that_take_long_go_before_idle_connections(small, secure):
    port, part = (small.tls_port, PARTS[1]) if secure else (small.plain_port, PARTS[0])
    slow = crowd(port, 80, part)
    started = time.monotonic()
    idle = [small.connect(source=next(ADDRESSES)) for _ in range(40)]
    while time.monotonic() < started + 3.3:  # SHED_HEAD_MS
        for c in idle:
            assert c.get("/small.bin").body == SMALL
    time.sleep(1.1)  # now they are idle for longer than SHED_IDLE_MS
    others = [small.connect(source=next(ADDRESSES)) for _ in range(60)]
    for c in others:
        assert c.get("/small.bin").body == SMALL
    assert all(c.get("/small.bin").body == SMALL for c in idle)  # none of them was closed
    assert not all(open_still(s) for s in slow)
    line = eventually(lambda: [line for line in small.errors if "unfinished" in line])[0]
    assert "connections" in line and "ulimit -n" in line
    for c in idle + others + slow:
        c.close()


@pytest.mark.clear
def test_nobody_goes_who_has_been_idle_for_less_than_a_second(small):
    clients, deadline = [], time.monotonic() + 2.5
    while len(clients) < 140:
        clients.append(small.connect(source=next(ADDRESSES)))
        clients[-1].socket.settimeout(0.2)
        try:
            assert clients[-1].get("/small.bin").body == SMALL
        except TimeoutError:
            clients.pop()  # it waits in the kernel's queue
            break
        clients[-1].socket.settimeout(5)
    while time.monotonic() < deadline:
        for c in clients:  # each again and again, with a fraction of a second in between
            assert c.get("/small.bin").body == SMALL
    for c in clients:
        c.close()


@pytest.mark.clear
def test_who_cannot_go_is_not_asked_for_ever(small):
    """Idle HTTP/2 connections whose clients do not read the end of their answers."""
    stuck = []
    for _ in range(125):
        stuck.append(Http2(small, receive_buffer=1, source=next(ADDRESSES)))
        stuck[-1].ask("/big.bin", ("range", "bytes=0-29999"))
    time.sleep(1.2)  # SHED_IDLE_MS
    used = small.cpu_seconds()
    others = [small.connect(source=next(ADDRESSES)) for _ in range(30)]
    assert others[0].get("/small.bin").body == SMALL
    time.sleep(1)  # tests that little is done in this time
    assert small.cpu_seconds() - used < 0.7
    for c in stuck + others:
        c.close()


def test_a_head_has_its_own_time(build, files):
    with Server(build, files, "-j", "1", "-T", "20", "--limit", "head-timeout=1", "--limit", "keepalive-timeout=20") as server, server.connect() as c:
        assert c.get("/small.bin").body == SMALL
        started = time.monotonic()
        c.send(b"GET / HTTP/1.1\r\nHost")
        for _ in range(4):  # this moves no deadline
            time.sleep(0.2)
            c.send(b"x")
        assert c.response().status == 408 and 0.9 < time.monotonic() - started < 5


def test_an_idle_connection_has_its_own_time(build, files):
    with Server(build, files, "-j", "1", "-T", "20", "--limit", "keepalive-timeout=1") as server, server.connect() as c:
        assert c.get("/small.bin").body == SMALL
        started = time.monotonic()
        c.assert_closed()
        assert 0.9 < time.monotonic() - started < 5


@pytest.mark.clear
def test_a_handshake_has_the_time_of_a_head(build, files):
    cert, key = certificate()
    flags = ("-j", "1", "-T", "20", "--limit", "head-timeout=1", "--cert", cert, "--key", key, "--tls-port", "0")
    with Server(build, files, *flags) as server, socket.create_connection(("127.0.0.1", server.tls_port)) as s:
        started = time.monotonic()
        s.sendall(PARTS[1])
        s.settimeout(10)
        assert len(s.recv(100)) < 100 and not s.recv(100)
        assert 0.9 < time.monotonic() - started < 5


# --- memory ---


def hold_log_lines(c, streams=127):
    """Log lines for streams that have not ended, each with a path of 4,000 octets that one octet
    names."""
    path = b"\x44" + integer(4000, 7) + b"/" + b"x" * 3999
    c.send(frame(HEADERS, END_HEADERS, 1, b"\x82\x86\x41\x01a" + path))
    c.send(b"".join(frame(HEADERS, END_HEADERS, 3 + 2 * n, b"\x82\x86\xbf\xbe") for n in range(streams - 1)))


def hold_answers(c):
    """Locations three times as long as the path, in answers that wait for the content of their
    requests."""
    path = b"\x44" + integer(4000, 7) + b"/dir" + b"?" + b"\xff" * 3995
    c.send(frame(HEADERS, END_HEADERS, 1, b"\x82\x86\x41\x01a" + path))
    c.send(b"".join(frame(HEADERS, END_HEADERS, 3 + 2 * n, b"\x82\x86\xbf\xbe") for n in range(126)))


def hold_streams(c):
    """Large files, without a window."""
    for n in range(128):
        c.send(frame(HEADERS, END_HEADERS | END_STREAM, 1 + 2 * n, request("/big.bin")))


def hold_table(c):
    """A dynamic table with the smallest entries."""
    fields = b"".join(b"\x40\x01" + bytes([97 + n % 26]) + b"\x00" for n in range(124))
    for n in range(2):
        c.send(frame(HEADERS, END_HEADERS | END_STREAM, 1 + 2 * n, request("/") + fields[: 4 * 95]))


def hold_block(c):
    """A header block that does not end."""
    c.send(frame(HEADERS, 0, 1, b"\x00" * 1) + frame(CONTINUATION, 0, 1, b"x" * 16000))


def hold_priorities(c):
    for n in range(128):
        c.send(frame(PRIORITY_UPDATE, payload=struct.pack(">I", 2 * n + 1) + b"u=1"))


def hold_unread(c):
    """Answers that are not read."""
    c.send(frame(SETTINGS, payload=settings(window=1 << 30)))
    c.flood(b"".join(frame(HEADERS, END_HEADERS | END_STREAM, 1 + 2 * n, request("/small.bin")) for n in range(3000)), 1)


def hold_head(c):
    c.send(b"GET / HTTP/1.1\r\nHost: a\r\n" + b"X: y\r\n" * 90 + b"X: " + b"y" * 15000)


def hold_pipeline(c):
    c.flood((b"GET /big.bin?" + b"\xff" * 8000 + b" HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\n\r\n") * 64, 1)


WAYS_2 = [hold_log_lines, hold_answers, hold_streams, hold_table, hold_block, hold_priorities, hold_unread]
WAYS_1 = [hold_head, hold_pipeline]
BUDGET = 8 << 20
CLIENTS = 300


@pytest.mark.clear
@pytest.mark.parametrize("way", WAYS_1 + WAYS_2, ids=lambda way: way.__name__)
def test_what_clients_make_it_keep_is_limited(plain, files, way):
    with Server(plain, files, "-j", "1", "--limit", f"client-memory={BUDGET}", "--log", "json", stdout=open(os.devnull, "wb")) as server:
        server.get("/small.bin")
        before, most, clients = server.resident(), 0, []
        for _ in range(CLIENTS):
            try:
                c = Http2(server, start=way in WAYS_2, window=0, receive_buffer=4096)
                clients.append(c)
                way(c)
            except (BrokenPipeError, ConnectionResetError):
                pass  # it held the most memory
            most = max(most, server.resident() - before)
        with server.connect() as good:
            assert good.get("/small.bin").body == SMALL
        # beyond the budget: structures, each worker's buffers, and what malloc(3) does not give
        # back immediately
        assert most < 1.2 * BUDGET + CLIENTS * 8192 + (4 << 20)
        for c in clients:
            c.close()


def most_resident(server):
    """Returns the most bytes that were resident since the start."""
    return int(re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{server.pid}/status").read_text())[1]) * 1024


@pytest.mark.clear
def test_many_at_once_are_not_let_in_before_the_budget_is_looked_at(plain, files):
    path = b"\x44\x7f\xa1\x1e/" + b"x" * 3999
    fields = [b"\x82\x86\x41\x01a" + path] + [b"\x82\x86\xbf\xbe"] * 80
    data = PREFACE + frame(SETTINGS) + b"".join(frame(HEADERS, END_HEADERS, 2 * i + 1, f) for i, f in enumerate(fields))
    with Server(plain, files, "-j", "1", "--limit", f"client-memory={BUDGET}", "--log", "json", stdout=open(os.devnull, "wb")) as server:
        server.get("/small.bin")
        before = most_resident(server)
        server.signal(signal.SIGSTOP)
        clients = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(100)]
        for c in clients:
            c.sendall(data)
        server.signal(signal.SIGCONT)
        eventually(lambda: any("--limit client-memory" in line for line in server.errors))
        assert server.get("/small.bin").body == SMALL
        assert most_resident(server) - before < 1.2 * BUDGET + (2 << 20)
        for c in clients:
            c.close()


@pytest.mark.clear
def test_the_dearest_goes_and_the_others_go_on(plain, files):
    with Server(plain, files, "-j", "1", "--limit", "client-memory=4M") as server, Http2(server, window=0) as modest:
        stream = modest.ask("/big.bin")
        dear = []
        for _ in range(40):
            dear.append(Http2(server, window=0))
            try:
                hold_log_lines(dear[-1], 60)
            except (BrokenPipeError, ConnectionResetError):
                pass
        gone = [c for c in dear if goaway_of(c) == ENHANCE_YOUR_CALM]
        assert gone and len(gone) < len(dear)
        modest.send(frame(SETTINGS, payload=settings(window=1 << 30)))
        assert modest.answers(stream)[0].status == 200
        eventually(lambda: any("--limit client-memory" in line for line in server.errors))
        for c in dear:
            c.close()


def goaway_of(c):
    """Returns the error with which the connection ended, or None if it has not."""
    c.socket.settimeout(0.05)
    try:
        return c.ended()
    except (TimeoutError, ssl.SSLError):
        return None


@pytest.mark.clear
def test_one_connection_cannot_have_more_than_its_share(plain, files):
    """See BUDGET_CONNECTION."""
    with Server(plain, files, "-j", "1", "-n") as server, Http2(server, window=0) as c:
        path, f = "/dir?" + "x" * 8000, None
        for i in range(128):
            c.ask(path, end=False)
            c.send(frame(PING, payload=i.to_bytes(8)))
            while (f := c.frame()).type != GOAWAY and f.payload != i.to_bytes(8):
                pass
            if f.type == GOAWAY:  # a client that sends more may lose it to an RST
                break
        assert f.type == GOAWAY and int.from_bytes(f.payload[4:8]) == ENHANCE_YOUR_CALM
        assert server.get("/small.bin").body == SMALL


@pytest.mark.clear
def test_large_files_in_http_2_leave_descriptors_for_others(build, root):
    for i in range(120):
        root.write(f"f{i}", b"x" * 70_000)
    with Server(build, root, "-j", "1", "-n", **descriptors_limited_to(256)) as server:
        greedy = []
        for _ in range(12):
            greedy.append(Http2(server, window=0))
            for i in range(100):
                greedy[-1].ask(f"/f{i}")
        for _ in range(20):
            with server.connect() as c:
                assert c.get("/a.txt").body == b"a"
        assert server.descriptors() < 200
        for c in greedy:
            c.close()


@pytest.fixture(scope="module")
def hello():
    """Returns the first flight of a client's handshake."""
    sent = ssl.MemoryBIO()
    client = trusting().wrap_bio(ssl.MemoryBIO(), sent)
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return sent.read()


def in_group_of(size):
    """Returns a launcher under which the program sees that limit of its control group, version 1 or
    2 (cgroups(7))."""
    if os.geteuid() != 0:
        pytest.skip("this takes root")
    groups = "/sys/fs/cgroup"
    files = " ".join(f"{groups}/{name}" for name in ("memory/memory.limit_in_bytes", "memory.max"))
    script = f'mount -t tmpfs none {groups} && mkdir {groups}/memory && echo {size} | tee {files} >/dev/null && exec "$@"'
    return ["unshare", "--mount", "sh", "-c", script, "sh"]


class Young:
    """A connection whose handshake has begun; the server has answered."""

    def __init__(self, server, version=ssl.TLSVersion.TLSv1_3):
        self.socket = socket.create_connection(("127.0.0.1", server.tls_port), source_address=(next(ADDRESSES), 0))
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        context = trusting()
        context.maximum_version = version
        self.tls = context.wrap_bio(self.incoming, self.outgoing)
        with pytest.raises(ssl.SSLWantReadError):
            self.tls.do_handshake()
        self.socket.sendall(self.outgoing.read())
        self.socket.recv(1, socket.MSG_PEEK)

    def receive(self):
        received = self.socket.recv(65536)
        assert received, "closed"
        self.incoming.write(received)

    def complete(self, content=b""):
        """Completes the handshake. content: goes with its end."""
        complete = False
        while not complete:
            self.receive()
            with contextlib.suppress(ssl.SSLWantReadError):
                self.tls.do_handshake()
                complete = True
                if content:
                    self.tls.write(content)
            self.socket.sendall(self.outgoing.read())
        return self.socket

    def get(self):
        """Returns the first octet of an answer."""
        with self.complete(b"GET /small.bin HTTP/1.0\r\n\r\n"):
            while True:
                with contextlib.suppress(ssl.SSLWantReadError):
                    return self.tls.read(1)
                self.receive()


@pytest.mark.clear
def test_who_comes_is_not_dearer_than_who_stays(plain, files):
    """A handshake takes more than an idle connection. Those take all memory, from many addresses:
    of TLS 1.2, since each of TLS 1.3 takes little."""
    cert, key = certificate()
    flags = ("-j", "1", "-n", "--cert", cert, "--key", key, "--tls-port", "0", "--limit", "memory=16M")
    with Server(plain, files, *flags) as server, contextlib.ExitStack() as held:
        full = False
        while not full:
            young = [Young(server) for _ in range(20)]
            for _ in range(50):
                held.enter_context(Young(server, ssl.TLSVersion.TLSv1_2).complete())
            full = any("--limit memory" in line for line in server.errors)
            assert [client.get() for client in young] == [b"H"] * 20


@pytest.mark.clear
@pytest.mark.parametrize("limit", ["flag", "group"])
def test_what_openssl_takes_is_limited_and_given_back(plain, files, hello, limit):
    """The limit memory, by default a quarter of the control group's limit."""
    cert, key = certificate()
    flags = ("-j", "1", "-n", "--limit", "head-timeout=60", "--cert", cert, "--key", key, "--tls-port", "0")
    if limit == "flag":
        limited = Server(plain, files, *flags, "--limit", "memory=16M")
    else:
        limited = Server(plain, files, *flags, "-u", "nobody", launcher=in_group_of(64 << 20), as_root=True)
    with limited as server:
        tls = ("127.0.0.1", server.tls_port)
        with Connection(tls, tls=trusting()) as regular:
            assert regular.get("/small.bin").body == SMALL
            before = server.resident()
            held = []
            for _ in range(1000):  # 46 MB
                held.append(socket.create_connection(tls))
                held[-1].sendall(hello)
                assert held[-1].recv(1) == b"\x16"  # its handshake has begun
            assert server.resident() - before < 24e6
            assert regular.get("/small.bin").body == SMALL
            line = eventually(lambda: [line for line in server.errors if "--limit memory" in line])[0]
            assert "closed the" in line and str(16 << 20) in line
            for s in held:
                s.close()
            eventually(lambda: server.resident() - before < 8e6)
            assert regular.get("/small.bin").body == SMALL


@pytest.mark.clear
def test_files_take_no_more_than_a_quarter_of_a_small_control_group(plain):
    root = Root({f"f{i}": os.urandom(30_000) * 2 for i in range(800)})  # 48 MB
    with Server(plain, root, "-j", "1", "-n", "-u", "nobody", launcher=in_group_of(64 << 20), as_root=True) as server, server.connect() as c:
        before = server.resident()
        for i in [*range(800)] * 3:
            assert len(c.get(f"/f{i}").body) == 60_000
        assert server.resident() - before < 24e6
    root.remove()


# --- addresses ---

OTHER = "127.0.0.2"


def stop_reading(server):
    """Opens a connection that can be closed neither as idle nor as unfinished."""
    c = server.connect(receive_buffer=4096)
    c.send(b"GET /big.bin HTTP/1.1\r\nHost: a\r\n\r\n")
    return c


@pytest.mark.clear
@pytest.mark.parametrize("others", [1, 0])
def test_an_address_with_many_connections_leaves_room_for_others(small, others):
    """Also for those who come when it has all but the last places."""
    before = [small.connect(source=OTHER) for _ in range(others)]
    assert all(c.get("/small.bin").body == SMALL for c in before)
    held, refused = [], None
    while not refused:
        held.append(stop_reading(small))
        head = held[-1].socket.recv(12)
        refused = head if head != b"HTTP/1.1 200" else None
    assert refused == b"HTTP/1.1 503"
    news = before + [small.connect(source=OTHER) for _ in range(4)]
    assert all(c.get("/small.bin").body == SMALL for c in news)
    eventually(lambda: any("refused" in line and "addresses with many" in line for line in small.errors))
    for c in held + news:
        c.close()


@pytest.mark.clear
def test_the_idle_connections_of_a_heavy_address_go_first_and_whatever_their_age(small):
    others = [small.connect(source=f"127.0.0.{n}") for n in range(2, 12)]
    assert all(c.get("/small.bin").body == SMALL for c in others)
    time.sleep(1.1)  # they are idle for longer than SHED_IDLE_MS
    heavy = []
    for _ in range(200):
        heavy.append(small.connect())
        heavy[-1].send(b"GET /small.bin HTTP/1.1\r\nHost: a\r\n\r\n")
        assert heavy[-1].socket.recv(12) in (b"HTTP/1.1 200", b"HTTP/1.1 503")
    assert all(c.get("/small.bin").body == SMALL for c in others)
    for c in others + heavy:
        c.close()


# --- slow clients ---


def has_been_closed(s):
    events = select.poll()
    events.register(s, select.POLLRDHUP)
    return events.poll(0)


@pytest.mark.clear
def test_a_client_that_is_closed_for_its_rate_is_logged_at_once(build, files):
    flags = ("-j", "1", "--limit", "connections=40", "--limit", "min-rate=2000", "--defer-accept", "off", "-T", "60")
    with Server(build, files, *flags) as server:
        slow = server.connect()
        slow.send(b"POST /small.bin HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\nx")
        idle = [server.connect() for _ in range(30)]  # with the slow one more than three quarters
        for c in idle:
            assert c.get("/small.bin").body == SMALL
        eventually(functools.partial(has_been_closed, slow.socket), 30)
        eventually(lambda: any("POST" in line for line in server.lines), 3)  # nothing else happens meanwhile
        for c in [slow, *idle]:
            c.close()


@pytest.mark.clear
def test_slow_readers_and_senders_go_when_connections_run_short(build, files):
    flags = ("-j", "1", "-n", "--limit", "connections=40", "--limit", "min-rate=2000", "--defer-accept", "off", "-T", "60")
    with Server(build, files, *flags) as server:
        reader, sender, stream = stop_reading(server), server.connect(), Http2(server, window=0)
        sender.send(b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n")
        stream.ask("/big.bin")
        last, ended = server.connect(receive_buffer=1), Http2(server, receive_buffer=1)  # all of it is in the kernel
        last.send(b"GET /big.bin HTTP/1.1\r\nHost: a\r\nRange: bytes=0-29999\r\nConnection: close\r\n\r\nx")
        ended.ask("/big.bin", ("range", "bytes=0-29999"))
        slow = [reader.socket, sender.socket, stream.socket, last.socket, ended.socket]
        steady = server.connect(receive_buffer=4096)
        steady.send(b"GET /big.bin HTTP/1.1\r\nHost: a\r\n\r\n")
        idle = [server.connect() for _ in range(31)]  # three quarters, and fewer than nine tenths
        for c in idle:
            assert c.get("/small.bin").body == SMALL
        started = time.monotonic()
        while "has closed" not in "".join(server.errors):
            assert time.monotonic() < started + 20
            assert steady.socket.recv(4000)
            time.sleep(0.1)
        assert time.monotonic() > started + 8  # not before the window is over
        assert re.search(r"closed \d that transferred less than 2000 bytes a second \(--limit min-rate\)", "".join(server.errors))
        for s in slow:  # without reading, or they would no longer be slow
            eventually(functools.partial(has_been_closed, s))
        assert all(c.get("/small.bin").body == SMALL for c in idle)
        assert steady.socket.recv(4000)
        for c in [reader, sender, stream, last, ended, steady, *idle]:
            c.close()


# --- the kernel ---


def queued(port):
    """Returns the bytes that the kernel has queued for sending, for each connection of the server,
    by the client's port."""
    listed = subprocess.run(["ss", "-tmnH", "sport", "=", f":{port}"], capture_output=True, text=True, check=True).stdout
    return {int(client): int(size) for client, size in re.findall(r":(\d+)\s+skmem:\(.*?,w(\d+)", listed)}


def queued_at_last(port):
    """Returns the same when the queues have stopped growing."""
    sizes, before = queued(port), None
    while sizes != before:
        time.sleep(0.3)
        sizes, before = queued(port), sizes
    return sizes


def unsent_share():
    """Returns UNSENT_SHARE of the kernel's memory for TCP."""
    return int(Path("/proc/sys/net/ipv4/tcp_mem").read_text().split()[1]) * os.sysconf("SC_PAGESIZE") // 16


@pytest.mark.clear
def test_connections_that_come_together_leave_as_little_in_the_kernel(plain, files):
    with Server(plain, files, "-j", "1", "-n") as server:
        server.signal(signal.SIGSTOP)
        held = [stop_reading(server) for _ in range(400)]
        server.signal(signal.SIGCONT)
        for c in held:
            assert c.socket.recv(1) == b"H"
        sizes = sorted(queued_at_last(server.port).values())
        assert len(sizes) == 400 and sizes[300] < 2 * unsent_share() / 300 + (256 << 10)
        for c in held:
            c.close()


@pytest.mark.clear
def test_the_more_connections_there_are_the_less_each_leaves_in_the_kernel(build, files):
    with Server(build, files, "-j", "1", "-n") as server:
        held = []
        for _ in range(400):
            held.append(stop_reading(server))
            assert held[-1].socket.recv(1) == b"H"  # one after the other: the server has counted it
        last = [c.socket.getsockname()[1] for c in held[-100:]]
        sizes = queued_at_last(server.port)
        assert max(sizes[port] for port in last) < 2 * unsent_share() / 300 + (256 << 10)
        for c in held:
            c.close()
        c = stop_reading(server)  # alone, it may have more again
        assert c.socket.recv(1) == b"H"
        c.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="sysctls are changed in a network namespace")
def test_what_is_too_small_in_the_kernel_is_said(plain, root):
    change = "cd /proc/sys/net && echo 128 > core/somaxconn && echo 0 > ipv4/tcp_syncookies && exec \"$@\""
    command = ["unshare", "-n", "sh", "-c", change, "sh", plain / "gatling", "-c", root.path, "-p", "0", "-i", "127.0.0.1"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        lines = []
        while not lines or "serving" not in lines[-1]:
            lines.append(server.stderr.readline())
            assert lines[-1], lines
        server.terminate()
    assert any(line.endswith("sysctl -w net.core.somaxconn=4096 net.ipv4.tcp_syncookies=1\n") for line in lines)


@pytest.mark.tcp
@pytest.mark.clear
@pytest.mark.decided
def test_what_was_measured_before_is_forgotten_when_connections_run_short_again(build, files):
    flags = ("-j", "1", "-n", "--limit", "connections=40", "--limit", "min-rate=1000000", "--defer-accept", "off", "-T", "60")
    with Server(build, files, *flags) as server, server.connect(receive_buffer=4096) as reader:
        for wait_s in (9, 0):
            reader.send(b"GET /big.bin HTTP/1.1\r\nHost: a\r\n\r\n")
            assert reader.socket.recv(1, socket.MSG_PEEK)
            time.sleep(1)  # the file has been read as far as it can be sent
            idle = [server.connect() for _ in range(31)]
            assert all(c.get("/small.bin").body == SMALL for c in idle)
            time.sleep(2)  # a window begins, and does not end
            assert not has_been_closed(reader.socket)
            for c in idle:
                c.close()
            assert reader.response().body == BIG
            time.sleep(wait_s)


@pytest.mark.clear
def test_slow_readers_go_when_files_run_short(build, root):
    """Each stream has a large file open, of which its client takes nothing."""
    files = 300
    for n in range(files):
        root.write(f"{n}.jpg", os.urandom(700) * 100)
    with Server(build, root, "-j", "1", "-n", "-T", "60", **descriptors_limited_to(512)) as server:
        slow = [Http2(server, window=0) for _ in range(files // 5)]
        for n, connection in enumerate(slow):
            for k in range(4):
                connection.ask(f"/{4 * n + k}.jpg")
        eventually(lambda: "files that may be open: others are answered with 503" in "".join(server.errors))
        assert server.get(f"/{files - 1}.jpg").status == 503
        eventually(lambda: "(--limit min-rate)" in "".join(server.errors), 30)
        eventually(lambda: server.get(f"/{files - 2}.jpg").status == 200)
        for connection in slow:
            connection.close()
