"""An HTTP/2 client that sends exactly what it is told to. It writes HPACK without Huffman coding or
the dynamic table, and reads it with nghttp2 (through ctypes)."""

import collections
import ctypes
import socket
import struct

from answers import Answer
from gatling import TIMEOUT, Connection

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
PRIORITY_UPDATE = 16
ACK, END_STREAM, END_HEADERS, PADDED = 1, 1, 4, 8
NO_ERROR, PROTOCOL_ERROR, INTERNAL_ERROR, FLOW_CONTROL_ERROR = 0, 1, 2, 3
STREAM_CLOSED, FRAME_SIZE_ERROR, REFUSED_STREAM, COMPRESSION_ERROR, ENHANCE_YOUR_CALM = 5, 6, 7, 9, 11
INITIAL_WINDOW_SIZE = 4

Frame = collections.namedtuple("Frame", "type flags stream payload fields", defaults=[None])  # fields: of a header block


def frame(kind, flags=0, stream=0, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def integer(n, bits, pattern=0):
    most = (1 << bits) - 1
    if n < most:
        return bytes([pattern | n])
    out, n = bytes([pattern | most]), n - most
    while n >= 128:
        out, n = out + bytes([128 | n & 127]), n >> 7
    return out + bytes([n])


def block(*fields):
    """Returns literal fields, not indexed."""
    out = b""
    for name, value in fields:
        out += b"\0" + integer(len(name), 7) + name.encode("latin-1") + integer(len(value), 7) + value.encode("latin-1")
    return out


def request(path="/", *fields, method="GET", host="localhost"):
    return block((":method", method), (":scheme", "https"), (":authority", host), (":path", path), *fields)


def settings(**values):
    numbers = {"table": 1, "window": INITIAL_WINDOW_SIZE, "frame": 5}
    return b"".join(struct.pack(">HI", numbers[name], value) for name, value in values.items())


class _Pair(ctypes.Structure):
    _fields_ = [("name", ctypes.POINTER(ctypes.c_ubyte)), ("value", ctypes.POINTER(ctypes.c_ubyte)),
                ("namelen", ctypes.c_size_t), ("valuelen", ctypes.c_size_t), ("flags", ctypes.c_uint8)]  # fmt: skip


class Inflater:
    def __init__(self):
        self.library = ctypes.CDLL("libnghttp2.so.14")
        self.library.nghttp2_hd_inflate_hd2.restype = ctypes.c_ssize_t
        self.inflater = ctypes.c_void_p()
        assert self.library.nghttp2_hd_inflate_new(ctypes.byref(self.inflater)) == 0

    def __call__(self, data):
        fields, flags, data = [], ctypes.c_int(0), ctypes.create_string_buffer(data, len(data))
        at, left = ctypes.addressof(data), len(data)
        while not flags.value & 1:
            pair = _Pair()
            n = self.library.nghttp2_hd_inflate_hd2(self.inflater, ctypes.byref(pair), ctypes.byref(flags),
                                                    ctypes.c_void_p(at), ctypes.c_size_t(left), 1)  # fmt: skip
            if n < 0:
                raise ValueError("not HPACK")
            at, left = at + n, left - n
            if flags.value & 2:
                fields.append(tuple(ctypes.string_at(p, n).decode() for p, n in
                                    ((pair.name, pair.namelen), (pair.value, pair.valuelen))))  # fmt: skip
        self.library.nghttp2_hd_inflate_end_headers(self.inflater)
        return fields

    def __del__(self):
        self.library.nghttp2_hd_inflate_del(self.inflater)


class Http2(Connection):
    """start: whether to send the preface, settings, and a large window for the connection at
    once."""

    def __init__(self, server, start=True, window=1 << 30, **options):
        super().__init__(("127.0.0.1", server.plain_port), **options)
        self.inflate, self.next_stream = Inflater(), 1
        if start:
            self.start(window)

    def start(self, window=1 << 30):
        self.send(PREFACE + frame(SETTINGS, payload=settings(window=window)))
        self.send(frame(WINDOW_UPDATE, payload=struct.pack(">I", 1 << 30)))

    def frame(self):
        """Returns the next frame, or None at the end. A header block is decoded, whatever its stream, and has its
        CONTINUATION frames in it."""
        f = self._frame()
        if not f or f.type != HEADERS:
            return f
        while not f.flags & END_HEADERS:
            more = self._frame()
            assert more.type == CONTINUATION and more.stream == f.stream
            f = f._replace(flags=f.flags | more.flags, payload=f.payload + more.payload)
        return f._replace(fields=self.inflate(f.payload))

    def _frame(self):
        try:
            while len(self.buffer) < 9 or len(self.buffer) < 9 + int.from_bytes(self.buffer[:3]):
                if not self._fill():
                    assert not self.buffer
                    return None
        except ConnectionResetError:
            return None
        length, kind, flags, stream = int.from_bytes(self.buffer[:3]), *struct.unpack(">BBI", self.buffer[3:9])
        payload, self.buffer = self.buffer[9 : 9 + length], self.buffer[9 + length :]
        return Frame(kind, flags, stream, payload)

    def ask(self, path="/", *fields, end=True, **options):
        """Sends a request. Returns the number of its stream."""
        stream, self.next_stream = self.next_stream, self.next_stream + 2
        self.send(frame(HEADERS, END_HEADERS | (END_STREAM if end else 0), stream, request(path, *fields, **options)))
        return stream

    def answers(self, *streams, until_reset=False):
        """Returns the complete answers of streams, in the order of streams. order lists the streams
        of the frames as they came."""
        found, self.order = {stream: Answer() for stream in streams}, []
        while not all(answer.ended for answer in found.values()):
            f = self.frame()
            assert f, "the connection has ended"
            assert f.type != GOAWAY, f
            if f.stream not in found:
                continue
            answer = found[f.stream]
            self.order.append(f.stream)
            if f.type == HEADERS:
                if answer.fields:
                    answer.trailers = f.fields
                elif dict(f.fields)[":status"] != "100":
                    answer.fields = f.fields
            elif f.type == DATA:
                answer.body += f.payload
            elif f.type == RST_STREAM:
                answer.reset = int.from_bytes(f.payload)
                answer.ended = True
            answer.ended |= f.type in (DATA, HEADERS) and bool(f.flags & END_STREAM) and not until_reset
        return [found[stream] for stream in streams]

    def get(self, path="/", *fields, **options):
        return self.answers(self.ask(path, *fields, **options))[0]

    def ended(self):
        """Returns the error of the GOAWAY with which the connection ends, or None without one."""
        error = None
        while f := self.frame():
            if f.type == GOAWAY:
                error = int.from_bytes(f.payload[4:8])
        return error

    def flood(self, data, times):
        """Sends data again and again, as long as the server takes it."""
        self.socket.settimeout(TIMEOUT)
        try:
            for _ in range(times):
                self.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError, socket.timeout):
            pass
