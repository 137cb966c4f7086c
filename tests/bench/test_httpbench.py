"""httpbench reports the truth: about servers that fail, stall and delay, and about its own
settings."""

import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time

import pytest

from gatling import descriptors_limited_to
from origin import OK, Origin, reset
from running import failures, httpbench


def test_every_request_is_sent_and_answered_once(build, tmp_path):
    with Origin() as origin:
        result = httpbench(build, "-n", 1000, "-c", 7, "-t", 2, origin.url, tmp_path=tmp_path)
        assert result["sent"] == result["answered"] == origin.requests == 1000 and not failures(result)
        assert result["connected"] == len(origin.peers) == 7
        assert result["bytes"] == 1000 * len(OK)
        assert result["durations"]["whole"]["samples"] == 1000


def test_the_json_says_what_was_run_and_what_became_of_it(build, tmp_path):
    with Origin(lambda *_: time.sleep(0.01) or OK) as origin:
        url = origin.url + "a?q=\"\\\u00e9"
        result = httpbench(build, "-n", 40, "-c", 6, "-t", 2, "-k", 5, url, origin.url, tmp_path=tmp_path)
        assert result["url"] == origin.url + 'a?q="\\%C3%A9' and result["urls"] == 2 and result["protocol"] == "HTTP/1.1"
        assert result["connections"] == 6 and result["threads"] == 2 and result["per_connection"] == 5
        assert result["requests"] == 40 and result["rate"] is None and result["duration_s"] is None
        assert result["answered_per_s"] == pytest.approx(40 / result["elapsed_s"], rel=1e-3)
        whole = result["durations"]["whole"]
        assert 10_000_000 <= whole["minimum_ns"] <= whole["percentiles_ns"]["50"] <= whole["percentiles_ns"]["95"]
        assert whole["percentiles_ns"]["95"] <= whole["percentiles_ns"]["99"] and result["durations"]["lateness"]["minimum_ns"] is None
        assert result["durations"]["lateness"]["mean_ns"] is None
        result = httpbench(build, "-R", 100, "-d", 0.5, "--status", 404, origin.url, status=1, tmp_path=tmp_path)
        assert result["rate"] == 100 and result["duration_s"] == 0.5 and result["requests"] is None
        assert result["verdict"] == "FAILED" and result["reason"] == "no answer had the right status: 200"


def test_the_json_alone_may_go_to_standard_output(build, tmp_path):
    with Origin() as origin:
        done = httpbench(build, "-n", 10, "--hlog", tmp_path / "log", "--json", "-", origin.url, cwd=tmp_path)
    merged = httpbench(build, "merge", "--json", "-", tmp_path / "log", cwd=tmp_path)
    for one in (done, merged):
        assert json.loads(one.stdout)["answered"] == 10 and "answered   10 in" in one.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["log"]
    with open("/dev/full", "w") as full:
        command = [build / "bench" / "httpbench", "merge", "--json", "-", tmp_path / "log"]
        failed = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert failed.returncode == 1 and "cannot write" in failed.stderr


@pytest.mark.parametrize("option, first", [("--tsv", "# from_s"), ("--hlog", "#[")])
def test_lines_of_each_second_may_go_to_standard_output(build, tmp_path, option, first):
    with Origin() as origin:
        done = httpbench(build, "-n", 10, option, "-", origin.url, cwd=tmp_path)
        both = httpbench(build, "-n", 10, option, "-", "--json", "-", origin.url, status=2)
    assert done.stdout.startswith(first) and "answered   10" not in done.stdout and "answered   10 in" in done.stderr
    assert not list(tmp_path.iterdir())
    assert "only one of --json -, --tsv -, --hlog - and --tui" in both.stderr


BEHAVIOURS = {
    "truncates": ("short", lambda connection: connection.sendall(OK[:-2])),
    "says nothing": ("short", lambda connection: None),
    "resets": ("reset", reset),
    "resets in the middle": ("reset", lambda connection: (connection.sendall(OK[:-2]), time.sleep(0.01), reset(connection))),
    "answers nonsense": ("not_http", lambda connection: connection.sendall(b"SSH-2.0-OpenSSH\r\n")),
    "has a status of four digits": ("not_http", lambda connection: connection.sendall(OK.replace(b"200", b"2000"))),
    "has two lengths": ("not_http", lambda connection: connection.sendall(OK.replace(b"\r\n\r\n", b"\r\nContent-Length: 6\r\n\r\n"))),
    "breaks a chunk": ("not_http", lambda connection: connection.sendall(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n")),
}  # fmt: skip


@pytest.mark.parametrize("name", BEHAVIOURS)
def test_what_fails_is_counted_exactly_and_by_its_kind(build, tmp_path, name):
    kind, fail = BEHAVIOURS[name]

    def behave(connection, number, _):
        return OK if number % 1000 else fail(connection) and None

    with Origin(behave) as origin:
        result = httpbench(build, "-n", 5000, "-c", 4, origin.url, status=1, tmp_path=tmp_path)
        assert failures(result) == {kind: 5}
        assert result["answered"] == 4995 and result["durations"]["whole"]["censored"] == 5


def test_answers_that_are_late_are_told_apart_exactly(build, tmp_path):
    """Of 5,000 answers every 1000th is late: 99.9 % are early."""

    def behave(_, number, __):
        if number % 1000 == 0:
            time.sleep(1)
        return OK

    with Origin(behave) as origin:
        whole = httpbench(build, "-n", 5000, "-c", 4, origin.url, tmp_path=tmp_path)["durations"]["whole"]["percentiles_ns"]
        assert whole["99"] < 500_000_000 <= 1_000_000_000 <= whole["99.99"]
        result = httpbench(build, "-n", 5000, "-c", 4, "-T", 0.5, origin.url, status=1, tmp_path=tmp_path)
        assert failures(result) == {"timed_out": 5} and result["answered"] == 4995


def test_a_percentile_is_enough_for_as_many_as_it_says(build, tmp_path):
    """Two of 160 are late, so the 99th percentile is not as short as the others. One of 600 (0.17
    %) shows in the 99.9th percentile."""
    late = [1, 2]

    def behave(_, number, __):
        if number in late:
            time.sleep(0.5)
        return OK

    with Origin(behave) as origin:
        percentiles = httpbench(build, "-n", 160, "-c", 4, origin.url, tmp_path=tmp_path)["durations"]["whole"]["percentiles_ns"]
        assert percentiles["90"] < 500_000_000 <= percentiles["99"]
        late[:] = [200]
        percentiles = httpbench(build, "-n", 600, "-c", 4, origin.url, tmp_path=tmp_path)["durations"]["whole"]["percentiles_ns"]
        assert percentiles["99"] < 500_000_000 <= percentiles["99.9"]


def test_another_status_is_a_failure_of_its_own_kind(build, tmp_path):
    def behave(_, number, __):
        return OK if number % 50 else b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"

    with Origin(behave) as origin:
        result = httpbench(build, "-n", 500, origin.url, status=1, tmp_path=tmp_path)
        assert failures(result) == {"wrong_status": 10} and result["connected"] == 64
        result = httpbench(build, "-n", 500, "--status", 503, origin.url, status=1, tmp_path=tmp_path)
        assert failures(result) == {"wrong_status": 490}


def answered_in_turn(*statuses):
    return lambda _, number, __: OK.replace(b"200", b"%d" % statuses[number % len(statuses)])


def test_the_statuses_that_were_not_wanted_are_named(build, tmp_path):
    with Origin(answered_in_turn(200, 503)) as origin:
        done = httpbench(build, "-n", 100, "-c", 4, "--json", tmp_path / "json", origin.url, status=1)
    assert "failed     50: wrong_status 50 (503)\n" in done.stdout
    assert json.loads((tmp_path / "json").read_text())["statuses"] == {"503": 50}
    with Origin(answered_in_turn(503, 404, 404, 500, 501)) as origin:
        done = httpbench(build, "-n", 100, "-c", 1, origin.url, status=1)
    assert "failed     100: wrong_status 100 (404 40, 500 20, 501 20, ...)\n" in done.stdout
    assert "verdict    FAILED: no answer had the right status: 404 40, 500 20, 501 20, ...\n" in done.stdout
    with Origin(answered_in_turn(503)) as origin:
        done = httpbench(build, "-n", 10, origin.url, status=1)
        assert "verdict    FAILED: no answer had the right status: 503\n" in done.stdout
    with Origin() as origin:
        result = httpbench(build, "-n", 10, origin.url, tmp_path=tmp_path)
        assert result["statuses"] == {}


def test_failures_that_took_no_time_are_not_said_to_have_taken_the_timeout(build, tmp_path):
    with Origin(answered_in_turn(200, 404)) as origin:
        done = httpbench(build, "-n", 100, "-c", 4, origin.url, status=1)
    assert re.search(r"^whole .* failed$", done.stdout, re.MULTILINE) and ">" not in done.stdout


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"


@pytest.mark.parametrize("wrong", [b"hallo", b"hell", b"hello!", b""])
def test_each_byte_is_compared(build, tmp_path, wrong):
    (tmp_path / "expected").write_bytes(b"hello")
    odd = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(wrong), wrong)
    with Origin(lambda _, number, __: odd if number % 1000 == 0 else CHUNKED if number % 2 else OK) as origin:
        result = httpbench(build, "-n", 5000, "--expect", tmp_path / "expected", origin.url, status=1, tmp_path=tmp_path)
        assert failures(result) == {"wrong_bytes": 5} and result["answered"] == 4995


def test_the_kernels_counters_tell_when_a_run_does_not_count(build, tmp_path):
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(1)  # and nobody accepts
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        result = httpbench(build, "-d", 1.5, "-c", 20, "-T", 1, url, status=1, tmp_path=tmp_path)
        assert result["counters"]["ListenOverflows"] > 0 and result["verdict"] == "FAILED"


@pytest.mark.alone
def test_what_begins_and_ends_a_run_is_no_load(plain, tmp_path):
    """Memory for 2,000,000 requests takes longer to free than ten answers take."""
    with Origin() as origin:
        result = httpbench(plain, "-n", 10, "-c", 2000, "-p", 1000, origin.url, tmp_path=tmp_path)
        assert result["answered"] == 10 and result["verdict"] != "CLIENT"


@contextlib.contextmanager
def busy(processor, programs):
    """Runs programs that use that processor all the time."""
    command = [sys.executable, "-c", "print('runs', flush=True)\nwhile True: pass"]
    begun = [subprocess.Popen(command, stdout=subprocess.PIPE, preexec_fn=lambda: os.sched_setaffinity(0, {processor}))
             for _ in range(programs)]  # fmt: skip
    try:
        for process in begun:
            process.stdout.readline()
        yield
    finally:
        for process in begun:
            process.kill()
            process.communicate()


@pytest.mark.alone
def test_the_report_tells_when_other_programs_took_the_processor(plain):
    one = min(os.sched_getaffinity(0))
    with Origin() as origin, busy(one, 3):
        done = httpbench(plain, "-d", 1, "-c", 16, origin.url, preexec_fn=lambda: os.sched_setaffinity(0, {one}))
    percent = re.search(r"^processor  waited for it for (\d+) % of the time: the server or others took it$", done.stdout, re.MULTILINE)
    assert percent and 10 < int(percent[1]) <= 100


def test_what_times_out_is_in_no_percentile_that_it_would_flatter(build, tmp_path):
    def behave(_, number, __):
        if number % 10 == 0:
            time.sleep(5)
        return OK

    with Origin(behave) as origin:
        result = httpbench(build, "-n", 100, "-c", 10, "-T", 0.5, origin.url, status=1, tmp_path=tmp_path)
        assert failures(result) == {"timed_out": 10}
        whole = result["durations"]["whole"]
        assert whole["percentiles_ns"]["75"] < 500_000_000 and whole["percentiles_ns"]["99"] is None
        done = httpbench(build, "-n", 10, "-c", 1, "-T", 0.5, origin.url, status=1)
        assert re.search(r"^whole .* >500ms$", done.stdout, re.MULTILINE)


ANSWERS = {
    "chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\nA\t;x\r\n0123456789\r\n0\r\nT: x\r\n\r\n",
    "no content": b"HTTP/1.1 204 No Content\r\n\r\n",
    "an interim answer": b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + OK,
    "odd fields": b"HTTP/1.1 200\r\nX: content-length: 7\r\ncontent-LENGTH:2\r\nConnection: Keep-Alive\r\n\r\nab",
    "the same length twice": OK.replace(b"\r\n\r\n", b"\r\nContent-Length: 5\r\n\r\n"),
    "a long head": b"HTTP/1.1 200 OK\r\n" + b"X: %s\r\n" % (b"y" * 1000) * 50 + b"Content-Length: 0\r\n\r\n",
}


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize("piece", [1, 7, 100_000])
def test_answers_of_any_form_in_pieces_of_any_size(build, tmp_path, name, piece):
    answer = ANSWERS[name]

    def behave(connection, *_):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for at in range(0, len(answer), max(piece, len(answer) // 2000)):
            connection.sendall(answer[at : at + max(piece, len(answer) // 2000)])
        return b""

    with Origin(behave) as origin:
        result = httpbench(build, "-n", 6, "-c", 2, origin.url, tmp_path=tmp_path)
        assert result["answered"] == 6 and result["connected"] == 2


def test_an_answer_may_end_with_the_connection(build, tmp_path):
    def behave(connection, *_):
        connection.sendall(b"HTTP/1.0 200 OK\r\n\r\nas long as it is")

    with Origin(behave) as origin:
        result = httpbench(build, "-n", 20, "-c", 2, origin.url, tmp_path=tmp_path)
        assert result["answered"] == 20 and result["connected"] == 20


def test_a_head_has_no_content(build, tmp_path):
    with Origin(lambda _, __, request: OK[:-5] if request.startswith(b"HEAD ") else None) as origin:
        result = httpbench(build, "-n", 20, "-c", 2, "-X", "HEAD", origin.url, tmp_path=tmp_path)
        assert result["answered"] == 20 and result["connected"] == 2


@pytest.mark.parametrize("per_connection,connections", [(1, 100), (7, 15), (100, 1)])
@pytest.mark.parametrize("depth", [1, 5])
def test_a_connection_has_as_many_requests_as_it_is_to_have(build, tmp_path, per_connection, connections, depth):
    requests = []
    with Origin(lambda _, __, request: requests.append(request) or OK) as origin:
        result = httpbench(build, "-n", 100, "-c", 1, "-k", per_connection, "-p", depth, origin.url, tmp_path=tmp_path)
        assert result["answered"] == 100 and result["connected"] == len(origin.peers) == connections
        assert sum(b"Connection: close" in request for request in requests) == 100 // per_connection


def test_a_server_that_ends_a_connection_gets_the_rest_on_another(build, tmp_path):
    def behave(_, number, __):
        return OK if number % 10 else OK.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")

    for more in (["-p", 4], ["-R", 10_000]):
        with Origin(behave) as origin:
            result = httpbench(build, "-n", 200, "-c", 3, *more, origin.url, tmp_path=tmp_path)
            assert result["answered"] == result["sent"] == 200 and not failures(result)


def test_what_is_given_back_behind_an_error_is_asked_again(build, tmp_path):
    answer = b"HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
    for more in (["-p", 16], ["-p", 4, "-R", 10_000]):
        with Origin(lambda *_: answer) as origin:
            result = httpbench(build, "-n", 60, "-c", 2, *more, origin.url, status=1, tmp_path=tmp_path)
            assert failures(result) == {"wrong_status": 60} and result["connected"] == 60


def test_requests_are_what_they_were_told_to_be(build):
    requests = []
    with Origin(lambda _, __, request: requests.append(request) or OK) as origin:
        url = origin.url + "a%20b?c=d#e"
        httpbench(build, "-n", 1, "-c", 1, "-X", "PURGE", "-H", "X-Y: z", "-H", "Host: other", url)
    assert requests == [b"PURGE /a%20b?c=d HTTP/1.1\r\nX-Y: z\r\nHost: other"]


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH"])
def test_a_method_that_usually_has_content_says_that_there_is_none(build, method):
    requests = []
    with Origin(lambda _, __, request: requests.append(request) or OK) as origin:
        httpbench(build, "-n", 1, "-c", 1, "-X", method, origin.url)
    assert requests[0].endswith(b"\r\nContent-Length: 0")


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("last", ["", "\n", "\n\n\n"])
def test_the_fields_of_several_heads_are_sent_alike(build, tmp_path, line_end, last):
    requests = []
    heads = ["A: 1", f"B: 2{line_end}Cookie: c=d; e=f", f"C: {'3' * 5000}"]
    (tmp_path / "heads").write_text((2 * line_end).join(heads) + last.replace("\n", line_end), newline="")
    with Origin(lambda _, __, request: requests.append(request.decode()) or OK) as origin:
        host = origin.url.split("/")[2]
        httpbench(build, "-n", 900, "-c", 3, "-k", 2, "-p", 2, "-H", "X: y", "--heads", tmp_path / "heads", origin.url)
    for fields in heads:
        ends = [f"{close}{fields}".replace("\r", "").replace("\n", "\r\n") for close in ("", "Connection: close\r\n")]
        found = [request for end in ends for request in requests if request == f"GET / HTTP/1.1\r\nHost: {host}\r\nX: y\r\n{end}"]
        assert 200 < len(found) < 400
    assert len(requests) == 900


def test_several_urls_are_asked_for_alike(build, tmp_path):
    paths = []
    with Origin(lambda _, __, request: paths.append(request.split(b" ")[1]) or OK) as origin:
        httpbench(build, "-n", 900, "-c", 3, *(origin.url + name for name in "abc"), tmp_path=tmp_path)
    assert all(200 < paths.count(path) < 400 for path in (b"/a", b"/b", b"/c"))


def test_urls_from_a_file_are_as_popular_as_zipf_has_it(build, tmp_path):
    paths = []
    with Origin(lambda _, __, request: paths.append(request.split(b" ")[1]) or OK) as origin:
        (tmp_path / "urls").write_text("# some\n\n" + "".join(f"{origin.url}{n}\r\n" for n in (1, 2, 3, 4)))
        httpbench(build, "-n", 2500, "-c", 3, "--urls", tmp_path / "urls", "--zipf", 1)
    for n in (1, 2, 3, 4):  # weights 1, 1/2, 1/3, 1/4: of 25 / 12
        assert abs(paths.count(b"/%d" % n) / (1200 / n) - 1) < 0.2


def test_a_unix_socket_and_source_addresses(build, tmp_path):
    path = tmp_path / "socket"
    with Origin(family=socket.AF_UNIX, address=str(path)):
        result = httpbench(build, "-n", 10, "--unix", path, "http://any/", tmp_path=tmp_path)
        assert result["answered"] == 10
    with Origin() as origin:
        httpbench(build, "-n", 12, "-c", 12, "-t", 2, "--source", "127.0.9.8/29", origin.url, tmp_path=tmp_path)
        assert {peer[0] for peer in origin.peers} == {f"127.0.9.{n}" for n in range(9, 15)}


def test_ipv6(build, tmp_path):
    with Origin(family=socket.AF_INET6, address=("::1", 0)) as origin:
        port = origin.listener.getsockname()[1]
        seen = []
        origin.behave = lambda connection, _, request: seen.append(request) or OK
        result = httpbench(build, "-n", 10, "--source", "::1", f"http://[::1]:{port}/", tmp_path=tmp_path)
        assert result["answered"] == 10 and {peer[0] for peer in origin.peers} == {"::1"}
        assert all(b"\r\nHost: [::1]:%d" % port in request for request in seen)


def test_a_source_address_that_is_not_of_this_machine_is_named(build, tmp_path):
    """Of :: to ::3, only those up to ::1 are local."""
    with Origin(family=socket.AF_INET6, address=("::1", 0)) as origin:
        url = f"http://[::1]:{origin.listener.getsockname()[1]}/"
        done = httpbench(build, "-n", 30, "-c", 3, "--source", "::/126", "--json", tmp_path / "json", url, status=2)
    assert done.stderr == "httpbench: cannot connect from ::2: it is not an address of this machine\n"
    result = json.loads((tmp_path / "json").read_text())
    assert set(failures(result)) == {"not_connected"} and result["answered"] > 0 and result["verdict"] != "LIMIT"


@pytest.mark.alone
def test_open_loop_sends_what_is_due_when_it_is_due(build, tmp_path):
    arrived = []
    with Origin(lambda *_: arrived.append(time.monotonic()) or OK) as origin:
        result = httpbench(build, "-R", 200, "--arrival", "constant", "-d", 1, "-c", 8, origin.url, tmp_path=tmp_path)
        assert result["answered"] == 200
        assert abs((arrived[-1] - arrived[0]) - 199 / 200) < 0.1


def test_as_many_requests_are_due_as_the_rate_and_the_duration_say(build, tmp_path):
    """Even if the interval between two is not a whole number of nanoseconds."""
    with Origin() as origin:
        for rate in (11, 13, 21, 26):
            result = httpbench(build, "-R", rate, "--arrival", "constant", "-d", 1, origin.url, tmp_path=tmp_path)
            assert result["answered"] == rate


def test_what_nobody_answers_in_open_loop_is_not_forgotten(build, tmp_path):
    with Origin(lambda *_: time.sleep(30)) as origin:
        result = httpbench(build, "-R", 100, "--arrival", "constant", "-d", 1, "-c", 5, "-T", 1, origin.url, status=1,
                           tmp_path=tmp_path)  # fmt: skip
        assert sum(failures(result).values()) == 100 == result["durations"]["whole"]["censored"]
        assert failures(result)["unsent"] >= 85


# --- figures, of the program as it is installed ---


def median_ns(url, requests):
    """Returns the median of the round trips of a plain client on one connection."""
    host, port = re.match(r"http://([^:/]+):(\d+)", url).groups()
    found = []
    with socket.create_connection((host, int(port)), 10) as s:
        for _ in range(requests):
            begun = time.perf_counter_ns()
            s.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            s.recv(65536)
            found.append(time.perf_counter_ns() - begun)
    return sorted(found)[requests // 2]


@pytest.mark.alone
def test_a_known_delay_is_measured(plain, tmp_path):
    def behave(*_):
        until = time.perf_counter() + 0.005
        while time.perf_counter() < until:
            pass
        return OK

    with Origin(behave) as origin:
        result = httpbench(plain, "-n", 300, "-c", 1, origin.url, tmp_path=tmp_path)
        seen = median_ns(origin.url, 100)  # by another client, since waking up takes time on a busy host
        for duration in ("first_byte", "whole"):
            found = result["durations"][duration]["percentiles_ns"]["50"]
            assert 5e6 * 0.98 < found < max(5e6, seen) * 1.02


@pytest.mark.alone
def test_a_stall_is_seen_by_all_whom_it_keeps_waiting(plain, tmp_path):
    """All answers stall for 1 s in every 5. Of Poisson arrivals a fifth waits, evenly distributed
    from 0 to 1 s, so 1 % waits longer than 0.95 s, and a tenth longer than 0.5 s; and for as long as
    the server itself answers late after a stall. In closed loop it is one request for each
    connection."""
    started = time.monotonic()
    late = [0]

    def behave(*_):
        passed = (time.monotonic() - started) % 5
        if passed < 1:
            time.sleep(1 - passed)
            late.append((time.monotonic() - started) % 5 - 1)
        return OK

    with Origin(behave) as origin:
        found = httpbench(plain, "-R", 400, "-d", 10, "-c", 500, origin.url, tmp_path=tmp_path)["durations"]["whole"]
        assert 0.95e9 * 0.95 < found["percentiles_ns"]["99"] < (0.95e9 + max(late) * 1e9) * 1.05
        assert 0.5e9 * 0.8 < found["percentiles_ns"]["90"] < (0.5e9 + max(late) * 1e9) * 1.2
        closed = httpbench(plain, "-d", 5, "-c", 1, origin.url, tmp_path=tmp_path)["durations"]["whole"]
        assert closed["percentiles_ns"]["99"] < 0.1e9 < 0.5e9 < closed["percentiles_ns"]["100"]


def test_clients_race_for_nothing(threads, tmp_path):
    with Origin() as origin:
        for more in (["-n", 500], ["-d", 2.2, "-R", 500]):
            result = httpbench(threads, "-c", 20, "-t", 4, *more, origin.url, tmp_path=tmp_path)
            assert result["answered"] > 400 and not failures(result)


def one_at_a_time(seconds):
    lock = threading.Lock()

    def behave(*_):
        with lock:
            time.sleep(seconds)
        return OK

    return behave


@pytest.mark.alone
def test_the_highest_rate_that_meets_a_goal_is_found(plain):
    """Or, on a busy machine, the search says that it was disturbed."""
    def search(goal, seconds, *found):
        command = [plain / "bench" / "httpbench", "--search", goal, "-d", str(seconds), "-c", "50", origin.url]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        assert done.returncode in (2, *found), done.stdout
        assert done.returncode != 2 or "\nundecided: the client, not the server, was the limit" in done.stdout
        return done.stdout

    with Origin(one_at_a_time(0.005)) as origin:  # not 200 a second, and p75 < 30 ms only well below that
        if met := re.search(r"meets the goal: ([\d.]+) requests a second", search("p75<30ms", 1, 0)):
            assert 80 < float(met.group(1)) < 195
        output = search("p50<1ms", 0.5, 1)
        assert "no rate meets the goal" in output or "undecided" in output
        done = httpbench(plain, "--search", "p99.9<1s", "-d", 1, "-c", 50, origin.url, status=2)
        assert re.search(r"^undecided: p99.9 needs 10000 requests, .*: -d \d+$", done.stdout, re.MULTILINE)


@pytest.mark.alone
def test_a_sweep_goes_beyond_what_the_server_takes(plain):
    with Origin(one_at_a_time(0.002)) as origin:
        lines = httpbench(plain, "--sweep", "-d", 0.5, "-c", 50, origin.url).stdout.splitlines()
    rows = [line.split() for line in lines[1:]]
    assert rows[0][0] == "closed" and len(rows) == 12
    most = float(rows[0][1])
    assert [round(float(row[0]) / most * 10) for row in rows[1:]] == list(range(1, 12))


def test_a_line_a_second(plain, tmp_path):
    with Origin() as origin:
        result = httpbench(plain, "-d", 2.2, "-R", 300, "--tsv", tmp_path / "tsv", origin.url, tmp_path=tmp_path)
    names, *lines = (line.split("\t") for line in (tmp_path / "tsv").read_text().splitlines())
    assert [float(line[1]) for line in lines[:2]] == [1, 2] and len(lines) == 3
    assert all(len(line) == len(names) for line in lines)
    assert sum(int(line[2]) for line in lines) == result["answered"]


# --- no server, too few descriptors, pipes ---


def test_a_port_that_nobody_listens_on(build, tmp_path):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{s.getsockname()[1]}/"
        started = time.monotonic()
        done = httpbench(build, "-d", 30, "--json", tmp_path / "json", url, status=2)
    assert done.stderr == f"httpbench: cannot connect to {url}: Connection refused\n" and time.monotonic() - started < 10
    result = json.loads((tmp_path / "json").read_text())
    assert list(failures(result)) == ["refused"] and failures(result)["refused"] < 100


@pytest.mark.parametrize("series", [["--sweep"], ["--search", "p99<5ms"]], ids=["sweep", "search"])
def test_several_runs_that_measure_nothing_say_why(build, series):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{s.getsockname()[1]}/"
        done = httpbench(build, *series, "-d", 30, url, status=2)
    assert done.stderr == f"httpbench: cannot connect to {url}: Connection refused\n"
    with Origin(answered_in_turn(503)) as origin:
        done = httpbench(build, *series, "-d", 0.2, "-c", 2, origin.url, status=2)
    assert done.stderr == "httpbench: no answer had the right status: 503\n"
    assert done.stdout.endswith("  FAILED: no answer had the right status: 503\n")


def test_a_server_that_goes_away_is_no_reason_to_end(build, tmp_path):
    with Origin(lambda connection, number, _: origin.refuse() if number == 50 else OK) as origin:
        result = httpbench(build, "-d", 1.5, "-c", 1, "-k", 1, origin.url, status=1, tmp_path=tmp_path)
    assert result["answered"] >= 49 and failures(result)["refused"] > 2


def test_more_connections_than_descriptors(plain, tmp_path):
    with Origin() as origin:
        done = httpbench(plain, "-c", 60, "-d", 1, "--json", tmp_path / "json", origin.url, status=2,
                         **descriptors_limited_to(40))  # fmt: skip
    assert re.fullmatch(r"httpbench: no descriptor was left after \d+ connections: more threads have more\n", done.stderr)
    result = json.loads((tmp_path / "json").read_text())
    assert result["verdict"] == "LIMIT" and 10 < result["connected"] < 40 and result["answered"] > 10


@pytest.mark.parametrize("output", [[], ["--tsv", "-"], ["--hlog", "-"], ["--json", "-"]], ids=" ".join)
def test_output_that_cannot_be_written_is_told_with_the_reason(build, output):
    with Origin() as origin, open("/dev/full", "w", encoding="ascii") as full:
        command = [build / "bench" / "httpbench", "-n", "1", *output, origin.url]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert done.returncode == 1 and done.stderr.endswith("httpbench: cannot write the report: No space left on device\n")


def test_urls_may_come_from_a_pipe(build):
    with Origin() as origin:
        done = subprocess.run([build / "bench" / "httpbench", "-n", "3", "--urls", "/dev/stdin"], input=origin.url + "\n",
                              capture_output=True, text=True, timeout=60, check=False)  # fmt: skip
        assert done.returncode == 0 and origin.requests == 3


def test_rates_are_printed_with_the_digits_that_matter(build):
    with Origin(lambda *_: time.sleep(0.6) or OK) as origin:
        report = httpbench(build, "-n", 2, "-c", 1, origin.url).stdout
        answered, seconds, rate = map(float, re.search(r"^answered   (\S+) in (\S+) s, (\S+) a second$", report, re.MULTILINE).groups())
        assert rate == pytest.approx(answered / seconds, rel=0.02)
    with Origin() as origin:
        report = httpbench(build, "-R", 1_234_567, "-n", 100, origin.url).stdout
        assert "due        100, 1234567 a second\n" in report


def test_too_few_descriptors_for_the_event_mechanism(plain):
    with Origin() as origin:
        done = httpbench(plain, "-n", 5, origin.url, status=2, **descriptors_limited_to(4))
    assert "no descriptor was left after 0 connections" in done.stderr


def test_connections_are_held_in_open_loop_alone(plain):
    assert "--hold is of open loop" in httpbench(plain, "--hold", "http://127.0.0.1:1/", status=2).stderr


def test_rates_follow_each_other_in_stages(plain, tmp_path):
    """Each constant: 100 requests in the first second, none in the next, 50 in the last."""
    with Origin() as origin:
        result = httpbench(plain, "--stages", "1s:100,1:0,1s:50", "--arrival", "constant", "-c", 8, origin.url, tmp_path=tmp_path)
    first, second, third = result["stages"]
    assert result["answered"] == 150 and result["duration_s"] == 3 and result["rate"] == 50
    assert [stage["until_s"] for stage in result["stages"]] == [1, 2, 3] and [stage["rate"] for stage in result["stages"]] == [100, 0, 50]
    assert first["answered"] + second["answered"] + third["answered"] == 150
    assert first["answered"] >= 80 and third["answered"] >= 40 and third["p50_ns"] > 0


@pytest.mark.parametrize("wrong", ["", "10", "0:10", "10s:", "1.5s:10", "10s:0", "5s:1,", "5s:-1", "5d:1", ",".join(33 * ["1s:1"])])
def test_wrong_stages_are_refused(plain, wrong):
    assert f"not '{wrong}'" in httpbench(plain, "--stages", wrong, "http://127.0.0.1:1/", status=2).stderr


@pytest.mark.parametrize("more", [["-R", 5], ["-d", 5], ["-n", 5], ["--search", "p99<5ms"]])
def test_stages_say_the_rate_and_how_long(plain, more):
    assert "--stages" in httpbench(plain, "--stages", "1s:1", *more, "http://127.0.0.1:1/", status=2).stderr
