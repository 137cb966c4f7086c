"""Datagrams of connections that the server does not know (RFC 9000, section 10.3)."""

import os
import socket
import time

import pytest

from gatling import TIMEOUT
from served import SMALL

STRAYS = 64  # QUIC_STRAYS
LENGTH = 61


@pytest.fixture
def alone(http3, files):
    with http3.serve(files, "-j", "1") as server:
        yield server


@pytest.fixture
def stray(alone):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.connect(("127.0.0.1", alone.tls_port))
        s.settimeout(TIMEOUT)
        yield s


def lost_id(client, server):
    """Returns the server's ID of a connection that has ended, and the token of its reset."""
    with client.Client(server) as c:
        c.sync()
        found = c.quic._peer_cid  # pylint: disable=protected-access
    with client.Client(server) as c:
        assert c.get("/small.bin").body == SMALL  # so the end of the other one has been handled
    return found.cid, found.stateless_reset_token


def packet(cid):
    return b"\x40" + cid + os.urandom(LENGTH - 1 - len(cid))


def count(s):
    """Returns how many datagrams come."""
    s.settimeout(0.3)
    answers = 0
    while True:
        try:
            s.recv(2000)
        except TimeoutError:
            return answers
        answers += 1


def test_a_datagram_of_a_lost_connection_is_answered_by_a_shorter_one(client, alone, stray):
    cid, token = lost_id(client, alone)
    stray.send(packet(cid))
    answer = stray.recv(2000)
    assert 21 <= len(answer) < LENGTH and answer.endswith(token)


def test_few_of_them_are_answered(client, alone, stray):
    cid, _ = lost_id(client, alone)
    started = time.monotonic()
    for _ in range(2000):
        stray.send(packet(cid))
    with client.Client(alone) as c:
        assert c.get("/small.bin").body == SMALL  # all have been handled
    seconds = time.monotonic() - started
    assert 1 <= count(stray) <= STRAYS * (seconds + 1)


def test_an_id_that_the_server_has_not_made_is_not_answered(client, alone, stray):
    """Nobody has a token for it."""
    cid, _ = lost_id(client, alone)
    for i in range(len(cid)):
        stray.send(packet(cid[:i] + bytes([cid[i] ^ 1]) + cid[i + 1 :]))
    for length in (1, 8, 12, 20):
        stray.send(packet(os.urandom(length)))
    with client.Client(alone) as c:
        assert c.get("/small.bin").body == SMALL
    assert count(stray) == 0


def test_ids_do_not_tell_whose_they_are(client, alone):
    """But for what the first byte says of the worker, no bit is the same in all of them, or tells another (section 5.1)."""
    found = [lost_id(client, alone)[0] for _ in range(24)]
    for bit in range(8, 96):
        assert 0 < sum(int.from_bytes(cid, "big") >> (95 - bit) & 1 for cid in found) < len(found)
