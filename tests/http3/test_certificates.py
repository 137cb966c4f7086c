"""TLS as OpenSSL 3.5 has it, over TCP and in QUIC: groups, and certificates for addresses. The client is curl."""

import re
import subprocess

import pytest

from gatling import Root, certificate

PREFERRED = "X25519MLKEM768"


@pytest.fixture(scope="module")
def curl(http3):
    def run(server, host, *options):
        """Returns whether curl got the file, and the group that was negotiated."""
        command = [*http3.inside, "curl", "--silent", "--verbose", "--max-time", "30", *options, f"https://{host}:{server.tls_port}/"]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        group = re.search(r"SSL connection using TLSv1\.3 / \S+ / (\w+)", done.stderr)
        return done.stdout == "hello", group and group[1]

    return run


@pytest.fixture(scope="module")
def server(http3):
    root = Root({"index.html": b"hello"})
    pairs = [certificate("DNS:localhost"), certificate("IP:127.0.0.2"), certificate("DNS:three.example,IP:127.0.0.3"), certificate("IP:::1")]
    flags = [word for cert, key in pairs for word in ("--cert", cert, "--key", key)]
    trusted = Root({"all.pem": b"".join(cert.read_bytes() for cert, _ in pairs)})
    with http3.server(root, "--tls-port", "0", "-n", *flags, address=()) as running:
        running.trusted = trusted.path / "all.pem"
        yield running
    root.remove()
    trusted.remove()


@pytest.mark.parametrize("protocol", ["--http2", "--http3-only"])
@pytest.mark.parametrize(
    "offered,chosen",
    [(PREFERRED, PREFERRED), (f"*X25519:*{PREFERRED}", PREFERRED), ("P-384:X25519", "secp384r1"), ("P-521", None)],
    ids=["alone", "second of two key shares", "without it", "none of the server's"],
)  # fmt: skip
def test_a_group_that_no_quantum_computer_breaks_is_taken_and_preferred(curl, server, protocol, offered, chosen):
    """A group with an asterisk is one that the client sends a key share for."""
    assert curl(server, "127.0.0.1", "--insecure", protocol, "--curves", offered) == (chosen is not None, chosen)


@pytest.mark.parametrize("protocol", ["--http2", "--http3-only"])
@pytest.mark.parametrize("host", ["127.0.0.2", "127.0.0.3", "[::1]"])
def test_a_client_that_was_given_an_address_gets_its_certificate(curl, server, protocol, host):
    assert curl(server, host, protocol, "--cacert", server.trusted)[0]
