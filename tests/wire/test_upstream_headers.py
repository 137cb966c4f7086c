"""--upstream-headers: the fields of _headers in what upstreams answer."""

import pytest

from gatling import Root, Server
from http2 import Http2
from test_explain import explain
from upstream import Upstream

pytestmark = [pytest.mark.decided, pytest.mark.tcp]

HEADERS = b"""/api/*
  X-Content-Type-Options: nosniff
  X-Own: owner
  X-Path: :splat
  Cache-Control: max-age=60
  Content-Type: text/x
  Vary: Cookie
  Set-Cookie: a=b
  ! X-Powered-By
/api/plain
  ! X-Content-Type-Options
  ! X-Own
"""
ANSWER = (b"HTTP/1.1 %s OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\n%sX-Powered-By: x\r\nX-Own: app\r\n"
          b"Vary: Accept\r\nSet-Cookie: c=d\r\n\r\nok")  # fmt: skip


HINTS = b"HTTP/1.1 103 Early Hints\r\nX-Powered-By: x\r\n\r\n"


@pytest.fixture
def passing(build):
    """Starts servers that pass /api/ on to an application, and ends them."""
    running = []

    def handle(link):
        while link.request():
            link.send(handle.hints + ANSWER % (handle.status, handle.caching))

    handle.status, handle.caching, handle.hints = b"200", b"Cache-Control: no-store\r\n", HINTS
    with Upstream(handle) as upstream:

        def start(*flags, headers=HEADERS):
            root = Root({"index.html": b"hello", "_headers": headers, "_redirects": f"/api/* http://{upstream.address}/:splat 200".encode()})
            running.append(Server(build, root, "-j", "1", "--upstream", upstream.allowed, *flags))
            return running[-1]

        start.handle = handle
        yield start
        for server in running:
            server.stop()
            server.root.remove()


def fields_of(server, path):
    """Returns the fields of the response that follows an interim one, names in lower case."""
    with server.connect() as c:
        c.send(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        _, _, rest = c.rest().partition(b"\r\n\r\n")
        return [(name.lower(), value) for name, _, value in (line.partition(": ") for line in rest.partition(b"\r\n\r\n")[0].decode().split("\r\n")[1:])]


@pytest.mark.parametrize("status", [b"200", b"404", b"500"])
def test_the_application_has_its_own_and_lacks_the_owners(passing, status):
    passing.handle.status = status
    fields = fields_of(passing("--upstream-headers"), "/api/a%20b")
    assert [value for name, value in fields if name == "x-own"] == ["app"]
    assert [value for name, value in fields if name == "cache-control"] == ["no-store"]
    assert [value for name, value in fields if name == "content-type"] == ["text/html"]
    assert [value for name, value in fields if name == "x-content-type-options"] == ["nosniff"]
    assert [value for name, value in fields if name == "x-path"] == ["a%20b"]
    assert [value for name, value in fields if name == "vary"] == ["Accept", "Cookie"]
    assert [value for name, value in fields if name == "set-cookie"] == ["c=d", "a=b"]
    assert not [value for name, value in fields if name == "x-powered-by"]


def test_a_field_is_removed_whoever_has_set_it(passing):
    names = [name for name, _ in fields_of(passing("--upstream-headers"), "/api/plain")]
    assert "x-own" not in names and "x-content-type-options" not in names and "x-path" in names


@pytest.mark.clear
def test_they_are_in_http2_too(passing):
    passing.handle.hints = b""
    with Http2(passing("--upstream-headers")) as c:
        fields = dict(c.answers(c.ask("/api/x"))[0].fields)
    assert fields["x-content-type-options"] == "nosniff" and fields["x-own"] == "app" and "x-powered-by" not in fields


@pytest.mark.parametrize("status,kept", [(b"200", "max-age=9"), (b"302", None), (b"404", None), (b"500", None)])
def test_errors_and_redirects_are_not_kept_for_long(passing, status, kept):
    passing.handle.status, passing.handle.caching = status, b""
    fields = fields_of(passing("--upstream-headers", headers=b"/api/*\n  Cache-Control: max-age=9\n"), "/api/x")
    assert dict(fields).get("cache-control") == kept


def test_an_empty_splat_removes_nothing(passing):
    fields = fields_of(passing("--upstream-headers", headers=b"/api/x*\n  X-Own: :splat\n"), "/api/x")
    assert ("x-own", "app") in fields


def test_without_the_option_an_answer_stays_as_it_is(passing):
    fields = fields_of(passing(), "/api/x")
    assert ("x-powered-by", "x") in fields and ("x-own", "app") in fields
    assert not {"x-path", "x-content-type-options"} & {name for name, _ in fields}


def test_the_most_that_an_owner_may_add_is_added_and_removed(passing):
    lines = b"".join(b"  X-%d: %s\n" % (n, b"v" * 240) for n in range(32)) + b"".join(b"  ! Y-%d-%s\n" % (n, b"n" * 50) for n in range(150))
    names = [name for name, _ in fields_of(passing("--upstream-headers", headers=b"/api/*\n" + lines), "/api/x")]
    assert {f"x-{n}" for n in range(32)} <= set(names)


@pytest.mark.parametrize("flags,said", [((), False), (("--upstream-headers",), True)])
def test_explain_says_whether_they_apply(first_build, flags, said):
    root = Root({"index.html": b"hello", "_headers": b"/api/*\n  X-A: b\n", "_redirects": b"/api/* http://127.0.0.1:3000/:splat 200\n"})
    why, _, _ = explain(first_build, root, "http://a/api/x", *flags)
    assert ("fields    _headers:1: /api/*" in why) == said
    root.remove()
