"""An HTTP/2 origin server that behaves as a test tells it to: without TLS, with prior knowledge, or
over TLS."""

import socket
import struct
import threading

from http2 import (ACK, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, PREFACE, RST_STREAM, SETTINGS, WINDOW_UPDATE, Frame,
                   Inflater, frame)  # fmt: skip


class Stream:
    """A request: its fields, its content so far, and the ways to answer it."""

    def __init__(self, connection, number, fields, order):
        self.connection, self.number, self.fields, self.content = connection, number, fields, b""
        self.order = order  # from 1 on, over all connections

    def answer(self, content=b"hello", status=b"\x88"):
        self.connection.send(frame(HEADERS, END_HEADERS, self.number, status) + frame(DATA, END_STREAM, self.number, content))

    def reset(self, error):
        self.connection.send(frame(RST_STREAM, 0, self.number, struct.pack(">I", error)))


class Http2Connection:
    def __init__(self, origin, sock):
        self.origin, self.socket, self.lock = origin, sock, threading.Lock()
        self.settings, self.streams, self.inflate = {}, {}, Inflater()

    def send(self, data):
        with self.lock:
            self.socket.sendall(data)

    def goaway(self, last):
        self.send(frame(GOAWAY, 0, 0, struct.pack(">II", last, 0)))

    def run(self):
        reader = self.socket.makefile("rb")
        assert reader.read(len(PREFACE)) == PREFACE
        self.send(frame(SETTINGS, 0, 0, b"".join(struct.pack(">HI", *setting) for setting in self.origin.settings)))
        while len(head := reader.read(9)) == 9:
            length, kind, flags, number = int.from_bytes(head[:3], "big"), head[3], head[4], int.from_bytes(head[5:], "big")
            self.take(Frame(kind, flags, number, reader.read(length)))

    def take(self, f):
        if f.type == SETTINGS and not f.flags & ACK:
            self.settings.update(struct.iter_unpack(">HI", f.payload))
            self.send(frame(SETTINGS, ACK))
        elif f.type == HEADERS:
            self.streams[f.stream] = Stream(self, f.stream, dict(self.inflate(f.payload)), self.origin.count())
        elif f.type == DATA:
            self.streams[f.stream].content += f.payload
            for stream in (0, f.stream) if f.payload else ():
                self.send(frame(WINDOW_UPDATE, 0, stream, struct.pack(">I", len(f.payload))))
        if f.type in (HEADERS, DATA) and f.flags & END_STREAM:
            self.origin.behave(self.streams[f.stream])


class Http2Origin:
    """Calls behave(stream) for each complete request; settings: pairs of numbers."""

    def __init__(self, behave=Stream.answer, settings=(), context=None):
        self.behave, self.settings, self.context = behave, settings, context
        self.connections, self.requests, self.lock = [], 0, threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=1000)
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self):
        return f"{'https' if self.context else 'http'}://127.0.0.1:{self.listener.getsockname()[1]}/"

    def count(self):
        with self.lock:
            self.requests += 1
            return self.requests

    def _accept(self):
        while True:
            try:
                sock = self.listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock):
        with sock:
            try:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                connection = Http2Connection(self, self.context.wrap_socket(sock, server_side=True) if self.context else sock)
                self.connections.append(connection)
                connection.run()
            except OSError:
                return

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
