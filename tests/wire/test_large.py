"""Files of a gigabyte and more."""

import mmap
import random

import pytest

from gatling import Root, Server

SIZE = 5 << 30
DOWNLOAD = 1 << 30


@pytest.fixture(scope="session")
def large():
    """Files with holes, and some bytes of their own throughout."""
    root = Root()
    for name, size in (("download.bin", DOWNLOAD), ("larger.bin", SIZE)):
        with open(root.write(name, b""), "r+b") as file:
            file.truncate(size)
            for offset in range(0, size - 100, size // 100):
                file.seek(offset)
                file.write(random.Random(offset).randbytes(100))
    yield root
    root.remove()


def test_a_download_of_a_gigabyte_is_identical(build, large):
    with Server(build, large, "-j", "1") as server, server.connect() as connection, open(large.path / "download.bin", "rb") as file:
        assert int(connection.get("/download.bin", method="HEAD")["Content-Length"]) == DOWNLOAD
        connection.send(b"GET /download.bin HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        while b"\r\n\r\n" not in connection.buffer:
            assert connection._fill()
        head, begin = connection.buffer.split(b"\r\n\r\n", 1)
        connection.buffer = b""
        assert head.startswith(b"HTTP/1.1 200 ")
        with mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as wanted:
            at, part = len(begin), bytearray(1 << 18)
            assert begin == wanted[:at]
            while length := connection.socket.recv_into(part):
                if part[:length] != wanted[at : at + length]:
                    pytest.fail(f"not identical in the {length} bytes from {at} on")
                at += length
            assert at == DOWNLOAD


def test_offsets_beyond_four_gigabytes(build, large):
    offset = SIZE // 100 * 99
    with Server(build, large, "-j", "1") as server, server.connect() as connection:
        response = connection.get("/larger.bin", f"Range: bytes={offset - 10}-{offset + 99}")
        assert response["Content-Range"] == f"bytes {offset - 10}-{offset + 99}/{SIZE}"
        assert response.body == bytes(10) + random.Random(offset).randbytes(100)
        assert int(connection.get("/larger.bin", method="HEAD")["Content-Length"]) == SIZE
