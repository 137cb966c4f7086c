"""connbench: samples at the right places, limits that are named, and data that is valid up to
them."""

import os
import re
import signal
import socket
import subprocess
import threading
import time

import pytest

from gatling import Root, Server
from origin import NOT_FOUND, OK, Origin, reset

COLUMNS = ["open", "connect_ns", "first_byte_new_ns", "whole_new_ns", "first_byte_idle_ns", "whole_idle_ns"]


def connbench(build, *arguments, status=0):
    done = subprocess.run(
        [build / "bench" / "connbench", *map(str, arguments)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done


def table(output):
    """Returns the header lines by name, and the rows."""
    header = dict(line[2:].split("\t", 1) for line in output.splitlines() if line.startswith("# "))
    rows = [line.split("\t") for line in output.splitlines() if not line.startswith("#")]
    assert header["open"].split("\t") == COLUMNS[1:] and all(len(row) == len(COLUMNS) for row in rows)
    return header, rows


@pytest.fixture(scope="module")
def server(plain):
    root = Root({"k": b"x" * 1024, "big": b"x" * 3_000_000})
    with Server(plain, root, "-j", "2", "-n") as running:
        yield running
    root.remove()


@pytest.mark.parametrize("idle,path", [("silent", "k"), ("answered", "k"), ("half", "k"), ("slow", "big")])
def test_samples_are_taken_at_every_so_many_connections(build, server, idle, path):
    url = f"http://127.0.0.1:{server.port}/{path}"
    header, rows = table(connbench(build, "-n", 60, "-i", 20, "-s", 3, "--idle", idle, url).stdout)
    assert [int(row[0]) for row in rows] == [0] * 3 + [20] * 3 + [40] * 3 + [60] * 3
    for row in rows:
        connect, first, whole = map(int, row[1:4])
        assert 0 < connect and 0 < first <= whole
        if row[0] == "0" or idle == "slow":
            assert row[4:] == ["NA", "NA"]
        else:
            assert 0 < int(row[4]) <= int(row[5])
    assert header["idle"] == idle and "limit" not in header
    for name in ("command", "date", "kernel", "cpus", "mechanism", "clock_ns", "descriptors"):
        assert header[name]


@pytest.mark.alone
def test_a_known_delay_is_measured_on_new_and_on_idle_connections(build):
    def behave(connection, *_):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        time.sleep(0.02)
        connection.sendall(OK[:-1])
        time.sleep(0.02)
        return OK[-1:]

    with Origin(behave) as origin:
        _, rows = table(connbench(build, "-n", 2, "-i", 1, "-s", 2, origin.url).stdout)
    for row in rows[2:]:
        first_new, whole_new, first_idle, whole_idle = (int(ns) / 1e6 for ns in row[2:])
        assert 20 <= min(first_new, first_idle) and 40 <= min(whole_new, whole_idle)
    assert min(int(row[5]) for row in rows[2:]) < 44e6


@pytest.mark.alone
def test_thirty_thousand_connections(plain, server):
    url = f"http://127.0.0.1:{server.port}/k"
    header, rows = table(connbench(plain, "-n", 30_000, "-i", 10_000, "-s", 2, url).stdout)
    assert header["source"] == "127.0.1.0/24"
    assert [int(row[0]) for row in rows] == [0, 0, 10_000, 10_000, 20_000, 20_000, 30_000, 30_000]


def test_the_connections_of_samples_count_as_those_of_an_address(build, server):
    """Few are open at the same time, but the port of a sample remains in use after it."""
    url = f"http://127.0.0.1:{server.port}/k"
    for samples, source in ((5, "-"), (1000, "127.0.1.0/24")):
        with subprocess.Popen([build / "bench" / "connbench", "-n", "200", "-s", str(samples), url], stdout=subprocess.PIPE,
                              text=True) as process:  # fmt: skip
            assert f"# source\t{source}\n" in iter(process.stdout.readline, "")
            process.terminate()


def test_what_the_open_connections_are_doing(build):
    requests, lock = [], threading.Lock()

    def behave(_, __, request):
        with lock:
            requests.append(request)
        return OK

    # 100 to warm up, and a sample at 0 and at 5; then one on an idle connection, and those of the
    # kind
    for idle, expected in (("silent", 103), ("half", 103), ("answered", 108)):
        requests.clear()
        with Origin(behave) as origin:
            connbench(build, "-n", 5, "-i", 5, "-s", 1, "--idle", idle, origin.url)
        assert len(requests) == expected, idle


def test_a_limit_is_named_and_what_was_measured_stays(build):
    with Origin() as origin:
        url = origin.url

        def behave(*_):
            if origin.requests > 150:
                origin.refuse()
            return OK

        origin.behave = behave
        done = connbench(build, "-n", 1000, "-i", 10, "-s", 1, url, status=3)
    header, rows = table(done.stdout)
    assert re.match(r"the server: it does not listen at \d+ connections: connect: ", header["limit"])
    assert len(rows) >= 3 and re.fullmatch(r"connbench: ended at \d+ connections by the server[^\n]*\n", done.stderr)


@pytest.mark.parametrize("descriptors, count, status, words", [(17, 1000, 2, "more than 128 processes with 1 each, a limit that ulimit -n sets"),
                                                               (17, 100, 3, "by descriptors: ulimit -n sets their limit")])  # fmt: skip
def test_too_few_descriptors_are_named(plain, server, descriptors, count, status, words):
    command = ["prlimit", f"--nofile={descriptors}", plain / "bench" / "connbench", "-n", str(count), f"http://127.0.0.1:{server.port}/k"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == status and words in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.parametrize("answer, why", [(NOT_FOUND, "the status of the answer is 404, not 200"),
                                         (b"hello", "the answer is not HTTP")])  # fmt: skip
def test_an_answer_that_cannot_be_measured_is_named(build, answer, why):
    with Origin(lambda *_: answer) as origin:
        done = connbench(build, "-n", 10, origin.url, status=3)
    assert done.stderr == f"connbench: ended at 0 connections by the server (request: {why})\n"


@pytest.mark.parametrize(
    "arguments,named",
    [
        ([], "URL"), (["-n", "0", "http://a/"], "-n"), (["-n", "2000000", "http://a/"], "2000000"), (["-i", "x", "http://a/"], "'x'"),
        (["--idle", "busy", "http://a/"], "busy"), (["--source", "x", "http://a/"], "--source"), (["nohost"], "nohost"),
        (["http://nosuchhost.invalid/"], "nosuchhost.invalid"), (["-z", "http://a/"], "-z"),
        (["--source", "::1", "http://127.0.0.1/"], "--source"), (["--source", "192.0.2.1", "http://127.0.0.1/"], "--source"),
        (["http://a/", "http://b/"], "URL"),
    ],
)  # fmt: skip
def test_bad_input_is_named_in_one_line(build, arguments, named):
    done = connbench(build, *arguments, status=2)
    assert done.stdout == "" and re.fullmatch(r"connbench: [^\n]+\n", done.stderr) and named in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_ends_with_what_it_has(build, number):
    """All its processes get the signal, as from a terminal. 100 requests warm up; a sample takes
    one or two, and a connection one."""
    far = threading.Event()
    with Origin(lambda _, number, __: number > 300 and far.set() or OK) as origin:
        command = [build / "bench" / "connbench", "-n", "10000", "-i", "10", "-s", "1", origin.url]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
            assert far.wait(60)
            os.killpg(process.pid, number)
            output, error = process.communicate(timeout=20)
    header, rows = table(output)
    assert process.returncode == 0 and not error and len(rows) >= 12
    assert output.endswith(f"# interrupted\t{header['interrupted']}\n# verdict\tFAIL\tinterrupted\n") and "limit" not in header
    assert int(re.fullmatch(r"at (\d+) connections", header["interrupted"])[1]) >= 110


def test_who_waits_for_an_answer_is_interrupted_too_and_a_second_signal_ends_all(build):
    """The server answers the requests that warm up, and the samples before the first connection,
    which gets no answer."""
    stalled = threading.Event()
    for first, status in ((50, 0), (101, 128 + signal.SIGTERM)):
        stalled.clear()
        with Origin(lambda _, number, __: OK if number <= first else stalled.set() or time.sleep(60)) as origin:
            command = [build / "bench" / "connbench", "-n", "10", "-s", "1", origin.url]
            with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
                assert stalled.wait(60)
                for _ in range(2 if status else 1):
                    process.terminate()
                    time.sleep(0.5)
                output, _ = process.communicate(timeout=5)
        assert process.returncode == status and ("\n# interrupted\tat 0 connections\n" in output) == (status == 0)


@pytest.mark.parametrize("end", [reset, lambda _: None], ids=["resets", "closes"])
def test_slow_readers_that_the_server_closes_do_not_count_as_open(build, end):
    """100 requests warm up, and one is a sample; all others are of slow readers."""

    def behave(connection, number, _):
        if number <= 101:
            return OK
        connection.sendall(OK)
        end(connection)

    with Origin(behave) as origin:
        done = connbench(build, "-n", 3000, "-i", 10_000, "-s", 1, "--idle", "slow", origin.url, status=3)
    header, _ = table(done.stdout)
    assert re.match(r"the server: it closed a connection at \d+ connections: slow connection: ", header["limit"])


def test_a_run_that_nobody_reads_ends(build):
    """It would take minutes."""
    with Origin() as origin:
        command = [build / "bench" / "connbench", "-n", "1000", "-i", "1", "-s", "1000", origin.url]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert process.stdout.readline()
            process.stdout.close()
            assert process.stderr.read() == "connbench: cannot write the report: Broken pipe\n" and process.wait(20) == 1
        assert origin.requests < 10_000


@pytest.mark.parametrize("idle", ["silent", "answered", "half"])
def test_connections_that_the_server_closes_do_not_count_as_open(build, idle):
    """When the 120th connection comes, the server closes one that is held. The first 100 warmed up,
    and one was a sample."""
    open_now, lock = [], threading.Lock()

    def accept(connection):
        with lock:
            open_now.append(connection)
            if len(open_now) == 120:
                open_now[105].shutdown(socket.SHUT_RDWR)

    with Origin(accepted=accept) as origin:  # the server may be late, so there are many more
        done = connbench(build, "-n", 14_000, "-i", 1000, "-s", 1, "--idle", idle, origin.url, status=3)
    header, _ = table(done.stdout)
    assert re.match(r"the server: it closed a connection at \d+ connections: idle connection: ", header["limit"])


def test_it_draws_what_it_has_measured(build, server, tmp_path):
    url = f"http://127.0.0.1:{server.port}/k"
    done = connbench(build, "-n", 40, "-i", 20, "-s", 3, "--plot", tmp_path / "plot.svg", url)
    svg = (tmp_path / "plot.svg").read_text()
    assert svg.startswith("<?xml") and "connections open" in svg and len(re.findall("<use xlink", svg)) >= 9 + 9 + 6
    assert re.search(r"^# verdict\t(PASS|XPASS|NOISY)\t", done.stdout, re.MULTILINE)


def test_what_cannot_be_drawn_is_said_before_anything_is_measured(build, server, tmp_path):
    url = f"http://127.0.0.1:{server.port}/k"
    done = connbench(build, "--plot", tmp_path / "no" / "plot.svg", url, status=2)
    assert "cannot write" in done.stderr and not done.stdout
    command = [build / "bench" / "connbench", "--plot", tmp_path / "plot.svg", url]
    done = subprocess.run(command, env={"PATH": str(tmp_path)}, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2 and "takes gnuplot(1)" in done.stderr and not done.stdout and not (tmp_path / "plot.svg").exists()
