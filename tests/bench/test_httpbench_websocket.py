"""httpbench --websocket: each message is sent once and its echo compared; violations of the
protocol are named."""

import base64
import hashlib
import itertools
import os
import re
import socket
import struct
import threading
import time

import pytest

from origin import Origin, certificate, reset, speaking
from running import failures, httpbench

pytestmark = pytest.mark.decided

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
DEFAULT = b"abcdefghijklmnopqrstuvwxyzabcdef"
NOT_FOUND = b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno"


def frame(opcode, content=b"", last=True, head=0, length=None):
    """Makes a server's frame. head: further bits to set; length: the length that it claims."""
    n = len(content) if length is None else length
    size = bytes([n]) if n < 126 else b"\x7e" + struct.pack("!H", n) if n < 65536 else b"\x7f" + struct.pack("!Q", n)
    return bytes([opcode | (0x80 if last else 0) | head]) + size + content


def accept_of(request):
    key = re.search(rb"\r\nSec-WebSocket-Key: (\S+)", request)[1]
    return base64.b64encode(hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())


def change(request):
    return (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Accept: %s\r\n\r\n" % accept_of(request))  # fmt: skip


def messages(reader):
    """Yields each frame of a client as its opcode and content; checks that it is masked and not
    fragmented."""
    while start := reader.read(2):
        assert start[0] & 0xF0 == 0x80 and start[1] & 0x80
        n = start[1] & 0x7F
        if n >= 126:
            n = int.from_bytes(reader.read(2 if n == 126 else 8), "big")
        mask = reader.read(4)
        assert len(mask) == 4 and any(mask)
        content = reader.read(n)
        if len(content) < n:
            return
        repeated = (mask * (n // 4 + 1))[:n]
        yield start[0] & 0x0F, (int.from_bytes(content, "big") ^ int.from_bytes(repeated, "big")).to_bytes(n, "big")


class Echo(Origin):
    """Answers each message with the bytes of answer(content, number); number counts from 1, over
    all connections. If that is None, closes the connection. piece: bytes to send at a time."""

    def __init__(self, answer=lambda content, number: frame(BINARY, content), change=change, piece=None, first=b"", **options):
        self.answer, self.change, self.piece, self.first = answer, change, piece, first
        self.numbers = itertools.count(1)
        self.heads, self.received = [], []  # received: frames in the order of their arrival
        self.ended = threading.Semaphore(0)
        super().__init__(self.speak, **options)

    def count(self, opcode):
        return sum(kind == opcode for kind, _ in self.received)

    def send(self, connection, data):
        for at in range(0, len(data), self.piece or len(data) or 1):
            connection.sendall(data[at : at + (self.piece or len(data))])

    def speak(self, connection, _, request):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.heads.append(request)
        try:
            self.send(connection, self.change(request) + self.first)
            with connection.makefile("rb") as reader:
                for opcode, content in messages(reader):
                    self.received.append((opcode, content))
                    if opcode == CLOSE:
                        break
                    if opcode not in (TEXT, BINARY):
                        continue
                    answer = self.answer(content, next(self.numbers))
                    if answer is None:
                        return
                    self.send(connection, answer)
        finally:
            self.ended.release()

    def wait(self, connections):
        for _ in range(connections):
            assert self.ended.acquire(timeout=10)


def run(build, tmp_path, origin, *arguments, **options):
    return httpbench(build, "--websocket", *arguments, origin.url, tmp_path=tmp_path, **options)


@pytest.mark.parametrize("rate", [[], ["-R", 3000]], ids=["closed", "open"])
@pytest.mark.parametrize("depth", [1, 16])
@pytest.mark.parametrize("tls", [False, True], ids=["clear", "tls"])
def test_every_message_is_sent_and_echoed_once(build, tmp_path, rate, depth, tls):
    with Echo(context=speaking(certificate(tmp_path, "address", "IP:127.0.0.1")) if tls else None) as origin:
        result = run(build, tmp_path, origin, "-n", 1000, "-c", 3, "-p", depth, "--insecure", *rate)
        assert result["sent"] == result["answered"] == 1000 and not failures(result)
        opened = result["connected"]
        origin.wait(opened)
        assert origin.received.count((BINARY, DEFAULT)) == 1000 and opened <= 3
        assert result["protocol"] == "WebSocket" and result["pipeline"] == depth
        durations = result["durations"]
        assert durations["upgrade"]["samples"] == opened == len(origin.heads)
        assert durations["whole"]["samples"] == durations["first_byte"]["samples"] == 1000


def test_in_open_loop_websockets_can_be_held(build, tmp_path):
    """A few messages find all of them open, which they would not need."""
    with Echo() as origin:
        result = run(build, tmp_path, origin, "-R", 20, "-c", 30, "--hold", "-d", 1)
        origin.wait(30)
    assert result["connected"] == 30 == result["durations"]["upgrade"]["samples"] and not failures(result)


def test_the_upgrade_is_that_of_the_rfc(build, tmp_path):
    with Echo() as origin:
        httpbench(build, "--websocket", "-n", 20, "-c", 10, "-H", "Origin: http://example.org", origin.url + "a?b=c")
        for head in origin.heads:
            line, *fields = head.decode().split("\r\n")
            named = dict(field.split(": ", 1) for field in fields)
            assert line == "GET /a?b=c HTTP/1.1" and len(named) == len(fields)
            assert named["Upgrade"] == "websocket" and named["Connection"] == "Upgrade"
            assert named["Sec-WebSocket-Version"] == "13" and named["Origin"] == "http://example.org"
            assert len(base64.b64decode(named["Sec-WebSocket-Key"], validate=True)) == 16
        assert len({re.search(rb"Key: (\S+)", head)[1] for head in origin.heads}) == len(origin.heads) > 1


def test_every_connection_ends_with_a_close(build, tmp_path):
    with Echo() as origin:
        result = run(build, tmp_path, origin, "-n", 40, "-c", 2, "-k", 5)
        assert result["answered"] == 40 and result["connected"] >= 8
        origin.wait(result["connected"])
        assert origin.received.count((CLOSE, b"\x03\xe8")) == result["connected"]


@pytest.mark.parametrize("tls", [False, True], ids=["clear", "tls"])
@pytest.mark.parametrize("size", [0, 1, 125, 126, 65535, 65536, 1_000_000])
def test_a_message_of_any_size(build, tmp_path, size, tls):
    """The length has 7, 16 or 64 bits. All messages of a connection are under way while it writes and reads."""
    with Echo(context=speaking(certificate(tmp_path, "address", "IP:127.0.0.1")) if tls else None) as origin:
        result = run(build, tmp_path, origin, "-n", 24, "-c", 2, "-p", 6, "--message-size", size, "--insecure")
        assert result["answered"] == 24 and not failures(result)
        assert {len(content) for opcode, content in origin.received if opcode == BINARY} == {size}


def test_a_file_is_the_message(build, tmp_path):
    content = os.urandom(100_001)
    (tmp_path / "message").write_bytes(content)
    with Echo() as origin:
        result = run(build, tmp_path, origin, "-n", 7, "-c", 1, "--body", tmp_path / "message")
        assert result["answered"] == 7 and origin.received.count((BINARY, content)) == 7


@pytest.mark.parametrize("rate", [[], ["-R", 500]], ids=["closed", "open"])
@pytest.mark.parametrize("piece", [None, 1, 3])
def test_fragments_with_a_ping_between_them_in_pieces_of_any_size(build, tmp_path, piece, rate):
    def answer(content, number):
        parts = frame(BINARY, content[:5], last=False) + frame(PING, b"ping %d" % number) + frame(CONTINUATION, b"", last=False)
        return parts + frame(PONG, b"x" * 125) + frame(CONTINUATION, content[5:])

    with Echo(answer, piece=piece, first=frame(PING, b"first")) as origin:
        result = run(build, tmp_path, origin, "-n", 60, "-c", 2, "-p", 2, *rate)
        assert result["answered"] == 60 and not failures(result)
        origin.wait(result["connected"])
        pongs = {content for opcode, content in origin.received if opcode == PONG}
        assert b"first" in pongs and len(pongs) > 10
        assert pongs <= {b"first", *(b"ping %d" % number for number in range(1, 61))}


def test_a_ping_is_answered_in_open_loop_while_nothing_is_due(build, tmp_path):
    """Two messages a second are due: the pong does not wait for the next one."""
    at = {}

    class Timed(list):
        def append(self, received):
            at.setdefault(received[0], time.monotonic())
            super().append(received)

    with Echo(lambda content, _: frame(BINARY, content) + frame(PING, b"ping")) as origin:
        origin.received = Timed()
        result = run(build, tmp_path, origin, "-n", 2, "-R", 2, "--arrival", "constant", "-c", 1)
        assert result["answered"] == 2 and origin.received[1] == (PONG, b"ping")
        assert at[PONG] - at[BINARY] < 0.3


def test_a_flood_of_pings_is_survived(build, tmp_path):
    with Echo(lambda content, _: frame(PING, b"x" * 125) * 2000 + frame(BINARY, content)) as origin:
        result = run(build, tmp_path, origin, "-n", 20, "-c", 1, "-p", 2)
        assert result["answered"] == 20 and not failures(result)
        assert 0 < origin.count(PONG) <= 40_000


@pytest.mark.parametrize("wrong", [b"", DEFAULT[:-1], DEFAULT + b"x", b"x" + DEFAULT[1:], DEFAULT[:-1] + b"x"],
                         ids=["empty", "short", "long", "first", "last"])  # fmt: skip
def test_each_byte_of_an_echo_is_compared(build, tmp_path, wrong):
    with Echo(lambda content, number: frame(BINARY, wrong if number % 100 == 0 else content)) as origin:
        result = run(build, tmp_path, origin, "-n", 500, "-c", 3, "-p", 4, status=1)
        assert failures(result) == {"wrong_bytes": 5} and result["answered"] == 495
        assert result["connected"] == 3  # the connection is sound


def test_a_late_echo_is_measured_and_times_out(build, tmp_path):
    def answer(content, number):
        if number == 50:
            time.sleep(1)
        return frame(BINARY, content)

    with Echo(answer) as origin:
        whole = run(build, tmp_path, origin, "-n", 100, "-c", 1)["durations"]["whole"]["percentiles_ns"]
        assert whole["90"] < 500_000_000 and whole["100"] >= 1_000_000_000
    with Echo(answer) as origin:
        result = run(build, tmp_path, origin, "-n", 100, "-c", 1, "-T", 0.5, status=1)
        assert failures(result) == {"timed_out": 1} and result["answered"] == 99


# --- servers that do what they may not ---

WRONG = {
    "masked": (frame(BINARY)[:1] + b"\x85abcdhello", "a frame is masked"),
    "reserved bits": (frame(BINARY, DEFAULT, head=0x40), "reserved bits"),
    "an unknown opcode": (frame(3, DEFAULT), "unknown opcode"),
    "an unknown control opcode": (frame(11), "unknown opcode"),
    "too long": (frame(BINARY, length=256 * 1024 * 1024 + 1), "more than 256 MiB"),
    "a length with the highest bit": (frame(BINARY, length=(1 << 63) + 5), "more than 256 MiB"),
    "too long in fragments": (frame(BINARY, DEFAULT, last=False) + frame(CONTINUATION, length=256 * 1024 * 1024),
                              "more than 256 MiB"),
    "16 bits for a small length": (b"\x82\x7e\x00\x7d", "more bytes than it needs"),
    "64 bits for a small length": (b"\x82\x7f" + struct.pack("!Q", 65535), "more bytes than it needs"),
    "a continuation of nothing": (frame(CONTINUATION, DEFAULT), "continues no message"),
    "a message in a message": (frame(BINARY, b"ab", last=False) + frame(TEXT, b"cd"), "begins within another"),
    "a ping in fragments": (frame(PING, b"ab", last=False), "control frame is fragmented"),
    "a long ping": (frame(PING, b"x" * 126), "more than 125 bytes"),
    "half a status": (frame(CLOSE, b"\x03"), "half a status"),
}  # fmt: skip


@pytest.mark.parametrize("piece", [None, 1])
@pytest.mark.parametrize("name", WRONG)
def test_a_frame_that_is_wrong_is_named(build, name, piece):
    wrong, says = WRONG[name]
    with Echo(lambda content, number: wrong if number % 10 == 0 else frame(BINARY, content), piece=piece) as origin:
        done = httpbench(build, "--websocket", "-n", 100, "-c", 2, origin.url, status=1)
        assert re.search(rf"^websocket  failed: .*{says}", done.stdout, re.MULTILINE)
        assert re.search(r"^failed     10: not_websocket 10$", done.stdout, re.MULTILINE) and "answered   90 " in done.stdout
        if not piece:  # input that the client no longer reads resets the connection
            origin.wait(10)
            assert origin.received.count((CLOSE, b"\x03\xea")) == 10


def test_an_echo_too_many_fails_the_one_it_came_with(build, tmp_path):
    with Echo(lambda content, number: frame(BINARY, content) * (2 if number == 20 else 1)) as origin:
        result = run(build, tmp_path, origin, "-n", 100, "-c", 1, status=1)
        assert failures(result) == {"not_websocket": 1} and result["answered"] == 99 and result["connected"] == 2


def test_a_greeting_is_no_echo(build, tmp_path):
    with Echo(first=frame(TEXT, b"hello")) as origin:
        result = run(build, tmp_path, origin, "-n", 3, "-c", 1, status=1)
        assert failures(result) == {"not_websocket": 3}


def test_an_echo_before_its_message_was_sent_is_refused(build, tmp_path):
    """The server does not read the message of 100 MB, but has already answered it."""

    def behave(connection, _, request):
        connection.sendall(change(request))
        connection.recv(1000)
        connection.sendall(frame(BINARY, b"early"))
        time.sleep(0.2)

    with Origin(behave) as origin:
        result = run(build, tmp_path, origin, "-n", 1, "-c", 1, "--message-size", 100_000_000, status=1)
        assert failures(result) == {"not_websocket": 1}


CLOSES = {
    "a close": (frame(CLOSE, b"\x03\xf3out of order"), "sent Close, with status 1011"),
    "a close without a status": (frame(CLOSE), "sent Close$"),
    "a close within a message": (frame(BINARY, DEFAULT[:5], last=False) + frame(CLOSE, b"\x03\xe8"), "sent Close, with status 1000"),
}


@pytest.mark.parametrize("name", CLOSES)
def test_a_close_is_the_end_of_the_connection(build, tmp_path, name):
    """Messages without an echo fail: the first as short, the one behind it as reset. The Close is
    answered."""
    close, says = CLOSES[name]

    def answer(content, number):
        return b"" if number == 20 else close if number == 21 else frame(BINARY, content)

    with Echo(answer) as origin:
        done = httpbench(build, "--websocket", "-n", 100, "-c", 1, "-p", 2, origin.url, status=1)
        assert re.search(says, done.stdout, re.MULTILINE)
        assert re.search(r"^answered   98 ", done.stdout) and "short 1" in done.stdout and "reset 1" in done.stdout
        origin.wait(2)
        assert origin.count(CLOSE) == 2


CUTS = {
    "in a head": frame(BINARY, DEFAULT)[:1],
    "in a length": b"\x82\x7e\x01",
    "in a message": frame(BINARY, DEFAULT)[:-1],
    "between fragments": frame(BINARY, DEFAULT, last=False),
    "in a ping": frame(PING, b"12345")[:-1],
    "before the echo": b"",
}


def echoing_until(end):
    """Returns a server that echoes; instead of the answer on the second connection, it calls
    end(connection)."""

    def behave(connection, number, request):
        connection.sendall(change(request))
        with connection.makefile("rb") as reader:
            for _, content in messages(reader):
                if number == 2:
                    end(connection)
                    return
                connection.sendall(frame(BINARY, content))

    return behave


@pytest.mark.parametrize("name", CUTS)
def test_what_is_cut_off_is_short(build, tmp_path, name):
    with Origin(echoing_until(lambda connection: connection.sendall(CUTS[name]))) as origin:
        result = run(build, tmp_path, origin, "-n", 100, "-c", 1, "-k", 10, status=1)
        assert failures(result) == {"short": 1} and result["answered"] == 99


def test_a_connection_that_is_reset_fails_its_messages(build, tmp_path):
    with Origin(echoing_until(reset)) as origin:
        result = run(build, tmp_path, origin, "-n", 100, "-c", 1, "-k", 10, status=1)
        assert failures(result) == {"reset": 1} and result["answered"] == 99


def test_an_idle_connection_that_is_closed_fails_nothing(build, tmp_path):
    """In open loop, by a Close after each message, which comes when nothing is under way."""
    with Echo(lambda content, _: frame(BINARY, content) + frame(CLOSE, b"\x03\xe9")) as origin:
        result = run(build, tmp_path, origin, "-n", 5, "-R", 20, "--arrival", "constant", "-c", 1)
        assert result["answered"] == 5 and result["connected"] == 5


# --- servers that do not change the protocol ---


def without(name):
    return lambda request: re.sub(rb"%s: [^\r]*\r\n" % name, b"", change(request))


REFUSALS = {
    "another status": (lambda _: NOT_FOUND, "wrong_status", "answered 404, not 101"),
    "a redirect": (lambda _: b"HTTP/1.1 302 Found\r\nLocation: /x\r\n\r\n", "wrong_status", "answered 302, not 101"),
    "no HTTP": (lambda _: b"SSH-2.0-OpenSSH\r\n", "not_http", "does not answer with HTTP"),
    "the end": (lambda _: b"HTTP/1.1 101 Swit", "short", "closed the connection before it had answered"),
    "another key's accept": (lambda request: change(request).replace(accept_of(request), accept_of(b"\r\nSec-WebSocket-Key: x")),
                             "not_websocket", "is not that of the key"),
    "accept in other letters": (lambda request: change(request).replace(accept_of(request), accept_of(request).swapcase()),
                                "not_websocket", "is not that of the key"),
    "no accept": (without(b"Sec-WebSocket-Accept"), "not_websocket", "no Sec-WebSocket-Accept"),
    "no upgrade": (without(b"Upgrade"), "not_websocket", "no Upgrade: websocket"),
    "no connection": (without(b"Connection"), "not_websocket", "no Connection: Upgrade"),
    "another protocol": (lambda request: change(request).replace(b": websocket", b": websocket2"),
                         "not_websocket", "no Upgrade: websocket"),
    "an extension": (lambda request: change(request).replace(b"\r\n\r\n", b"\r\nSec-WebSocket-Extensions: x\r\n\r\n"),
                     "not_websocket", "extension that was not offered"),
}  # fmt: skip


@pytest.mark.parametrize("piece", [None, 1])
@pytest.mark.parametrize("name", REFUSALS)
def test_a_server_that_does_not_upgrade_gets_one_line(build, tmp_path, name, piece):
    answer, kind, says = REFUSALS[name]

    def behave(connection, _, request):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        data = answer(request)
        for at in range(0, len(data), piece or len(data)):
            connection.sendall(data[at : at + (piece or len(data))])

    with Origin(behave) as origin:
        done = httpbench(build, "--websocket", "-d", 5, "-c", 2, "--json", tmp_path / "json", origin.url, status=2)
        assert done.stderr.count("\n") == 1 and says in done.stderr and origin.url in done.stderr
        assert f": {kind} " in done.stdout and "verdict    FAILED" in done.stdout
        assert time_of(done.stdout) < 4  # it gives up


def time_of(report):
    return float(re.search(r"^answered   0 in ([\d.]+) s", report)[1])


def test_fields_of_the_answer_may_be_lists_in_any_letters(build, tmp_path):
    def polite(request):
        return (b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 101 \r\nconnection: keep-alive\r\nCONNECTION: foo,\tupGRADE \r\n"
                b"upgrade:WebSocket\r\nsec-websocket-accept:   %s  \r\n\r\n" % accept_of(request))  # fmt: skip

    for piece in (None, 1):
        with Echo(change=polite, piece=piece) as origin:
            assert run(build, tmp_path, origin, "-n", 10, "-c", 2)["answered"] == 10


def test_an_upgrade_that_some_refuse_does_not_end_the_run(build, tmp_path):
    refused = itertools.count(1)

    def sometimes(request):
        return NOT_FOUND if next(refused) % 4 == 0 else change(request)

    with Echo(change=sometimes) as origin:
        result = run(build, tmp_path, origin, "-n", 100, "-c", 1, "-k", 5, status=1)
        assert set(failures(result)) == {"wrong_status"} and result["answered"] + sum(failures(result).values()) == 100
        assert result["durations"]["upgrade"]["censored"] == failures(result)["wrong_status"] > 1


def test_an_upgrade_that_is_not_answered_times_out(build, tmp_path):
    with Origin(lambda *_: b"") as origin:
        result = run(build, tmp_path, origin, "-n", 2, "-c", 2, "-T", 0.3, status=1)
        assert failures(result) == {"timed_out": 2} and result["durations"]["upgrade"]["censored"] == 2


# --- options ---

REFUSED = {
    "without --http2": ["--http2"],
    "without --method": ["-X", "POST"],
    "without --expect and --status": ["--status", "200"],
    "--websocket has a field Upgrade": ["-H", "upgrade: x"],
    "--websocket has a field Sec-WebSocket-Extensions": ["-H", "Sec-WebSocket-Extensions: permessage-deflate"],
    "--message-size and --body exclude": ["--message-size", "5", "--body", __file__],
    "--message-size takes a number": ["--message-size", "-1"],
}


@pytest.mark.parametrize("says", REFUSED)
def test_options_that_make_no_sense_are_named(build, says):
    done = httpbench(build, "--websocket", *REFUSED[says], "http://127.0.0.1:1/", status=2)
    assert says in done.stderr and done.stderr.count("\n") == 1


def test_a_message_needs_a_websocket(build):
    assert "--message-size is of --websocket" in httpbench(build, "--message-size", 5, "http://127.0.0.1:1/", status=2).stderr


def test_the_report_speaks_of_messages(build):
    with Echo() as origin:
        done = httpbench(build, "--websocket", "-n", 10, "-c", 2, origin.url)
        assert "opened     2 connections, of WebSocket" in done.stdout and "of processor time a message" in done.stdout
        assert re.search(r"^upgrade +\d", done.stdout, re.MULTILINE)


def test_logs_of_websockets_are_merged_and_not_with_others(build, tmp_path):
    with Echo() as origin:
        for rank in (0, 1):
            httpbench(build, "--websocket", "-n", 40, "-c", 2, "--ranks", 2, "--rank", rank, "--hlog", tmp_path / "%r.hlog", origin.url)
    done = httpbench(build, "merge", tmp_path / "0.hlog", tmp_path / "1.hlog")
    assert "answered   40 " in done.stdout and re.search(r"^upgrade ", done.stdout, re.MULTILINE)
    log = (tmp_path / "1.hlog").read_text()
    (tmp_path / "1.hlog").write_text(log.replace(" websocket 1 ", " "))
    assert "answered   20 " in httpbench(build, "merge", tmp_path / "0.hlog", tmp_path / "1.hlog", status=2).stdout
