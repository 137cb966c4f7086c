"""Handshakes over QUIC: what comes in another order than it was sent."""

import pytest

from served import SMALL

LONG = "x" * 200  # a protocol that no server speaks; six of them make a ClientHello of two datagrams
SERVER_HELLO = 1000  # bytes; a datagram that acknowledges is shorter
RETRY = 0xF0  # the type of a long header
HANDSHAKES = 2 * 64


def reordering(client):
    """Returns a link that swaps the first two datagrams, and counts those that are sent before the server's answer."""

    class Reordering(client.Link):
        def __init__(self):
            self.first, self.count, self.answered = None, 0, False

        def sent(self, datagram):
            self.count += not self.answered
            if self.count == 1:
                self.first = datagram
                return []
            return [datagram, self.first] if self.count == 2 else [datagram]

        def received(self, datagram):
            self.answered |= len(datagram) > SERVER_HELLO
            return [datagram]

    return Reordering()


def test_a_client_hello_whose_parts_are_swapped_is_answered(client, server):
    """With a key of a post-quantum algorithm it is longer than a datagram. The client does not have to send it again."""
    counts = []
    for _ in range(5):
        link = reordering(client)
        with client.Client(server, link, alpn=("h3", *[LONG] * 6)) as c:
            assert c.get("/small.bin").body == SMALL
        counts.append(link.count)
    assert min(counts) == 2, counts


def test_an_address_with_many_handshakes_keeps_out_itself_alone(http3, client, files):
    """See QUIC_HALF_OPEN_ADDRESS. Retry packets are answered here, and nothing else is."""

    class Deaf(client.Link):
        def received(self, datagram):
            return [datagram] if datagram[0] & 0xF0 == RETRY else []

    with http3.serve(files, "-j", "1") as server:
        for _ in range(HANDSHAKES):
            c = client.Client(server, Deaf(), source="127.0.0.9", settle=False, wait=False)
            c.turn()
            c.flush()
            c.socket.close()
        for n in range(20):
            with client.Client(server, source=f"127.0.0.{10 + n}") as c:
                assert c.get("/small.bin").body == SMALL
        with client.Client(server, source="127.0.0.9", wait=False) as c, pytest.raises(AssertionError, match="did not happen"):
            c.until(lambda: c.handshake, 1)
