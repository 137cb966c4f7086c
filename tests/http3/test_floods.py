"""The floods that "make hostile" sends over QUIC: each of them reaches the server, which serves others meanwhile."""

import time

import pytest

import processes
from debian import imported
from served import SMALL

FLOOD_S = 1
FLOODS = ["Initial packets", "random datagrams", "half-open handshakes", "path challenges", "pings", "rapid reset", "unknown frames", "priorities",
          "empty data", "slow readers"]  # fmt: skip
ENDED = ["rapid reset", "unknown frames", "priorities", "empty data"]  # their connections


@pytest.fixture(scope="module")
def floods(venv):
    return imported(venv, "floods_http3")


def test_all_are_tried(floods):
    assert list(floods.FLOODS) == FLOODS


@pytest.mark.parametrize("name", FLOODS)
def test_others_are_served_beside_a_flood(client, http3, files, floods, name):
    """At its end, the server waits for clients that do not answer any more, no longer than -T says."""
    floods.initials()
    with http3.serve(files, "-j", "1", "-T", "2") as server, processes.forked(floods.attack, server.tls_port, name, "127.8.0"):
        until = time.monotonic() + FLOOD_S
        while time.monotonic() < until:
            with client.Client(server) as c:
                assert c.get("/small.bin").body == SMALL


@pytest.mark.parametrize("name", ENDED)
def test_a_flood_of_frames_ends_its_connection(server, floods, name):
    """So it does come in such numbers."""
    c, send = floods.Connection(server.tls_port, "127.8.0.1"), floods.FRAMES_OF[name]
    until = time.monotonic() + FLOOD_S * 10
    c.flush()
    while not c.ended and time.monotonic() < until:
        if c.open:
            send(c)
        c.turn()
    c.socket.close()
    assert c.ended
