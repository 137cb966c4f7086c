"""A server that the tests of the wire share: its files are not changed by them."""

import random

import pytest

from gatling import Root, Server

SMALL = bytes(range(256)) * 4
BIG = random.Random(1).randbytes(3_000_000)


@pytest.fixture(scope="session")
def files():
    root = Root(
        {
            "index.html": b"<h1>hello</h1>\n",
            "small.bin": SMALL,
            "big.bin": BIG,
            "empty.txt": b"",
            "dir/index.html": b"in dir",
            "dir/a b&c.txt": b"odd",
            "list/file.txt": b"x",
            ".hidden": b"hidden",
            ".git/config": b"hidden",
            ".well-known/security.txt": b"well known",
            "a+b.txt": b"plus",
            "secret.txt": b"secret",
        }
    )
    (root.path / "secret.txt").chmod(0o640)
    yield root
    root.remove()


@pytest.fixture(scope="session")
def server(build, files):
    with Server(build, files, "-j", "2") as running:
        yield running


@pytest.fixture
def connection(server):
    with server.connect() as connected:
        yield connected


@pytest.fixture
def root():
    own = Root({"index.html": b"hello", "a.txt": b"a"})
    yield own
    own.remove()
