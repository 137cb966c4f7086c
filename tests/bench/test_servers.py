"""httpbench with servers that break at every stage: nothing is lost, nothing hangs, and the right
one is blamed."""

import re
import signal
import socket
import subprocess
import threading
import time

import pytest

from origin import OK, Origin, certificate, speaking
from running import failures, httpbench

pytestmark = pytest.mark.moving

R = b"HTTP/1.1 200 OK\r\n"
BROKEN = {
    "no length": R + b"Content-Length:\r\n\r\n12345",
    "a negative length": R + b"Content-Length: -1\r\n\r\nhello",
    "a length of letters": R + b"Content-Length: abc\r\n\r\n",
    "a length beyond all bounds": R + b"Content-Length: 99999999999999999999999\r\n\r\nhello",
    "a status of letters": b"HTTP/1.1 20x OK\r\nContent-Length: 0\r\n\r\n",
    "a chunk without a size": R + b"Transfer-Encoding: chunked\r\n\r\n\r\n\r\n",
    "more than was asked for": OK + OK,
    "more than its length": OK + b"!",
    "lines without a CR": b"HTTP/1.1 200 OK\nContent-Length: 2\n\nok",
    "a head of 70,000 bytes": R + b"X: %s\r\nContent-Length: 0\r\n\r\n" % (b"a" * 70_000),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_what_is_not_http_is_never_taken_for_an_answer(build, tmp_path, broken):
    with Origin(lambda *_: BROKEN[broken]) as origin:
        result = httpbench(build, "-n", 20, "-c", 2, origin.url, status=1, tmp_path=tmp_path)
    assert failures(result) == {"not_http": 20}


@pytest.fixture(scope="module")
def tls(tmp_path_factory):
    return speaking(certificate(tmp_path_factory.mktemp("tls"), "address", "IP:127.0.0.1"))


@pytest.mark.parametrize("encrypted", [False, True], ids=["clear", "tls"])
def test_an_answer_counts_although_the_server_takes_no_further_requests(build, tmp_path, tls, encrypted):
    def behave(connection, *_):
        connection.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello")

    def accepted(connection):  # otherwise output may be left when it closes, and resets
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    with Origin(behave, accepted=accepted, context=tls if encrypted else None) as origin:
        result = httpbench(build, "-n", 200, "-c", 2, "-p", 64, "-H", "X: " + "a" * 3000, "--insecure", origin.url,
                           tmp_path=tmp_path)  # fmt: skip
    assert result["answered"] == 200 == result["connected"]


def test_answers_are_read_while_requests_wait_to_be_written(build, tmp_path):
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n" + b"x" * 1_000_000
    with Origin(lambda *_: answer) as origin:
        result = httpbench(build, "-n", 300, "-c", 1, "-p", 1024, "-T", 10, "-H", "X: " + "a" * 30_000, origin.url,
                           tmp_path=tmp_path)  # fmt: skip
    assert result["answered"] == 300


def answer_without_reading(listener, context, answers):
    connection = context.wrap_socket(listener.accept()[0], server_side=True)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.recv(10)
    try:
        for _ in range(answers):
            time.sleep(0.003)  # one request at a time: each answer before the next request
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        time.sleep(10)
    except OSError:
        pass


@pytest.mark.parametrize("answers", [198, 199, 200])
def test_a_request_of_which_nothing_can_be_written_times_out(plain, tmp_path, tls, answers):
    """About this many requests of 15 KB fill the buffers of both ends. An answer to a request that
    has not even begun is not HTTP."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        url = f"https://127.0.0.1:{listener.getsockname()[1]}/"
        threading.Thread(target=answer_without_reading, args=(listener, tls, answers), daemon=True).start()
        result = httpbench(plain, "-d", 3, "-T", 0.5, "-n", answers + 1, "-c", 1, "--insecure", "-H", "X: " + "a" * 15_000, url,
                           status=1, tmp_path=tmp_path)  # fmt: skip
    assert set(failures(result)) <= {"timed_out", "not_http"}


def test_a_handshake_that_ends_early_is_a_failure_of_tls(build, tmp_path, tls):
    def accepted(connection):
        connection.recv(1)
        connection.shutdown(socket.SHUT_RDWR)

    with Origin(context=tls, accepted=accepted) as origin:
        done = httpbench(build, "-n", 3, "-c", 1, "--insecure", origin.url, status=2)
    assert "tls 3" in done.stdout and "failed: the connection ended in the handshake" in done.stdout


def test_requests_that_share_a_connection_are_refused_together(build, tmp_path):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{s.getsockname()[1]}/"
        result = httpbench(build, "-n", 8, "-c", 1, "-p", 4, "--json", tmp_path / "json", url, status=2)
    assert "refused 8" in result.stdout


def test_in_open_loop_each_who_is_refused_counts(build, tmp_path):
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        result = httpbench(build, "-R", 200, "-d", 0.5, "--arrival", "constant", "-c", 20, "--json", tmp_path / "json", url,
                           status=2)  # fmt: skip
    assert "refused 100" in result.stdout


def test_what_was_due_while_the_client_was_held_up_is_not_forgotten(build, tmp_path):
    """Even if it was held up across its end."""
    with Origin() as origin:
        command = [build / "bench" / "httpbench", "-R", "1000", "--arrival", "constant", "-d", "1.5", origin.url]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            while origin.requests < 500:
                time.sleep(0.01)
            process.send_signal(signal.SIGSTOP)
            time.sleep(2)
            process.send_signal(signal.SIGCONT)
            output = process.communicate()[0]
    assert origin.requests == 1500 and "due        1500, 1000 a second" in output
    assert "verdict    CLIENT: " in output


def test_one_that_never_answers_does_not_make_the_others_slower(build, tmp_path):
    with Origin(lambda _, number, __: OK if number != 50 else time.sleep(5)) as origin:
        result = httpbench(build, "-n", 100, "-c", 2, "-T", 2, origin.url, status=1, tmp_path=tmp_path)
    assert result["answered"] == 99 and result["durations"]["whole"]["percentiles_ns"]["99"] < 1e9
    assert 2 <= result["elapsed_s"] < 4  # until the last one has failed


def test_requests_that_no_connection_took_are_the_clients_limit(build, tmp_path):
    with Origin(lambda *_: time.sleep(0.02) or OK) as origin:
        result = httpbench(build, "-R", 200, "-c", 1, "-T", 0.5, "-d", 1, origin.url, status=1, tmp_path=tmp_path)
    assert failures(result)["unsent"] > 10 and result["verdict"] == "CLIENT"
    assert result["durations"]["lateness"]["censored"] == failures(result)["unsent"]


def test_pipelining_leaves_no_connection_idle(build, tmp_path):
    """The first request is held up until all others are answered: none may wait behind it."""
    requests, others = 8, threading.Semaphore(0)

    def behave(_, number, __):
        if number > 1:
            others.release()
            return OK
        return OK if all(others.acquire(timeout=5) for _ in range(requests - 1)) else None

    with Origin(behave) as origin:
        result = httpbench(build, "-R", 100, "--arrival", "constant", "-c", 16, "-p", requests, "-n", requests, origin.url,
                           tmp_path=tmp_path)  # fmt: skip
    assert result["answered"] == requests


def test_a_failed_request_is_above_all_percentiles_that_it_could_reach(build, tmp_path):
    """One of 60 is 1.7 %: neither 99 % of the answers nor of their first bytes are known."""
    with Origin(lambda _, number, __: OK if number != 30 else time.sleep(2)) as origin:
        durations = httpbench(build, "-n", 60, "-c", 2, "-T", 0.3, origin.url, status=1, tmp_path=tmp_path)["durations"]
    for name in ("whole", "first_byte"):
        assert durations[name]["percentiles_ns"]["90"] < 3e8 and durations[name]["percentiles_ns"]["99"] is None


INTERIM = b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"


def test_the_first_byte_is_not_that_of_an_interim_answer(build, tmp_path):
    with Origin(lambda connection, *_: connection.sendall(INTERIM) or time.sleep(0.05) or OK) as origin:
        durations = httpbench(build, "-n", 4, "-c", 1, origin.url, tmp_path=tmp_path)["durations"]
    assert durations["first_byte"]["percentiles_ns"]["50"] >= 5e7


def test_close_beats_keep_alive(build, tmp_path):
    answer = R + b"Connection: close, keep-alive\r\nContent-Length: 0\r\n\r\n"
    with Origin(lambda connection, *_: connection.sendall(answer)) as origin:
        result = httpbench(build, "-n", 20, "-c", 1, origin.url, tmp_path=tmp_path)
    assert result["answered"] == result["connected"] == 20


def test_a_certificate_that_nobody_trusts_ends_a_run_at_once(build, tls):
    with Origin(context=tls) as origin:
        started = time.monotonic()
        done = httpbench(build, "-d", 30, origin.url, status=2)
    assert done.stderr.startswith(f"httpbench: no TLS with {done.args[-1]}: the certificate: self-signed")
    assert time.monotonic() - started < 10


def test_what_comes_in_until_an_interrupt_is_in_every_file(build, tmp_path):
    with Origin() as origin:
        command = [build / "bench" / "httpbench", "-R", "300", "-d", "20", "--tsv", tmp_path / "tsv", "--hlog",
                   tmp_path / "log", origin.url]  # fmt: skip
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            while origin.requests < 450:
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            process.send_signal(signal.SIGINT)  # timeout(1) sends two at once
            output = process.communicate()[0]
    answered = int(re.match(r"answered +(\d+) in .*; interrupted$", output, re.MULTILINE).group(1))
    rows = [line.split("\t") for line in (tmp_path / "tsv").read_text().splitlines()[1:]]
    assert answered >= 450 and sum(int(row[2]) for row in rows) == answered
    assert f"answered   {answered} in" in httpbench(build, "merge", tmp_path / "log").stdout


def test_of_several_addresses_of_a_host_one_where_somebody_listens_is_taken(build, tmp_path):
    """localhost is also ::1 on most systems."""
    with Origin() as origin:
        url = origin.url.replace("127.0.0.1", "localhost")
        assert httpbench(build, "-n", 5, url, url + "x", tmp_path=tmp_path)["answered"] == 5


def test_a_search_that_is_interrupted_finds_nothing(plain):
    with Origin() as origin:
        command = [plain / "bench" / "httpbench", "--search", "p99<5s", "-d", "1", "-c", "4", origin.url]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            lines = [process.stdout.readline(), process.stdout.readline()]
            process.send_signal(signal.SIGINT)
            lines += process.stdout.readlines()
    assert process.returncode == 1 and lines[-1].startswith("interrupted: ")
