"""The server as the first process of a container: processes of its own, a system that is read-only, another user than root, no
capabilities. ../test_image.py runs the image in one that a container engine has made."""

import contextlib
import os
import signal
import subprocess
from pathlib import Path

import pytest

from gatling import Root, Server, certificate, children, eventually, server_of, servers_of

pytestmark = pytest.mark.clear
# Becomes its arguments. /proc is that of the processes inside, as in a container.
INSIDE = """
mount -o remount,bind,ro /
mount -t proc proc /proc
exec setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs --inh-caps=-all --bounding-set=-all "$@"
"""
CONTAINER = ("unshare", "--mount", "--pid", "--ipc", "--uts", "--fork", "--kill-child")
TEXT = b"a line of text\n" * 300


@pytest.fixture
def root():
    root = Root({"index.html": b"hello", "text.txt": TEXT, "folder/a.txt": b"a"})
    yield root
    root.remove()


def contained(build, root, *flags):
    if os.geteuid() != 0:
        pytest.skip("takes root")
    # what has made the namespaces waits for the first process in them, as a tracer does
    return Server(build, root, "-j", "2", *flags, tracer=(*CONTAINER, "sh", "-euc", INSIDE, "sh"))


def status(pid):
    return dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":\t" in line)


def descendants(pid):
    return [pid, *(other for child in children(pid) for other in descendants(child))]


def is_gone(pid):
    return not Path(f"/proc/{pid}").exists()


def test_the_first_process_serves_without_a_right_and_ends_in_order(first_build, root):
    cert, key = certificate()  # with one there is a process that reads it again
    with contained(first_build, root, "--cert", cert, "--key", key, "--tls-port", "0") as server:
        assert status(server.keeper)["NSpid"].split()[-1] == "1"
        eventually(lambda: {"gatling-lookout", "gatling-broker"} <= {status(pid)["Name"] for pid in descendants(server.keeper)})
        processes = descendants(server.keeper)
        for pid in processes:
            own = status(pid)
            assert [int(own[name], 16) for name in ("CapPrm", "CapEff", "CapBnd", "CapAmb")] == [0] * 4
            assert own["NoNewPrivs"] == "1" and own["Uid"].split() == ["65534"] * 4
        assert server.get("/").body == b"hello"
        assert b"a.txt" in server.get("/folder/").body
        packed = server.get("/text.txt", "Accept-Encoding: gzip")
        assert packed["Content-Encoding"] == "gzip" and len(packed.body) < len(TEXT)
        assert server.get("/none").status == 404
    assert eventually(lambda: all(map(is_gone, processes)))
    assert not server.errors and len(server.lines) == 4  # the log


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGQUIT])
def test_a_transfer_is_finished_before_the_end(first_build, root, number):
    root.write("large.bin", b"x" * 8_000_000)
    server = contained(first_build, root, "--limit", "drain-delay=0")
    with server.connect(receive_buffer=4096) as c:
        c.send(b"GET /large.bin HTTP/1.1\r\nHost: localhost\r\n\r\n")
        c._fill()
        server.signal(number)
        assert len(c.response().body) == 8_000_000
    server.wait()


def test_processes_that_others_leave_behind_are_not_left_as_zombies(first_build, root):
    """As those of a command that somebody runs in the container, and which ends first."""

    def left():
        with contextlib.suppress(ProcessLookupError, FileNotFoundError):  # it is just being buried
            return [child for child in children(server.keeper) if status(child)["Name"] == "cat"]
        return [None]

    with contained(first_build, root) as server:
        command = ["nsenter", "-t", str(server.keeper), "-p", "sh", "-c", "exec 3<&0; cat <&3 & echo"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
            assert other.stdout.readline() and other.wait(20) == 0
            assert eventually(left)
            other.stdin.close()  # with which it ends
        eventually(lambda: not left())
        assert servers_of(server.keeper) == [server.pid] and server.get("/").body == b"hello"


def test_a_container_ends_with_a_server_that_is_killed(first_build, root):
    server = contained(first_build, root)
    processes = descendants(server.keeper)
    os.kill(server_of(server.keeper), signal.SIGKILL)
    assert server.process.wait(20) == 128 + signal.SIGKILL  # the first process outlives the signal: it says so by its status
    assert eventually(lambda: all(map(is_gone, processes)))
    server.kill()


def test_another_directory_of_the_same_name_is_served(first_build, root):
    """As when what is mounted is replaced from outside: the first process starts another server."""
    root.write("one/index.html", b"one")
    root.write("two/index.html", b"two")
    (root.path / "current").symlink_to("one")
    with contained(first_build, root.path / "current") as server:
        assert server.get("/").body == b"one"
        (root.path / "next").symlink_to("two")
        (root.path / "next").rename(root.path / "current")
        assert eventually(lambda: server.get("/").body == b"two")
