"""What is sent on the streams of HTTP/3 (RFC 9114), octet by octet, without the dynamic table or Huffman coding of QPACK (RFC 9204)."""

from http2 import integer

DATA, HEADERS, CANCEL_PUSH, SETTINGS, PUSH_PROMISE, GOAWAY, MAX_PUSH_ID = 0, 1, 3, 4, 5, 7, 13
PRIORITY_UPDATE = 0xF0700
CONTROL, PUSH, ENCODER, DECODER = range(4)  # types of unidirectional streams
MAX_FIELD_SECTION_SIZE, ENABLE_CONNECT_PROTOCOL = 6, 8  # settings
GOAWAY_FIRST = (1 << 62) - 4  # the number in the first of two: all requests are still answered (RFC 9114, section 5.2)
CONNECTION_REFUSED, INVALID_TOKEN = 2, 11  # of QUIC (RFC 9000, section 20.1)
NO_ERROR, PROTOCOL_ERROR, INTERNAL_ERROR, STREAM_CREATION_ERROR, CLOSED_CRITICAL_STREAM = range(0x100, 0x105)
FRAME_UNEXPECTED, FRAME_ERROR, EXCESSIVE_LOAD, ID_ERROR, SETTINGS_ERROR, MISSING_SETTINGS = range(0x105, 0x10B)
REQUEST_REJECTED, REQUEST_CANCELLED, REQUEST_INCOMPLETE, MESSAGE_ERROR = range(0x10B, 0x10F)
DECOMPRESSION_FAILED, ENCODER_STREAM_ERROR, DECODER_STREAM_ERROR = range(0x200, 0x203)


def number(n):
    """Returns an integer (RFC 9000, section 16)."""
    length = next(power for power in range(4) if n < 1 << (8 << power) - 2)
    return (n | length << (8 << length) - 2).to_bytes(1 << length)


def read_number(data):
    """Returns the integer at the front and what follows it, or None if it is not complete."""
    length = 1 << (data[0] >> 6) if data else 1
    if len(data) < length:
        return None
    return int.from_bytes(data[:length]) & (1 << 8 * length - 2) - 1, data[length:]


def frame(kind, payload=b""):
    return number(kind) + number(len(payload)) + payload


def lines(*fields):
    """Returns literal field lines with literal names."""
    out = b""
    for name, value in fields:
        name, value = name.encode("latin-1"), value.encode("latin-1")
        out += integer(len(name), 3, 0x20) + name + integer(len(value), 7) + value
    return out


def section(*fields):
    return b"\0\0" + lines(*fields)


def request(path="/", *fields, method="GET", host="localhost", scheme="https"):
    return section((":method", method), (":scheme", scheme), (":authority", host), (":path", path), *fields)


def settings(*pairs):
    return frame(SETTINGS, b"".join(number(name) + number(value) for name, value in pairs))
