"""What the QUIC interop runner asks of a server, apart from loss (test_loss.py) and other paths (test_paths.py)."""

import dataclasses

import pytest

from frames import INVALID_TOKEN
from gatling import certificate
from served import BIG, SMALL

SUITES = {"AES_128_GCM_SHA256": 0x1301, "AES_256_GCM_SHA384": 0x1302, "CHACHA20_POLY1305_SHA256": 0x1303}
VERSION_1, VERSION_2, UNKNOWN = 1, 0x6B3343CF, 0x1A2A3A4A
EARLY_DATA = 0xFFFFFFFF  # in a ticket of QUIC: it may be sent (RFC 9001, section 4.6.1)
HALF_OPEN, SPARE = 64, 16  # QUIC_HALF_OPEN, and some for those that are lost
RETRY = 0xF0  # the first four bits of that packet


@pytest.mark.parametrize("suite", SUITES)
def test_each_cipher_suite(client, server, suite):
    tls = client.tls
    with client.Client(server, cipher_suites=[tls.CipherSuite[suite]]) as c:
        assert c.get("/big.bin").body == BIG
        assert c.quic.tls.key_schedule.cipher_suite == SUITES[suite]


def test_keys_are_updated_by_the_client_again_and_again(client, server):
    """RFC 9001, section 6: the answer to a packet with new keys comes with new keys, or aioquic would not read it."""
    with client.Client(server) as c:
        keys = c.quic._cryptos[client.tls.Epoch.ONE_RTT]  # pylint: disable=protected-access
        for n in range(5):
            assert c.get("/small.bin").body == SMALL and keys.key_phase == n % 2
            c.quic.request_key_update()
            assert c.get("/big.bin").body == BIG and keys.key_phase == (n + 1) % 2


def test_keys_are_updated_during_a_download(client, server):
    with client.Client(server, window=100_000) as c:
        stream = c.ask("/big.bin")
        for part in range(1, 4):
            c.until(lambda: stream in c.found and len(c.found[stream].body) > part * len(BIG) // 4)  # pylint: disable=cell-var-from-loop
            c.quic.request_key_update()
            assert c.sync() is None  # another one may only follow when the server has taken it (RFC 9001, section 6.1)
        assert c.answer(stream).body == BIG


def test_a_session_is_resumed(client, server):
    with client.Client(server) as c:
        assert not c.handshake.session_resumed
        assert c.get("/small.bin").body == SMALL  # what came before has come, too
        (ticket,) = c.tickets  # a client has one connection
    for _ in range(5):  # each worker takes the tickets of the other
        with client.Client(server, ticket=ticket) as c:
            assert c.handshake.session_resumed and c.get("/small.bin").body == SMALL
            ticket = c.until(lambda: c.tickets)[0]


def test_early_data_is_not_taken_and_asked_for_again(client, server):
    """Its request might be one that was recorded (RFC 8470). A ticket does not offer it."""
    with client.Client(server) as c:
        ticket = c.until(lambda: c.tickets)[0]
    assert ticket.max_early_data_size is None
    with client.Client(server, ticket=dataclasses.replace(ticket, max_early_data_size=EARLY_DATA), early=True) as c:
        assert c.get("/small.bin").body == SMALL
        assert c.handshake.session_resumed and not c.handshake.early_data_accepted


def test_fifty_connections_with_a_request_each(client, server):
    for _ in range(50):
        with client.Client(server) as c:
            assert c.get("/small.bin").body == SMALL


def test_fifty_connections_at_the_same_time(client, server):
    clients = [client.Client(server) for _ in range(50)]
    streams = [c.ask("/small.bin") for c in clients]
    for c, stream in zip(clients, streams):
        assert c.answer(stream).body == SMALL
        c.close()


@pytest.mark.parametrize("known", [VERSION_1, VERSION_2])
def test_a_client_goes_on_with_a_version_that_the_server_lists(client, server, known):
    """RFC 9000, section 6.1: those that it takes; version 2 is that of RFC 9369."""
    with client.Client(server, original_version=UNKNOWN, supported_versions=[UNKNOWN, known]) as c:
        assert c.get("/small.bin").body == SMALL
        assert c.quic._version == known  # pylint: disable=protected-access


def test_ipv6(http3, client, files):
    cert, key = certificate()
    with http3.server(files, "--tls-port", "0", "--cert", cert, "--key", key, "-j", "2", address=("-i", "::1")) as server:
        for _ in range(4):
            with client.Client(server, source="::1", address="::1") as c:
                assert c.get("/big.bin").body == BIG


# --- Retry ---


def begin(client, server, source):
    """Begins a handshake that does not go on."""
    c = client.Client(server, source=source, settle=False, wait=False)
    c.flush()
    c.socket.close()


@pytest.fixture
def busy(http3, client, files):
    """A server with more handshakes under way than addresses that are not validated may begin, by several clients."""
    with http3.serve(files, "-j", "1") as server:
        for n in range(HALF_OPEN + SPARE):
            begin(client, server, f"127.0.1.{n % 8}")
        yield server


def test_a_busy_server_validates_addresses(client, busy):
    for _ in range(3):
        with client.Client(busy) as c:
            assert c.get("/small.bin").body == SMALL
            assert c.quic._retry_count == 1  # pylint: disable=protected-access


def test_the_token_of_another_address_is_not_taken(client, busy):
    class Watching(client.Link):
        retried = False

        def received(self, datagram):
            self.retried |= datagram[0] & 0xF0 == RETRY
            return [datagram]

    link = Watching()
    with client.Client(busy, link, wait=False) as c:
        c.until(lambda: link.retried)
        c.move("127.0.0.2")  # and the token with it
        assert c.ended() == INVALID_TOKEN and not c.handshake
