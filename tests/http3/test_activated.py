"""Sockets of a service manager."""

import os
import socket
from pathlib import Path

from activation import activated, listener
from gatling import certificate, eventually, servers_of
from served import SMALL
from switching import Releases


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


def times_held(pid, s):
    """Returns how many descriptors of a process are that socket."""
    links = [os.readlink(link) for link in Path(f"/proc/{pid}/fd").iterdir()]
    return links.count(f"socket:[{os.fstat(s.fileno()).st_ino}]")


def test_each_server_for_another_directory_gets_it_once(http3, client):
    """And the keeper does not have it, as clients reach it."""
    cert, key = certificate()
    releases = Releases()
    with listener() as secure, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.bind(secure.getsockname())
        flags = ("-j", "1", "--cert", cert, "--key", key)
        with activated(http3.build, releases.current, secure, udp, names="https", flags=flags, launcher=http3.launcher(), as_root=True) as server:
            had = []
            for number in range(1, 4):
                if number > 1:
                    releases.make()
                    eventually(lambda: sum("is another directory now" in line for line in server.errors) == number - 1)  # pylint: disable=cell-var-from-loop
                    eventually(lambda: len(servers_of(server.keeper)) == 1)
                had.append(times_held(servers_of(server.keeper)[-1], udp))
                assert times_held(server.keeper, udp) == 0
                with client.Client(server) as c:
                    assert c.get("/").body.startswith(f"{number}\n".encode())
            assert had == [had[0]] * 3
    releases.root.remove()
