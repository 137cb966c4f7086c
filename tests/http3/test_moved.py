"""Whose requests they are after a client has moved to another address (RFC 9000, section 9): those of the old one until the new one is
validated, and of the new one from then on."""

import contextlib
import socket
import threading

import pytest

from frames import CONNECTION_REFUSED, EXCESSIVE_LOAD
from gatling import Root, eventually
from served import SMALL
from test_paths import FORGED, OTHER
from test_tunnels import passing
from upstream import Upstream

FIRST, NAMED = "127.0.0.1", "192.0.2.1"
LATE = b"late"


@pytest.fixture(scope="module", name="root")
def _root():
    """Has a folder for each address."""
    addresses = (FIRST, OTHER, FORGED)
    root = Root({"small.bin": SMALL, **{f"{a}/a.txt": SMALL for a in addresses}, **{f"{a}/.htaccess": f"Require ip {a}\n".encode() for a in addresses}})
    yield root
    root.remove()


@pytest.fixture(name="serve")
def _serve(http3, root):
    with contextlib.ExitStack() as stack:
        yield lambda *flags: stack.enter_context(http3.serve(root, "-j", "1", *flags))


def is_at(c, address):
    """Returns whether the server takes the client for one at that address."""
    return c.get(f"/{address}/a.txt").status == 200


def move(c, source):
    """Moves, and waits until the server goes by that."""
    assert is_at(c, FIRST)  # before the handshake is confirmed a client may not move
    c.move(source)
    eventually(lambda: is_at(c, source))


def askers(server, path):
    """Returns the addresses that have asked for a path, as they are logged."""
    return [line.split()[0] for line in server.lines if f" {path} " in line]


def refused_from(server, address):
    return any(f"refused over --limit address-connections: 1, the last from {address}" in line for line in server.errors)


def test_the_new_address_is_asked_for_and_logged(serve, client):
    server = serve()
    with client.Client(server) as c:
        assert not is_at(c, OTHER)
        move(c, OTHER)
        assert not is_at(c, FIRST)
        eventually(lambda: askers(server, f"/{FIRST}/a.txt") == [FIRST, OTHER])


def test_a_client_that_comes_back_is_where_it_was(serve, client):
    """ngtcp2 does not validate an address again that it knows."""
    with client.Client(serve()) as c:
        first = c.socket
        assert is_at(c, FIRST)
        for _ in range(2):
            c.socket = c._open(OTHER)  # pylint: disable=protected-access
            eventually(lambda: is_at(c, OTHER))
            c.socket.close()
            c.socket = first
            c.sync()  # ngtcp2 1.22 sends nothing again that was lost before it heard of the client there
            assert is_at(c, FIRST)
            assert not is_at(c, OTHER)


def test_an_address_that_is_not_validated_counts_for_nothing(serve, client):
    """Somebody sends a client's datagrams from elsewhere, and the client answers no challenge there."""

    class Forging(client.Link):
        forger = None

        def sent(self, datagram):
            if not self.forger:
                return [datagram]
            self.forger.send(datagram)
            return []

    server, link, path = serve(), Forging(), f"/{FORGED}/a.txt"
    with client.Client(server, link) as c, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.bind((FORGED, 0))
        s.connect(c.address)
        assert is_at(c, FIRST)
        link.forger = s
        streams = [c.ask(path) for _ in range(3)]  # what the first datagram asks for comes before it has moved anything
        s.recv(1 << 16)
        streams.append(c.ask(path))
        link.forger = None
        assert [answer.status for answer in c.answers(*streams)] == [403] * 4 and is_at(c, FIRST)
        eventually(lambda: askers(server, path) == [FIRST] * 4)


def test_upstreams_are_told_of_the_new_address(http3, client):
    with Upstream() as upstream, passing(http3, upstream) as server, client.Client(server) as c:
        assert f"X-Forwarded-For: {FIRST}\n".encode() in c.get("/api/x").body
        c.move(OTHER)
        eventually(lambda: f"X-Forwarded-For: {OTHER}\n".encode() in c.get("/api/x").body)


def test_only_the_new_address_may_be_that_of_a_trusted_proxy(serve, client):
    server, field = serve("--trust", OTHER), ("x-forwarded-for", NAMED)
    with client.Client(server) as c:
        c.get("/small.bin", field)
        c.move(OTHER)
        eventually(lambda: c.get("/small.bin", field) and NAMED in askers(server, "/small.bin"))
        c.move(FIRST)
        eventually(lambda: c.get("/small.bin", field) and askers(server, "/small.bin")[-1] == FIRST)


def test_a_connection_counts_to_the_new_address(serve, client):
    server = serve("--limit", "address-connections=1")
    with client.Client(server) as c:
        move(c, OTHER)
        with client.Client(server) as another:
            assert another.get("/small.bin").body == SMALL
        with client.Client(server, source=OTHER, wait=False) as late:
            assert late.ended() == CONNECTION_REFUSED
            eventually(lambda: refused_from(server, OTHER))
        c.close()
        with client.Client(server, source=OTHER) as another:
            assert another.get("/small.bin").body == SMALL


def test_a_connection_ends_where_an_address_has_no_place_for_it(serve, client):
    server = serve("--limit", "address-connections=1")
    with client.Client(server) as c, client.Client(server, source=OTHER) as there:
        assert is_at(c, FIRST) and is_at(there, OTHER)
        c.move(OTHER)
        c.ask("/small.bin")
        assert c.ended() == EXCESSIVE_LOAD
        assert refused_from(server, OTHER) and there.get("/small.bin").body == SMALL
        with client.Client(server) as another:
            assert another.get("/small.bin").body == SMALL


def test_a_request_that_is_under_way_keeps_its_address(http3, client):
    release = threading.Event()

    def handle(link):
        link.head()
        release.wait()
        link.answer(LATE)

    with Upstream(handle) as upstream, passing(http3, upstream, "--limit", "address-requests=1") as server, client.Client(server) as c:
        stream = c.ask("/api/x")
        eventually(lambda: upstream.requests)
        assert c.get("/small.bin").status == 429
        c.move(OTHER)
        eventually(lambda: c.get("/small.bin").status == 200)
        release.set()
        assert c.answer(stream).body == LATE
        eventually(lambda: askers(server, "/api/x") == [FIRST])
        with client.Client(server) as another:
            assert another.get("/small.bin").status == 200
