"""Sends requests with mistakes in their bytes to a server, and tests whether it is the same
afterwards:

    python3 tests/faults/mutations.py build/check/epoll [--count N] [--seed N] [--first N]

Every connection carries HTTP/1.1, HTTP/2, TLS or a PROXY header that was right before some bytes
were changed, removed, added or moved, in up to three pieces. Then the client half-closes it, closes
it or resets it. What connection n of a seed sends is always the same. The server must close a
connection that the client half-closes. Now and then, and at the end, the server must answer a right
request. At the end it must have as many descriptors as before, and a sanitizer must find nothing.
"""

import argparse
import contextlib
import functools
import random
import re
import select
import socket
import ssl
import struct
import subprocess
import sys
import time
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(TOP / "tests/wire")]

# pylint: disable=wrong-import-position
import http2  # noqa: E402
from gatling import Root, Server, certificate, eventually, trusting  # noqa: E402

TOGETHER = 64  # connections under way at the same time
LOOK = 5000  # a right request after this many connections
PATIENCE_S = 15  # for the server to close what the client has half-closed, which may take two timeouts
END_S = 20  # for it to close all others
RESET = struct.pack("ii", 1, 0)  # SO_LINGER
PAGE = b"<!doctype html><title>page</title>" + b"x" * 3000

BALANCER = "127.0.0.9"  # connections from it begin with a PROXY header

GET = b"GET %s HTTP/1.1\r\nHost: localhost\r\n%s\r\n"
HTTP1 = [
    GET % (b"/", b""),
    GET % (b"/a%20b.txt?x=%2e%2e", b"Accept-Encoding: gzip, br;q=0.5, *;q=0\r\n") * 3,
    GET % (b"/page.html", b"Range: bytes=0-9,20-29,-5\r\nIf-Range: \"abc\"\r\n"),
    GET % (b"/page.html", b'If-None-Match: W/"a", "b"\r\nIf-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n'),
    GET % (b"/directory/", b"Accept: application/json;q=0.9, text/html\r\nCookie: a=b; c=d\r\n"),
    GET % (b"/directory/../page.html", b"Authorization: Basic YW5uOnNlY3JldA==\r\n"),
    GET % (b"http://localhost/page.html", b"Connection: close, upgrade\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n"),
    b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nX: y\r\n\r\n" + GET % (b"/", b""),
    b"POST / HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 11\r\n\r\nhello world" + GET % (b"/", b""),
    b"OPTIONS * HTTP/1.1\r\nHost: [::1]:80\r\n\r\nHEAD /page.html HTTP/1.0\r\n\r\n",
    GET % (b"/" + b"a" * 300, b"".join(b"X-%d: %s\r\n" % (n, b"v" * n) for n in range(60))),
]


def _headers(stream, flags=http2.END_HEADERS | http2.END_STREAM, **words):
    return http2.frame(http2.HEADERS, flags, stream, http2.request(**words))


_OPENING = http2.PREFACE + http2.frame(http2.SETTINGS, payload=http2.settings(table=0, window=100000))
_BLOCK = http2.request("/page.html", ("accept-encoding", "gzip"), ("range", "bytes=1-2"))
HTTP2 = [
    _OPENING + b"".join(_headers(n, path="/page.html") for n in (1, 3, 5)),
    _OPENING + http2.frame(http2.HEADERS, http2.END_STREAM, 1, _BLOCK[:9]) + http2.frame(http2.CONTINUATION, 0, 1, _BLOCK[9:20])
    + http2.frame(http2.CONTINUATION, http2.END_HEADERS, 1, _BLOCK[20:]),
    _OPENING + http2.frame(http2.HEADERS, http2.END_HEADERS | http2.PADDED, 1, b"\3" + http2.request(method="POST") + b"\0" * 3)
    + http2.frame(http2.DATA, http2.PADDED, 1, b"\2hello\0\0") + http2.frame(http2.DATA, http2.END_STREAM, 1, b"bye"),
    _OPENING + http2.frame(http2.PRIORITY, 0, 7, struct.pack(">IB", 3, 200)) + _headers(7, path="/directory/")
    + http2.frame(http2.PRIORITY_UPDATE, 0, 0, struct.pack(">I", 7) + b"u=1, i") + http2.frame(http2.RST_STREAM, 0, 7, b"\0\0\0\x08"),
    _OPENING + http2.frame(http2.PING, payload=b"12345678") + http2.frame(http2.WINDOW_UPDATE, 0, 0, struct.pack(">I", 1 << 20))
    + http2.frame(http2.SETTINGS, http2.ACK) + _headers(1, path="/large") + http2.frame(http2.WINDOW_UPDATE, 0, 1, struct.pack(">I", 5)),
    _OPENING + http2.frame(http2.HEADERS, http2.END_HEADERS | http2.END_STREAM, 1, b"\x82\x86\x84\x41\x8c\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff")
    + http2.frame(http2.HEADERS, http2.END_HEADERS | http2.END_STREAM, 3, b"\x82\x86\x84\xbe\x3f\xe1\x1f\x20")
    + http2.frame(http2.GOAWAY, 0, 0, b"\0\0\0\3\0\0\0\0bye"),
]  # fmt: skip


def _proxied(command, family, content):
    """Returns a PROXY header of version 2."""
    return b"\r\n\r\n\0\r\nQUIT\n" + struct.pack(">BBH", 0x20 | command, family, len(content)) + content


PROXY = [
    b"PROXY TCP4 192.0.2.1 198.51.100.2 56324 443\r\n" + HTTP1[0],
    b"PROXY TCP6 2001:db8::1 2001:db8:ffff::2 65535 80\r\n" + HTTP1[2],
    b"PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n" + HTTP1[1],
    _proxied(1, 0x11, bytes((192, 0, 2, 1, 198, 51, 100, 2, 0xDC, 4, 0, 80))) + HTTP2[0],
    _proxied(1, 0x21, bytes(range(36)) + b"\1\0\2h2\x20\0\x0d\1\0\0\0\0\x21\0\5TLSv1\4\0\2\0\0") + HTTP1[0],
    _proxied(1, 0x31, b"/run/app.sock".ljust(108, b"\0") * 2) + HTTP1[0],
    _proxied(0, 0, b"") + HTTP1[0],
]
WORDS = {
    "proxy": (b"PROXY ", b"TCP4", b"TCP6", b"UNKNOWN", b"255.255.255.256", b"::", b"65536", b" ", b"\r\n", b"\x21\x11", b"\xff\xff",
              b"\r\n\r\n\0\r\nQUIT\n", b"\0" * 40),
    "http1": (b"\r\n", b"\n", b"\r", b"\0", b" ", b"\t", b":", b"\r\n\r\n", b"0", b"-1", b"99999999999999999999", b"chunked",
              b"Content-Length: 5\r\n", b"Transfer-Encoding: chunked\r\n", b"Host: b\r\n", b"%00", b"%2f", b"../", b"HTTP/2.0", b"\xff" * 9),
    "http2": (b"\0\0\0", b"\xff\xff\xff", b"\x7f\xff\xff\xff", b"\x80\0\0\0", b"\0\x40\0", b"\x3f\xff\xff\x7f", *HTTP2[1:2],
              *(http2.frame(kind, 0xFF, stream) for kind in (*range(10), 16) for stream in (0, 1, 2))),
    "tls": (b"\x16\x03\1", b"\x15\x03\3\0\2\1\0", b"\x14\x03\3\0\1\1", b"\x17\x03\3\0\0", b"\xff\xff", b"\0\0", b"\x40\1", b"\x03\4"),
}  # fmt: skip


@functools.cache
def _context(alpn, most=ssl.TLSVersion.TLSv1_3):
    context = trusting(alpn=(alpn,))
    context.maximum_version = most
    return context


def _client(context):
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    return context.wrap_bio(incoming, outgoing, server_hostname="localhost"), incoming, outgoing


def _hello(context):
    tls, _, outgoing = _client(context)
    with contextlib.suppress(ssl.SSLWantReadError):
        tls.do_handshake()
    return outgoing.read()


TLS = [_hello(_context("h2")), _hello(_context("http/1.1", ssl.TLSVersion.TLSv1_2))]
RIGHT = {"http1": HTTP1, "http2": HTTP2, "tls": TLS, "proxy": PROXY}


def mutate(chance, kind, data):
    """Returns data with one to six mistakes."""
    data = bytearray(data)
    for _ in range(chance.randint(1, 6)):
        at = chance.randrange(len(data) + 1)
        end = min(len(data), at + chance.choice((1, 2, 4, 9, 40, 1000)))
        match chance.randrange(8):
            case 0 if at < len(data):
                data[at] ^= 1 << chance.randrange(8)
            case 1 if at < len(data):
                data[at] = chance.choice((0, 1, 0x0A, 0x0D, 0x20, 0x7F, 0x80, 0xFF, chance.randrange(256)))
            case 2:
                del data[at:end]
            case 3:
                data[at:at] = data[at:end] * chance.choice((1, 1, 2, 30))
            case 4:
                data[at:at] = chance.randbytes(chance.choice((1, 3, 16, 200)))
            case 5:
                data[at:at] = chance.choice(WORDS[kind])
            case 6:
                del data[at:]
            case 7:
                other = chance.choice(RIGHT[kind])
                data[at:] = other[chance.randrange(len(other)) :]
    return bytes(data)


def connection(seed, n):
    """Returns what connection n sends: its kind, the pieces, and how it ends. For the kind
    "records", where the mistakes come after a real handshake, the pieces are only the random
    generator for handshake()."""
    chance = random.Random(seed << 32 | n)
    kind = chance.choices(("http1", "http2", "tls", "records", "proxy"), (45, 32, 11, 3, 9))[0]
    ending = chance.choice(("half", "close", "reset"))
    if kind == "records":
        return kind, [chance], ending
    data = mutate(chance, kind, chance.choice(RIGHT[kind]))
    cuts = sorted(chance.randrange(len(data) + 1) for _ in range(chance.choice((0, 0, 1, 2))))
    return kind, [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)])], ending


class Finding(Exception):
    """An error of the server."""


class Mutations:
    """Mutations of requests to a server with a port for TLS, and PAGE at /page.html."""

    def __init__(self, server):
        self.server = server
        self.look()

    def count_descriptors(self):
        """Notes how many descriptors are open while nobody is connected."""
        with self.server.connect() as last:
            eventually(lambda: last.get("/large")["ETag"])  # it has been hashed; the cache keeps it open
            eventually(lambda: self.connected() == 1)
            self.descriptors = self.server.descriptors() - 1

    def connected(self):
        """Returns how many clients are connected to its port without TLS."""
        return len(re.findall(rf" 0100007F:{self.server.plain_port:04X} ..00007F:", Path("/proc/net/tcp").read_text()))

    def look(self):
        """Requests a page as any client does."""
        try:
            response = self.server.get("/page.html")
            if (response.status, response.body) != (200, PAGE):
                raise Finding(f"/page.html: status {response.status}, {len(response.body)} octets")
        except (OSError, AssertionError) as error:
            raise Finding(f"/page.html: {error!r}, {self.server.errors[-5:]}") from error

    def handshake(self, chance):
        """Returns a socket on which TLS is established, and records with requests: with mistakes in
        the sealed content, or in the records themselves."""
        s = socket.create_connection(("127.0.0.1", self.server.tls_port), PATIENCE_S)
        kind = chance.choice(("http1", "http2"))
        tls, incoming, outgoing = _client(_context("h2" if kind == "http2" else "http/1.1"))
        while True:
            try:
                tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                s.sendall(outgoing.read())
                incoming.write(s.recv(65536))
        s.sendall(outgoing.read())
        data = chance.choice(RIGHT[kind])
        if chance.random() < 0.5:
            tls.write(mutate(chance, kind, data) or b"x")
            return s, outgoing.read()
        tls.write(data)
        return s, mutate(chance, "tls", outgoing.read())

    def begin(self, seed, n):
        """Returns (socket, pieces, ending)."""
        kind, pieces, ending = connection(seed, n)
        if kind == "records":
            s, sealed = self.handshake(pieces[0])
            pieces = [sealed]
        else:
            port = self.server.tls_port if kind == "tls" else self.server.plain_port
            s = socket.create_connection(("127.0.0.1", port), source_address=(BALANCER, 0) if kind == "proxy" else None)
        s.setblocking(False)
        return s, pieces, ending

    def send_together(self, seed, numbers):
        """Sends on these connections at the same time."""
        under_way = [(n, *self.begin(seed, n)) for n in numbers]
        for turn in range(3):
            for _, s, pieces, _ in under_way:
                with contextlib.suppress(OSError):  # the server has closed it, or takes no more for now
                    s.send(pieces[turn] if turn < len(pieces) else b"")
        left = {}
        for n, s, _, ending in under_way:
            if ending == "half":
                with contextlib.suppress(OSError):
                    s.shutdown(socket.SHUT_WR)
                left[s.fileno()] = n, s
                continue
            if ending == "reset":
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            s.close()
        self.wait_for_end(left)

    def wait_for_end(self, left):
        """Reads from half-closed connections until the server closes them."""
        until = time.monotonic() + PATIENCE_S
        poll = select.epoll()
        with poll:
            for fd in left:
                poll.register(fd, select.EPOLLIN)
            while left:
                if time.monotonic() > until:
                    raise Finding(f"connections {sorted(n for n, _ in left.values())} are not closed")
                for fd, _ in poll.poll(1):
                    n, s = left[fd]
                    with contextlib.suppress(OSError):
                        if s.recv(1 << 20):
                            continue
                    del left[fd]
                    s.close()

    def compare(self):
        """Checks that the server is as it was at first."""
        self.look()
        try:
            eventually(lambda: self.server.descriptors() <= self.descriptors, END_S)
        except AssertionError as error:
            raise Finding(f"{self.server.descriptors()} descriptors are open, {self.descriptors} before") from error


@contextlib.contextmanager
def serving(build):
    """Runs a server for Mutations. It must end well, unless the block fails."""
    root = Root({"index.html": PAGE, "page.html": PAGE, "a b.txt": b"text", "large": b"l" * 300_000, "directory/file": b"f"})
    cert, key = certificate()
    with Server(build, root, "-j", "1", "-T", "2", "--cert", cert, "--key", key, "--tls-port", "0", "--proxy-protocol", BALANCER,
                stdout=subprocess.DEVNULL) as server:  # fmt: skip
        try:
            yield server
        except BaseException:
            server.kill()  # so that all its output is read
            print(*server.errors[-60:], sep="\n", file=sys.stderr)
            raise
    root.remove()


def run(build, count, seed, first=0, say=lambda *_: None):
    """Sends connections first to first + count - 1 of a seed. Raises Finding. Returns the server's
    resident bytes at the end."""
    with serving(build) as server:
        mutations = Mutations(server)
        mutations.count_descriptors()
        for n in range(first, first + count, TOGETHER):
            mutations.send_together(seed, range(n, min(n + TOGETHER, first + count)))
            if n // LOOK != (n + TOGETHER) // LOOK:
                mutations.look()
                say(n + TOGETHER, server)
        mutations.compare()
        return server.resident()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    arguments = parser.parse_args()

    def say(n, server):
        print(f"\r{n} connections, {server.resident() / 1e6:.0f} MB resident", end="", file=sys.stderr)

    begun = time.monotonic()
    try:
        resident = run(arguments.build, arguments.count, arguments.seed, arguments.first, say if sys.stderr.isatty() else lambda *_: None)
    except Finding as finding:
        sys.exit(f"mutations: {finding} (--seed {arguments.seed})")
    print(f"{arguments.count} connections with mistakes in {time.monotonic() - begun:.0f} s: every one was closed, no descriptor and no memory "
          f"is left over, nothing was reported; {resident / 1e6:.0f} MB resident at the end")  # fmt: skip


if __name__ == "__main__":
    main()
