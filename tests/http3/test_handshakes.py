"""Handshakes over QUIC: what comes in another order than it was sent."""

import pytest

from served import SMALL

LONG = "x" * 200  # a protocol that no server speaks; six of them make a ClientHello of two datagrams
SERVER_HELLO = 1000  # bytes; a datagram that acknowledges is shorter
RETRY = 0xF0  # the type of a long header
HALF_OPEN = 64  # QUIC_HALF_OPEN and QUIC_HALF_OPEN_ADDRESS
SOURCE = "127.0.0.9"


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


def leave_handshakes(client, server, count, hears):
    """Begins handshakes in the name of SOURCE, of whose packets nothing is answered but those that hears() is true of."""

    class Deaf(client.Link):
        def received(self, datagram):
            return [datagram] if hears(datagram) else []

    for _ in range(count):
        c = client.Client(server, Deaf(), source=SOURCE, settle=False, wait=False)
        c.turn()
        c.flush()
        c.socket.close()


def test_an_address_with_many_handshakes_keeps_out_itself_alone(http3, client, files):
    """See QUIC_HALF_OPEN_ADDRESS. Those whose Retry is answered are its own."""
    with http3.serve(files, "-j", "1") as server:
        leave_handshakes(client, server, 2 * HALF_OPEN, lambda datagram: datagram[0] & 0xF0 == RETRY)
        for n in range(20):
            with client.Client(server, source=f"127.0.0.{10 + n}") as c:
                assert c.get("/small.bin").body == SMALL
        with client.Client(server, source=SOURCE, wait=False) as c, pytest.raises(AssertionError, match="did not happen"):
            c.until(lambda: c.handshake, 1)


@pytest.mark.parametrize("count", [HALF_OPEN // 2, HALF_OPEN], ids=["few", "many"])
def test_handshakes_that_anybody_can_begin_take_no_place_from_an_address(http3, client, files, count):
    """RFC 9000, section 8.1: whoever sends them does not receive there. After many of them an address is validated by a Retry."""
    with http3.serve(files, "-j", "1", "--limit", "address-connections=2") as server:
        leave_handshakes(client, server, count, lambda datagram: False)
        with server.connect(source=SOURCE) as tcp, client.Client(server, source=SOURCE) as c:
            assert tcp.get("/small.bin").body == c.get("/small.bin").body == SMALL
            with server.connect(source=SOURCE) as another:
                assert another.get("/small.bin").status == 429
