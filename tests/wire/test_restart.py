"""Ends, restarts and successors: which connections are lost (none), and who is told what."""

import contextlib
import ctypes
import os
import re
import signal
import socket
import struct
import subprocess
import threading
import time

import pytest

from activation import activated, listener
from gatling import TIMEOUT, Connection, Root, Server, certificate, eventually, listening, runnable, trusting, unprivileged
from http2 import GOAWAY, Http2

pytestmark = pytest.mark.moving

TCP_NOTSENT_LOWAT = 25  # tcp(7); Python 3.11 lacks it
GET = b"GET /a.txt HTTP/1.1\r\nHost: a\r\n\r\n"
GREETING_1 = struct.Struct("12sI")  # of version 1: name, sockets
GREETING = struct.Struct("12sI16s")  # name, version, nonce
OFFER = struct.Struct("16sI")  # the other's nonce, sockets
NONCE = bytes(range(16))


# --- an end with a delay ---


def test_after_sigterm_each_connection_ends_with_its_next_answer(build, root):
    with Server(build, root, "-j", "1", drain_delay=20) as server, server.connect() as kept, server.connect() as other:
        assert kept.get("/a.txt")["Connection"] is None
        assert other.get("/a.txt")["Connection"] is None
        server.signal()
        assert eventually(lambda: server.get("/a.txt")["Connection"]) == "close"  # new ones are accepted
        for c in (kept, other):
            assert c.get("/a.txt")["Connection"] == "close"
            c.assert_closed()
        assert server.process.poll() is None
        server.stop()  # another signal: at once


def test_who_asks_nothing_more_is_closed_after_the_delay(build, root):
    with Server(build, root, "-j", "2", drain_delay=1) as server, server.connect() as kept:
        kept.get("/a.txt")
        begun = time.monotonic()
        server.signal()
        kept.assert_closed()
        assert 0.9 < time.monotonic() - begun < 10
        server.wait()


@pytest.mark.parametrize("flags", [{"drain_delay": 1}, {"drain_delay": None, "flags": ("--health", "/health")}], ids=["delay", "health"])
def test_a_delay_that_somebody_counts_on_is_kept_without_connections(build, root, flags):
    flags = dict(flags)
    with Server(build, root, "-j", "2", *flags.pop("flags", ()), **flags) as server:
        server.get("/a.txt")
        begun = time.monotonic()
        server.stop()
        assert 0.9 < time.monotonic() - begun < 10


def test_otherwise_there_is_no_delay_without_connections(build, root):
    with Server(build, root, "-j", "2", drain_delay=None) as server:
        server.get("/a.txt")
        begun = time.monotonic()
        server.stop()
        assert time.monotonic() - begun < 4


# --- health ---


def test_health_is_said_until_the_end_is_announced(build, root):
    root.mkdir("a")
    with Server(build, root, "-j", "1", "--vhosts", "--health", "/.well-known/health", drain_delay=20) as server, server.connect() as kept:
        for path, host in (("/.well-known/health", "nobody"), ("/%2Ewell-known//health?x", "a")):
            answer = kept.get(path, host=host)
            assert (answer.status, answer["Cache-Control"]) == (200, "no-store") and b"200 OK" in answer.body
        assert kept.get("/.well-known/health", method="HEAD").status == 200
        assert kept.get("/.well-known/health/", host="a").status == kept.get("/.well-known/healthy", host="a").status == 404
        server.signal()
        answer = eventually(lambda: (said := server.get("/.well-known/health")).status != 200 and said)
        assert (answer.status, answer["Cache-Control"]) == (503, "no-store")
        assert kept.get("/.well-known/health").status == 503
        server.stop()


def test_health_needs_no_password_and_no_https(build, root):
    root.write(".htaccess_global", b"Friends\nann:$1$x$RmRj8e8tHEYJDtPnkGxgP/\n")
    cert, key = certificate()
    with Server(build, root, "--health", "/up", "--https-redirect", "--cert", cert, "--key", key, "--tls-port", "0", drain_delay=0) as server:
        with Connection(("127.0.0.1", server.plain_port)) as c:
            assert c.get("/a.txt").status == 301
            assert c.get("/up").status == 200
        with Connection(("127.0.0.1", server.tls_port), tls=trusting()) as c:
            assert c.get("/a.txt").status == 401
            assert c.get("/up").status == 200


@pytest.mark.parametrize("path", ["health", "/", "/a//b", "/a/../b", "/.hidden", "/a%20b", "/" + 5000 * "a"])
def test_a_path_for_health_that_no_request_has_is_refused(plain, path):
    ran = subprocess.run([plain / "gatling", "--health", path], capture_output=True, text=True)
    assert ran.returncode == 2 and "--health takes a path such as /health" in ran.stderr


def test_sigint_ends_without_delay(build, root):
    with Server(build, root, "-j", "1", drain_delay=20) as server, server.connect() as kept:
        kept.get("/a.txt")
        begun = time.monotonic()
        server.signal(signal.SIGINT)
        kept.assert_closed()
        server.wait()
        assert time.monotonic() - begun < 10


def test_a_session_of_http2_is_told_to_go(build, root):
    with Server(build, root, "-j", "1", drain_delay=20) as server, Http2(server) as c:
        assert c.get("/a.txt").status == 200
        server.signal()
        while c.frame().type != GOAWAY:
            pass
        assert c.get("/a.txt").status == 200  # it crossed
        server.stop()


def test_sigquit_leaves_idle_connections_one_more_answer(build, root):
    with Server(build, root, "-j", "2") as server, server.connect() as kept:
        kept.get("/a.txt")
        server.signal(signal.SIGQUIT)
        eventually(lambda: not listening(server.port))
        assert kept.get("/a.txt")["Connection"] == "close"
        kept.assert_closed()
        server.wait()


def test_sighup_opens_the_log_again_and_ends_nothing(build, root, place):
    with Server(build, root, "-j", "1", "--log-file", place / "log") as server, server.connect() as kept:
        kept.get("/a.txt")
        (place / "log").rename(place / "old")
        server.signal(signal.SIGHUP)
        eventually(lambda: (place / "log").exists())
        assert kept.get("/a.txt")["Connection"] is None
        eventually(lambda: any("SIGHUP opens the logs again" in line for line in server.errors))


# --- a successor ---


@contextlib.contextmanager
def first(build, root, place, *flags, **options):
    """Runs the first server at a path."""
    with Server(build, root, *flags, "--take-over", place / "socket", **options) as server:
        server.path = place / "socket"
        yield server


def take_over(build, old, *flags, **options):
    new = Server(build, old.root, *flags, "--take-over", old.path, address=("-i", "127.0.0.1", "-p", str(old.plain_port)), **options)
    new.path = old.path
    return new


class Client(threading.Thread):
    """Makes requests again and again, each over a new connection, or over one as long as the server
    allows."""

    def __init__(self, server, keeps):
        super().__init__()
        self.port, self.tls, self.keeps = server.port, server.tls, keeps
        self.done, self.closed, self.failures, self.stopping = 0, 0, [], False
        self.start()

    def connect(self):
        return Connection(("127.0.0.1", self.port), tls=self.tls)

    def run(self):
        c = None
        while not self.stopping:
            try:
                c = c or self.connect()
                response = c.get("/a.txt")
                if response.status != 200 or response.body != b"a":
                    raise AssertionError(response.head)
                self.done += 1
                last = response["Connection"] == "close"
                self.closed += last
                if last or not self.keeps:
                    c.close()
                    c = None
                time.sleep(0.002)
            except (OSError, AssertionError) as error:
                self.failures.append(repr(error))
                c = None
        if c:
            c.close()


@pytest.mark.clear
def test_no_request_is_lost_while_one_takes_over_from_the_other(build, root, place):
    with contextlib.ExitStack() as stack:
        old = stack.enter_context(first(build, root, place, "-j", "2"))
        clients = [Client(old, keeps) for keeps in (True, True, False, False)]
        try:
            for workers in (1, 4, 2, 2, 3):
                new = stack.enter_context(take_over(build, old, "-j", str(workers)))
                before = sum(c.done for c in clients)
                eventually(lambda before=before: sum(c.done for c in clients) > before + 50)
                old.wait()
                old = new
        finally:
            for c in clients:
                c.stopping = True
            for c in clients:
                c.join()
        assert [c.failures for c in clients] == [[]] * 4
        assert all(c.closed for c in clients if c.keeps)


@pytest.mark.clear
def test_what_waits_in_the_queue_is_answered_by_the_successor(build, root, place):
    with first(build, root, place, "-j", "4", "--defer-accept", "off") as old:
        waiting = []
        with take_over(build, old, "-j", "1") as new:
            old.wait()
            new.signal(signal.SIGSTOP)
            for _ in range(40):  # on all four sockets
                waiting.append(new.connect().send(GET))
            new.signal(signal.SIGCONT)
            for c in waiting:
                assert c.response().status == 200
                c.close()


def test_a_download_goes_on_at_the_old_one(build, root, place):
    root.write("huge", b"a" * 30_000_000)
    with first(build, root, place, "-j", "2", "--limit", "keepalive-timeout=1") as old, old.connect(receive_buffer=4096) as c:
        c.send(b"GET /huge HTTP/1.1\r\nHost: a\r\n\r\n")
        c._fill()
        with take_over(build, old, "-j", "2") as new:
            eventually(lambda: any("a new process has taken over" in line for line in old.errors))
            assert new.get("/a.txt").status == 200
            assert old.process.poll() is None
            assert len(c.response().body) == 30_000_000
            old.wait()


def test_https_is_taken_over_too(build, root, place):
    cert, key = certificate()
    with first(build, root, place, "--cert", cert, "--key", key, "--tls-port", "0") as old:
        with take_over(build, old, "--cert", cert, "--key", key, "--tls-port", str(old.tls_port)) as new:
            old.wait()
            assert new.tls_port == old.tls_port and new.get("/a.txt").status == 200


def test_with_port_0_the_successor_has_the_same_ports(build, root, place):
    with first(build, root, place, "-j", "2") as old, first(build, root, place, "-j", "2") as new:
        old.wait()
        assert new.port == old.port


def failed(build, old, *flags, **options):
    """Returns the messages of a successor that cannot serve."""
    command = [runnable(build), "-c", old.root.path, "-i", "127.0.0.1", "-p", str(old.plain_port), "--tls-port", "0", "--take-over", old.path, *flags]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, **{**unprivileged(), **options})
    assert done.returncode == 1 and done.stderr
    return done.stderr


def test_one_that_cannot_serve_leaves_the_old_one_in_place_and_both_say_why(build, root, place):
    with first(build, root, place, "-j", "1") as old:
        said = failed(build, old, "--cert", place / "missing.pem")
        assert "cannot take over without the certificate" in said
        eventually(lambda: any("cannot take over, so this one goes on" in line and "missing.pem" in line for line in old.errors))
        assert old.get("/a.txt")["Connection"] is None
        with take_over(build, old):
            old.wait()


class Successor:
    """A process that connects to the old one, is greeted, and says what a test tells it to."""

    def __init__(self, old):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(TIMEOUT)
        self.socket.connect(str(old.path))
        self.greeting = self.socket.recv(GREETING.size, socket.MSG_WAITALL)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def answer(self):
        """Answers the greeting. Returns the number of sockets that are offered."""
        self.socket.sendall(self.greeting + NONCE)
        nonce, count = OFFER.unpack(self.socket.recv(OFFER.size, socket.MSG_WAITALL))
        assert nonce == NONCE
        return count

    def is_refused(self):
        """Returns whether the old one ends the connection without another byte."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True


def warned(old, text):
    return eventually(lambda: any(text in line for line in old.errors))


@pytest.mark.clear
@pytest.mark.parametrize(
    "said",
    [
        lambda greeting: b"rGET /a HTTP/1.1\r\nHost: a\r\n\r\n",
        lambda greeting: b"r",
        lambda greeting: b"f" + 100 * b"x",
        lambda greeting: greeting[:12] + b"\4" + greeting[13:] + NONCE,
        lambda greeting: greeting[:16] + NONCE + NONCE,
        lambda greeting: greeting[:31] + bytes([greeting[31] ^ 1]) + NONCE,
    ],
    ids=["request", "ready", "failed", "version", "nonce", "last octet"],
)
def test_what_does_not_answer_the_greeting_gets_no_socket(build, root, place, said):
    with first(build, root, place, "-j", "1") as old:
        with Successor(old) as s:
            name, version, nonce = GREETING.unpack(s.greeting)
            assert (name, version) == (b"gatling\n\0\0\0\0", 3) and nonce != bytes(16)
            s.socket.sendall(said(s.greeting))
            assert s.is_refused()
        assert warned(old, "gets no sockets, since it did not answer the greeting")
        assert old.get("/a.txt").status == 200
        with take_over(build, old):
            old.wait()


@pytest.mark.clear
def test_each_greeting_has_another_nonce(build, root, place):
    with first(build, root, place, "-j", "1") as old, Successor(old) as one, Successor(old) as other:
        assert one.greeting[16:] != other.greeting[16:]
        one.socket.sendall(other.greeting + NONCE)
        assert one.is_refused()


@pytest.mark.clear
def test_one_that_says_nothing_has_five_seconds_and_keeps_nobody_out(build, root, place):
    with first(build, root, place, "-j", "1") as old:
        begun = time.monotonic()
        with Successor(old) as silent, Successor(old) as slow:
            slow.socket.sendall(slow.greeting[:20])
            assert silent.is_refused() and slow.is_refused()
            assert 4.5 < time.monotonic() - begun < 10
        with contextlib.ExitStack() as stack:
            for _ in range(6):
                stack.enter_context(Successor(old))
            begun = time.monotonic()
            with take_over(build, old):
                old.wait()
            assert time.monotonic() - begun < 4


@pytest.mark.clear
def test_the_oldest_that_says_nothing_gives_way(build, root, place):
    with first(build, root, place, "-j", "1") as old, contextlib.ExitStack() as stack:
        starts = stack.enter_context(Successor(old))
        assert starts.answer() == 2
        silent = [stack.enter_context(Successor(old)) for _ in range(7)]  # the most, with the first one
        begun = time.monotonic()
        last = stack.enter_context(Successor(old))
        assert silent[0].is_refused()
        assert time.monotonic() - begun < 4
        assert last.answer() == 0  # another one is starting
        for s in silent[1:]:
            s.socket.setblocking(False)
            with pytest.raises(BlockingIOError):
                s.socket.recv(1)
        assert old.get("/a.txt").status == 200


@pytest.mark.clear
def test_while_one_gets_ready_another_is_told_so_at_once(build, root, place):
    with first(build, root, place, "-j", "1") as old, Successor(old) as s:
        assert s.answer() == 2
        begun = time.monotonic()
        assert "another process is just taking over" in failed(build, old)
        assert time.monotonic() - begun < 8
        s.socket.sendall(b"fwith a reason")
        s.socket.shutdown(socket.SHUT_WR)
        assert warned(old, "cannot take over, so this one goes on: with a reason")
        with take_over(build, old):
            old.wait()


@pytest.mark.clear
def test_a_successor_of_version_1_gets_no_socket_and_both_say_why(build, root, place):
    """It reads 16 bytes, finds another name in them than it knows, and says that what answers is not
    gatling."""
    with first(build, root, place, "-j", "1") as old:
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(TIMEOUT)
            s.connect(str(old.path))
            name, _ = GREETING_1.unpack(s.recv(GREETING_1.size, socket.MSG_WAITALL))
            assert not name.startswith(b"gatling 1\n\0")
        assert warned(old, "an older gatling cannot take over from this one: stop this one, then start that one")
        assert old.get("/a.txt").status == 200


@pytest.mark.clear
def test_one_that_ends_while_it_starts_leaves_the_old_one_in_place(build, root, place):
    with first(build, root, place, "-j", "1") as old:
        with Successor(old) as s:
            assert s.answer() == 2
        eventually(lambda: any("it has ended without a word" in line for line in old.errors))
        assert old.get("/a.txt").status == 200


def test_another_user_is_sent_nothing(build, root, place):
    if os.geteuid() != 0:
        pytest.skip("takes root")
    with first(build, root, place, "-j", "1") as old:
        assert (old.path.stat().st_mode & 0o777) == 0o600
        old.path.chmod(0o666)
        script = "import socket,sys; s=socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); sys.exit(len(s.recv(1)))"
        assert subprocess.run(["python3", "-c", script, str(old.path)], user=1, group=1, extra_groups=[]).returncode == 0
        assert old.get("/a.txt").status == 200


def test_a_process_that_is_not_gatling_is_reported(build, root, place):
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(str(place / "socket"))
        (place / "socket").chmod(0o777)
        s.listen()
        if os.geteuid() == 0:
            os.chown(place / "socket", 65534, 65534)
        answer = threading.Thread(target=lambda: s.accept()[0].sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n"))
        answer.start()
        done = subprocess.run([runnable(build), "-c", root.path, "-p", "0", "--take-over", place / "socket"], capture_output=True, text=True,
                              timeout=TIMEOUT)  # fmt: skip
        answer.join()
    assert done.returncode == 1 and "what answers there is not gatling" in done.stderr


def test_a_socket_that_a_dead_process_left_is_replaced(build, root, place):
    Server(build, root, "--take-over", place / "socket").kill()
    with first(build, root, place) as old:
        assert old.get("/a.txt").status == 200
        with take_over(build, old):
            old.wait()


def test_a_second_server_without_the_path_does_not_get_the_port(build, root, place):
    with first(build, root, place) as old:
        command = [runnable(build), "-c", root.path, "-i", "127.0.0.1", "-p", str(old.plain_port)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, **unprivileged())
        assert done.returncode == 1 and "in use" in done.stderr


@pytest.mark.clear
def test_a_port_that_changes_its_protocol_speaks_the_new_one_on_all_sockets(build, root, place):
    cert, key = certificate()
    flags = ("--cert", cert, "--key", key, "--tls-port", "0")
    with first(build, root, place, "-j", "2", *flags) as old:
        path = ("--take-over", old.path)
        swapped = ("-i", "127.0.0.1", "-p", str(old.tls_port))
        with Server(build, root, "-j", "4", *path, "--cert", cert, "--key", key, "--tls-port", str(old.plain_port), address=swapped) as new:
            old.wait()
            for _ in range(40):
                assert new.get("/a.txt").status == 200


@pytest.mark.clear
def test_a_failed_start_with_more_workers_takes_no_connection(build, root, place):
    with first(build, root, place, "-j", "1") as old:
        client = Client(old, keeps=False)
        try:
            for _ in range(5):
                failed(build, old, "-j", "8", "--cert", str(place / "missing.pem"))
        finally:
            client.stopping = True
            client.join()
        assert client.done and client.failures == []


@contextlib.contextmanager
def predecessor(place, talk):
    """Runs talk(channel, send_sockets) with the first process that connects. Yields the port of its
    listening socket, which send_sockets() sends with that of the path."""
    with socket.socket(socket.AF_UNIX) as s, socket.socket() as shared:
        shared.bind(("127.0.0.1", 0))
        shared.listen()
        s.bind(str(place / "socket"))
        (place / "socket").chmod(0o777)
        if os.geteuid() == 0:
            os.chown(place / "socket", 65534, 65534)
        s.listen()

        def be_old():
            channel = s.accept()[0]

            def send_sockets(kinds=b"ph"):
                for fd, kind in zip((s.fileno(), shared.fileno()), kinds):
                    socket.send_fds(channel, [b"x"], [fd])
                    channel.sendall(bytes([kind]))

            with channel:
                talk(channel, send_sockets)

        old = threading.Thread(target=be_old)
        old.start()
        yield shared.getsockname()[1]
        old.join()


def be_version_1(channel, send_sockets):
    channel.sendall(GREETING_1.pack(b"gatling 1\n", 2))
    send_sockets()


def be_version_2(channel, send_sockets, nonce=None, kinds=b"ph"):
    greeting = GREETING.pack(b"gatling\n", 2, NONCE)
    channel.sendall(greeting)
    answer = channel.recv(GREETING.size + 16, socket.MSG_WAITALL)
    assert answer[: GREETING.size] == greeting
    channel.sendall(OFFER.pack(nonce or answer[GREETING.size :], 2))
    send_sockets(kinds)


def successor_of(build, root, place, port):
    """Runs a successor that cannot take over. Returns what it says."""
    command = [runnable(build), "-c", root.path, "-i", "127.0.0.1", "-p", str(port), "--take-over", place / "socket"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT)
    assert done.returncode == 1 and "serving" not in done.stderr
    return done.stderr


@pytest.mark.parametrize("be_old", [be_version_1, be_version_2])
def test_a_successor_that_comes_too_late_does_not_serve(build, root, place, be_old):
    def talk(channel, send_sockets):
        be_old(channel, send_sockets)
        channel.sendall(b"l")

    with predecessor(place, talk) as port:
        assert "has given up waiting" in successor_of(build, root, place, port)


@pytest.mark.clear
@pytest.mark.parametrize("be_old", [be_version_1, be_version_2])
def test_a_predecessor_of_either_version_is_taken_over(build, root, place, be_old):
    heard = []

    def talk(channel, send_sockets):
        be_old(channel, send_sockets)
        heard.append(channel.recv(1))
        channel.sendall(b"k")

    with predecessor(place, talk) as port:
        with Server(build, root, "--take-over", place / "socket", address=("-i", "127.0.0.1", "-p", str(port))) as new:
            assert heard == [b"r"] and new.plain_port == port and new.get("/a.txt").status == 200


@pytest.mark.clear
@pytest.mark.parametrize(
    "talk,says",
    [
        (lambda channel, _: channel.sendall(GREETING.pack(b"gatling\n", 4, NONCE)), "it speaks version 4 of the protocol, this one 3: stop it, then start this one"),
        (lambda channel, send: be_version_2(channel, send, nonce=NONCE), "what answers there is not gatling"),
        (lambda channel, send: be_version_2(channel, send, kinds=b"px"), "a socket of an unknown kind was received"),
    ],
    ids=["version", "nonce", "kind"],
)
def test_a_predecessor_that_says_something_else_is_not_taken_over(build, root, place, talk, says):
    def talk_and_wait(channel, send_sockets):
        with contextlib.suppress(OSError):
            talk(channel, send_sockets)
            while channel.recv(100):
                pass

    with predecessor(place, talk_and_wait) as port:
        assert says in successor_of(build, root, place, port)


@pytest.mark.clear
def test_a_certificate_that_has_gone_does_not_end_https(build, root, place):
    cert, key = certificate()
    (root.path / "server.pem").write_bytes(cert.read_bytes() + key.read_bytes())
    (root.path / "server.pem").chmod(0o600)
    if os.geteuid() == 0:
        os.chown(root.path / "server.pem", 65534, 65534)
    with first(build, root, place, "--tls-port", "0") as old:
        (root.path / "server.pem").unlink()
        assert "take over without HTTPS" in failed(build, old, "--tls-port", str(old.tls_port))
        assert old.get("/a.txt").status == 200


@pytest.mark.clear
def test_sigterm_keeps_its_limit_when_one_takes_over(build, root, place):
    with first(build, root, place, "-T", "2", drain_delay=20) as old, old.connect() as kept:
        kept.get("/a.txt")
        old.signal()
        eventually(lambda: old.get("/a.txt")["Connection"] == "close")
        with take_over(build, old):
            old.wait()
            kept.assert_closed()


# --- a service manager ---

@pytest.mark.clear
def test_a_socket_of_the_service_manager_is_served_and_outlives_the_server(build, root):
    with listener() as s:
        port = s.getsockname()[1]
        server = activated(build, root, s)
        assert server.port == port and server.get("/a.txt").status == 200
        server.kill()  # as in a crash
        with Connection(("127.0.0.1", port)) as waiting:
            waiting.send(GET)
            with activated(build, root, s):
                assert waiting.response().status == 200


@pytest.mark.clear
@pytest.mark.parametrize("flags", [(), ("--upstream", "127.0.0.1")], ids=["", "upstream"])
def test_a_socket_that_another_process_has_shut_listens_again(build, root, flags):
    """As a predecessor may have done under overload, before it ended."""
    with socket.socket() as keeper, socket.socket() as s:
        keeper.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        keeper.bind(("127.0.0.1", 0))
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        s.bind(keeper.getsockname())  # to a number, which it keeps when it does not listen
        s.listen(100)
        with activated(build, root, s, flags=("-j", "2", *flags)) as server:
            assert server.get("/a.txt").status == 200
            s.shutdown(socket.SHUT_RD)
            eventually(lambda: answers(server))


@pytest.mark.clear
def test_a_socket_does_not_keep_what_its_last_owner_allowed_connections_in_the_kernel(build, root):
    with listener() as s:
        s.setsockopt(socket.IPPROTO_TCP, TCP_NOTSENT_LOWAT, 16384)  # as it leaves a crowd
        with activated(build, root, s) as server:
            assert server.get("/a.txt").status == 200
            assert s.getsockopt(socket.IPPROTO_TCP, TCP_NOTSENT_LOWAT) & 0xFFFFFFFF > 16384


def answers(server):
    try:
        return server.get("/a.txt").status == 200
    except ConnectionError:
        return False


@pytest.mark.clear
def test_a_group_of_sockets_is_dealt_out_to_the_workers(build, root):
    with contextlib.ExitStack() as stack:
        address, sockets = ("127.0.0.1", 0), []
        for _ in range(3):
            s = stack.enter_context(socket.socket())
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            s.bind(address)
            s.listen(100)
            address = s.getsockname()
            sockets.append(s)
        with activated(build, root, *sockets) as server:
            for _ in range(60):
                assert server.get("/a.txt").status == 200


@pytest.mark.clear
def test_one_socket_is_shared_by_the_workers_and_none_is_opened_beside_it(build, root):
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        s.bind(("127.0.0.1", 0))
        s.listen(100)
        with activated(build, root, s, flags=("-j", "4")) as server:
            for _ in range(20):
                assert server.get("/a.txt").status == 200
            found = subprocess.run(["ss", "-Hltn", f"sport = :{server.port}"], capture_output=True, text=True, check=True).stdout
            assert len(found.splitlines()) == 1


def test_a_socket_called_https_speaks_tls(build, root):
    cert, key = certificate()
    with listener() as plain, listener() as secure:
        flags = ("-j", "1", "--cert", cert, "--key", key)
        with activated(build, root, plain, secure, names="http:https", flags=flags) as server:
            assert (server.plain_port, server.tls_port) == (plain.getsockname()[1], secure.getsockname()[1])
            assert server.get("/a.txt").status == 200


@pytest.mark.clear
def test_a_unix_socket_of_the_service_manager_is_served(build, root, place):
    with listener(socket.AF_UNIX, str(place / "www")) as s:
        (place / "www").chmod(0o666)
        with activated(build, root, s) as server:
            assert f"unix:{place / 'www'}" in server.banner
            with Connection(str(place / "www"), family=socket.AF_UNIX) as c:
                assert c.get("/a.txt").status == 200


def test_what_is_no_listening_socket_is_refused_by_its_number(build, root):
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as s, pytest.raises(AssertionError, match="descriptor 3 of LISTEN_FDS"):
        activated(build, root, s)


@pytest.fixture
def manager(place):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.bind(str(place / "notify"))
        (place / "notify").chmod(0o777)
        s.settimeout(TIMEOUT)
        yield s


@pytest.mark.clear
def test_the_service_manager_hears_of_start_reload_and_end(build, root, manager):
    with Server(build, root, launcher=("env", f"NOTIFY_SOCKET={manager.getsockname()}")) as server:
        said = manager.recv(4096).decode().split("\n")
        assert said[:2] == ["READY=1", f"MAINPID={server.keeper}"] and said[2].startswith(f"STATUS=serving {root.path} on http://127.0.0.1:{server.port}/")
        server.signal(signal.SIGHUP)
        assert re.fullmatch(r"RELOADING=1\nMONOTONIC_USEC=\d+", manager.recv(4096).decode())
        assert manager.recv(4096) == b"READY=1"
        server.signal()
        assert manager.recv(4096) == b"STOPPING=1"
        server.wait()


@pytest.mark.clear
def test_a_service_manager_that_is_behind_hears_of_the_start_later(build, root, manager):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
        other.connect(manager.getsockname())
        other.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while other.send(b"X"):
                pass
    with Server(build, root, launcher=("env", f"NOTIFY_SOCKET={manager.getsockname()}")):
        while (said := manager.recv(4096)) == b"X":
            pass
        assert said.startswith(b"READY=1")


@pytest.mark.clear
def test_the_service_manager_hears_of_the_new_main_process_and_of_no_end(build, root, place, manager):
    notify = ("env", f"NOTIFY_SOCKET={manager.getsockname()}")
    with first(build, root, place, launcher=notify) as old:
        assert manager.recv(4096).startswith(b"READY=1")
        with take_over(build, old, launcher=notify) as new:
            old.wait()
            assert f"MAINPID={new.keeper}" in manager.recv(4096).decode()
            new.stop()
            assert manager.recv(4096) == b"STOPPING=1"


@contextlib.contextmanager
def stopped(threads):
    """Stops only these threads of another process, by ptrace(2)."""
    seize, interrupt, detach, wall = 0x4206, 0x4207, 17, 0x40000000
    ptrace = ctypes.CDLL(None, use_errno=True).ptrace
    for thread in threads:
        for request in (seize, interrupt):
            if ptrace(request, thread, None, None) == -1:
                pytest.skip(f"ptrace: {os.strerror(ctypes.get_errno())}")
        os.waitpid(thread, wall)
    yield
    for thread in threads:
        ptrace(detach, thread, None, None)


@pytest.mark.clear
def test_signs_of_life_stop_when_a_worker_hangs(build, root, manager):
    with Server(build, root, "-j", "2", launcher=("env", f"NOTIFY_SOCKET={manager.getsockname()}", "WATCHDOG_USEC=1000000")) as server:
        assert manager.recv(4096).startswith(b"READY=1")
        for _ in range(3):
            assert manager.recv(4096) == b"WATCHDOG=1"
        with stopped([thread for thread in server.thread_ids() if thread != server.pid]):
            manager.settimeout(3)
            with contextlib.suppress(TimeoutError):
                while manager.recv(4096):
                    pass
        manager.settimeout(TIMEOUT)
        assert manager.recv(4096) == b"WATCHDOG=1"


@pytest.mark.clear
def test_signs_of_life_go_on_while_signals_come(build, root, manager):
    with Server(build, root, launcher=("env", f"NOTIFY_SOCKET={manager.getsockname()}", "WATCHDOG_USEC=1000000")) as server:
        assert manager.recv(4096).startswith(b"READY=1")
        manager.settimeout(0.05)
        until, signs = time.monotonic() + 2, 0
        while time.monotonic() < until:
            server.signal(signal.SIGUSR1)
            with contextlib.suppress(TimeoutError):
                signs += manager.recv(4096) == b"WATCHDOG=1"
        assert signs >= 3
