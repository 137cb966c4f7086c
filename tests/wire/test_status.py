"""--status: a page, JSON, OpenMetrics, text; how it is reached, and what it costs others."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from browser import Browser
from gatling import TIMEOUT, Connection, Server, certificate, eventually, runnable, trusting
from http2 import END_HEADERS, END_STREAM, HEADERS, Http2, frame, request
from served import BIG
from test_restart import activated, first, listener, take_over

pytestmark = [pytest.mark.decided, pytest.mark.tcp]


@pytest.fixture
def shown(build, root, place):
    with Server(build, root, "-j", "2", "--status", f"unix:{place / 'status'}") as server:
        server.status = place / "status"
        yield server


def status_of(server):
    return Connection(str(server.status), family=socket.AF_UNIX)


def ask(server, path="/json", **options):
    with status_of(server) as c:
        return c.get(path, **options)


def total(server):
    return json.loads(ask(server).body)["total"]


def test_requests_and_answers_are_counted_one_by_one(shown):
    with shown.connect() as c:
        for _ in range(100):
            assert c.get("/a.txt").status == 200
        for _ in range(10):
            assert c.get("/missing").status == 404
        seen = eventually(lambda: (t := total(shown))["requests"]["http/1"] == 110 and t)
        assert seen["answers"] == {"200": 100, "404": 10}
        assert seen["connections"]["idle"] == 1 and sum(seen["connections"].values()) == 1
        assert seen["accepted_connections"] == 1
        assert seen["cache_lookups"]["hit"] >= 98 and seen["cache_lookups"]["absent"] >= 1
        assert seen["sent_bytes"] > 110 * 100
        assert 0.9 < max(json.loads(ask(shown).body)["seconds"]["cache_hit_ratio"]) <= 1
        assert eventually(lambda: abs(sum(sum(w["seconds"]["requests"]) for w in json.loads(ask(shown).body)["workers"]) - 110) < 11)
    assert eventually(lambda: sum(total(shown)["connections"].values()) == 0)


def test_when_a_worker_fails_no_socket_of_it_is_left_that_takes_connections(first_build, root, place):
    """The status page looks at the sockets of all workers; so all end, and a second server may have the port."""
    tracer = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=epoll_wait", "-e", "inject=epoll_wait:error=EINVAL:when=50"]
    server = Server(first_build, root, "-j", "2", "--status", f"unix:{place / 'status'}", tracer=tracer)
    try:
        with server.connect() as c, pytest.raises((AssertionError, ConnectionError)):
            while True:
                c.get("/a.txt")
    finally:
        server.wait(1)
    assert "epoll failed: Invalid argument" in server.errors[-1]


def test_a_worker_keeps_its_part_of_the_files_that_the_cache_may_have(build, root, place):
    for n in range(40):
        root.write(f"{n}.bin", bytes([n]) * 50_000)
    with Server(build, root, "-j", "2", "--limit", "cache=2M", "--status", f"unix:{place / 'status'}") as server:
        server.status = place / "status"
        with server.connect() as c:
            for n in range(40):
                assert c.get(f"/{n}.bin").body == bytes([n]) * 50_000
        assert eventually(lambda: 10 <= sum(w["cache_files"] for w in json.loads(ask(server).body)["workers"]) <= 21)
    refused = subprocess.run([runnable(build), "--limit", "cache=1023K"], capture_output=True, text=True, check=False)
    assert (refused.returncode, "--limit cache takes at least 1048576 bytes" in refused.stderr) == (2, True)


@pytest.mark.clear
@pytest.mark.parametrize("over", ["HTTP/1.1", "TLS", "HTTP/2"])
def test_a_large_file_is_kept_in_memory_where_its_bytes_are_copied(first_build, files, place, over):
    cert, key = certificate()
    flags = ("--cert", cert, "--key", key, "--tls-port", "0", "--status", f"unix:{place / 'status'}")
    with Server(first_build, files, "-j", "1", *flags) as server:
        server.status = place / "status"
        port, context = (server.tls_port, trusting(cert)) if over == "TLS" else (server.plain_port, None)

        def bytes_in_memory():
            with Http2(server) if over == "HTTP/2" else Connection(("127.0.0.1", port), tls=context, name="localhost") as c:
                assert [c.get("/big.bin").body == BIG for _ in range(2)] == [True, True]
            return total(server)["cache_bytes"]

        if over == "HTTP/1.1":
            assert max(bytes_in_memory() for _ in range(5)) < 10_000
        else:
            held = eventually(lambda: (n := bytes_in_memory()) > 10_000 and n)
            assert len(BIG) < held < len(BIG) + 10_000
            assert bytes_in_memory() == held


def test_streams_of_http2_are_requests(shown):
    with Http2(shown) as c:
        for _ in range(5):
            assert c.get("/a.txt").status == 200
        assert eventually(lambda: total(shown)["requests"] == {"http/1": 0, "http/2": 5, "http/3": 0})
        assert total(shown)["answers"] == {"200": 5}


def test_a_handshake_is_full_or_resumed(shown):
    if not shown.tls:
        pytest.skip("of HTTPS")
    with shown.connect() as c:
        assert c.get("/a.txt").status == 200
        session = c.socket.session
    with shown.connect(session=session) as c:
        assert c.get("/a.txt").status == 200
    assert eventually(lambda: total(shown)["tls_handshakes"] == {"full": 1, "resumed": 1, "failed": 0})


def test_times_are_of_all_answers_while_there_are_few(shown):
    assert shown.get("/a.txt").status == 200
    seen = eventually(lambda: (s := json.loads(ask(shown).body))["quantiles"]["duration"]["p50"] and s)
    assert 0 < seen["quantiles"]["first_byte"]["p50"] <= seen["quantiles"]["duration"]["p99"] < TIMEOUT


def test_prometheus_understands_the_metrics(shown):
    with shown.connect() as c:
        for _ in range(300):
            assert c.get("/a.txt").status == 200
    eventually(lambda: total(shown)["requests"]["http/1"] == 300)
    answer = ask(shown, "/metrics")
    assert answer["Content-Type"].startswith("application/openmetrics-text")
    families = {f.name: f for f in text_string_to_metric_families(answer.body.decode())}
    assert sum(s.value for s in families["gatling_requests"].samples) == 300
    assert {s.labels["worker"] for s in families["gatling_requests"].samples} == {"0", "1"}
    assert [(s.labels["status"], s.value) for s in families["gatling_answers"].samples] == [("200", 300)]
    buckets = [s.value for s in families["gatling_duration_seconds"].samples if s.name.endswith("_bucket")]
    assert buckets == sorted(buckets) and buckets[-1] > 0
    assert all(f.documentation for f in families.values())


def test_the_text_fits_a_terminal(shown):
    assert shown.get("/a.txt").status == 200
    done = subprocess.run([shown.process.args[0], "--top", f"unix:{shown.status}"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("gatling: serving ") and "first byte, 99 %" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "\033" not in done.stdout


@pytest.mark.parametrize("address", ["unix:/nowhere/status", "0", "a:b", "127.0.0.1:99999", "unix:"])
def test_top_says_what_it_cannot_show(build, address):
    done = subprocess.run([runnable(build), "--top", address], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and done.stderr.startswith(f"gatling: cannot show {address}: ") and not done.stdout


def test_what_is_not_there_is_refused(shown):
    assert ask(shown, "/other").status == 404
    assert ask(shown, "/json", method="POST").status == 405
    assert ask(shown, "/text", method="HEAD").body == b""
    with status_of(shown) as c:
        c.send(b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 8000)
        assert c.response().status == 400
    assert ask(shown).status == 200


def own_name():
    """A name of this machine, which --status can resolve."""
    try:
        socket.create_server((socket.gethostname(), 0)).close()
    except OSError:
        pytest.skip("this machine has no name")
    return socket.gethostname()


@contextlib.contextmanager
def reached(build, root, *flags, name=None):
    """A server whose status page is at a port; a service manager has opened it, or --status names it."""
    with contextlib.ExitStack() as stack:
        if name:
            with socket.create_server((name, 0)) as free:
                port = free.getsockname()[1]
            stack.enter_context(Server(build, root, "-j", "1", "--status", f"{name}:{port}", *flags))
        else:
            s, status = stack.enter_context(listener()), stack.enter_context(listener())
            port = status.getsockname()[1]
            stack.enter_context(activated(build, root, s, status, names="http:status", flags=("-j", "1", *flags)))
        yield name or "127.0.0.1", port


def status_to(address, head, *fields):
    with Connection(address) as c:
        return c.send("\r\n".join([*head, *fields, "", ""]).encode()).response()


GOOD = ["127.0.0.1", "127.0.0.1:9000", "[::1]", "[::1]:9000", "[2001:db8::1]:80", "192.0.2.1", "localhost", "LocalHost:9000", "localhost."]
EVIL = ["evil.example.org", "evil.example.org:9000", "127.0.0.1.nip.io", "localhost.example.org", "a.localhost", "2130706433", "0x7f000001",
        "127.1", "[::1].example.org", "name.example.org.evil.example.org"]  # fmt: skip


@pytest.mark.clear
def test_a_host_that_is_no_address_is_not_answered(first_build, root):
    """It may be a name of another site that leads here, so that the page of that site could read this one."""
    with reached(first_build, root) as address:
        for path in ("/", "/json", "/metrics", "/text"):
            for host in GOOD:
                assert status_to(address, [f"GET {path} HTTP/1.1", f"Host: {host}"]).status == 200, host
            for host in EVIL:
                answer = status_to(address, [f"GET {path} HTTP/1.1", f"Host: {host}"])
                assert answer.status in (400, 421) and b"workers" not in answer.body, host
        refused = status_to(address, ["GET / HTTP/1.1", "Host: evil.example.org"])
        assert refused.status == 421 and b"ask for its address, or start gatling with --status NAME:PORT" in refused.body
        assert status_to(address, ["GET http://evil.example.org/json HTTP/1.1", "Host: 127.0.0.1"]).status == 421
        assert status_to(address, ["GET /json HTTP/1.1", "Host:"]).status == 421
        assert status_to(address, ["GET /json HTTP/1.0", "Host: evil.example.org"]).status == 421
        assert status_to(address, ["GET /json HTTP/1.0"]).status == 200
        assert status_to(address, ["GET /other HTTP/1.1", "Host: evil.example.org"]).status == 421


@pytest.mark.clear
def test_the_names_in_the_options_are_answered(first_build, root):
    name = own_name()
    with reached(first_build, root, name=name) as address:
        assert status_to(address, ["GET /json HTTP/1.1", f"Host: {name.upper()}:9000"]).status == 200
        assert status_to(address, ["GET /json HTTP/1.1", f"Host: x{name}"]).status == 421
        shown_by_top = subprocess.run([runnable(first_build), "--top", f"{name}:{address[1]}"], capture_output=True, text=True, check=True)
        assert shown_by_top.stdout.startswith("gatling: serving ")


@pytest.mark.clear
def test_pages_of_other_sites_are_not_answered(first_build, root, place):
    with reached(first_build, root) as address:
        for value, status in (("none", 200), ("same-origin", 200), ("same-site", 403), ("cross-site", 403), ("", 403), ("new", 403)):
            answer = status_to(address, ["GET /json HTTP/1.1", "Host: 127.0.0.1"], f"Sec-Fetch-Site: {value}")
            assert answer.status == status, value
        both = ["Sec-Fetch-Site: none", "sec-fetch-site:cross-site"]
        answer = status_to(address, ["GET /json HTTP/1.1", "Host: 127.0.0.1"], *both)
        assert answer.status == 403 and b"Enter the address" in answer.body
    with Server(first_build, root, "-j", "1", "--status", f"unix:{place / 'status'}") as server:
        server.status = place / "status"
        assert ask(server, host="status.example.org").status == 200  # no browser connects to a unix socket, but a proxy in front may
        with status_of(server) as c:
            assert c.get("/json", "Sec-Fetch-Site: cross-site").status == 403


def test_silent_clients_make_room(shown):
    with contextlib.ExitStack() as stack:
        silent = [stack.enter_context(status_of(shown)) for _ in range(40)]
        assert ask(shown).status == 200
        silent[0].assert_closed()


def test_the_socket_is_of_its_owner_alone(shown):
    assert shown.status.stat().st_mode & 0o777 == 0o600


@pytest.mark.clear
def test_connections_past_their_deadlines_are_counted_by_what_they_were_late_with(build, files, place):
    limits = ("-T", "1", "--limit", "head-timeout=1", "--limit", "keepalive-timeout=1", "--proxy-protocol", "127.0.0.2")
    with Server(build, files, "-j", "1", "--defer-accept", "off", "--status", f"unix:{place / 'status'}", *limits) as server:
        server.status = place / "status"
        idle, late, stalled = server.connect(), server.connect(source="127.0.0.2"), server.connect(receive_buffer=4096)
        streaming, head, body = Http2(server, window=0), server.connect(), server.connect()
        frames = Http2(server)
        frames.send(frame(HEADERS, END_HEADERS | END_STREAM, 1, request("/small.bin"))[:20])
        head.send(b"GET / HTTP/1.1\r\n")
        body.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\na")
        assert idle.get("/small.bin").status == 200
        stalled.send(b"GET /big.bin HTTP/1.1\r\nHost: a\r\n\r\n")
        streaming.ask("/big.bin")
        eventually(lambda: [total(server)["closed_connections"][name] for name in ("keepalive", "late", "stalled")] == [1, 3, 3])
        for c in (idle, late, stalled, streaming, head, body, frames):
            c.close()


@pytest.mark.clear
def test_a_connection_that_is_refused_is_counted(build, root, place):
    with Server(build, root, "-j", "1", "--limit", "address-rate=1:1", "--status", f"unix:{place / 'status'}") as server:
        server.status = place / "status"
        with server.connect() as c:
            assert [c.get("/a.txt").status for _ in range(3)] == [200, 429, 429]
        assert eventually(lambda: total(server)["refused_requests"] == 2)


@pytest.mark.clear
def test_a_successor_shows_itself(build, root, place):
    flags = ("-j", "1", "--status", f"unix:{place / 'status'}")
    with first(build, root, place, *flags) as old:
        old.status = place / "status"
        assert old.get("/a.txt").status == 200
        assert eventually(lambda: total(old)["answers"] == {"200": 1})
        with take_over(build, old, *flags) as new:
            new.status = old.status
            old.wait()
            assert total(new)["answers"] == {}
            assert new.get("/a.txt").status == 200
            assert eventually(lambda: total(new)["answers"] == {"200": 1})


@pytest.mark.others
@pytest.mark.clear
def test_the_page_in_a_browser(build, root):
    with listener() as s, listener() as status, activated(build, root, s, status, names="http:status") as server:
        with Browser() as browser:
            browser.go(f"http://127.0.0.1:{status.getsockname()[1]}/")
            assert server.get("/a.txt").status == 200
            text = "document.querySelector('#tables').textContent"
            assert eventually(lambda: "2001" in browser.run(text))  # status 200, once
            assert str(server.root.path) in browser.run("document.querySelector('#about').textContent")
            assert browser.run("document.querySelectorAll('figure').length") == 12
            assert browser.run("document.querySelector('[role=status]').tagName") == "DIV"  # a list may not have this role
            curves = "[...document.querySelectorAll('.spark')].map(curve => curve.getAttribute('aria-label')).join()"
            assert eventually(lambda: re.search(r"requests of worker \d: now \S+ most (1|0\.9)", browser.run(curves)))
            browser.resize(360, 800)
            assert browser.run("document.documentElement.scrollWidth") <= 360
            assert not browser.messages


@pytest.mark.parametrize("address", ["nonsense", "70000", "127.0.0.1:65536"])
def test_a_status_page_that_cannot_be_shown_ends_the_start(build, root, address):
    done = subprocess.run([runnable(build), "-c", root.path, "-p", "0", "--status", address], capture_output=True, text=True,
                          timeout=20, check=False)  # fmt: skip
    assert done.returncode == 1
    assert f"cannot show the status on {address}: it takes unix:PATH, PORT or ADDRESS:PORT" in done.stderr


def machine_drops():
    names, numbers = (line.split() for line in Path("/proc/net/netstat").read_text().splitlines() if line.startswith("TcpExt:"))
    return int(numbers[names.index("ListenDrops")])


def lose_connections(port, most):
    """Connects to a port whose connections nobody accepts, until the kernel drops some. Returns the sockets."""
    before, clients = machine_drops(), []
    while machine_drops() == before:
        assert len(clients) < most
        for _ in range(100):
            clients.append(socket.socket())
            clients[-1].setblocking(False)
            clients[-1].connect_ex(("127.0.0.1", port))
    return clients


@pytest.mark.clear
def test_only_connections_that_the_server_loses_are_counted(first_build, root, place):
    with Server(first_build, root, "-j", "1", "--defer-accept", "off", "--status", f"unix:{place / 'status'}") as server:
        server.status = place / "status"
        with socket.create_server(("127.0.0.1", 0), backlog=1) as other:
            clients = lose_connections(other.getsockname()[1], 1000)
        assert total(server)["kernel_listen_drops"] == 0
        os.kill(server.pid, signal.SIGSTOP)
        try:
            clients += lose_connections(server.port, 10_000)
        finally:
            os.kill(server.pid, signal.SIGCONT)
        assert eventually(lambda: total(server)["kernel_listen_drops"] > 0)
        for client in clients:
            client.close()
