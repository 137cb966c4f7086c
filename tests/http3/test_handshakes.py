"""Handshakes over QUIC: what comes in another order than it was sent."""

from served import SMALL

LONG = "x" * 200  # a protocol that no server speaks; six of them make a ClientHello of two datagrams
SERVER_HELLO = 1000  # bytes; a datagram that acknowledges is shorter


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
