"""Certificates of clients over HTTP/3: --client-ca."""

import pytest

from gatling import certificate
from served import SMALL

CERTIFICATE_REQUIRED, BAD_CERTIFICATE, UNKNOWN_CA = 116, 42, 48  # alerts (RFC 8446, section 6)
CRYPTO_ERROR = 0x100  # and an alert (RFC 9001, section 4.8)


def loaded(client, path, key):
    """Returns the options of a client with that certificate."""
    configuration = client.QuicConfiguration()
    configuration.load_cert_chain(path, key)
    return {"certificate": configuration.certificate, "private_key": configuration.private_key}


@pytest.fixture(scope="module")
def guarded(http3, files):
    own, _ = certificate("DNS:client")
    with http3.serve(files, "-j", "1", "--client-ca", own) as server:
        yield server


def test_who_has_a_certificate_is_served(client, guarded):
    with client.Client(guarded, **loaded(client, *certificate("DNS:client"))) as c:
        assert c.get("/small.bin").body == SMALL
        ticket = c.until(lambda: c.tickets)[0]
    with client.Client(guarded, ticket=ticket) as c:  # it was shown when the session began
        assert c.handshake.session_resumed and c.get("/small.bin").body == SMALL


@pytest.mark.parametrize("stranger, alerts", [(False, {CERTIFICATE_REQUIRED}), (True, {BAD_CERTIFICATE, UNKNOWN_CA})], ids=["none", "of another"])
def test_others_are_refused_before_they_ask(client, guarded, stranger, alerts):
    options = loaded(client, *certificate("DNS:stranger")) if stranger else {}
    with client.Client(guarded, wait=False, **options) as c:
        stream = c.ask("/refused")
        assert c.ended() - CRYPTO_ERROR in alerts
        assert stream not in c.found and not any("refused" in line for line in guarded.lines)
