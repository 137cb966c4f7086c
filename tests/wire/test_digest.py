"""Repr-Digest (RFC 9530): the SHA-256 of what is sent, for those who ask for it."""

import base64
import gzip
import hashlib
import random

import pytest
from gatling import Root, Server, eventually

pytestmark = pytest.mark.decided

TEXT = b"".join(b"line %d\n" % i for i in range(5000))
LARGE = random.Random(1).randbytes(5 << 20)  # more than a request waits for
WANT = "Want-Repr-Digest: sha-256=10"


def digest(content):
    return "sha-256=:" + base64.b64encode(hashlib.sha256(content).digest()).decode() + ":"


@pytest.fixture(scope="module")
def site():
    root = Root({"a.txt": TEXT, "small.txt": b"x", "empty.txt": b"", "medium.bin": LARGE[: 1 << 20], "large.bin": LARGE})
    root.write("packed.html.gz", gzip.compress(TEXT))
    yield root
    root.remove()


@pytest.fixture(scope="module")
def server(build, site):
    with Server(build, site, "-j", "2") as running:
        yield running


@pytest.mark.parametrize("name", ["a.txt", "small.txt", "empty.txt", "medium.bin"])
@pytest.mark.parametrize("accept", ["identity", "gzip", "br"])
def test_it_is_the_digest_of_what_is_sent(server, name, accept):
    for _ in range(4):
        response = server.get("/" + name, WANT, "Accept-Encoding: " + accept)
        assert response.status == 200 and response["Repr-Digest"] == digest(response.body)


@pytest.mark.parametrize(
    "want, sent",
    [("sha-256=1", True), ("sha-512=3, sha-256=10", True), ("sha-256", True), ("sha-256=0", False), ("sha-512=10", False), ("md5=1", False), ("", False)],
)
def test_only_who_wants_it_gets_it(server, want, sent):
    assert (server.get("/a.txt", "Want-Repr-Digest: " + want)["Repr-Digest"] is not None) == sent
    assert server.get("/a.txt")["Repr-Digest"] is None


def test_parts_and_heads_have_that_of_the_whole(server):
    whole = digest(TEXT)
    part = server.get("/a.txt", WANT, "Range: bytes=10-19")
    assert part.status == 206 and part["Repr-Digest"] == whole
    assert server.get("/a.txt", WANT, method="HEAD")["Repr-Digest"] == whole
    fresh = server.get("/a.txt", WANT, "If-None-Match: " + server.get("/a.txt")["ETag"])
    assert fresh.status == 304 and fresh["Repr-Digest"] == whole


def test_that_of_a_large_file_comes_later(server):
    with server.connect() as connection:
        first = connection.get("/large.bin", WANT)
        assert first.status == 200 and first.body == LARGE
        assert eventually(lambda: connection.get("/large.bin", WANT, method="HEAD")["Repr-Digest"]) == digest(LARGE)
        assert connection.get("/large.bin", WANT)["Repr-Digest"] == digest(LARGE)


def test_what_is_unpacked_while_it_is_sent_has_none(server):
    response = server.get("/packed.html", WANT)
    assert response.body == TEXT and response["Content-Encoding"] is None and response["Repr-Digest"] is None


def test_it_changes_with_the_file(build, root):
    root.write("f", TEXT)
    with Server(build, root, "-j", "1") as server, server.connect() as connection:
        assert connection.get("/f", WANT)["Repr-Digest"] == digest(TEXT)
        root.write("f", TEXT + b"!")
        response = eventually(lambda: (r := connection.get("/f", WANT)).body == TEXT + b"!" and r)
        assert response["Repr-Digest"] == digest(response.body)
