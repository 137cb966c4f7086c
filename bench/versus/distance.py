"""Measures a download over a network with a delay: alone, and while so many other connections are
open that each may leave only little unsent in the kernel (TCP_NOTSENT_LOWAT).

    distance.py BUILD [--delay MS] [--connections N] [--rounds N]

The network is two TUN devices, one in its own network namespace, and a process that forwards
packets after half of the delay (the round-trip time). Linux, as root.
"""

import argparse
import collections
import contextlib
import ctypes
import fcntl
import os
import select
import statistics
import struct
import subprocess
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

import processes
import servers

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 1, 0x1000  # tuntap.rst
CLONE_NEWNET = 0x40000000
MTU, PACKETS_MAX = 65000, 100_000
NEAR, FAR = "10.99.0.1", "10.99.0.2"
SIZE = 200 * 10**6
NAME = f"gatling-{os.getpid()}"
LIBC = ctypes.CDLL(None, use_errno=True)


def ip(*words, inside=False):
    subprocess.run([*(("ip", "netns", "exec", NAME) if inside else ()), "ip", *map(str, words)], check=True)


def enter(path):
    with open(path, encoding="ascii") as file:
        if LIBC.setns(file.fileno(), CLONE_NEWNET) == -1:
            raise OSError(ctypes.get_errno(), f"setns {path}")


def tun(name):
    fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI))
    return fd


def pass_on(near, far, delay_s):
    """Forwards packets between the devices, in its own process."""
    ways, poll = {near: (far, collections.deque()), far: (near, collections.deque())}, select.epoll()
    for fd in ways:
        poll.register(fd, select.EPOLLIN)
    while True:
        dues = [packets[0][0] for _, packets in ways.values() if packets]
        for fd, _ in poll.poll(max(0, min(dues) - time.monotonic()) if dues else None):
            with contextlib.suppress(BlockingIOError):
                while len(ways[fd][1]) < PACKETS_MAX:
                    ways[fd][1].append((time.monotonic() + delay_s, os.read(fd, MTU)))
        now = time.monotonic()
        for to, packets in ways.values():
            while packets and packets[0][0] <= now:
                with contextlib.suppress(BlockingIOError):
                    os.write(to, packets[0][1])
                packets.popleft()


@contextlib.contextmanager
def distance(delay_s):
    """Makes a network to a namespace NAME, where the address of this one is NEAR."""
    ip("netns", "add", NAME)
    try:
        near = tun("gatling-near")
        enter(f"/run/netns/{NAME}")
        far = tun("gatling-far")
        enter(f"/proc/{os.getppid()}/ns/net")
        for name, address, peer, inside in (("gatling-near", NEAR, FAR, False), ("gatling-far", FAR, NEAR, True)):
            ip("address", "add", address, "peer", peer, "dev", name, inside=inside)
            ip("link", "set", name, "mtu", MTU, "up", inside=inside)
        with processes.forked(pass_on, near, far, delay_s / 2):
            yield
    finally:
        ip("netns", "delete", NAME)


CLIENT = """
import socket, sys, time
s = socket.create_connection((sys.argv[1], int(sys.argv[2])))
begun, length, buffer = time.monotonic(), 0, bytearray(1 << 20)
s.sendall(b"GET /large HTTP/1.1\\r\\nHost: a\\r\\nConnection: close\\r\\n\\r\\n")
while n := s.recv_into(buffer):
    length += n
print(length / (time.monotonic() - begun))
"""


def download(port):
    """Downloads a file. Returns bytes a second."""
    command = ["ip", "netns", "exec", NAME, sys.executable, "-c", CLIENT, NEAR, str(port)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def held(port, number):
    """Returns connections that have requested a small file."""
    found = []
    for i in range(number):
        s = servers.bound_socket(f"127.0.0.{2 + i // 10000}")
        s.connect(("127.0.0.1", port))
        s.sendall(b"GET /small HTTP/1.1\r\nHost: a\r\n\r\n")
        found.append(s)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("--delay", type=float, default=100, help="milliseconds there and back")
    parser.add_argument("--connections", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    processes.end_on_signals()
    servers.raise_descriptor_limit()
    if os.geteuid() != 0 or not os.path.exists("/dev/net/tun"):
        sys.exit("distance: this takes Linux, root and /dev/net/tun")
    found = {0: [], arguments.connections: []}
    with servers.Servers(arguments.build) as running, distance(arguments.delay / 1000):
        running.add_file("small", 100)
        with open(running.root / "large", "wb") as large:
            large.truncate(SIZE)
        port = servers.free_port()
        command = [arguments.build / "gatling", "-c", running.root, "-p", port, "-n", "-j", 1]
        server = servers.Server("gatling", port, "http", command, {running.cores[0]}, running.directory)
        running.running.append(server)
        for _ in range(arguments.rounds):
            for number, rates in found.items():
                others = held(port, number)
                rates.append(download(port))
                for s in others:
                    s.close()
                time.sleep(0.5)  # time for the server to close them
    for number, rates in found.items():
        print(f"{number:6} other connections: {statistics.median(rates) / 1e6:.1f} MB/s at {arguments.delay:.0f} ms "
              f"({', '.join(f'{rate / 1e6:.1f}' for rate in rates)})")  # fmt: skip


if __name__ == "__main__":
    main()
