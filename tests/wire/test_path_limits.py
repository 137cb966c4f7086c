"""The file _limits: limits that the owner of a site has for some of its paths."""

import os
import threading

import pytest

from gatling import TIMEOUT, Root, Server, eventually
from http2 import Http2
from test_check import check
from test_explain import explain
from test_guard import HASHES, basic
from upstream import Upstream

pytestmark = [pytest.mark.decided, pytest.mark.tcp]

OTHER = "127.0.0.2"
SITE = {"index.html": b"hello", "a.txt": b"a", "_redirects": b"/api/* http://{}/:splat 200\n"}


@pytest.fixture
def site(build):
    """Starts servers of a site with these limits, and ends them."""
    running, roots = [], []
    with Upstream() as upstream:

        def start(limits, *flags, files=None):
            rules = SITE["_redirects"].replace(b"{}", upstream.address.encode())
            roots.append(Root({**SITE, "_redirects": rules, "_limits": limits, **(files or {})}))
            running.append(Server(build, roots[-1], "-j", "2", "--upstream", upstream.allowed, *flags))
            return running[-1]

        start.upstream = upstream
        yield start
        for server in running:
            server.stop()
        for root in roots:
            root.remove()


def post(c, path, size, framing="length"):
    if framing == "length":
        c.send(f"POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {size}\r\n\r\n".encode() + bytes(size))
    else:
        c.send(f"POST {path} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n{size:x}\r\n".encode() + bytes(size) + b"\r\n0\r\n\r\n")
    return c.response().status


@pytest.mark.parametrize("framing", ["length", "chunked"])
def test_a_path_has_another_size_of_content(site, framing):
    server = site(b"/api/* body=2K\n/api/upload/* body=64K  # more\n", "--limit", "body=10")
    for path, size, status in ("/api/x", 2048, 200), ("/api/x", 2049, 413), ("/api/upload/x", 65536, 200), ("/api/upload/x", 65537, 413):
        with server.connect() as c:
            assert post(c, path, size, framing) == status, (path, size)
    said = "gatling: refused a request with more than 2048 bytes of content for an upstream: body=SIZE of --limit, or in the file _limits, allows more"
    eventually(lambda: said in server.errors)


def test_a_path_has_its_own_time_limits(site):
    release = threading.Event()

    def handle(link):
        link.request()
        release.wait(TIMEOUT)

    site.upstream.handle = handle
    server = site(b"/api/slow* upstream-first=60\n/api/fast upstream-first=1\n")
    with server.connect() as fast, server.connect() as slow:
        slow.send(b"GET /api/slow HTTP/1.1\r\nHost: a\r\n\r\n")
        assert fast.get("/api/fast").status == 504
        release.set()
        assert slow.response().status == 502  # its upstream has ended, within its time
    eventually(lambda: any("has not gone on for 1 s (limit upstream-first)" in line for line in server.errors))


def test_a_path_has_a_rate_for_each_address(site):
    """On the decoded path, for all that the line matches, on all carriers; other paths and lines have their own."""
    server = site(b"/a* address-rate=1:2\n/b address-rate=1:1\n", files={"b": b"b", "a b": b"ab"})
    with server.connect() as c, server.connect(source=OTHER) as other:
        assert [c.get(path).status for path in ("/a.txt", "/%61%20b", "/a.txt", "/absent")] == [200, 200, 429, 429]
        assert c.get("/a.txt")["Retry-After"] == "1"
        assert other.get("/a.txt").body == b"a" and c.get("/").status == 200
        assert [c.get("/b").status for _ in range(2)] == [200, 429]
        eventually(lambda: c.get("/a.txt").status == 200)  # a token comes back each second
    eventually(lambda: any("requests refused over an address-rate of _limits: 1, the last from 127.0.0.1" in line for line in server.errors))


def test_guesses_at_a_password_are_counted_before_they_are_checked(site):
    realm = b"realm\nann:" + HASHES["md5crypt"].encode()
    server = site(b"/in/* address-rate=1:2\n", files={"in/.htaccess": realm, "in/x": b"x"})
    with server.connect() as c:
        assert [c.get("/in/x", basic("ann", "guess")).status for _ in range(3)] == [401, 401, 429]


def test_a_request_that_waits_is_counted_once(site):
    """The first time a password is checked, and a file read, beside the loop."""
    realm = b"realm\nann:" + HASHES["md5crypt"].encode()
    server = site(b"/in/* address-rate=1:2\n", files={"in/.htaccess": realm, "in/x": b"x"})
    with server.connect() as c:
        assert [c.get("/in/x", basic("ann")).status for _ in range(3)] == [200, 200, 429]


@pytest.mark.clear
def test_streams_of_http2_count_too(site):
    server = site(b"/* address-rate=1:2\n")
    with Http2(server) as c:
        answers = c.answers(*(c.ask("/a.txt") for _ in range(3)))
        assert [answer.status for answer in answers] == [200, 200, 429]


def test_a_path_is_not_logged(site, place):
    log = place / "log"
    server = site(b"/a.txt log=off\n/api/* log=off\n/api/x log=on\n", "--log", "common", "--log-file", log)
    with server.connect() as c:
        for path in ("/a.txt", "/a.txt?q", "/api/y", "/api/x", "/index.html"):
            assert c.get(path).status == 200
    eventually(lambda: len(log.read_text().splitlines()) >= 2)
    server.stop()
    assert [line.split()[6] for line in log.read_text().splitlines()] == ["/api/x", "/index.html"]


def test_the_last_line_that_names_a_limit_sets_it(site):
    server = site(b"http://a/* body=1\n/* upstream-first=5\n/api/x body=3\n")
    for path, size, status in ("/api/y", 2, 413), ("/api/x", 3, 200), ("/api/x", 4, 413):
        with server.connect() as c:
            assert post(c, path, size) == status


def test_changed_limits_apply_and_wrong_ones_leave_the_others(site):
    server = site(b"/api/* body=1\n")
    with server.connect() as c:
        assert post(c, "/api/x", 2) == 413
    server.root.write("_limits", b"/api/* body=big\n/api/* body=2\n/api/* bdy=1\n")
    eventually(lambda: server.get("/a.txt") and any("_limits:1: '/api/* body=big': body takes a number of bytes" in line for line in server.errors))
    eventually(lambda: any("_limits:3: '/api/* bdy=1': 'bdy' is no limit of a path" in line for line in server.errors))
    with server.connect() as c:
        assert post(c, "/api/x", 2) == 200


def test_limits_of_others_do_not_apply_and_unreadable_ones_deny(site):
    server = site(b"/a.txt log=off\n/* address-rate=1:1\n")
    limits = server.root.path / "_limits"
    with server.connect() as c:
        assert [c.get("/a.txt").status for _ in range(2)] == [200, 429]
        os.chmod(limits, 0o666)
        eventually(lambda: [c.get("/a.txt").status for _ in range(3)] == [200] * 3)
        eventually(lambda: any("_limits: its limits do not apply: " in line for line in server.errors))
        limits.unlink()
        limits.mkdir()
        assert [c.get("/a.txt").status for _ in range(3)] == [200] * 3  # what it said before stays


def test_limits_that_cannot_be_read_any_more_stay(site):
    server = site(b"/a.txt address-rate=1/h:2\n")
    limits = server.root.path / "_limits"
    with server.connect() as c:
        assert [c.get("/a.txt").status for _ in range(3)] == [200, 200, 429]
        limits.unlink()
        os.mkfifo(limits)
        eventually(lambda: c.get("/a.txt") and any("_limits: it is no regular file" in line for line in server.errors))
        assert c.get("/a.txt").status == 429


def test_a_request_behind_another_one_is_counted_once(site):
    """It is decided again after the response to the one before it."""
    server = site(b"/api/* address-rate=1/h:2\n")
    for status in (200, 200, 429):
        with server.connect() as c:
            c.send(b"GET /a.txt HTTP/1.1\r\nHost: a\r\n\r\nGET /api/x HTTP/1.1\r\nHost: a\r\n\r\n")
            assert [c.response().status for _ in range(2)] == [200, status]


def test_limits_that_never_could_be_read_deny(build):
    root = Root({"index.html": b"hello"})
    root.mkdir("_limits")
    with Server(build, root, "-j", "1") as server:
        assert server.get("/").status == 403
        said = "gatling: _limits: it is no regular file: replace it by one, or remove it; until that is mended, access to the site is denied"
        eventually(lambda: said in server.errors)
    root.remove()


def test_the_file_is_neither_served_nor_listed(site):
    server = site(b"/api/* body=1\n", files={"d/x": b"x"})
    (server.root.path / "index.html").unlink()
    with server.connect() as c:
        assert c.get("/_limits").status == c.get("/_limits.gz").status == 404
        listing = c.get("/").body
        assert b"a.txt" in listing and b"_limits" not in listing


WRONG = {
    b"api body=1": "a line begins with a pattern, such as /api/*",
    b"/api/*": "there is no limit behind the pattern, such as body=1M",
    b"/api/* # body=1": "there is no limit behind the pattern, such as body=1M",
    b"/api/* body": "body takes a number of bytes, or one with K, M or G appended",
    b"/api/* body=1T": "body takes a number of bytes, or one with K, M or G appended",
    b"/api/* body=1 body=2": "body stands twice",
    b"/api/* upstream-first=0": "upstream-first takes a number of seconds from 1 to 86400",
    b"/api/* address-rate=5:": "address-rate takes requests a second, and perhaps a burst, as 5:20 or 10/m",
    b"/api/* log=no": "log is on or off",
    b"/api/* timeout=1": "'timeout' is no limit of a path: these are body, upstream-connect, upstream-first, upstream-between, upstream-tunnel, address-rate and log",
    b"/a$ body=1": None,
    b"/*/* body=1": None,
}


@pytest.mark.parametrize("line", WRONG, ids=lambda line: line.decode())
def test_a_wrong_line_is_said(first_build, line):
    root = Root({"index.html": b"hello", "_limits": b"# limits\n\n" + line + b"\n"})
    said = check(first_build, root, "-E").stdout
    assert said.startswith(f"_limits:3: '{line.decode()}': {WRONG[line] or 'the pattern is wrong: '}"), said
    root.remove()


def test_explain_names_the_line(first_build):
    root = Root({"index.html": b"hello", "a.txt": b"a", "_limits": b"/* log=off\n/a.txt address-rate=1\n"})
    why, _, _ = explain(first_build, root, "http://a/a.txt")
    assert "limits    _limits:2: /a.txt address-rate=1" in why
    root.remove()
