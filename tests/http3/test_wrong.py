"""What is wrong over HTTP/3: frames, streams, settings, field sections and requests, each with the error that it has."""

import pytest

from frames import (
    CANCEL_PUSH, CLOSED_CRITICAL_STREAM, CONTROL, DATA, DECODER, DECODER_STREAM_ERROR, DECOMPRESSION_FAILED, ENABLE_CONNECT_PROTOCOL, ENCODER,
    ENCODER_STREAM_ERROR, EXCESSIVE_LOAD, FRAME_ERROR, FRAME_UNEXPECTED, GOAWAY, HEADERS, ID_ERROR, MAX_FIELD_SECTION_SIZE, MAX_PUSH_ID, MESSAGE_ERROR,
    MISSING_SETTINGS, PRIORITY_UPDATE, PUSH, PUSH_PROMISE, REQUEST_CANCELLED, REQUEST_INCOMPLETE, SETTINGS, SETTINGS_ERROR, STREAM_CREATION_ERROR, frame, lines, number,
    request, section, settings,
)  # fmt: skip
from served import SMALL

GET = frame(HEADERS, request("/small.bin"))
RESERVED = 0x1F * 1000 + 0x21  # frames, streams and settings of such numbers are ignored
PUSH_PRIORITY_UPDATE = 0xF0701
BATCH = 64


def named(rows):
    """Returns parameters with a name first."""
    return [pytest.param(*row, id=row[0]) for row in rows]


# --- requests ---


@pytest.mark.parametrize("name, error, data", named([
    ("data before the request", FRAME_UNEXPECTED, frame(DATA, b"x") + GET),
    ("a request behind its trailers", FRAME_UNEXPECTED, GET + frame(HEADERS, section(("a", "b"))) + GET),
    ("data behind the trailers", FRAME_UNEXPECTED, GET + frame(HEADERS, section(("a", "b"))) + frame(DATA, b"x")),
    ("empty data behind the trailers", FRAME_UNEXPECTED, GET + frame(HEADERS, section(("a", "b"))) + frame(DATA)),
    ("settings", FRAME_UNEXPECTED, settings()),
    ("settings behind the request", FRAME_UNEXPECTED, GET + settings()),
    ("a push promise", FRAME_UNEXPECTED, frame(PUSH_PROMISE, b"\0" + request())),
    ("a goaway", FRAME_UNEXPECTED, frame(GOAWAY, b"\0")),
    ("a cancelled push", FRAME_UNEXPECTED, frame(CANCEL_PUSH, b"\0")),
    ("a number of pushes", FRAME_UNEXPECTED, frame(MAX_PUSH_ID, b"\0")),
    ("a priority", FRAME_UNEXPECTED, frame(PRIORITY_UPDATE, b"\0u=1")),
    *((f"frame {kind} of HTTP/2", FRAME_UNEXPECTED, frame(kind, b"\0" * 5)) for kind in (2, 6, 8, 9)),
    ("the end in the type of a frame", FRAME_ERROR, b"\x40"),
    ("the end in the length of a frame", FRAME_ERROR, b"\x01\x40"),
    ("the end in a request", FRAME_ERROR, GET[:-1]),
    ("the end behind the header of a request", FRAME_ERROR, GET[:2]),
    ("the end in content", FRAME_ERROR, GET + frame(DATA, b"xyz")[:-1]),
    ("the end in an unknown frame", FRAME_ERROR, frame(RESERVED, b"xyz")[:-1]),
]))  # fmt: skip
def test_a_wrong_frame_of_a_request_ends_the_connection(c, name, error, data):
    c.send(c.open(), data, end=True)
    assert c.sync() == error, name


@pytest.mark.parametrize("data", [b"", frame(RESERVED, b"x"), frame(RESERVED)], ids=["nothing", "an unknown frame", "an empty one"])
def test_a_stream_without_a_request_is_reset(c, data):
    stream = c.open()
    c.send(stream, data, end=True)
    assert c.answer(stream).reset == REQUEST_INCOMPLETE
    assert c.get("/small.bin").body == SMALL


SECTIONS = {
    "upper case": request("/", ("X-Upper", "x")),
    "a connection field": request("/", ("connection", "close")),
    "a transfer coding": request("/", ("transfer-encoding", "chunked")),
    "an upgrade": request("/", ("upgrade", "websocket")),
    "a field to keep it alive": request("/", ("keep-alive", "5")),
    "te": request("/", ("te", "gzip")),
    "no method": section((":scheme", "https"), (":authority", "a"), (":path", "/")),
    "no scheme": section((":method", "GET"), (":authority", "a"), (":path", "/")),
    "no path": section((":method", "GET"), (":scheme", "https"), (":authority", "a")),
    "an empty path": request(""),
    "a relative path": request("x"),
    "an empty method": request("/", method=""),
    "a scheme with a blank": request("/", scheme="ht tp"),
    "a line break in the scheme": request("/", scheme="a\r\nb"),
    "two paths": request("/", (":path", "/")),
    "two methods": request("/", (":method", "GET")),
    "two authorities": request("/", (":authority", "localhost")),
    "a pseudo-field behind": section((":method", "GET"), (":scheme", "https"), (":authority", "a"), ("a", "b"), (":path", "/")),
    "an unknown pseudo-field": request("/", (":who", "me")),
    "the pseudo-field of a response": request("/", (":status", "200")),
    "an extended connect that was not offered": section((":method", "CONNECT"), (":protocol", "websocket"), (":scheme", "https"), (":authority", "a"),
                                                        (":path", "/")),
    "a protocol without connect": request("/", (":protocol", "websocket")),
    "a connect with a path": section((":method", "CONNECT"), (":authority", "a:80"), (":path", "/")),
    "a connect with a scheme": section((":method", "CONNECT"), (":authority", "a:80"), (":scheme", "https")),
    "an empty name": request("/", ("", "x")),
    "a blank before a value": request("/", ("a", " x")),
    "a blank behind a value": request("/", ("a", "x ")),
    "a blank in a name": request("/", ("a b", "x")),
    "a return in a value": request("/", ("x", "a\rb")),
    "a line break in a value": request("/", ("x", "a\nb")),
    "a zero in a value": request("/", ("x", "a\0b")),
    "another host": request("/", ("host", "other.example")),
    "two hosts": section((":method", "GET"), (":scheme", "https"), (":path", "/"), ("host", "a"), ("host", "a")),
    "content that does not come": request("/", ("content-length", "5")),
    "no field": section(),
}  # fmt: skip


@pytest.mark.parametrize("name", SECTIONS)
def test_a_malformed_request_ends_its_stream_alone(c, name):
    wrong, right = c.answers(c.ask_as(SECTIONS[name]), c.ask("/small.bin"))
    assert wrong.reset == MESSAGE_ERROR and wrong.fields is None and right.body == SMALL


def test_who_sends_a_malformed_request_is_asked_to_end_it(c):
    stream = c.ask_as(SECTIONS["upper case"], end=False)
    assert c.answer(stream).reset == MESSAGE_ERROR
    assert c.until(lambda: c.found[stream].stopped) == MESSAGE_ERROR


@pytest.mark.parametrize("sections", [[("host", "")], [], [("host", "a/b")], [("host", "a b")]], ids=repr)
def test_a_host_is_needed(c, sections):
    answer = c.answer(c.ask_as(section((":method", "GET"), (":scheme", "https"), (":path", "/"), *sections)))
    assert answer.reset == MESSAGE_ERROR or answer.status == 400


@pytest.mark.parametrize("name, fields, body, trailers", [
    ("too much", [("content-length", "2")], b"abc", None), ("too little", [("content-length", "4")], b"abc", None),
    ("too little before trailers", [("content-length", "4")], b"abc", [("a", "b")]), ("a pseudo-field in trailers", [], b"abc", [(":path", "/")]),
    ("upper case in trailers", [], b"abc", [("A", "b")]), ("a connection field in trailers", [], b"abc", [("connection", "close")]),
    ("two lengths", [("content-length", "3"), ("content-length", "4")], b"abc", None),
])  # fmt: skip
def test_content_that_is_not_what_was_said_ends_its_stream_alone(c, name, fields, body, trailers):
    answer = c.answer(c.ask_as(request("/small.bin", *fields), body=body, trailers=trailers))
    assert answer.reset == MESSAGE_ERROR or (name == "two lengths" and answer.status == 400)
    assert c.get("/small.bin").body == SMALL


def test_a_connect_is_answered_without_its_content(c):
    stream = c.ask_as(section((":method", "CONNECT"), (":authority", "a:80")), end=False)
    assert c.answer(stream).status == 405
    assert c.until(lambda: c.found[stream].stopped) == 0x100


@pytest.mark.parametrize("fields", [[("a", "b" * 20_000)], [(f"x{n}", "") for n in range(600)], [("a", "b" * 40_000)]], ids=["long", "many", "longer"])
def test_too_many_fields_are_refused(c, fields):
    """See REQUEST_LIST_MAX, FIELDS_MAX and HTTP3_SECTION_MAX."""
    assert c.answer(c.ask_as(request("/small.bin", *fields))).status == 431
    assert c.get("/small.bin").body == SMALL


def test_frames_may_come_octet_by_octet(c):
    """And have integers that are longer than they need to be."""
    block = request("/small.bin")
    data = b"\xc0" + b"\0" * 6 + b"\x01" + b"\x80\0" + len(block).to_bytes(2) + block + b"\x40\0\x40\x03abc" + frame(RESERVED, b"xyz")
    stream = c.open()
    for octet in data:
        c.send(stream, bytes([octet]))
        c.turn(0)
    c.send(stream, b"", end=True)
    assert c.answer(stream).body == SMALL


def test_unknown_frames_are_ignored_everywhere(c):
    unknown = frame(RESERVED, b"x" * 100_000) + frame(0x77) + frame(1 << 40, b"\0")
    c.send(c.client_control, unknown)
    stream = c.open()
    c.send(stream, unknown + GET + unknown + frame(DATA, b"x") + unknown + frame(HEADERS, section(("a", "b"))) + unknown, end=True)
    assert c.answer(stream).body == SMALL


# --- field sections ---


@pytest.mark.parametrize("name, block", named([
    ("nothing", b""),
    ("half a prefix", b"\0"),
    ("a required insert count", b"\x02\0" + lines((":method", "GET"))),
    ("a dynamic entry", b"\0\0\x80"),
    ("a dynamic entry behind the base", b"\0\0\x10"),
    ("a dynamic name", b"\0\0\x40\x01a"),
    ("a dynamic name behind the base", b"\0\0\0\x01a"),
    ("an entry that the static table has not", b"\0\0" + bytes([0xFF, 99 - 63])),
    ("a name that the static table has not", b"\0\0" + bytes([0x5F, 99 - 15, 0])),
    ("an integer that never ends", b"\0\0\xff" + b"\xff" * 20),
    ("a name that is cut off", b"\0\0\x27\x05abc"),
    ("a value that is cut off", lines((":method", "GET"))[:-1].join([b"\0\0", b""])),
    ("Huffman codes with the end in them", b"\0\0\x2f\x00\xff\xff\xff\xff"),
]))  # fmt: skip
def test_a_field_section_that_cannot_be_decoded_ends_the_connection(c, name, block):
    c.ask_as(block)
    assert c.sync() == DECOMPRESSION_FAILED, name


# --- the control stream ---


@pytest.mark.parametrize("name, error, data", named([
    ("no settings first", MISSING_SETTINGS, frame(GOAWAY, b"\0") + settings()),
    ("an unknown frame before the settings", MISSING_SETTINGS, frame(RESERVED) + settings()),
    ("settings twice", FRAME_UNEXPECTED, settings() + settings()),
    ("data", FRAME_UNEXPECTED, settings() + frame(DATA, b"x")),
    ("a request", FRAME_UNEXPECTED, settings() + GET),
    ("a push promise", FRAME_UNEXPECTED, settings() + frame(PUSH_PROMISE, b"\0" + request())),
    *((f"frame {kind} of HTTP/2", FRAME_UNEXPECTED, settings() + frame(kind, b"\0" * 5)) for kind in (2, 6, 8, 9)),
    *((f"setting {kind} of HTTP/2", SETTINGS_ERROR, settings((kind, 1))) for kind in (2, 3, 4, 5)),
    ("a setting twice", SETTINGS_ERROR, settings((MAX_FIELD_SECTION_SIZE, 9999), (MAX_FIELD_SECTION_SIZE, 9999))),
    ("a setting that is 0 or 1", SETTINGS_ERROR, settings((ENABLE_CONNECT_PROTOCOL, 2))),
    ("a setting without its value", FRAME_ERROR, frame(SETTINGS, b"\x06")),
    ("a setting that is cut off", FRAME_ERROR, frame(SETTINGS, b"\x06\x40")),
    ("settings without end", EXCESSIVE_LOAD, frame(SETTINGS, b"\x21\0" * 10_000)),
    ("a priority of nothing", FRAME_ERROR, settings() + frame(PRIORITY_UPDATE)),
    ("a priority of a stream of another kind", ID_ERROR, settings() + frame(PRIORITY_UPDATE, b"\x02u=1")),
    ("a priority of a stream of the server", ID_ERROR, settings() + frame(PRIORITY_UPDATE, b"\x01u=1")),
    ("priorities of more streams than there may be", EXCESSIVE_LOAD, settings() + b"".join(frame(PRIORITY_UPDATE, number(4 * n) + b"u=1") for n in range(129))),
    ("a priority of a push", ID_ERROR, settings() + frame(PUSH_PRIORITY_UPDATE, b"\0u=1")),
    ("a push that was never promised is cancelled", ID_ERROR, settings() + frame(CANCEL_PUSH, b"\0")),
    ("fewer pushes than before", ID_ERROR, settings() + frame(MAX_PUSH_ID, b"\x05") + frame(MAX_PUSH_ID, b"\x04")),
    ("a goaway that goes up", ID_ERROR, settings() + frame(GOAWAY, b"\0") + frame(GOAWAY, b"\x04")),
    ("an empty goaway", FRAME_ERROR, settings() + frame(GOAWAY)),
    ("a long goaway", FRAME_ERROR, settings() + frame(GOAWAY, b"\0\0")),
    ("an empty number of pushes", FRAME_ERROR, settings() + frame(MAX_PUSH_ID)),
]))  # fmt: skip
def test_a_wrong_frame_on_the_control_stream_ends_the_connection(client, server, name, error, data):
    with client.Client(server, settle=False) as c:
        c.open_uni(CONTROL, data)
        assert c.sync() == error, name


def test_settings_that_are_not_known_are_ignored(client, server):
    with client.Client(server, settle=False) as c:
        c.settle((RESERVED, 1), (RESERVED + 0x1F, 1 << 50), (1, 4096), (7, 100), (ENABLE_CONNECT_PROTOCOL, 1))
        assert c.get("/small.bin").body == SMALL


def test_a_client_may_ask_before_its_settings_come(client, server):
    with client.Client(server, settle=False) as c:
        assert c.get("/small.bin").body == SMALL


def test_frames_that_ask_for_nothing_are_taken(c):
    c.send(c.client_control, frame(MAX_PUSH_ID, b"\x05") + frame(MAX_PUSH_ID, b"\x06") + frame(GOAWAY, b"\x04") + frame(GOAWAY, b"\0"))
    assert c.get("/small.bin").body == SMALL


# --- streams ---


@pytest.mark.parametrize("kind", [CONTROL, ENCODER, DECODER])
def test_streams_of_these_types_may_be_opened_once(client, server, kind):
    with client.Client(server, settle=False) as c:
        data = settings() if kind == CONTROL else b""
        c.open_uni(kind, data)
        assert c.get("/small.bin").body == SMALL
        c.open_uni(kind, data)
        assert c.sync() == STREAM_CREATION_ERROR


@pytest.mark.parametrize("how", ["end", "reset"])
@pytest.mark.parametrize("kind", [CONTROL, ENCODER, DECODER])
def test_these_streams_must_stay_open(client, server, kind, how):
    with client.Client(server, settle=False) as c:
        stream = c.open_uni(kind, settings() if kind == CONTROL else b"")
        c.sync()
        c.send(stream, b"", end=True) if how == "end" else c.reset(stream, 0x10C)
        assert c.sync() == CLOSED_CRITICAL_STREAM


def test_the_control_stream_of_the_server_must_stay_open(c):
    c.until(lambda: c.control)
    c.stop(3, 0x10C)
    assert c.ended() == CLOSED_CRITICAL_STREAM


def test_clients_do_not_push(c):
    c.open_uni(PUSH, b"\0")
    assert c.sync() == STREAM_CREATION_ERROR


def test_an_unknown_stream_is_stopped(c):
    stream = c.open_uni(RESERVED, b"x" * 1000)
    assert c.until(lambda: stream in c.found and c.found[stream].stopped) == STREAM_CREATION_ERROR
    assert c.get("/small.bin").body == SMALL


@pytest.mark.parametrize("length", [0, 1])
def test_a_stream_may_end_before_its_type_is_complete(c, length):
    """RFC 9114, section 6.2: "A receiver MUST tolerate unidirectional streams being closed or reset prior to the reception of" it."""
    c.send(c.next_uni, b"\x40"[:length], end=True)
    assert c.get("/small.bin").body == SMALL


@pytest.mark.parametrize("name, kind, error, data", named([
    ("a table", ENCODER, ENCODER_STREAM_ERROR, b"\x3f\x01"),
    ("a table of one octet", ENCODER, ENCODER_STREAM_ERROR, b"\x21"),
    ("an entry", ENCODER, ENCODER_STREAM_ERROR, b"\x41a\x01b"),
    ("an entry with a static name", ENCODER, ENCODER_STREAM_ERROR, b"\xc0\x01b"),
    ("an entry again", ENCODER, ENCODER_STREAM_ERROR, b"\0"),
    ("an increment of nothing", DECODER, DECODER_STREAM_ERROR, b"\0"),
    ("an increment beyond what was sent", DECODER, DECODER_STREAM_ERROR, b"\x01"),
    ("a section that refers to no entry is acknowledged", DECODER, DECODER_STREAM_ERROR, b"\x80"),
]))  # fmt: skip
def test_a_wrong_instruction_ends_the_connection(c, name, kind, error, data):
    c.open_uni(kind, data)
    assert c.sync() == error, name


def test_instructions_that_change_nothing_are_taken(c):
    c.open_uni(ENCODER, b"\x20\x20")
    c.open_uni(DECODER, b"\x40\x44\x7f\xc1\x81\x01\x48")  # no more is awaited on streams 0, 4, 16640 and 8
    assert c.get("/small.bin").body == SMALL


# --- floods ---


def floods():
    unknown, empty = frame(RESERVED), frame(DATA)
    yield "unknown frames", lambda c: c.send(c.client_control, unknown * 600)
    yield "unknown frames of a request", lambda c: c.send(c.open(), GET + unknown * 600)
    yield "empty data", lambda c: c.send(c.open(), GET + empty * 600)
    yield "priorities", lambda c: c.send(c.client_control, frame(PRIORITY_UPDATE, b"\0u=1") * 600)
    yield "pushes that are allowed", lambda c: c.send(c.client_control, frame(MAX_PUSH_ID, b"\x05") * 600)


@pytest.mark.parametrize("name, send", named(floods()))
def test_a_flood_ends_its_connection(client, server, name, send):
    """See HTTP3_OTHERS and HTTP3_RESETS: so many in a second."""
    with client.Client(server) as c, client.Client(server) as good:
        send(c)
        assert c.sync() == EXCESSIVE_LOAD, name
        assert good.get("/small.bin").body == SMALL


@pytest.mark.parametrize("how", ["reset", "stop", "both", "reset without a request"])
def test_requests_that_are_taken_back_at_once_end_the_connection(client, server, how):
    """See HTTP3_RESETS. As many as may be open, again and again."""
    with client.Client(server) as c, client.Client(server) as good:
        with pytest.raises(AssertionError):
            for _ in range(20):
                c.until(lambda: c.quic._remote_max_streams_bidi >= c.next_stream // 4 + BATCH)  # pylint: disable=protected-access
                streams = [c.open() for _ in range(BATCH)]
                if how != "reset without a request":
                    for stream in streams:
                        c.quic.send_stream_data(stream, GET, how == "stop")
                    c.flush()
                for stream in streams:
                    if how in ("stop", "both"):
                        c.quic.stop_stream(stream, REQUEST_CANCELLED)
                    if how != "stop":
                        c.quic.reset_stream(stream, REQUEST_CANCELLED)
                c.flush()
        assert c.end and c.end.error_code == EXCESSIVE_LOAD
        assert good.get("/small.bin").body == SMALL
