"""A server with HTTP/3, and a client, for the tests. See debian.py and client.py."""

import pytest

from debian import TOP, imported, made
from gatling import Root
from prepared import FILES


@pytest.fixture(scope="session")
def http3(request):
    return made(TOP / request.config.getoption("--http3"))


@pytest.fixture(scope="session")
def client(venv):
    """Returns the module with the client."""
    return imported(venv, "client")


@pytest.fixture(scope="session")
def origin(venv):
    """Returns the class of an origin server."""
    return imported(venv, "http3_origin").Origin


@pytest.fixture(scope="session")
def files():
    root = Root(FILES)
    yield root
    root.remove()


@pytest.fixture(scope="module")
def server(http3, files):
    """Serves `files`, of which a module may have its own."""
    with http3.serve(files, "-j", "2") as running:
        yield running


@pytest.fixture
def c(client, server):
    with client.Client(server) as connection:
        yield connection
