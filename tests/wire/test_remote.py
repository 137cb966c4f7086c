"""Files on other machines, or that programs serve; FUSE stands for all of them. What hangs there is
answered with 503 within a second or so, and nothing else waits for it."""

import contextlib
import random
import signal
import sys
import time
from pathlib import Path

import pytest

from gatling import Root, Server, certificate, eventually
from http2 import Http2
from slow import settled, slowed
from test_guard import HASHES, basic
from test_https import FLAGS, Tls, names
from upstream import Upstream

LARGE = random.Random(5).randbytes(3_000_000)
# A second or so, on a busy machine. What nobody gives up is answered after 23 s, and what the loop
# waits for never.
HUNG_S = 10
FORGETS = ("--remembered", "0.2")  # as NFS does, if later: so each look is a new one

pytestmark = [pytest.mark.clear, pytest.mark.moving]


@contextlib.contextmanager
def beside(build, files, *flags, name="far", near=None, **options):
    """Yields a server whose root is of this machine, except for the directory `name`, and the disk
    with that."""
    root = Root({"near.txt": b"near", "near.bin": LARGE, **(near or {})})
    (root.path / name).mkdir()
    with slowed(files, *FORGETS, path=root.path / name) as disk, Server(build, root, "-j", "1", *flags, **options) as server:
        try:
            yield server, disk
        finally:  # the kernel lets no process end that has a file open there, nor a sanitizer look at its threads
            disk.go_on()
    root.remove()


def timed(get, *arguments, **options):
    started = time.monotonic()
    return get(*arguments, **options), time.monotonic() - started


def assert_unavailable(server, path, **options):
    answer, seconds = timed(server.get, path, **options)
    assert answer.status == 503 and answer["Retry-After"] and seconds < HUNG_S, (answer.status, seconds)


def assert_near(server):
    for path, content in ("/near.txt", b"near"), ("/near.bin", LARGE):
        answer, seconds = timed(server.get, path)
        assert answer.body == content and seconds < HUNG_S


def test_what_hangs_is_unavailable_and_nothing_else_waits(build):
    with beside(build, {"small.txt": b"small", "large.bin": LARGE, "other.txt": b"other"}) as (server, disk):
        assert server.get("/far/small.txt").body == b"small" and server.get("/far/large.bin").body == LARGE
        disk.hang()
        with server.connect() as waiting:
            time.sleep(2.1)  # what was known is not used any longer
            waiting.send(b"GET /far/small.txt HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert_near(server)
            assert waiting.response().status == 503
        for path in "/far/small.txt", "/far/large.bin", "/far/other.txt", "/far/none", "/far/":
            assert_unavailable(server, path)
        assert_near(server)
        assert [line for line in server.errors if "far: the file system does not answer" in line]
        disk.go_on()
        eventually(lambda: server.get("/far/other.txt").body == b"other" and server.get("/far/large.bin").body == LARGE)
        eventually(lambda: [line for line in server.errors if "far: the file system answers again" in line])


def test_many_requests_for_what_hangs_take_no_more_than_its_threads(build):
    with beside(build, {f"{n}.txt": b"x" for n in range(100)}) as (server, disk):
        assert server.get("/far/0.txt").status == 200
        threads = len(server.thread_ids())
        disk.hang()
        with contextlib.ExitStack() as stack:
            waiting = [stack.enter_context(server.connect()).send(b"GET /far/%d.txt HTTP/1.1\r\nHost: localhost\r\n\r\n" % n) for n in range(1, 100)]
            assert_near(server)
            assert {connection.response().status for connection in waiting} == {503}
        assert len(server.thread_ids()) <= threads + 16 + 8
        disk.go_on()
        eventually(lambda: server.get("/far/99.txt").status == 200)


@pytest.mark.parametrize("whole", [False, True], ids=["mounted", "root"])
def test_a_site_on_another_machine_is_served_as_one_on_this(build, whole):
    files = {
        "index.html": b"<p>index",
        "page.html": b"<p>page",
        "a.js": b"1" * 5000,
        "a.js.gz": b"packed",
        "large.bin": LARGE,
        "404.html": b"none",
        "_headers": b"/*\n  X-Own: yes\n",
        "_redirects": b"/from /to 301!\n",
        "closed/.htaccess": b"realm\nann:" + HASHES["md5crypt"].encode(),
        "closed/x.txt": b"x",
        "list/b.txt": b"",
    }
    with slowed(files, *FORGETS) if whole else contextlib.nullcontext() as disk, contextlib.ExitStack() as stack:
        if whole:
            server = stack.enter_context(Server(build, disk, "-j", "1"))
        else:
            server, disk = stack.enter_context(beside(build, files, name="far.example"))
        settled(disk.source.path / "a.js.gz")

        def get(path, *fields, **options):
            return server.get(path, *fields, host="far.example", **options)

        for _ in range(2):
            assert get("/").body == b"<p>index" and get("/page").body == b"<p>page" and get("/large.bin").body == LARGE
            assert get("/a.js").body == b"1" * 5000 and get("/a.js", "Accept-Encoding: gzip").body == b"packed"
            assert get("/none").status == 404 and get("/none").body == b"none" and get("/")["X-Own"] == "yes"
            assert get("/from")["Location"] == "/to" and get("/list")["Location"] == "/list/" and b"b.txt" in get("/list/").body
            assert get("/closed/x.txt").status == 401 and get("/closed/x.txt", basic("ann", "secret")).status in (200, 401)
            part = get("/large.bin", "Range: bytes=2000000-2999999")
            assert part.status == 206 and part.body == LARGE[2_000_000:]
            assert get("/large.bin", f"If-None-Match: {get('/large.bin')['ETag']}").status == 304
            time.sleep(1.2)
        server.get("/")
        disk.source.write("page.html", b"<p>new")
        disk.source.write("list/.htaccess", b"realm\nann:" + HASHES["md5crypt"].encode())
        eventually(lambda: get("/page").body == b"<p>new" and get("/list/").status == 401, 4)
        (disk.source.path / "closed" / ".htaccess").unlink()
        eventually(lambda: get("/closed/x.txt").body == b"x", 4)


def test_rules_that_hang_let_nobody_in(build):
    with beside(build, {".htaccess": b"realm\nann:" + HASHES["md5crypt"].encode(), "x.txt": b"x"}) as (server, disk):
        assert server.get("/far/x.txt").status == 401
        disk.hang()
        until = time.monotonic() + 4
        while time.monotonic() < until:
            assert server.get("/far/x.txt").status in (401, 503)
        assert_unavailable(server, "/far/x.txt")
        disk.go_on()
        eventually(lambda: server.get("/far/x.txt").status == 401)


def test_a_host_that_hangs_leaves_the_others_alone(build):
    with beside(build, {"x.txt": b"far"}, name="far.example", near={"near.example/x.txt": b"near"}) as (server, disk):
        assert [server.get("/x.txt", host=f"{host}.example").body for host in ("far", "near")] == [b"far", b"near"]
        disk.hang()
        time.sleep(2.1)
        with server.connect() as waiting:
            waiting.send(b"GET /x.txt HTTP/1.1\r\nHost: far.example\r\n\r\n")
            answer, seconds = timed(server.get, "/x.txt", host="near.example")
            assert answer.body == b"near" and seconds < HUNG_S
            assert waiting.response().status == 503
        eventually(lambda: server.get("/x.txt", host="far.example").status == 503)
        assert_near(server)


def test_a_symbolic_link_to_another_machine_is_no_way_to_stop_the_server(build):
    with beside(build, {"x.txt": b"far"}) as (server, disk):
        (disk.path.parent / "link.txt").symlink_to("far/x.txt")
        (disk.path.parent / "linked").symlink_to("far")
        assert server.get("/link.txt").body == server.get("/linked/x.txt").body == b"far"
        disk.hang()
        time.sleep(2.1)
        for path in "/link.txt", "/linked/x.txt":
            assert_unavailable(server, path)
        assert_near(server)


def test_a_link_that_cannot_be_read_for_now_is_not_missing(build):
    """While there may be another machine, the same threads read the links on this one."""
    location = "https://elsewhere.example/page"

    def get(**options):
        with beside(build, {}, **options) as (server, _):
            (server.root.path / "link").symlink_to(location)
            return server.get("/link")

    assert get()["Location"] == location
    refused = get(launcher=(sys.executable, str(Path(__file__).with_name("refuse.py")), "readlinkat", "ESTALE"))
    assert refused.status == 503 and refused["Retry-After"]


def test_what_is_mounted_while_the_server_runs_is_noticed(build):
    root = Root({"near.txt": b"near", "near.bin": LARGE, "far/x.txt": b"under it"})
    with Server(build, root, "-j", "1") as server:
        assert server.get("/far/x.txt").body == b"under it"
        with slowed({"x.txt": b"far"}, *FORGETS, path=root.path / "far") as disk:
            eventually(lambda: server.get("/far/x.txt").body == b"far")
            disk.hang()
            time.sleep(2.1)
            assert_unavailable(server, "/far/x.txt")
            assert_near(server)
        eventually(lambda: server.get("/far/x.txt").body == b"under it")
    root.remove()


def test_a_download_that_hangs_goes_on_later_and_others_meanwhile(build):
    with beside(build, {"large.bin": LARGE}) as (server, disk), server.connect(receive_buffer=4096) as slow:
        slow.send(b"GET /far/large.bin HTTP/1.1\r\nHost: localhost\r\n\r\n")
        slow.socket.recv(1)  # it has begun
        disk.hang()
        assert_near(server)
        time.sleep(1)
        disk.go_on()
        slow.socket.setblocking(True)
        got = 1
        while got < len(LARGE):
            got += len(slow.socket.recv(1 << 20))
        assert_near(server)


def test_a_stream_that_hangs_holds_up_no_other(build):
    with beside(build, {"large.bin": LARGE}) as (server, disk):
        c = Http2(server)
        assert c.get("/far/large.bin").body == LARGE
        disk.hang()
        time.sleep(2.1)
        hung = c.ask("/far/large.bin")
        answer, seconds = timed(c.get, "/near.bin")
        assert answer.body == LARGE and seconds < HUNG_S
        assert c.answers(hung)[0].status == 503


def test_rules_on_another_machine_pass_requests_on(build):
    with Upstream() as up, slowed({"_redirects": f"/up/* http://{up.address}/:splat 200\n".encode()}, *FORGETS) as disk:
        with Server(build, disk, "-j", "1", "--upstream", up.address) as server:
            for _ in range(2):
                assert server.get("/up/x").status == 200
                time.sleep(1.2)
            disk.source.path.chmod(0o777)  # anybody may replace the rules
            eventually(lambda: server.get("/up/x").status == 503, 5)


def test_a_directory_with_many_names_is_served_too(build):
    files = {f"{n}.txt": b"%d" % n for n in range(600)}
    with beside(build, {**files, "1.txt.gz": b"packed"}) as (server, disk):
        settled(disk.source.path / "1.txt.gz")
        for n in 0, 1, 599:
            assert server.get(f"/far/{n}.txt").body == b"%d" % n
        assert server.get("/far/1.txt", "Accept-Encoding: gzip").body == b"packed"
        assert server.get("/far/600.txt").status == 404


def test_certificates_that_hang_stay_in_use(build):
    """Handshakes, requests and signals do not wait for them; and when that ends, new ones are taken up."""
    old, new = certificate("DNS:localhost,DNS:old"), certificate("DNS:localhost,DNS:new")

    def pair(cert, key):
        return {"localhost/fullchain.pem": cert.read_bytes(), "localhost/privkey.pem": key.read_bytes()}

    def name(server):
        with server.connect() as c:
            assert c.get("/").status == 200
            return names(c).rpartition(":")[2]

    with slowed(pair(*old), *FORGETS) as disk, Tls(build, Root({"index.html": b"x"}), *FLAGS, "--cert-dir", disk.path) as server:
        assert name(server) == "old"
        disk.hang()
        for path, content in pair(*new).items():
            disk.source.write(path, content)
        eventually(lambda: [line for line in server.errors if "gatling-broker waits" in line])
        for signal_number in range(2):
            server.signal(signal.SIGHUP)
            eventually(lambda n=signal_number: sum("SIGHUP" in line for line in server.errors) > n, 2)
        answer, seconds = timed(name, server)
        assert answer == "old" and seconds < HUNG_S
        disk.go_on()
        eventually(lambda: name(server) == "new")


def test_the_server_ends_though_a_file_system_hangs(build, monkeypatch):
    monkeypatch.setenv("ASAN_OPTIONS", "detect_leaks=0")
    with beside(build, {"x.txt": b"x"}) as (server, disk):
        assert server.get("/far/x.txt").status == 200
        disk.hang()
        time.sleep(2.1)
        assert_unavailable(server, "/far/x.txt")
        server.signal()
        assert server.process.wait(5) == 0


def test_a_server_starts_though_a_file_system_hangs(build):
    root = Root({"near.txt": b"near", "near.bin": LARGE})
    (root.path / "far").mkdir()
    with slowed({"x.txt": b"x"}, *FORGETS, path=root.path / "far") as disk:
        disk.hang()
        with Server(build, root, "-j", "1") as server:
            assert_near(server)
            assert_unavailable(server, "/far/x.txt")
            disk.go_on()
            eventually(lambda: server.get("/far/x.txt").body == b"x")
    root.remove()


def test_the_first_answer_takes_no_more_turns_than_it_needs(build):
    """Each question to the other machine takes 50 ms. Three names, to open the file and to read it are
    five; beside them the rules are looked for. One after the other they would be 70."""
    with slowed({f"a/b/{n}.jpg": LARGE[:140_000] for n in range(3)}, "--far", "--remembered", "1") as disk, Server(build, disk, "-j", "1") as server:
        disk.take(0.05)
        for n in range(3):
            answer, seconds = timed(server.get, f"/a/b/{n}.jpg")
            assert answer.body == LARGE[:140_000] and seconds < 0.05 * 30, seconds
            time.sleep(1.2)
