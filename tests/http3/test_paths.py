"""Connections whose clients come from other ports and addresses (RFC 9000, section 9)."""

import select
import socket

import pytest

from gatling import TIMEOUT, eventually
from served import BIG, SMALL

OTHER, FORGED = "127.0.0.2", "127.0.0.3"
SILENT_S = 1.5


def answers_there(c, stream, share):
    """Waits until that share of the answer has come."""
    c.until(lambda: stream in c.found and len(c.found[stream].body) >= share * len(BIG))


@pytest.mark.parametrize("source", ["127.0.0.1", OTHER], ids=["port", "address"])
def test_a_translator_gives_the_client_another(client, server, source):
    for _ in range(5):  # whichever worker the new one would belong to
        with client.Client(server) as c:
            assert c.get("/small.bin").body == SMALL
            c.move(source)
            assert c.get("/small.bin").body == SMALL and c.end is None


@pytest.mark.parametrize("source", ["127.0.0.1", OTHER], ids=["port", "address"])
def test_a_download_goes_on_elsewhere(client, server, source):
    with client.Client(server, window=200_000) as c:
        stream = c.ask("/big.bin")
        for share in (0.2, 0.4, 0.6):
            answers_there(c, stream, share)
            c.move(source)
        assert c.answer(stream).body == BIG


@pytest.mark.parametrize("source", ["127.0.0.1", OTHER], ids=["port", "address"])
def test_a_client_migrates_with_other_connection_ids(client, server, source):
    """Section 9.5: nobody sees that it is the same connection. The server changes its IDs, too."""
    with client.Client(server, window=200_000) as c:
        stream = c.ask("/big.bin")
        seen = set()
        for share in (0.2, 0.4):
            answers_there(c, stream, share)
            c.quic.change_connection_id()
            c.move(source)
            seen.add(c.quic._peer_cid.cid)  # pylint: disable=protected-access
        assert c.answer(stream).body == BIG and len(seen) == 2
        assert c.get("/small.bin").body == SMALL


def test_a_client_comes_back(client, server):
    with client.Client(server) as c:
        first = c.socket
        assert c.get("/small.bin").body == SMALL  # before the handshake is confirmed a client may not migrate
        for _ in range(3):
            c.socket = c._open(OTHER)  # pylint: disable=protected-access
            assert c.get("/small.bin").body == SMALL
            c.socket.close()
            c.socket = first
            assert c.get("/big.bin").body == BIG


def received_by(s):
    """Returns the sizes of all datagrams, until none has come for some time."""
    sizes = []
    while select.select([s], [], [], SILENT_S)[0]:
        sizes.append(len(s.recv(1 << 16)))
    return sizes


def test_who_forges_the_address_of_a_datagram_moves_nothing(client, server):
    """Section 9.3: an attacker sends in the client's stead. Whoever has that address gets little, and the client goes on."""

    class Stealing(client.Link):
        forger = None

        def sent(self, datagram):
            if not self.forger:
                return [datagram]
            self.forger.send(datagram)
            select.select([self.forger], [], [], TIMEOUT)  # before the client sends more, with which the server would come back
            self.length, self.forger = len(datagram), None
            return []

    link = Stealing()
    with client.Client(server, link) as c, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.bind((FORGED, 0))
        s.connect(c.address)
        assert c.get("/small.bin").body == SMALL
        link.forger = s
        assert c.get("/big.bin").body == BIG  # asked for by the forged datagram
        sizes = received_by(s)
        assert sizes and sum(sizes) <= 3 * link.length
        assert c.get("/small.bin").body == SMALL and c.end is None


def test_a_client_that_nobody_reaches_any_more_is_forgotten(http3, client, files):
    """Nothing comes through to where it has moved. The server ends it, and serves others meanwhile."""
    with http3.serve(files, "-j", "1", "-T", "1") as server, client.Client(server, window=100_000) as c:
        stream = c.ask("/big.bin")
        answers_there(c, stream, 0.1)
        c.move(OTHER)
        c.flush()
        with client.Client(server) as other:
            assert other.get("/big.bin").body == BIG
        eventually(lambda: any("/big.bin HTTP/3.0" in line for line in server.lines) and len(server.lines) == 2)
