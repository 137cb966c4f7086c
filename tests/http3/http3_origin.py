"""An HTTP/3 origin server that behaves as a test tells it to. QUIC, and the encoder of field sections with its static table and Huffman
coding, are those of aioquic, which fixture `origin` in conftest.py makes importable; frames are its own."""

import contextlib
import os
import select
import socket
import threading
import time

import pylsqpack
from aioquic.quic import events
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection

from frames import CONTROL, DATA, GOAWAY, HEADERS, NO_ERROR, frame, number, read_number, settings

DATAGRAM_MAX, BUFFER = 1 << 16, 4 << 20
LONG_HEADER, FIXED_BIT = 0x80, 0x40


class Stream:
    """A request: its fields, its content, and the ways to answer it."""

    def __init__(self, connection, number_, order):
        self.connection, self.number, self.order = connection, number_, order  # order: from 1 on, over all connections
        self.fields, self.content, self.buffer = {}, b"", b""

    def take(self, data):
        self.buffer += data
        while (kind := read_number(self.buffer)) and (length := read_number(kind[1])) and len(length[1]) >= length[0]:
            payload, self.buffer = length[1][: length[0]], length[1][length[0] :]
            if kind[0] == DATA:
                self.content += payload
            else:
                decoded = self.connection.decoder.feed_header(self.number, payload)[1]
                self.fields = {name.decode("latin-1"): value.decode("latin-1") for name, value in decoded}

    def head(self, status=200, *fields):
        """Returns a HEADERS frame."""
        lines = [(":status", str(status)), *fields]
        encoded = self.connection.encoder.encode(self.number, [(name.encode(), value.encode()) for name, value in lines])
        return frame(HEADERS, encoded[1])

    def answer(self, content=b"hello", status=200, *fields):
        self.send(self.head(status, *fields) + frame(DATA, content), True)

    def send(self, data, end=False):
        with contextlib.suppress(ValueError):  # the client has given it up
            self.connection.quic.send_stream_data(self.number, data, end)

    def reset(self, error):
        self.connection.quic.reset_stream(self.number, error)

    def later(self, seconds, action):
        self.connection.origin.later.append((time.monotonic() + seconds, self.connection, action))


class Http3Connection:
    def __init__(self, origin, peer, quic):
        self.origin, self.peer, self.quic, self.streams, self.control = origin, peer, quic, {}, None
        self.encoder, self.decoder, self.pinged, self.resumed = pylsqpack.Encoder(), pylsqpack.Decoder(0, 0), False, False

    def take(self, event):
        match event:
            case events.HandshakeCompleted():
                self.resumed = event.session_resumed
                self.control = self.quic.get_next_available_stream_id(is_unidirectional=True)
                self.quic.send_stream_data(self.control, number(CONTROL) + settings())
            case events.StreamDataReceived(stream_id=stream) if not stream & 2:
                first = stream not in self.streams
                if first:
                    self.streams[stream] = Stream(self, stream, self.origin.count())
                self.streams[stream].take(event.data)
                if first and self.origin.early:
                    self.origin.early(self.streams[stream])
                elif event.end_stream:
                    self.origin.behave(self.streams[stream])
            case events.StreamReset():
                self.origin.resets.append(event.error_code)
            case events.ConnectionTerminated():
                self.origin.ends.append(event.error_code)

    def goaway(self, first):
        self.quic.send_stream_data(self.control, frame(GOAWAY, number(first)))

    def close(self, error=NO_ERROR, frame_type=None):
        """Closes it with an error of HTTP/3; with a frame_type, of QUIC."""
        self.quic.close(error, frame_type)

    def stateless_reset(self):
        token = self.quic._host_cids[0].stateless_reset_token  # pylint: disable=protected-access
        self.origin.socket.sendto(bytes([FIXED_BIT]) + os.urandom(40) + token, self.peer)
        self.origin.connections = [connection for connection in self.origin.connections if connection is not self]


class Origin:
    """Calls behave(stream) for each complete request; or early(stream) when it has begun, and then lets the client send no more. streams: that a client may open at first. options: of aioquic. A thread of its own
    does everything; functions that behave() gives to later() run there, too."""

    def __init__(self, certificate, behave=Stream.answer, early=None, alpn=("h3",), streams=None, **options):
        self.behave, self.early, self.streams, self.requests, self.connections, self.later = behave, early, streams, 0, [], []
        self.resets, self.ends = [], []  # the errors with which clients have ended streams and connections
        self.configuration = QuicConfiguration(is_client=False, alpn_protocols=list(alpn), **options)
        self.configuration.load_cert_chain(*certificate)
        self.tickets = {}
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)
        self.socket.bind(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.url = f"https://127.0.0.1:{self.port}/"
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._run)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()
        self.socket.close()

    def count(self):
        self.requests += 1
        return self.requests

    def _accept(self, peer, datagram):
        if not datagram[0] & LONG_HEADER:
            return None
        quic = QuicConnection(configuration=self.configuration, original_destination_connection_id=datagram[6 : 6 + datagram[5]],
                              session_ticket_fetcher=self.tickets.get,
                              session_ticket_handler=lambda ticket: self.tickets.update({ticket.ticket: ticket}))  # fmt: skip
        if self.streams:
            limit = quic._local_max_streams_bidi  # pylint: disable=protected-access
            limit.value = limit.sent = self.streams
        if self.early:
            quic._write_stream_limits = lambda **_: None  # pylint: disable=protected-access
        self.connections.append(Http3Connection(self, peer, quic))
        return self.connections[-1]

    def _receive(self):
        for _ in range(64):
            try:
                datagram, peer = self.socket.recvfrom(DATAGRAM_MAX, socket.MSG_DONTWAIT)
            except (BlockingIOError, ConnectionRefusedError):
                return
            known = next((connection for connection in self.connections if connection.peer == peer), None)
            connection = known or self._accept(peer, datagram)
            if connection:
                connection.quic.receive_datagram(datagram, peer, time.monotonic())

    def _turn(self, connection):
        timer = connection.quic.get_timer()
        if timer is not None and timer <= time.monotonic():
            connection.quic.handle_timer(time.monotonic())
        while event := connection.quic.next_event():
            connection.take(event)
        for datagram, peer in connection.quic.datagrams_to_send(time.monotonic()):
            self.socket.sendto(datagram, peer)

    def _run(self):
        while not self.ended.is_set():
            timers = [timer for connection in self.connections if (timer := connection.quic.get_timer()) is not None]
            first = min([*timers, *(when for when, _, _ in self.later), time.monotonic() + 0.05])
            if select.select([self.socket], [], [], max(0, first - time.monotonic()))[0]:
                self._receive()
            due = [entry for entry in self.later if entry[0] <= time.monotonic()]
            self.later = [entry for entry in self.later if entry not in due]
            for _, _, action in due:
                action()
            for connection in list(self.connections):
                self._turn(connection)
