"""An HTTP/3 client that sends exactly what it is told to. QUIC and the decoder of field sections are those of aioquic, which fixture
`client` in conftest.py makes importable; frames and requests are its own."""

import contextlib
import select
import socket
import ssl
import time

import pylsqpack
from aioquic import tls  # noqa: F401  # pylint: disable=unused-import
from aioquic.quic import events
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.tls import Epoch

import answers
from frames import CONTROL, DATA, GOAWAY, HEADERS, SETTINGS, frame, number, read_number, request, section, settings
from gatling import TIMEOUT

RECEIVE_BUFFER = 4 << 20
DATAGRAM_MAX = 1 << 16
ACK_DELAY = 0.025  # RFC 9000, section 18.2


class Link:
    """What becomes of datagrams: each becomes those that are returned, in their order."""

    def sent(self, datagram):
        return [datagram]

    def received(self, datagram):
        return [datagram]


class Answer(answers.Answer):
    """stopped: the error with which the server asked for the end of the request."""

    def __init__(self):
        super().__init__()
        self.interim, self.stopped, self.buffer, self.frames = [], None, b"", []


class Client:
    """A connection. link: what becomes of its datagrams. window: bytes that the server may send on each stream, and total on all; hold:
    no more of them until widen(). settle: open a control stream with empty settings. ticket: of an earlier connection, to be resumed. early: send before the
    handshake is complete."""

    def __init__(self, server, link=None, *, window=1 << 24, total=1 << 26, hold=False, settle=True, ticket=None, early=False, name="localhost", alpn=("h3",),
                 source="127.0.0.1", wait=True, port=None, address="127.0.0.1", **options):  # fmt: skip
        self.address, self.link = (address, port or server.tls_port), link or Link()
        self.socket = self._open(source)
        self.tickets, self.found, self.control, self.order = [], {}, [], []
        self.next_stream, self.next_uni, self.next_ping, self.pings = 0, 2, 0, set()
        self.handshake = self.end = None
        self._control_stream, self._buffers, self._decoder = None, {}, pylsqpack.Decoder(0, 0)
        configuration = QuicConfiguration(alpn_protocols=list(alpn), server_name=name, verify_mode=ssl.CERT_NONE, max_stream_data=window, max_data=total,
                                          session_ticket=ticket, **options)  # fmt: skip
        self.quic = QuicConnection(configuration=configuration, session_ticket_handler=self.tickets.append)
        # pylint: disable=protected-access
        self.quic._local_max_stream_data_uni = 1 << 20
        if hold:
            self.quic._write_stream_limits = lambda **_: None
        self.quic.connect(self.address, time.monotonic())
        if settle:
            self.settle()
        if wait and not early:
            self.until(lambda: self.handshake)

    def _open(self, source):
        s = socket.socket(socket.AF_INET6 if ":" in source else socket.AF_INET, socket.SOCK_DGRAM)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
        s.bind((source, 0))
        s.connect(self.address)
        s.setblocking(False)
        return s

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self, error=0x100, reason=""):
        """Tells the server, and ends."""
        if self.end is None:
            self.quic.close(error, None, reason)
            self.flush()
        self.socket.close()

    def move(self, source="127.0.0.1"):
        """Sends from another port from now on, and from another address, as after a translator has forgotten the connection."""
        old, self.socket = self.socket, self._open(source)
        old.close()

    # --- datagrams and events ---

    def flush(self):
        for datagram, _ in self.quic.datagrams_to_send(time.monotonic()):
            for piece in self.link.sent(datagram):
                with contextlib.suppress(ConnectionRefusedError, BlockingIOError):
                    self.socket.send(piece)

    def turn(self, seconds=TIMEOUT):
        """Sends what there is, and waits for datagrams or a timer, no longer than that."""
        self.flush()
        timer = self.quic.get_timer()
        if timer is not None:
            seconds = min(seconds, timer - time.monotonic())
        if select.select([self.socket], [], [], max(0, seconds))[0]:
            self._receive()
        timer = self.quic.get_timer()
        if timer is not None and time.monotonic() >= timer:
            self.quic.handle_timer(time.monotonic())
        while event := self.quic.next_event():
            self._handle(event)

    def _receive(self):
        with contextlib.suppress(BlockingIOError, ConnectionRefusedError):
            for _ in range(64):
                for datagram in self.link.received(self.socket.recv(DATAGRAM_MAX)):
                    self.quic.receive_datagram(datagram, self.address, time.monotonic())

    def until(self, condition, seconds=TIMEOUT):
        """Goes on until condition() is true. Returns its value."""
        deadline = time.monotonic() + seconds
        while not (result := condition()):
            assert time.monotonic() < deadline, "it did not happen"
            assert self.end is None, self.end
            self.turn(deadline - time.monotonic())
        return result

    def ended(self, seconds=TIMEOUT):
        """Waits for the end of the connection. Returns the server's error."""
        with contextlib.suppress(AssertionError):
            self.until(lambda: self.end, seconds)
        assert self.end, "the connection has not ended"
        return self.end.error_code

    def sync(self):
        """Waits until the server has handled what was sent, or has ended the connection. Returns its error in that case."""
        streams = self.quic._streams  # pylint: disable=protected-access
        with contextlib.suppress(AssertionError):
            self.until(lambda: all(stream.sender.buffer_is_empty or stream.is_blocked for stream in streams.values()))
            self.next_ping += 1
            self.quic.send_ping(self.next_ping)
            self.until(lambda: self.next_ping in self.pings)
            return None
        assert self.end, "the server does not answer"
        return self.end.error_code

    def _handle(self, event):
        match event:
            case events.HandshakeCompleted():
                self.handshake = event
            case events.ConnectionTerminated():
                self.end = event
            case events.PingAcknowledged():
                self.pings.add(event.uid)
            case events.StreamReset():
                answer = self.found.setdefault(event.stream_id, Answer())
                answer.reset, answer.ended = event.error_code, True
            case events.StopSendingReceived():
                self.found.setdefault(event.stream_id, Answer()).stopped = event.error_code
            case events.StreamDataReceived(stream_id=stream, data=data):
                if stream & 2:
                    self._take_uni(stream, data)
                else:
                    self.order.append(stream)
                    answer = self.found.setdefault(stream, Answer())
                    self._take(stream, answer, data)
                    answer.ended |= event.end_stream
                    assert not answer.ended or not answer.buffer, "it ends in a frame"

    def _take_uni(self, stream, data):
        data = self._buffers.pop(stream, b"") + data
        if stream != self._control_stream:
            kind, data = read_number(data)
            assert kind == CONTROL and self._control_stream is None, "the server opens one stream, for control"
            self._control_stream = stream
        frames, self._buffers[stream] = _split(data)
        self.control += frames

    def _take(self, stream, answer, data):
        frames, answer.buffer = _split(answer.buffer + data)
        for kind, payload in frames:
            answer.frames.append(kind)
            assert kind in (DATA, HEADERS), kind
            if kind == DATA:
                assert answer.fields and not answer.trailers
                answer.body += payload
                continue
            fields = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in self._decoder.feed_header(stream, payload)[1]]
            if answer.fields:
                answer.trailers = fields
            elif dict(fields)[":status"].startswith("1"):
                answer.interim.append(fields)
            else:
                answer.fields = fields

    # --- requests ---

    def send(self, stream, data, end=False):
        """Sends octets on a stream."""
        self.quic.send_stream_data(stream, data, end)
        self.flush()

    def open(self):
        """Returns the number of the next stream for a request."""
        stream, self.next_stream = self.next_stream, self.next_stream + 4
        return stream

    def open_uni(self, kind, data=b""):
        """Opens a unidirectional stream of that type. Returns its number."""
        stream, self.next_uni = self.next_uni, self.next_uni + 4
        self.send(stream, number(kind) + data)
        return stream

    def settle(self, *pairs):
        """Opens the control stream, with these settings."""
        self.client_control = self.open_uni(CONTROL, settings(*pairs))

    def reset(self, stream, error):
        self.quic.reset_stream(stream, error)
        self.flush()

    def stop(self, stream, error):
        self.quic.stop_stream(stream, error)
        self.flush()

    def ask(self, path="/", *fields, end=True, body=None, **options):
        """Sends a request. Returns the number of its stream."""
        return self.ask_as(request(path, *fields, **options), end=end, body=body)

    def ask_as(self, block, end=True, body=None, trailers=None):
        """The same with an encoded field section."""
        stream, data = self.open(), frame(HEADERS, block)
        if body is not None:
            data += frame(DATA, body)
        if trailers is not None:
            data += frame(HEADERS, section(*trailers))
        self.send(stream, data, end)
        return stream

    def answers(self, *streams):
        """Returns the complete answers of streams, in the order of streams."""
        found = [self.found.setdefault(stream, Answer()) for stream in streams]
        self.until(lambda: all(answer.ended for answer in found))
        return found

    def answer(self, stream):
        return self.answers(stream)[0]

    def get(self, path="/", *fields, **options):
        return self.answer(self.ask(path, *fields, **options))

    def widen(self, stream, window, total=1 << 26):
        """Lets the server send that many bytes on a stream, and on all."""
        # pylint: disable=protected-access
        self.quic.__dict__.pop("_write_stream_limits", None)
        self.quic._streams[stream].max_stream_data_local = window
        self.quic._local_max_data.value = max(total, self.quic._local_max_data.value)
        self.flush()

    def acknowledge(self):
        """Goes on until all that has come is acknowledged. aioquic is in no hurry."""
        while self.quic._spaces[Epoch.ONE_RTT].ack_at is not None:  # pylint: disable=protected-access
            self.turn(ACK_DELAY)

    @property
    def settings(self):
        """Returns the server's settings, by their numbers."""
        kind, payload = self.until(lambda: self.control)[0]
        assert kind == SETTINGS
        found = {}
        while payload:
            name, payload = read_number(payload)
            found[name], payload = read_number(payload)
        return found

    def goaway(self):
        """Waits for a GOAWAY. Returns the number of the first one."""
        return self.until(self.goaways)[0]

    def goaways(self):
        return [read_number(payload)[0] for kind, payload in self.control if kind == GOAWAY]


def _split(data):
    """Returns the complete frames at the front, and what follows them."""
    frames = []
    while (kind := read_number(data)) and (length := read_number(kind[1])) and len(length[1]) >= length[0]:
        frames.append((kind[0], length[1][: length[0]]))
        data = length[1][length[0] :]
    return frames, data
