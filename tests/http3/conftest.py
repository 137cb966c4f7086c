"""A server with HTTP/3, and a client, for the tests. See debian.py and client.py."""

import pytest

from debian import TOP, client_in, made
from gatling import Root
from prepared import FILES


@pytest.fixture(scope="session")
def http3(request):
    return made(TOP / request.config.getoption("--http3"))


@pytest.fixture(scope="session")
def client(venv):
    return client_in(venv)


@pytest.fixture(scope="session")
def files():
    root = Root(FILES)
    yield root
    root.remove()


@pytest.fixture(scope="session")
def server(http3, files):
    with http3.serve(files, "-j", "2") as running:
        yield running


@pytest.fixture
def c(client, server):
    with client.Client(server) as connection:
        yield connection
