"""Files of a gigabyte and more."""

import random
import subprocess

import pytest

from gatling import TIMEOUT, Root, Server

SIZE = 5 << 30
DOWNLOAD = 1 << 30


@pytest.fixture(scope="session")
def large():
    """Files with holes, and bytes of their own all over them."""
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
    with Server(build, large, "-j", "1") as server:
        url = server.url("/download.bin")
        with subprocess.Popen(["curl", "-sSk", "--fail", "--noproxy", "*", url], stdout=subprocess.PIPE) as curl:
            compared = subprocess.run(["cmp", "-", large.path / "download.bin"], stdin=curl.stdout, timeout=120, check=False)
            curl.stdout.close()
        assert compared.returncode == 0 and curl.wait(TIMEOUT) == 0


def test_offsets_beyond_four_gigabytes(build, large):
    offset = SIZE // 100 * 99
    with Server(build, large, "-j", "1") as server, server.connect() as connection:
        response = connection.get("/larger.bin", f"Range: bytes={offset - 10}-{offset + 99}")
        assert response["Content-Range"] == f"bytes {offset - 10}-{offset + 99}/{SIZE}"
        assert response.body == bytes(10) + random.Random(offset).randbytes(100)
        assert int(connection.get("/larger.bin", method="HEAD")["Content-Length"]) == SIZE
