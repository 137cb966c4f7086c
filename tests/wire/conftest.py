"""A server that the wire tests share; they do not change its files."""

import subprocess

import pytest

from gatling import Root, Server
from served import FILES
from system_calls import calls_of


@pytest.fixture(scope="session")
def files():
    root = Root(
        FILES
        | {
            "dir/a b&c.txt": b"odd",
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
    with Server(build, files, "-j", "2", "--limit", "cache=2M") as running:  # too little for copies of large files, which wait for each other then
        yield running


@pytest.fixture
def connection(server):
    with server.connect() as connected:
        yield connected


@pytest.fixture
def uring(build):
    said = subprocess.run([build / "gatling", "--version"], capture_output=True, text=True, check=True).stdout
    if "(uring;" not in said:
        pytest.skip("of the uring build")
    return build


@pytest.fixture
def root():
    own = Root({"index.html": b"hello", "a.txt": b"a"})
    yield own
    own.remove()


class Places:
    """A server and directories of its root, one for each test."""

    def __init__(self, server):
        self.server, self.count = server, 0

    def new(self):
        self.count += 1
        return f"place{self.count}"


@pytest.fixture
def place():
    """Makes a directory for sockets, which the server may write to."""
    own = Root()
    own.path.chmod(0o777)
    yield own.path
    own.remove()


@pytest.fixture(scope="module")
def places(build):
    own = Root()
    with Server(build, own, "-j", "1") as running:
        yield Places(running)
    own.remove()


@pytest.fixture
def put(places):
    """Puts a file into the test's own directory on a shared server. Returns a function that
    requests a path there."""
    place = places.new()

    def write(name, content):
        places.server.root.write(f"{place}/{name}", content)
        return lambda path, *fields, **options: places.server.get(f"/{place}{path}", *fields, **options)

    return write


@pytest.fixture
def traced(plain, files, tmp_path):
    """Yields a function that counts the system calls of a server while another function runs. The
    server has one worker, and the small file in its cache."""
    with Server(plain, files, "-j", "1", "-n") as server:
        server.get("/small.bin")
        yield lambda function, *flags: calls_of(server, tmp_path / "calls", function, *flags)
