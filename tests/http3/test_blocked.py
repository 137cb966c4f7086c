"""A port of UDP where nothing comes in, or that another program has: clients are not sent to HTTP/3 (Alt-Svc), and the
owner is told."""

import ctypes
import re
import socket
import struct

import pytest

from activation import activated, listener
from gatling import Connection, certificate, eventually, trusting

BLOCKED = r"gatling: UDP port {port} gets nothing, .* let the firewall accept UDP"
SO_ATTACH_FILTER, SO_DETACH_FILTER = 26, 27
RETURN_NOTHING = (6, 0, 0, 0)  # BPF_RET | BPF_K: 0 bytes of the datagram


def block(udp):
    """Has the kernel drop all that comes, as a firewall does."""
    code = ctypes.create_string_buffer(struct.pack("HBBI", *RETURN_NOTHING))
    udp.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, struct.pack("HP", 1, ctypes.addressof(code)))


def unblock(udp):
    udp.setsockopt(socket.SOL_SOCKET, SO_DETACH_FILTER, 0)


@pytest.fixture
def udp():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        yield s


@pytest.mark.parametrize("workers", ["1", "3"])
def test_http3_is_announced_when_the_firewall_lets_udp_in(http3, files, udp, workers):
    cert, key = certificate()
    with listener() as secure:
        udp.bind(secure.getsockname())
        block(udp)
        flags = ("-j", workers, "--cert", cert, "--key", key)
        with activated(http3.build, files, secure, udp, names="https", flags=flags, launcher=http3.launcher(), as_root=True) as server:
            asked = []

            def announced():
                with Connection(("127.0.0.1", server.tls_port), tls=trusting()) as c:
                    asked.append(c.get("/small.bin")["alt-svc"])
                return asked[-1]

            def told():
                return [line for line in server.errors if re.match(BLOCKED.format(port=server.tls_port), line)]

            eventually(lambda: announced() or told())
            assert not any(asked)
            assert len(told()) == 1
            unblock(udp)
            assert eventually(announced) == f'h3=":{server.tls_port}"; ma=86400'
            assert len(told()) == 1


def test_a_port_that_another_program_has_is_named(http3, files, udp):
    udp.bind(("0.0.0.0", 0))
    port = udp.getsockname()[1]
    cert, key = certificate()
    with http3.server(files, "--tls-port", str(port), "--cert", cert, "--key", key) as server, Connection(("127.0.0.1", port), tls=trusting()) as c:
        answer = c.get("/small.bin")
        assert answer.status == 200 and not answer["alt-svc"]
        assert f"gatling: UDP port {port} cannot be used: Address already in use: no HTTP/3 there" in server.errors
