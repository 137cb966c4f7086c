"""Datagrams that are lost, doubled, reordered or damaged on their way, in either direction."""

import random
import time

import pytest

from gatling import certificate
from served import BIG, SMALL

FIRST = range(1, 13)
INITIAL_MIN = 1200  # bytes of a datagram with an Initial packet (RFC 9000, section 14.1)
AMPLIFICATION = 3  # times as much may be sent to an address that is not validated (section 8.1)
WATCHED_S = 4  # in which a server sends again what it has sent, twice or more


@pytest.fixture(scope="module")
def large(http3, files):
    """A server whose certificate takes more than it may send at first."""
    names = ",".join(f"DNS:{n}.name-of-a-host-that-makes-the-certificate-large.example" for n in range(80))
    cert, key = certificate(f"DNS:localhost,{names}")
    with http3.server(files, "--tls-port", "0", "--cert", cert, "--key", key, "-j", "1") as running:
        yield running


class Path:
    """A link on which sent() and received() become of a datagram what way(direction, number, datagram) returns."""

    def __init__(self, way):
        self.way, self.counts = way, {"sent": 0, "received": 0}

    def _pass(self, direction, datagram):
        self.counts[direction] += 1
        return self.way(direction, self.counts[direction], datagram)

    def sent(self, datagram):
        return self._pass("sent", datagram)

    def received(self, datagram):
        return self._pass("received", datagram)


# --- loss ---


@pytest.mark.parametrize("number", FIRST)
@pytest.mark.parametrize("direction", ["sent", "received"])
def test_any_of_the_first_datagrams_may_be_lost(client, large, direction, number):
    path = Path(lambda to, n, datagram: [] if (to, n) == (direction, number) else [datagram])
    with client.Client(large, path) as c:
        assert c.get("/big.bin").body == BIG
    assert path.counts[direction] > number


@pytest.mark.parametrize("direction", ["sent", "received"])
def test_the_first_datagrams_may_be_lost_together(client, large, direction):
    path = Path(lambda to, n, datagram: [] if to == direction and n < 4 else [datagram])
    with client.Client(large, path) as c:
        assert c.get("/small.bin").body == SMALL


@pytest.mark.parametrize("seed", range(12))
def test_a_fifth_of_all_may_be_lost(client, large, seed):
    dice = random.Random(seed)
    with client.Client(large, Path(lambda to, n, datagram: [] if dice.random() < 0.2 else [datagram])) as c:
        assert c.get("/small.bin").body == SMALL
        assert c.get("/big.bin", ("range", "bytes=0-99999")).body == BIG[:100_000]


# --- order, copies, damage ---


def swapped():
    """Each second datagram comes before the one that was sent before it."""
    kept = {"sent": [], "received": []}

    def way(to, n, datagram):
        if n % 2 and n > 2:  # none waits for ever behind the last one
            kept[to].append(datagram)
            return []
        before, kept[to] = kept[to], []
        return [datagram, *before]

    return way


def late():
    """One in ten comes after the next twenty."""
    kept = []

    def way(to, n, datagram):
        if to == "received" and n % 10 == 3:
            kept.append((n, datagram))
            return []
        come = [old for sent, old in kept if n > sent + 20]
        kept[:] = [(sent, old) for sent, old in kept if n <= sent + 20]
        return [datagram, *come]

    return way


def damaged(dice):
    def way(_to, _n, datagram):
        if dice.random() < 0.9:
            return [datagram]
        at = dice.randrange(len(datagram))
        return [datagram[:at] + bytes([datagram[at] ^ 1 << dice.randrange(8)]) + datagram[at + 1 :]]

    return way


WAYS = {
    "swapped": swapped, "late": late, "doubled": lambda: lambda to, n, datagram: [datagram] * 2,
    "damaged": lambda: damaged(random.Random(1)), "cut": lambda: lambda to, n, datagram: [datagram[: len(datagram) // 2 if n % 10 == 7 else None]],
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_what_arrives_otherwise_than_it_was_sent(client, large, way):
    with client.Client(large, Path(WAYS[way]())) as c:
        big, small = c.answers(c.ask("/big.bin"), c.ask("/small.bin"))
        assert big.body == BIG and small.body == SMALL


# --- amplification ---


class First(Path):
    """Only the first datagrams are sent, and nothing arrives."""

    def __init__(self, count, length=None):
        super().__init__(self.take)
        self.count, self.length, self.bytes = count, length, {"sent": 0, "received": 0}

    def take(self, to, n, datagram):
        if to == "sent" and n > self.count:
            return []
        datagram = datagram[: self.length if to == "sent" else None]
        self.bytes[to] += len(datagram)
        return [] if to == "received" else [datagram]


def watched(client, server, path, **options):
    """Returns the bytes that the server has sent in that time."""
    with client.Client(server, path, settle=False, wait=False, **options) as c:
        until = time.monotonic() + WATCHED_S
        while (left := until - time.monotonic()) > 0:
            c.turn(left)
        path.count = 0  # it does not say that it ends
    return path.bytes["received"]


@pytest.mark.parametrize("count", [1, 2])
def test_an_address_gets_three_times_as_much_as_it_has_sent(client, large, count):
    """Until it has answered: it may be forged. What is sent again counts. The second datagram is a copy of the first."""
    path = First(count)
    received = watched(client, large, path)
    assert path.bytes["sent"] == count * INITIAL_MIN
    assert (AMPLIFICATION - 1) * path.bytes["sent"] < received <= AMPLIFICATION * path.bytes["sent"]


def test_a_datagram_without_its_padding_gets_nothing(client, large):
    """Section 14.1: it has to be as long as its answer may be."""
    assert watched(client, large, First(1, INITIAL_MIN - 1)) == 0
