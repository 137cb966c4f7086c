"""The error log: a separate file for the server's messages to its owner."""

import re
import signal
import subprocess

import pytest

from gatling import Server, eventually, runnable, unprivileged

pytestmark = pytest.mark.clear
LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ (error|warning|notice|info) [^\n]+")


def lines_of(path):
    return path.read_text().splitlines() if path.exists() else []


def complain(server, name):
    """Makes the server write a line about a file that it must not serve."""
    server.root.write(name, b"x", mode=0o600)
    assert server.get(f"/{name}").status == 403


def test_lines_go_to_the_file_with_their_time_and_level(build, root, place):
    with Server(build, root, "-j", "2", "--error-log", place / "errors") as server:
        complain(server, "closed.txt")
        (line,) = eventually(lambda: [line for line in lines_of(place / "errors") if "closed.txt" in line])
        assert " warning " in line
        server.signal(signal.SIGHUP)
        eventually(lambda: any(" notice SIGHUP opens the logs again" in line for line in lines_of(place / "errors")))
    assert all(LINE.fullmatch(line) for line in lines_of(place / "errors"))
    assert any("serving" in line for line in lines_of(place / "errors"))
    assert not any("closed.txt" in line for line in server.errors)  # it has said on stderr that it serves, and no more


def test_the_file_can_be_rotated(build, root, place):
    log = place / "errors"
    with Server(build, root, "-j", "2", "-n", "--error-log", log) as server:
        complain(server, "first.txt")
        eventually(lambda: any("first.txt" in line for line in lines_of(log)))
        log.rename(place / "old")
        server.signal(signal.SIGUSR1)
        eventually(log.exists)
        complain(server, "second.txt")
        eventually(lambda: any("second.txt" in line for line in lines_of(log)))
    assert not any("second.txt" in line for line in lines_of(place / "old"))


def test_that_the_file_cannot_be_opened_again_is_said_on_standard_error_too(build, root, place):
    logs = place / "logs"
    logs.mkdir()
    logs.chmod(0o777)
    with Server(build, root, "-j", "1", "-n", "--error-log", logs / "errors") as server:
        logs.rename(place / "old")
        server.signal(signal.SIGUSR1)
        line = f"cannot open {logs}/errors again, going on with the old file: its directory does not exist"
        assert eventually(lambda: server.errors) == [f"gatling: {line}"]
        eventually(lambda: any(line in said for said in lines_of(place / "old/errors")))


def test_a_level_leaves_out_what_is_less_grave(build, root, place):
    with Server(build, root, "-j", "1", "--error-log", place / "errors") as server:
        pass
    assert any(" info " in line for line in lines_of(place / "errors"))
    command = [runnable(build), "-c", root.path, "-p", "0", "-i", "127.0.0.1", "--limit", "drain-delay=0", "--error-level", "warning"]
    with subprocess.Popen([*command, "--error-log", place / "grave"], stderr=subprocess.PIPE, **unprivileged()) as process:
        eventually((place / "grave").exists)
        process.send_signal(signal.SIGTERM)
        assert process.stderr.read() == b""
    assert lines_of(place / "grave") == []
    done = subprocess.run([*command, "--error-level", "grave"], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "--error-level takes error|warning|notice|info, not" in done.stderr


def test_what_fails_at_the_start_is_on_stderr_and_in_the_file(build, root, place):
    command = [runnable(build), "-c", root.path, "-i", "192.0.2.1", "-p", "0", "--error-log", place / "errors"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, **unprivileged())
    assert done.returncode == 1 and "gatling: cannot listen" in done.stderr
    (line,) = lines_of(place / "errors")
    assert LINE.fullmatch(line) and " error cannot listen" in line


@pytest.mark.parametrize("name", ["missing/errors", "link"])
def test_a_file_that_cannot_be_opened_ends_the_start(build, root, place, name):
    (place / "link").symlink_to("other")
    command = [runnable(build), "-c", root.path, "-p", "0", "--error-log", place / name]
    done = subprocess.run(command, capture_output=True, text=True, check=False, **unprivileged())
    assert done.returncode == 1 and "gatling: cannot log to" in done.stderr


def test_a_full_disk_stops_nobody(build, root, place):
    with Server(build, root, "-j", "1", "--error-log", "/dev/full") as server:
        for n in range(5):
            complain(server, f"{n}.txt")
        assert server.get("/a.txt").status == 200
        (line,) = eventually(lambda: [line for line in server.errors if "cannot write" in line])
        assert line == "gatling: cannot write the error log /dev/full: No space left on device: its lines are dropped"
