"""A new process takes the place of a running one: connections go on, also those that are just being made."""

import contextlib
import os
import tempfile
import time
from pathlib import Path

import pytest

from frames import GOAWAY_FIRST
from served import BIG, SMALL

WAITS_S = 6  # for the third time that a client sends its first packet, since nobody has answered
LONG_HELLO = ("h3", *(str(number) * 100 for number in range(10, 16)))  # names of protocols that make a ClientHello of two datagrams


@pytest.fixture
def start(http3, files):
    """Returns a function that starts a process, which takes over from the one that it started before."""
    with tempfile.TemporaryDirectory(prefix="gatling-http3-") as place, contextlib.ExitStack() as stack:
        os.chmod(place, 0o777)
        started = []

        def one(workers=2, *flags):
            ports = ("-p", str(started[0].plain_port), "--tls-port", str(started[0].tls_port)) if started else ()
            server = http3.serve(files, *ports, "-j", str(workers), "--take-over", Path(place, "successor"), *flags, drain_delay=None)
            started.append(server)
            stack.callback(lambda: server.stop() if server.process.poll() is None else server.wait(server.process.returncode))
            return server

        yield one


class Kept:
    """Keeps datagrams back: from the server, and those of the client from a number on."""

    def __init__(self, first=None):
        self.first, self.count, self.kept, self.deaf, self.got = first, 0, [], False, []

    def sent(self, datagram):
        self.count += 1
        if self.first is not None and self.count > self.first:
            self.kept.append(datagram)
            return []
        return [datagram]

    def received(self, datagram):
        self.got.append(datagram)
        return [] if self.deaf else [datagram]

    def release(self, connection):
        self.first = None
        for datagram in self.kept:
            connection.socket.send(datagram)


@pytest.mark.parametrize("before, after", [(1, 1), (2, 2), (4, 4), (1, 3), (4, 2)])
def test_connections_go_on_and_new_ones_are_made(client, start, before, after):
    old = start(before)
    with contextlib.ExitStack() as stack:
        kept = [stack.enter_context(client.Client(old)) for _ in range(8)]
        assert all(c.get("/small.bin").body == SMALL for c in kept)
        new = start(after)
        for c in kept:
            assert c.goaway() == GOAWAY_FIRST
            assert c.get("/small.bin").body == SMALL
        for _ in range(16):
            with client.Client(new) as c:
                assert c.get("/small.bin").body == SMALL
                assert not c.goaways()
    old.wait()


def test_a_response_goes_on(client, start):
    old = start()
    with client.Client(old, window=1000, hold=True) as c:
        stream = c.ask("/big.bin")
        c.until(lambda: stream in c.order)
        start()
        c.goaway()
        c.widen(stream, len(BIG) + 1000, 2 * len(BIG))
        assert c.answer(stream).body == BIG
    old.wait()


def test_a_worker_that_has_ended_keeps_nobody_waiting(client, start):
    """The old process goes on for a connection of its other worker."""
    old = start(2)
    with client.Client(old, window=1000, hold=True) as c:
        c.ask("/big.bin")
        c.until(lambda: c.order)
        new = start(2)
        for _ in range(8):
            begun = time.monotonic()
            with client.Client(new) as d:
                assert d.get("/small.bin").body == SMALL
            assert time.monotonic() - begun < WAITS_S
        assert old.process.poll() is None


@pytest.mark.parametrize("before, after", [(4, 3), (3, 4)])
def test_a_process_that_has_ended_keeps_nobody_waiting(client, start, before, after):
    """With other numbers of workers, the one that has its channel is not the one that has the connection."""
    old = start(before)
    new = start(after)
    old.wait()
    for _ in range(16):
        begun = time.monotonic()
        with client.Client(new) as c:
            assert c.get("/small.bin").body == SMALL
        assert time.monotonic() - begun < WAITS_S


def test_a_third_process_serves_beside_both_before(client, start):
    with contextlib.ExitStack() as stack:
        started = []
        for _ in range(3):
            c = stack.enter_context(client.Client(start(2), window=1000, hold=True))
            started.append((c, c.ask("/big.bin")))
            c.until(lambda: c.order)  # pylint: disable=cell-var-from-loop
        for c, stream in started:
            c.widen(stream, len(BIG) + 1000, 2 * len(BIG))
            assert c.answer(stream).body == BIG


def test_the_end_comes_when_the_client_asks_nothing_more(client, start):
    old = start()
    with client.Client(old) as c:
        start()
        assert c.goaway() == GOAWAY_FIRST
        assert c.ended() == 0x100
        assert c.goaways() == [GOAWAY_FIRST, 0]
    old.wait()


def test_a_handshake_of_two_datagrams_goes_on(client, start):
    """One datagram comes before the new process, the other after it."""
    old, link = start(), Kept(first=1)
    with client.Client(old, link, alpn=LONG_HELLO, wait=False) as c:
        c.turn()  # the server has the first one, and acknowledges it
        assert link.kept
        start()
        link.release(c)
        c.until(lambda: c.handshake)
        assert c.get("/small.bin").body == SMALL


def test_a_handshake_whose_answer_is_lost_goes_on(client, start):
    old, link = start(), Kept()
    link.deaf = True
    with client.Client(old, link, wait=False) as c:
        c.turn()
        new = start()
        link.deaf = False
        c.until(lambda: c.handshake)
        assert c.get("/small.bin").body == SMALL
        with client.Client(new) as d:
            assert d.get("/small.bin").body == SMALL


def test_one_that_cannot_serve_changes_nothing(client, start):
    old = start(3)
    with client.Client(old) as c:
        with pytest.raises(AssertionError, match="missing.pem"):
            start(2, "--cert", "/missing.pem")
        for _ in range(8):
            assert c.get("/small.bin").body == SMALL
            with client.Client(old) as d:
                assert d.get("/small.bin").body == SMALL
        assert not c.control[1:]


def test_connections_of_a_process_that_was_killed_are_reset(client, start):
    old, link = start(), Kept()
    with client.Client(old, link) as c:
        token = c.quic._peer_cid.stateless_reset_token  # pylint: disable=protected-access
        new = start()
        c.goaway()
        old.kill()
        c.ask("/small.bin")
        c.until(lambda: any(datagram.endswith(token) for datagram in link.got))
        with client.Client(new) as d:
            assert d.get("/small.bin").body == SMALL
