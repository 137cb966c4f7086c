""""make faults" in a minute: the calls that always fail, and a sample of all others."""

import base64
import contextlib
import functools
import gzip
import itertools
import signal
import time

import pytest

from faults import ALWAYS, PATIENCE_S, Fault, Faulty, survey
from gatling import Connection, eventually

SECONDS = 60


@pytest.mark.timeout(600)
def test_the_server_survives_what_fails(first_build):
    done = survey(functools.partial(Faulty, first_build), SECONDS)
    assert not done.findings
    assert done.hit.total() > 50


def test_no_wrong_password_is_admitted_while_memory_is_missing(first_build):
    """The password before was right: what is left of it in memory must not count."""
    faulty = Faulty(first_build)
    try:
        for n in itertools.count(1):
            statuses, hits = [], 0
            for password in "secret", "guessed":
                lines = ["GET /private/secret.txt HTTP/1.1", "Host: place0.example", "Authorization: Basic "]
                lines[-1] += base64.b64encode(f"ann:{password}".encode()).decode()
                with Connection(("127.0.0.1", faulty.server.plain_port)) as c, contextlib.suppress(AssertionError):
                    c.socket.settimeout(PATIENCE_S)
                    if password == "guessed":
                        faulty.arm(Fault("malloc", "ENOMEM", n, 1))
                    c.send("\r\n".join([*lines, "", ""]).encode())
                    statuses.append(c.response().status)
                    hits = faulty.disarm()
            assert statuses[0] == 200 and statuses[1:] in ([], [401], [429], [500], [503]), statuses
            if not hits:
                break
        assert n > 1
    finally:
        faulty.end()


def test_messages_to_the_processes_beside_the_server_may_go_in_pieces(first_build):
    """A certificate is asked for from time to time."""
    faulty = Faulty(first_build)
    try:
        faulty.arm(Fault("sendmsg", None, 1, ALWAYS, 1))
        eventually(lambda: faulty.shared.hits > 1000, 15)
        faulty.disarm()
        assert not [line for line in faulty.server.errors if "has ended" in line]
    finally:
        faulty.end()


def test_a_request_for_an_upstream_is_not_refused_for_good_while_rules_cannot_be_read(first_build):
    """A 404 or 405 may be cached, and the file may be one that the rules hide."""
    faulty = Faulty(first_build)
    try:
        faulty.arm(Fault("openat", "EMFILE", 1, ALWAYS))
        for method, path in ("POST", "/api/form"), ("GET", "/api/short"), ("GET", "/small.bin"):
            with Connection(("127.0.0.1", faulty.server.plain_port)) as c:
                c.send(f"{method} {path} HTTP/1.1\r\nHost: place0.example\r\nContent-Length: 0\r\n\r\n".encode())
                assert c.response().status == 503
    finally:
        faulty.end()


@pytest.mark.parametrize(
    "name, content, answer", [("_redirects", "/old /new 301", 301), (".htaccess_global", "realm\nann:*", 401)]
)
def test_rules_that_there_was_no_memory_for_are_read_again(first_build, name, content, answer):
    """Each host has its own file, old enough to be read only once, and its first request lacks
    another allocation."""
    faulty, most, asked = Faulty(first_build), 100, []
    try:
        for host in (f"{call}{n}.example" for call in ("malloc", "calloc", "realloc") for n in range(1, most)):
            faulty.root.write(f"{host}/{name}", content.encode())
        written = time.time()

        def status(host):
            with Connection(("127.0.0.1", faulty.server.plain_port)) as c, contextlib.suppress(AssertionError, OSError):
                c.socket.settimeout(PATIENCE_S)
                c.send(f"GET /old HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
                return c.response().status

        eventually(lambda: time.time() > written + 3)
        for call in "malloc", "calloc", "realloc":
            for n in range(1, most):
                faulty.arm(Fault(call, "ENOMEM", n, 1))
                asked.append(f"{call}{n}.example")
                assert status(asked[-1]) in (None, answer, 500, 503), asked[-1]
                if not faulty.disarm():
                    break
        assert len(asked) > 10
        eventually(lambda: {status(host) for host in asked} == {answer}, 10)
    finally:
        faulty.end()


def test_what_there_was_no_memory_to_convert_is_converted_later(first_build):
    """Each file lacks another allocation when it is first compressed, or decompressed for a client
    that does not accept gzip."""
    text, most = b"a line of text\n" * 400, 60
    faulty = Faulty(first_build)
    try:
        for n in range(most):
            faulty.root.write(f"c{n}.txt", text)
            faulty.root.write(f"d{n}.html.gz", gzip.compress(text))

        def get(name, coding):
            with Connection(("127.0.0.1", faulty.server.plain_port)) as c, contextlib.suppress(AssertionError, OSError):
                c.socket.settimeout(PATIENCE_S)
                c.send(f"GET /{name} HTTP/1.1\r\nHost: x\r\nAccept-Encoding: {coding}\r\n\r\n".encode())
                response = c.response()
                return response.status, response["Content-Encoding"]

        wanted = [("c{}.txt", "gzip", (200, "gzip")), ("d{}.html", "identity", (200, None))]
        for name, coding, answer in wanted:
            for n in range(most):
                faulty.arm(Fault("malloc", "ENOMEM", n + 1, 1))
                get(name.format(n), coding)
                faulty.disarm()
            for n in range(most):
                eventually(lambda path=name.format(n), coding=coding, answer=answer: get(path, coding) == answer)
    finally:
        faulty.end()


@pytest.mark.parametrize("call", ["sendmsg", "recvmsg"])
def test_the_process_that_opens_files_survives_a_shortage_of_memory(first_build, call):
    faulty = Faulty(first_build)
    try:
        faulty.arm(Fault(call, "ENOMEM", 1, 3))
        renamed = faulty.log.rename(faulty.log.with_name("renamed"))
        faulty.server.signal(signal.SIGUSR1)
        eventually(lambda: not faulty.shared.armed or faulty.shared.hits)
        faulty.log.with_name("log").touch()
        faulty.log.with_name("log").chmod(0o666)
        faulty.disarm()
        faulty.server.signal(signal.SIGUSR1)
        with faulty.server.connect() as c:
            eventually(lambda: c.get("/small.bin").status == 200 and faulty.log.stat().st_size)
        assert renamed.exists() and not [line for line in faulty.server.errors if "has ended" in line]
    finally:
        faulty.end()


@pytest.mark.parametrize("call", ["malloc", "realloc"])
def test_nobody_else_is_blamed_for_a_shortage_of_memory(first_build, call):
    """With 400 a client would give up, and each 502 counts as a failure of the upstream."""
    faulty, statuses = Faulty(first_build), []
    content = "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX: y\r\n\r\n"
    try:

        def status(fault=None):
            with Connection(("127.0.0.1", faulty.server.plain_port)) as c, contextlib.suppress(AssertionError, OSError):
                c.socket.settimeout(PATIENCE_S)
                if fault:
                    faulty.arm(fault)
                c.send(f"POST /api/form HTTP/1.1\r\nHost: place0.example\r\n{content}".encode())
                return c.response().status

        for n in 2 * [*range(1, 13)]:  # some allocations are only of the first requests
            eventually(lambda: status() == 200)  # the rules are known again
            statuses.append(status(Fault(call, "ENOMEM", n, 1)))
            faulty.disarm()
        assert 503 in statuses and set(statuses) <= {None, 200, 503}, statuses
    finally:
        faulty.end()
