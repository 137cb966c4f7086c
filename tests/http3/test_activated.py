"""Sockets of a service manager."""

import socket

from activation import activated, listener
from gatling import certificate
from served import SMALL


def test_a_socket_for_datagrams_is_shared_by_the_workers(http3, files, client):
    """Only one worker receives on it, and hands datagrams over."""
    cert, key = certificate()
    with listener() as secure, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.bind(secure.getsockname())
        flags = ("-j", "4", "--cert", cert, "--key", key)
        with activated(http3.build, files, secure, udp, names="https", flags=flags, launcher=http3.launcher(), as_root=True) as server:
            assert server.tls_port == udp.getsockname()[1]
            for _ in range(12):
                with client.Client(server) as c:
                    assert c.get("/small.bin").body == SMALL
