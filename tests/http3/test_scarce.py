"""Who has to go, and who waits, when connections, memory or time run short: connections of QUIC and of TCP are one crowd."""

import contextlib
import itertools
import signal
import threading
import time
from base64 import b64encode

import pytest

from frames import DATA, EXCESSIVE_LOAD, REQUEST_CANCELLED, frame
from gatling import Root, descriptors_limited_to, eventually
from http2 import Http2
from running import httpbench
from served import SMALL
from test_fairness import stop
from test_guard import hashed
from test_shedding import has_been_closed
from test_upstream import holding
from upstream import Upstream

CONNECTIONS, SHORT = 40, 36
SHED_IDLE_S, SHED_HEAD_S, QUIC_CHECK_S = 1, 3, 1
HEAVY, OTHER = "127.8.0.1", "127.9.0.1"
HANDSHAKE_S = 1  # after so long without an answer a client of QUIC has been refused
MIN_RATE_WINDOW_S = 10


@pytest.fixture
def small(http3, files):
    """A server with room for few connections."""
    flags = ("-j", "1", "-n", "-T", "60", "--limit", f"connections={CONNECTIONS}", "--limit", "min-rate=0", "--defer-accept", "off")
    with http3.serve(files, *flags) as server:
        yield server


@pytest.fixture
def visit(client, small):
    """Returns a function that opens a connection and asks for a file. It returns the connection, or None if that was refused."""
    with contextlib.ExitStack() as stack:

        def tcp(source):
            c = stack.enter_context(small.connect(source=source))
            return c if c.get("/small.bin").status == 200 else None

        def quic(source, window=1 << 24):
            c = stack.enter_context(client.Client(small, source=source, window=window, wait=False))
            with contextlib.suppress(AssertionError):
                c.until(lambda: c.handshake, HANDSHAKE_S)
            if not c.handshake:
                return None
            assert c.get("/empty.txt").status == 200
            c.acknowledge()
            return c

        yield lambda kind, *arguments: {"tcp": tcp, "quic": quic}[kind](*arguments)


BOTH = ["tcp", "quic"]


@pytest.mark.parametrize("kind", BOTH)
def test_the_connection_that_is_idle_longest_makes_room(visit, kind):
    """Of either kind for one of the other. One that has just been used stays."""
    others = [visit(kind, f"127.9.0.{n}") for n in range(SHORT)]
    time.sleep(SHED_IDLE_S + QUIC_CHECK_S + 0.1)
    assert all(c.get("/empty.txt").status == 200 for c in others[:-1])
    assert visit(BOTH[kind == "tcp"], OTHER)
    assert all(c.get("/empty.txt").status == 200 for c in others[:-1])
    with pytest.raises(AssertionError):
        others[-1].get("/empty.txt")



@pytest.mark.parametrize("heavy", [["tcp"], ["quic"], BOTH], ids="-".join)
def test_the_idle_connections_of_a_heavy_address_go_first_and_whatever_their_age(visit, heavy):
    others = [visit(kind, f"127.9.0.{n}") for n in range(1, 5) for kind in BOTH]
    time.sleep(SHED_IDLE_S + 0.1)
    refused = 0
    for kind in itertools.islice(itertools.cycle(heavy), 2 * CONNECTIONS):
        refused += visit(kind, HEAVY) is None
        if refused == 2:
            break
    others += [visit(kind, f"127.9.1.{n}") for n in range(1, 5) for kind in BOTH]
    assert all(c.get("/empty.txt").status == 200 for c in others)


def test_handshakes_of_quic_that_take_long_go_before_idle_connections(small, client, visit):
    slow = [client.Client(small, wait=False) for _ in range(SHORT // 2)]
    for c in slow:
        c.flush()
    others = [visit(kind, f"127.9.0.{n}") for n in range(1, 5) for kind in BOTH]
    time.sleep(SHED_HEAD_S + 0.1)  # those that are idle are so for longer than SHED_IDLE_MS
    others += [visit(kind, f"127.9.1.{n}") for n in range(1, 6) for kind in 2 * BOTH]
    assert all(c.get("/empty.txt").status == 200 for c in others)
    for c in slow:
        c.socket.close()


def test_busy_connections_of_an_address_leave_room_for_others(small, client, visit):
    """They can be closed neither as idle nor as unfinished."""

    def hold(kind):
        """Returns whether the connection was refused."""
        if kind == "tcp":
            c = stack.enter_context(small.connect(source=HEAVY, receive_buffer=4096))
            c.send(b"GET /big.bin HTTP/1.1\r\nHost: a\r\n\r\n")
            return c.socket.recv(12) != b"HTTP/1.1 200"
        c = stack.enter_context(client.Client(small, source=HEAVY, window=0, wait=False))
        c.ask("/big.bin")
        with contextlib.suppress(AssertionError):
            c.until(lambda: c.handshake, HANDSHAKE_S)
        return not c.handshake

    def all_go_on():
        return all(c.get("/empty.txt").status == 200 for c in others)

    others = [visit(kind, OTHER) for kind in BOTH]
    with contextlib.ExitStack() as stack:
        refused = set()
        for kind in itertools.islice(itertools.cycle(BOTH), 2 * CONNECTIONS):
            assert all_go_on()
            if hold(kind):
                refused.add(kind)
            if len(refused) == len(BOTH):
                break
        assert refused == set(BOTH)
        others += [visit(kind, OTHER) for kind in BOTH]
        assert all_go_on()
        eventually(lambda: any("addresses with many" in line for line in small.errors))


def test_slow_clients_go_when_connections_run_short(http3, client, files):
    """As those of HTTP/2 do, and at the same time."""
    flags = ("-j", "1", "-n", "--limit", f"connections={CONNECTIONS}", "--limit", "min-rate=2000", "--defer-accept", "off", "-T", "60")
    with http3.serve(files, *flags) as server, contextlib.ExitStack() as stack:
        reader, sender, steady = (stack.enter_context(client.Client(server, window=1000, hold=True)) for _ in range(3))
        reader.ask("/big.bin")
        sent = [c.ask("/small.bin", ("content-length", "1000000"), body=b"x", end=False) for c in (sender, steady)]
        http2 = stack.enter_context(Http2(server, window=0))
        http2.ask("/big.bin")
        idle = [stack.enter_context(server.connect()) for _ in range(CONNECTIONS * 3 // 4)]
        assert all(c.get("/small.bin").body == SMALL for c in idle)
        started, ended = time.monotonic(), {}
        while len(ended) < 3:
            assert time.monotonic() < started + 2 * MIN_RATE_WINDOW_S
            steady.send(sent[1], frame(DATA, 1000 * b"x"))
            for c in (reader, sender, steady):
                c.turn(0.03)
            for name, gone in (("reader", reader.end), ("sender", sender.end), ("HTTP/2", has_been_closed(http2.socket))):
                if gone:
                    ended.setdefault(name, time.monotonic() - started)
        assert min(ended.values()) > MIN_RATE_WINDOW_S - 2 and max(ended.values()) - min(ended.values()) < 3
        assert reader.end.error_code == sender.end.error_code == EXCESSIVE_LOAD and not steady.end
        assert all(c.get("/small.bin").body == SMALL for c in idle)


MEMORY, PAGE = 16 << 20, 15_000  # of this QUIC may have a half


def test_an_address_with_most_of_the_memory_goes_first(http3, client):
    """However little each of its connections has: what they do not take is kept."""

    def hold(source, streams):
        c = stack.enter_context(client.Client(server, source=source, window=0, hold=True))
        for _ in range(streams):
            c.ask("/page")
        with contextlib.suppress(AssertionError):
            c.sync()
        return c

    root = Root({"page": b"x" * PAGE, "small.bin": SMALL})
    with http3.serve(root, "-j", "1", "-n", "--limit", f"memory={MEMORY}") as server, contextlib.ExitStack() as stack:
        others = [hold(f"127.9.0.{n}", 45) for n in range(1, 4)]
        heavy = [hold(HEAVY, 30) for _ in range(20)]
        line = eventually(lambda: [line for line in server.errors if "--limit memory" in line])[0]
        assert f"more than {MEMORY // 2} bytes were taken by the QUIC connections of a worker" in line
        assert {c.sync() for c in heavy} == {None, EXCESSIVE_LOAD}
        assert all(c.sync() is None for c in others)
    root.remove()


# --- what the owner lets each address have, and places for work that is dear ---


def test_an_address_has_so_many_requests_under_way_over_both(http3, client, files):
    with http3.serve(files, "-j", "2", "-n", "--limit", "address-requests=2") as server, client.Client(server, window=0) as c, server.connect() as tcp:
        held = [c.ask("/small.bin") for _ in range(2)]
        c.sync()
        assert tcp.get("/empty.txt").status == 429
        with client.Client(server) as same, client.Client(server, source=OTHER) as other:
            assert same.get("/empty.txt").status == 429 and other.get("/empty.txt").status == 200
        c.stop(held[0], REQUEST_CANCELLED)
        assert c.answer(held[0]).reset is not None
        c.acknowledge()
        eventually(lambda: tcp.get("/empty.txt").status == 200)


def test_a_client_leaves_connections_to_upstreams_for_others(http3, client):
    release = threading.Event()
    with Upstream(holding(release)) as upstream, contextlib.ExitStack() as stack:
        root = Root({"_redirects": f"/api/* http://{upstream.address}/:splat 200\n".encode()})
        stack.callback(root.remove)
        flags = ("-j", "1", "-n", "--upstream", upstream.allowed)
        server = stack.enter_context(http3.serve(root, *flags, **descriptors_limited_to(256)))
        greedy = stack.enter_context(client.Client(server))
        streams = [greedy.ask("/api/wait") for _ in range(80)]
        greedy.until(lambda: any(stream in greedy.found for stream in streams))
        for other in (stack.enter_context(client.Client(server, source=OTHER)), stack.enter_context(server.connect(source=OTHER))):
            assert [other.get("/api/").status for _ in range(5)] == [200] * 5
        release.set()
        assert {answer.status for answer in greedy.answers(*streams)} == {200, 503}


def test_an_address_has_so_many_attempts_over_both(http3, client):
    root = Root({".htaccess": b"realm\nann:" + hashed("$6$rounds=1000$saltsalt").encode() + b"\n", "a": b"a"})
    with http3.serve(root, "-j", "2", "-n") as server, client.Client(server) as c, server.connect() as tcp:
        fields = [b64encode(b"ann:%d" % n).decode() for n in range(30)]
        found = [c.get("/a", ("authorization", f"Basic {field}")).status for field in fields]
        assert found[0] == 401 and 429 in found
        assert tcp.get("/a", f"Authorization: Basic {b64encode(b'ann:x').decode()}").status == 429
        with client.Client(server, source=OTHER) as other:
            assert other.get("/a", ("authorization", f"Basic {fields[0]}")).status == 401
    root.remove()


# --- turns ---

STREAMS, GREEDY, ROUNDS = 50, 20, 3000  # whose answers fit into a congestion window of the beginning


def ask_together(c, path):
    """In as few datagrams as possible: the socket of a server that stands still has room for few."""
    c.flush = lambda: None
    for _ in range(STREAMS):
        c.ask(path)
    del c.flush
    c.flush()


def test_one_with_many_streams_does_not_keep_another_waiting(http3, client, tmp_path):
    root = Root({"greedy": b"g", "other": b"o"})
    tmp_path.chmod(0o755)
    with http3.serve(root, "-j", "1") as server, contextlib.ExitStack() as stack:
        url = f"https://127.0.0.1:{server.tls_port}/greedy"
        warmed = httpbench(http3.build, "--http3", "--insecure", "-n", ROUNDS, "-c", GREEDY, "-p", 4, url, launcher=http3.inside, tmp_path=tmp_path)
        assert warmed["answered"] == ROUNDS
        greedy = [stack.enter_context(client.Client(server)) for _ in range(GREEDY)]
        first, other = (stack.enter_context(client.Client(server, source=OTHER)) for _ in range(2))
        eventually(lambda: len(server.lines) == ROUNDS)
        stop(server)
        first.ask("/other?first")  # so that they are not alone
        for c in greedy:
            ask_together(c, "/greedy")
        last = other.ask("/other?last")
        server.signal(signal.SIGCONT)
        assert other.answer(last).body == b"o"
        eventually(lambda: any("?last" in line for line in server.lines))
        before = next(n for n, line in enumerate(server.lines) if "?last" in line) - ROUNDS
        assert before < GREEDY * STREAMS / 2
        for c in greedy:
            assert all(answer.body == b"g" for answer in c.answers(*range(0, 4 * STREAMS, 4)))
    root.remove()
