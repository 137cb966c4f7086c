"""Applications as they are run, behind the server, with their own clients."""

import re
import subprocess
from pathlib import Path

import pytest

from gatling import Root, Server, eventually

HERE = Path(__file__).parent
CLIENT = """
import sys
from websockets.sync.client import connect
with connect(sys.argv[1]) as socket:
    for n in range(100):
        socket.send(f"hello {n}")
        assert socket.recv(20) == f"/ws hello {n}"
    socket.send(b"x" * 1000000)
    assert socket.recv(20) == "/ws 1000000"
    pong = socket.ping()
    assert pong.wait(20)
print("done")
"""


@pytest.fixture(scope="module")
def uvicorn(venv):
    command = [venv / "bin/python", "-m", "uvicorn", "--port", "0", "--ws-max-size", "2000000", "asgi_application:application"]
    with subprocess.Popen(command, cwd=HERE, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
        for line in process.stderr:
            if found := re.search(r"running on http://127\.0\.0\.1:(\d+)", line):
                break
        yield int(found.group(1))
        process.kill()


@pytest.fixture(scope="module")
def server(build, uvicorn):
    root = Root({"index.html": b"hello", "_redirects": f"/app/* http://127.0.0.1:{uvicorn}/:splat 200\n".encode()})
    with Server(build, root, "-j", "2", "--upstream", f"localhost:{uvicorn}") as running:
        yield running
    root.remove()


def test_content_of_an_asgi_application(server):
    with server.connect() as c:
        scheme = "https" if server.tls else "http"
        assert c.get("/app/").body == f"127.0.0.1 {scheme} ".encode()
        content = bytes(range(256)) * 20_000
        c.send(f"POST /app/ HTTP/1.1\r\nHost: a\r\nContent-Length: {len(content)}\r\n\r\n".encode() + content)
        assert c.response().body.endswith(content)


def test_events_come_when_they_happen(server):
    with server.connect() as c:
        c.send(b"GET /app/events HTTP/1.1\r\nHost: a\r\n\r\n")
        eventually(lambda: b"data: 0" in c.buffer or not c._fill())  # pylint: disable=protected-access
        assert b"data: 2" not in c.buffer
        assert c.response().body == b"data: 0\n\ndata: 1\n\ndata: 2\n\n"


@pytest.mark.clear
def test_websocket(server, venv):
    url = f"ws://127.0.0.1:{server.port}/app/ws"
    done = subprocess.run([venv / "bin/python", "-c", CLIENT, url], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "done\n", done.stderr
