"""Very many connections at once."""

import contextlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gatling import TIMEOUT, Server, eventually
from served import SMALL

MEMORY_EACH = 256  # bytes of resident memory that an idle connection may cost
MEMORY_IDLE = 2_500_000  # bytes of memory of its own that a server of two workers may take

# Opens connections that never send anything, from its own address, and prints when all are open. It
# is refused while the machine is so busy that the server is overloaded, and tries again.
SILENT = """
import resource, socket, sys, time
port, source, count = sys.argv[1:]
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
held = []
while len(held) < int(count):
    try:
        held.append(socket.create_connection(("127.0.0.1", int(port)), source_address=(source, 0)))
    except ConnectionError:
        time.sleep(0.01)
print("held", flush=True)
sys.stdin.read()
"""


def hold(plain, server, connections):
    """Holds connections to the server, with a request on each. Returns the figures that it prints,
    by name."""
    done = subprocess.run(
        [plain / "bench" / "hold", "-n", str(connections), "-p", str(server.pid), str(server.port), "/small.bin"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    names, figures = (line.lstrip("# ").split("\t") for line in done.stdout.splitlines())
    return dict(zip(names, map(float, figures)))


@pytest.mark.clear
def test_thousands_of_connections_are_held_and_answered(build, plain, files):
    with Server(build, files, "-j", "2", "-n") as server:
        assert hold(plain, server, 3000)["answered_again"] == 3000


@pytest.mark.parametrize("workers,connections", [(1, 15_000), (2, 30_000)])
def test_an_idle_connection_costs_little_memory(plain, files, workers, connections):
    with Server(plain, files, "-j", str(workers), "-n") as server:
        figures = hold(plain, server, connections)
        assert figures["answered_again"] == connections
        assert figures["rss_bytes_each"] <= MEMORY_EACH


@pytest.fixture
def silent_clients():
    """Starts silent clients of a server."""
    clients = []

    def silence(server, processes, each):
        for i in range(processes):
            command = [sys.executable, "-c", SILENT, str(server.port), f"127.0.1.{i + 1}", str(each)]
            clients.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        for client in clients:
            assert client.stdout.readline() == "held\n"

    yield silence
    for client in clients:
        client.communicate(timeout=TIMEOUT)


def test_a_server_that_has_little_to_do_takes_little_memory(plain, files):
    with Server(plain, files, "-j", "2") as server:
        assert server.get("/small.bin").body == SMALL
        status = Path(f"/proc/{server.pid}/status").read_text(encoding="ascii")
        assert 1024 * int(re.search(r"RssAnon:\s+(\d+) kB", status)[1]) < MEMORY_IDLE


def is_answered(server):
    """Returns whether the server answers. It refuses clients while it is overloaded."""
    with contextlib.suppress(ConnectionError):
        return server.get("/small.bin").body == SMALL
    return False


@pytest.mark.parametrize("workers", [1, 2])
def test_thirty_thousand_silent_clients_keep_nobody_out(plain, files, silent_clients, workers):
    with Server(plain, files, "-j", str(workers), "-n") as server:
        silent_clients(server, processes=3, each=10_000)
        eventually(lambda: all(is_answered(server) for _ in range(10)))
        used = server.cpu_seconds()
        eventually(lambda: is_answered(server))
        assert server.cpu_seconds() - used < 1
