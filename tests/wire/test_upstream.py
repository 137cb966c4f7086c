"""Requests passed on to an upstream: rules with status 200 and a URL."""

import contextlib
import json
import os
import random
import re
import select
import signal
import socket
import subprocess
import threading
import time
import zlib
from pathlib import Path

import pytest
import zstandard

from browser import Browser
from gatling import TIMEOUT, Connection, Root, Server, descriptors_limited_to, eventually, trusting
from system_calls import calls_of
from test_guard import HASHES, basic
from test_input import BAD
from upstream import Upstream, echo, ends_tunnel

pytestmark = pytest.mark.moving


@contextlib.contextmanager
def passing(build, *upstreams, rule=None, files=None, flags=(), **options):
    """Runs a server that passes /api/ on to the upstreams."""
    addresses = ",".join(upstream.address for upstream in upstreams)
    rules = (rule or "/api/* http://{}/:splat 200").format(addresses)
    root = Root({"index.html": b"hello", "there.txt": b"there", "50x.html": b"our page", "_redirects": rules.encode(), **(files or {})})
    allowed = [flag for upstream in upstreams for flag in ("--upstream", upstream.allowed)]
    with Server(build, root, "-j", "1", *allowed, *flags, **options) as server:
        yield server
    root.remove()


def state_of(server, thread):
    return Path(f"/proc/{server.pid}/task/{thread}/stat").read_text().rsplit(")", 1)[1].split()[0]


@contextlib.contextmanager
def stopped(server):
    """Stops all threads of the server during the block."""
    os.kill(server.pid, signal.SIGSTOP)
    try:
        eventually(lambda: all(state_of(server, thread) == "T" for thread in server.thread_ids()))
        yield
    finally:
        os.kill(server.pid, signal.SIGCONT)


def script(*steps):
    """Returns a handler that answers one request after the other with these bytes, and then
    ends."""

    def handle(link):
        for step in steps:
            link.request()
            link.send(step)

    return handle


# --- the request ---


def test_a_request_is_passed_on_with_what_belongs_to_it(build):
    fields = ["Accept: a/b", "X-Forwarded-For: 192.0.2.1", "X-Forwarded-Proto: gopher", "X-Forwarded-Host: evil", "Forwarded: for=192.0.2.1",
              "X_Forwarded_For: 192.0.2.1", "Proxy: evil", "Connection: close, X-Hop", "X-Hop: 1", "Keep-Alive: 1", "TE: gzip",
              "Upgrade: h2c", "Cookie: a=b", "Cookie: c=d"]  # fmt: skip
    with Upstream() as upstream, passing(build, upstream) as server:
        response = server.get("/api/a%20b/c?d=e&f", *fields, host="www.example.org:81")
        scheme = "https" if server.tls else "http"
    assert response.status == 200 and response["Server"] == "gatling" and response["Date"] and response["Connection"] == "close"
    assert response.body.decode().split("\n") == [
        "GET /a%20b/c?d=e&f HTTP/1.1",
        "Host: www.example.org:81",
        "Accept: a/b",
        "Cookie: a=b",
        "Cookie: c=d",
        "X-Forwarded-For: 127.0.0.1",
        "X-Real-IP: 127.0.0.1",
        f"X-Forwarded-Proto: {scheme}",
        "X-Forwarded-Host: www.example.org:81",
        f'Forwarded: for=127.0.0.1;proto={scheme};host="www.example.org:81"',
        "",
        "",
    ]


@pytest.mark.parametrize("trust,sent,passed", [
    ("127.0.0.1", ["X-Forwarded-For: 192.0.2.1", "X-Forwarded-For: 192.0.2.2", "X-Forwarded-Proto: https", "X-Forwarded-Host: a.example.org"],
     {"X-Forwarded-For": "192.0.2.1, 192.0.2.2, 127.0.0.1", "X-Real-IP": "192.0.2.2", "X-Forwarded-Proto": "https", "X-Forwarded-Host": "a.example.org",
      "Forwarded": "for=192.0.2.2;proto={scheme};host=\"localhost\""}),
    ("127.0.0.1,forwarded", ["Forwarded: for=192.0.2.1", "X-Forwarded-For: 192.0.2.9"],
     {"X-Forwarded-For": "192.0.2.1", "X-Forwarded-Proto": "{scheme}", "Forwarded": "for=192.0.2.1, for=127.0.0.1;proto={scheme};host=\"localhost\""}),
    ("127.0.0.1,forwarded", ["Forwarded: for=192.0.2.1", "X-Forwarded-Proto: gopher", "X-Forwarded-Host: evil"],
     {"X-Forwarded-Proto": "{scheme}", "X-Forwarded-Host": "localhost"}),
    ("127.0.0.1", ["X-Forwarded-For: 192.0.2.1", "X-Forwarded-Proto: gopher"], {"X-Forwarded-Proto": "{scheme}"}),
    ("127.0.0.1", [], {"X-Forwarded-For": "127.0.0.1", "X-Forwarded-Proto": "{scheme}", "X-Forwarded-Host": "localhost"}),
    ("192.0.2.1", ["X-Forwarded-For: 192.0.2.1", "X-Forwarded-Proto: gopher"], {"X-Forwarded-For": "127.0.0.1", "X-Forwarded-Proto": "{scheme}"}),
])  # fmt: skip
def test_what_a_trusted_proxy_says_stays(build, trust, sent, passed):
    with Upstream() as upstream, passing(build, upstream, flags=("--trust", trust)) as server:
        assert server.get("/api/x", *sent).status == 200
        scheme = "https" if server.tls else "http"
        (request,) = upstream.requests
        assert {name: request[name] for name in passed} == {name: value.format(scheme=scheme) for name, value in passed.items()}


OF_PROXIES = [
    "X-Forwarded-Port", "X-Forwarded-Prefix", "X-Forwarded-Server", "x-forwarded-ssl", "X-Forwarded-User", "X-Forwarded",
    "X-FORWARDED-NEW", "X-SSL-Client-Verify", "SSL-Client-Cert", "X-Auth-Request-User", "WL-Proxy-Client-IP", "X-Envoy-External-Address", "Forwarded-For", "True-Client-IP", "CF-Connecting-IP", "Fastly-Client-IP", "X-Client-IP", "Client-IP",
    "X-Cluster-Client-IP", "X-Original-URL", "X-Original-Host", "X-Original-Forwarded-For", "X-Rewrite-URL", "Client-Cert", "Remote-User",
]  # fmt: skip
OF_CLIENTS = ["X-Forward", "X-HTTP-Method-Override", "X-Requested-With", "Origin", "X-Request-ID"]


@pytest.mark.decided
@pytest.mark.parametrize("trust,passed", [(None, False), ("192.0.2.1", False), ("127.0.0.1,forwarded", False), ("127.0.0.1", True)])
def test_what_only_proxies_say_comes_from_trusted_ones(build, trust, passed):
    """Applications believe it: who the client is, what it has asked for."""
    fields = [f"{name}: evil" for name in OF_PROXIES + OF_CLIENTS]
    with Upstream() as upstream, passing(build, upstream, flags=("--trust", trust) if trust else ()) as server:
        assert server.get("/api/x", *fields).status == 200
        names = {name.lower() for name, value in upstream.requests[0].fields if value == "evil"}
        assert names == {name.lower() for name in OF_CLIENTS + (OF_PROXIES if passed else [])}


def test_trailers_say_nothing_that_only_proxies_say(build):
    """Whoever sends them: a proxy puts these fields into a head."""
    lines = "".join(f"{name}: evil\r\n" for name in [*OF_PROXIES, "X-Real-IP", "X-Forwarded-For", "Forwarded", "X-Sum"])
    with Upstream() as upstream, passing(build, upstream, flags=("--trust", "127.0.0.1")) as server, server.connect() as c:
        c.send(f"POST /api/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n{lines}\r\n".encode())
        assert c.response().status == 200
        assert upstream.requests[0].trailers == [("X-Sum", "evil")]


@pytest.mark.decided
@pytest.mark.tcp
@pytest.mark.parametrize("head", [b"GET /api/ HTTP/1.0\r\n\r\n", b"GET /api/ HTTP/1.0\r\nHost:\r\n\r\n", b"GET /api/ HTTP/1.1\r\nHost:\r\n\r\n"])
def test_an_upstream_has_a_host_even_if_the_client_names_none(build, head):
    with Upstream() as upstream, passing(build, upstream) as server, server.connect() as c:
        assert b" 200 OK\r\n" in c.send(head)._head()  # pylint: disable=protected-access
        assert upstream.requests[0]["Host"] == upstream.address and upstream.requests[0]["X-Forwarded-Host"] is None
    with Upstream(unix=True) as upstream, passing(build, upstream, rule="/api/* http://{}:/:splat 200") as server, server.connect() as c:
        assert b" 200 OK\r\n" in c.send(head)._head()  # pylint: disable=protected-access
        assert upstream.requests[0]["Host"] == "localhost"


@pytest.mark.decided
@pytest.mark.parametrize("method,length", [("POST", "0"), ("PUT", "0"), ("PATCH", "0"), ("GET", None), ("DELETE", None), ("OPTIONS", None)])
def test_an_upstream_is_told_that_there_is_no_content_where_some_is_expected(build, method, length):
    with Upstream() as upstream, passing(build, upstream) as server:
        assert server.get("/api/x", method=method).status == 200
        assert upstream.requests[0]["Content-Length"] == length and upstream.requests[0]["Transfer-Encoding"] is None


@pytest.mark.decided
def test_options_of_the_server_are_its_own(build):
    """Not /*, which the rule would match."""
    with Upstream() as upstream, passing(build, upstream, rule="/* http://{}/:splat 200!") as server:
        assert server.get("/x", method="OPTIONS").status == 200
        response = server.get("*", method="OPTIONS")
        assert response.status == 204 and response["Allow"]
        assert [request.line for request in upstream.requests] == ["OPTIONS /x HTTP/1.1"]


@pytest.mark.decided
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "PROPFIND", "OPTIONS", "HEAD"])
def test_any_method_is_passed_on(build, method):
    with Upstream() as upstream, passing(build, upstream) as server:
        assert server.get("/api/x", method=method).status == 200
        assert upstream.requests[0].line == f"{method} /x HTTP/1.1"


@pytest.mark.decided
@pytest.mark.parametrize("path,method,status", [("/there.txt", "POST", 405), ("/there.txt", "BREW", 501), ("/there.txt", "OPTIONS", 204),
                                                ("/", "PUT", 405), ("/nothing", "POST", 405), ("/api/x", "TRACE", 405)])  # fmt: skip
def test_methods_that_no_rule_passes_on_are_refused_as_ever(build, path, method, status):
    with Upstream() as upstream, passing(build, upstream) as server:
        assert server.get(path, method=method).status == status
        assert not upstream.requests


@pytest.mark.decided
def test_a_file_comes_first_unless_the_rule_is_forced(build):
    with Upstream() as upstream:
        for rule, method, passed in ((200, "GET", False), ("200!", "GET", True), ("200!", "POST", True)):
            with passing(build, upstream, rule="/there.txt http://{}/x " + str(rule)) as server:
                upstream.requests.clear()
                response = server.get("/there.txt", method=method)
                assert response.status == 200 and bool(upstream.requests) == passed


@pytest.mark.decided
def test_names_and_the_query_are_filled_in(build):
    with Upstream() as upstream, passing(build, upstream, rule="/a/:b/* http://{0}/x/:b?y=:splat 200\n/q/:b http://{0} 200\n") as server:
        server.get("/a/b%3F%20/c%26d%23?ignored")
        server.get("/q/1?z")
        assert [request.line for request in upstream.requests] == ["GET /x/b%3F%20?y=c%26d%23 HTTP/1.1", "GET /?z HTTP/1.1"]


@pytest.mark.decided
@pytest.mark.parametrize("value,passed", [
    ("7", "/goods/7"),
    ("a/b/", "/goods/a%2Fb%2F"),
    ("a%2fb", "/goods/a%2fb"),
    ("a\\b", "/goods/a%5Cb"),
    ("a+b", "/goods/a%20b"),
    ("../admin/", None),
    ("..%2fadmin", None),
    ("a/%252e%252e/b", None),
    ("..\\admin", None),
    ("..;x/admin", None),
    ("x;y/admin", "/goods/x%3By%2Fadmin"),
    ("", "/goods/"),
    ("..", None),
    ("%2E%2e", None),
    (".%252e", None),
    ("%c0%ae%c0%ae", None),
    ("..%00", None),
    ("..&id=7", "/goods/7"),
])  # fmt: skip
def test_a_parameter_reaches_the_upstream_in_its_segment(build, value, passed):
    with Upstream() as upstream, passing(build, upstream, rule="/shop id=:id http://{0}/goods/:id 200") as server:
        assert server.get("/shop?id=" + value).status == (200 if passed else 404)
        assert [request.line for request in upstream.requests] == ([f"GET {passed} HTTP/1.1"] if passed else [])


@pytest.mark.decided
@pytest.mark.parametrize("path,passed", [
    ("/app;jsessionid=12", "/app;jsessionid=12"),
    ("/a,b(c)!$'*+=@:~&d/", "/a,b(c)!$'*+=@:~&d/"),
    ("/http://x//y", "/http:/x/y"),  # without empty segments, as a name of a file
    ("/a%3Bb%2C%5Bc%5D%25%3F%23%20%7e", "/a;b,%5Bc%5D%25%3F%23%20~"),
    ("/.well-known/x", None),
    ("/a%2Fb", None),
])  # fmt: skip
def test_a_path_reaches_the_upstream_with_the_characters_that_a_path_may_have(build, path, passed):
    with Upstream() as upstream, passing(build, upstream) as server:
        assert server.get("/api" + path).status == (200 if passed else 404)
        assert [request.line for request in upstream.requests] == ([f"GET {passed} HTTP/1.1"] if passed else [])


@pytest.mark.parametrize("length", [0, 1, 70_000, 5_000_000])
def test_content_goes_through_in_both_directions(build, length):
    content = bytes(range(256)) * (length // 256 + 1)
    content = content[:length]
    with Upstream() as upstream, passing(build, upstream) as server, server.connect() as c:
        for _ in range(2):
            c.send(f"POST /api/ HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n".encode() + content)
            assert c.response().body.split(b"\n\n", 1)[1] == content
            c.send(b"PUT /api/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
            for at in range(0, length, 30_000):
                piece = content[at : at + 30_000]
                c.send(b"%x;x=y\r\n%b\r\n" % (len(piece), piece))
            c.send(b"0\r\nTrailer: x\r\n\r\n")
            assert c.response().body.split(b"\n\n", 1)[1] == content
        assert len(upstream.links) == 1  # which is used again


@pytest.mark.decided
@pytest.mark.tcp
@pytest.mark.parametrize("name", BAD)
def test_the_upstream_never_sees_two_requests_where_one_was_sent(build, name):
    """Nor does it see what follows a malformed one."""
    data = BAD[name][1].replace(b" / ", b" /api/ ")
    with Upstream() as upstream, passing(build, upstream) as server, server.connect() as c:
        with contextlib.suppress(OSError):
            c.send(data + b"GET /api/smuggled HTTP/1.1\r\nHost: a\r\n\r\n")
            c.half_close()
            c.rest()
        eventually(lambda: server.get("/there.txt").status == 200)
        assert len(upstream.requests) <= 1 and not any("smuggled" in request.line for request in upstream.requests)


def test_requests_that_wait_behind_one_another_are_answered_in_order(build):
    with Upstream() as upstream, passing(build, upstream) as server, server.connect() as c:
        for path in ("/api/1", "/there.txt", "/api/2", "/api/3"):
            c.send(f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        assert c.response().body.startswith(b"GET /1 ")
        assert c.response().body == b"there"
        assert c.response().body.startswith(b"GET /2 ")
        assert c.response().body.startswith(b"GET /3 ")


def test_a_client_that_expects_a_100_gets_that_of_the_upstream(build):
    def handle(link):
        request = link.head()
        assert request["Expect"] == "100-continue"
        link.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        link.answer(link.body(request).body)

    with Upstream(handle) as upstream, passing(build, upstream) as server, server.connect() as c:
        c.send(b"POST /api/ HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n")
        assert c.response().status == 100
        assert c.send(b"abc").response().body == b"abc"


def test_a_client_of_http_1_0_expects_nothing(build):
    """It is passed on over HTTP/1.1, where an upstream might take the field as a reason to wait, or
    to refuse."""
    with Upstream() as upstream, passing(build, upstream) as server, server.connect() as c:
        c.send(b"POST /api/ HTTP/1.0\r\nHost: a\r\nContent-Length: 3\r\nExpect: something\r\n\r\nabc")
        response = c.response()
        assert response.status == 200 and response.body.endswith(b"\n\nabc")
        assert b"expect" not in response.body.lower()


@pytest.mark.parametrize("fields,sent", [
    (["Expect: 100-CONTINUE", "Content-Length: 3"], "100-continue"),
    (["Expect: 100-continue, 100-continue", "Expect: 100-Continue", "Transfer-Encoding: chunked"], "100-continue"),
    (["Expect:", "Content-Length: 3"], None),
    (["Expect: 100-continue"], None),
    (["Expect: 100-continue", "Content-Length: 0"], None),
])  # fmt: skip
def test_an_upstream_is_asked_for_a_100_once_and_only_if_there_is_content(build, fields, sent):
    content = {"Content-Length: 3": b"abc", "Transfer-Encoding: chunked": b"3\r\nabc\r\n0\r\n\r\n"}.get(fields[-1], b"")
    with Upstream() as upstream, passing(build, upstream) as server, server.connect() as c:
        c.send("\r\n".join(["POST /api/ HTTP/1.1", "Host: a", *fields, "", ""]).encode() + content)
        assert c.response().status == 200
        assert upstream.requests[0]["Expect"] == sent and upstream.requests[0].body == (b"abc" if content else b"")


def test_what_else_a_client_expects_is_refused(build):
    with Upstream() as upstream, passing(build, upstream) as server:
        for expected in ("200-ok", "100-continue, x", "100-continue;x=y"):
            assert server.get("/api/", f"Expect: {expected}", "Content-Length: 0", method="POST").status == 417
        assert not upstream.requests


def test_malformed_chunks_are_a_400_as_long_as_nothing_is_answered(build):
    ended = threading.Event()
    with Upstream(lambda link: (link.head(), link.ended(), ended.set())) as upstream, passing(build, upstream) as server, server.connect() as c:
        c.send(b"POST /api/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
        eventually(lambda: upstream.requests)
        c.send(b"nonsense\r\n")
        response = c.response()
        assert response.status == 400 and response["Connection"] == "close"
        assert ended.wait(20)


def test_an_answer_may_come_before_the_content_of_the_request(build):
    def handle(link):
        link.head()
        link.answer(b"too much", "Connection: close")

    with Upstream(handle) as upstream, passing(build, upstream) as server, server.connect() as c:
        c.send(b"POST /api/ HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n")
        response = c.response()
        assert response.body == b"too much" and response["Connection"] == "close"
        c.half_close()
        c.assert_closed()


def test_trailers_are_passed_on(build):
    chunks = b"3\r\nabc\r\n0\r\nX-Sum:  1\r\nContent-Length: 5\r\nHost: evil\r\nX_Sum: 2\r\nEmpty:\r\nX-Sum: 3 \r\n\r\n"
    passed = [("X-Sum", "1"), ("Empty", ""), ("X-Sum", "3")]

    def handle(link):
        for step in (1000, 1):
            link.request()
            link.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n")
            for at in range(0, len(chunks), step):
                link.send(chunks[at : at + step])

    with Upstream(handle) as upstream, passing(build, upstream) as server, server.connect() as c:
        for step in (1000, 1):
            c.send(b"POST /api/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\nTE: gzip, Trailers\r\n\r\n")
            for at in range(0, len(chunks), step):
                c.send(chunks[at : at + step])
            response = c.response()
            assert response.body == b"abc" and response.trailers == passed and response["Trailer"] == "X-Sum"
        for request in upstream.requests:
            assert request.body == b"abc" and request.trailers == passed and request["Trailer"] == "X-Sum"
            assert request["TE"] == "trailers" and request["Connection"] == "TE"
        assert len(upstream.links) == 1


def test_a_trailer_section_of_8_kb_is_the_most(build):
    with Upstream() as upstream, passing(build, upstream) as server:
        for length, status in ((8186, 200), (8187, 400)):
            with server.connect() as c:
                c.send(b"POST /api/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nT:" + b"x" * length + b"\r\n\r\n")
                assert c.response().status == status
        assert upstream.requests[0].trailers == [("T", "x" * 8186)]


# --- the response ---


@pytest.mark.parametrize(
    "answer,body",
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", b"hello"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;a=b\r\nhe\r\n3\r\nllo\r\n0\r\nX: y\r\n\r\n", b"hello"),
        (b"HTTP/1.1 200 OK\r\n\r\nhello", b"hello"),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello", b"hello"),
        (b"HTTP/1.0 200\r\n\r\n", b""),
        (b"HTTP/1.1 404 Not Here\r\nContent-Length: 2\r\n\r\nno", b"no"),
        (b"HTTP/1.1 999 Odd\r\nContent-Length: 3\r\n\r\nodd", b"odd"),
        (b"HTTP/1.1 204 \r\n\r\n", b""),
        (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\nETag: \"a\"\r\n\r\n", b""),
        (b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", b""),
    ],
    ids=["length", "chunked", "close", "1.0", "nothing", "404", "999", "204", "304", "103"],
)  # fmt: skip
@pytest.mark.parametrize("step", [1, 1000])
def test_a_response_comes_back_whole(build, answer, body, step):
    def handle(link):
        link.request()
        for at in range(0, len(answer), step):
            link.send(answer[at : at + step])

    with Upstream(handle) as upstream, passing(build, upstream) as server:
        with server.connect() as c:
            response = c.get("/api/")
            if response.status == 103:
                assert response["Link"] == "</a>" and response["Date"] is None
                response = c.response()
            assert response.status == int(answer.rsplit(b"HTTP/1.", 1)[1][2:5]) and response.body == body
            assert c.get("/there.txt").body == b"there"
        with server.connect() as c:  # HTTP/1.0 knows neither chunks nor 1xx
            c.send(b"GET /api/ HTTP/1.0\r\n\r\n")
            head, _, content = c.rest().partition(b"\r\n\r\n")
            assert content == body and b"chunked" not in head and b" 103 " not in head


@pytest.mark.parametrize("framing", ["length", "chunked", "close"])
def test_what_comes_behind_a_long_response_comes_back_whole(build, framing):
    """On a connection whose last response was long, little is read with the head of the next one;
    on others, 64 KB."""
    lengths, long = [0, 1, 16_000, 16_384 - 42, 16_384, 20_000, 48_000, 65_536 - 42, 65_536, 65_537, 200_000], b"long" * 50_000

    def handle(link):
        while True:
            if link.request().line.startswith("GET /long "):
                link.answer(long)
                continue
            length = int(link.requests[-1].line.split()[1].split("=")[1])
            content = (b"%09d\n" * (length // 10 + 1) % tuple(range(length // 10 + 1)))[:length]
            if framing == "length":
                link.answer(content)
            elif framing == "chunked":
                chunks = [content[at : at + 9000] for at in range(0, length, 9000)]
                link.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                          + b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n\r\n")  # fmt: skip
            else:
                link.send(b"HTTP/1.1 200 OK\r\n\r\n" + content)
                return

    with Upstream(handle) as upstream, passing(build, upstream) as server, server.connect() as c:
        for length in lengths:
            assert c.get("/api/long").body == long
            for _ in range(2):
                body = c.get(f"/api/?n={length}").body
                assert len(body) == length and all(int(body[at : at + 9]) == at // 10 for at in range(0, length - 9, 10))
        assert len(upstream.links) == (2 * len(lengths) if framing == "close" else 1)


def test_fields_of_one_connection_are_not_passed_on(build):
    answer = (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX-A: 1\r\nKeep-Alive: 5\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\nServer: up\r\n"
              b"Date: Thu, 01 Jan 1970 00:00:00 GMT\r\nSet-Cookie: a=b\r\nSet-Cookie: c=d\r\nUpgrade: h2c\r\n\r\n")  # fmt: skip
    with Upstream(script(answer)) as upstream, passing(build, upstream) as server:
        fields = server.get("/api/").fields
    assert [field for field in fields if field[0] not in ("Date", "Server")] == [
        ("X-A", "1"), ("Set-Cookie", "a=b"), ("Set-Cookie", "c=d"), ("Content-Length", "0")]  # fmt: skip
    assert ("Server", "gatling") in fields and len(fields) == 6


def test_the_answer_to_a_head_has_its_length_and_no_content(build):
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"
    with Upstream(script(answer, answer)) as upstream, passing(build, upstream) as server, server.connect() as c:
        for _ in range(2):
            assert c.get("/api/", method="HEAD")["Content-Length"] == "1000"
        assert len(upstream.links) == 1


MALFORMED = {
    "nothing": b"",
    "no HTTP": b"hello\r\n\r\n",
    "HTTP/2": b"HTTP/2 200 OK\r\n\r\n",
    "no status": b"HTTP/1.1 OK\r\n\r\n",
    "a status of two digits": b"HTTP/1.1 20 OK\r\n\r\n",
    "a status of four digits": b"HTTP/1.1 2000 OK\r\n\r\n",
    "bare LF": b"HTTP/1.1 200 OK\nContent-Length: 0\n\n",
    "a bare CR": b"HTTP/1.1 200 OK\r\nX: a\rb\r\nContent-Length: 0\r\n\r\n",
    "a NUL": b"HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 0\r\n\r\n",
    "obs-fold": b"HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 0\r\n\r\n",
    "a blank before the name": b"HTTP/1.1 200 OK\r\n Content-Length: 0\r\n\r\n",
    "a blank and no colon": b"HTTP/1.1 200 OK\r\nContent-Length \r\n\r\n",
    "a blank in a name": b"HTTP/1.1 200 OK\r\nContent Length: 0\r\n\r\n",
    "two lengths, one with a blank": b"HTTP/1.1 200 OK\r\nContent-Length : 0\r\nContent-Length: 5\r\n\r\nhello",
    "length and coding with a blank": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nContent-Length: 5\r\n\r\nhello",
    "a list of lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\nhello",
    "a negative length": b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
    "a length with a sign": b"HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\na",
    "a length beyond all": b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\n",
    "length and coding": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "coding and length": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    "another coding": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "chunked twice": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a coding on 1.0": b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a head that is cut off": b"HTTP/1.1 200 OK\r\nContent-Len",
    "an endless head": b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 100_000,
    "a long line": b"HTTP/1.1 200 OK\r\nX: " + b"y" * 1_000_000,
    "many fields": b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 300 + b"\r\n",
    "endless interim responses": b"HTTP/1.1 100 Continue\r\n\r\n" * 100,
    "another protocol that nobody asked for": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
}


@pytest.mark.parametrize("step", [1, 1000])
@pytest.mark.parametrize("framing", ["Content-Length\t : 5", "Transfer-Encoding : chunked", "Connection \t: close"])
def test_a_blank_before_a_colon_is_removed(build, framing, step):
    """RFC 9112, section 5.1. What frames the response is understood, too, and the connection is in step."""
    content = b"5\r\nhello\r\n0\r\n\r\n" if "chunked" in framing else b"hello"
    answer = f"HTTP/1.1 200 OK\r\nX-A : b\r\nX-B\t:c\r\n{framing}\r\nConnection : X-Hop\r\nX-Hop : 1\r\n\r\n".encode() + content

    def handle(link):
        while True:
            link.request()
            for at in range(0, len(answer), step):
                link.send(answer[at : at + step])
            if "close" in framing:
                break

    with Upstream(handle) as upstream, passing(build, upstream) as server, server.connect() as c:
        for _ in range(2):
            response = c.get("/api/")
            assert response.status == 200 and response.body == b"hello" and response["X-A"] == "b" and response["X-B"] == "c"
            assert b" :" not in response.head and b"\t" not in response.head and response["X-Hop"] is None
        assert len(upstream.links) == (2 if "close" in framing else 1)


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_response_is_a_502_with_the_page_of_the_site(build, name):
    with Upstream(script(MALFORMED[name])) as upstream, passing(build, upstream) as server, server.connect() as c:
        response = c.get("/api/", method="POST")
        while response.status == 100:
            response = c.response()
        assert response.status == 502 and response.body == b"our page"
        assert c.get("/there.txt").body == b"there"
        assert len(upstream.requests) == 1
        eventually(lambda: any(f"upstream 127.0.0.1:{upstream.port} " in line for line in server.errors))


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nx\r\n",
    ],
    ids=["length", "chunked", "malformed"],
)
def test_a_response_that_is_cut_short_is_never_taken_for_a_whole_one(build, answer):
    with Upstream(script(answer)) as upstream, passing(build, upstream) as server, server.connect() as c:
        c.send(b"GET /api/ HTTP/1.1\r\nHost: a\r\n\r\n")
        _, _, content = c.rest().partition(b"\r\n\r\n")
        assert content in (b"hello", b"5\r\nhello\r\n")
        assert server.get("/there.txt").status == 200


@pytest.mark.parametrize("head,content", [
    (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", b"hello"),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"3\r\nhel\r\n2;a\r\nlo\r\n0\r\nX: y\r\n\r\n"),
], ids=["length", "chunked"])  # fmt: skip
def test_an_upstream_may_end_at_any_byte(build, head, content):
    whole = head + content
    rest = list(range(len(whole)))

    def handle(link):
        link.request()
        link.send(whole[: rest.pop(0)])

    with Upstream(handle) as upstream, passing(build, upstream) as server:
        for end in range(len(whole)):
            with server.connect() as c:
                c.send(b"POST /api/ HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                fields, _, got = c.rest().partition(b"\r\n\r\n")
            if end < len(head):
                assert fields.startswith(b"HTTP/1.1 502 ") and got == b"our page"
            elif b"chunked" in head:
                assert fields.startswith(b"HTTP/1.1 200 ") and b"0\r\n" not in got
            else:
                assert fields.startswith(b"HTTP/1.1 200 ") and b"Content-Length: 5" in fields and got == content[: end - len(head)]
        assert server.get("/there.txt").body == b"there" and len(upstream.requests) == len(whole)


@pytest.mark.parametrize("length", [30_000, 32_768, 40_000, 60_000])
def test_a_head_of_32_kb_is_the_most(build, length):
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX:"
    answer = head + b"a" * (length - len(head) - 4) + b"\r\n\r\n"
    with Upstream(script(answer)) as upstream, passing(build, upstream) as server:
        assert server.get("/api/x").status == (200 if length <= 32_768 else 502)


def test_a_connection_with_bytes_that_nobody_asked_for_is_not_used_again(build):
    extra = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"
    with Upstream(script(extra, extra)) as upstream, passing(build, upstream) as server, server.connect() as c:
        for _ in range(3):
            assert c.get("/api/").body == b"ok"
        assert len(upstream.links) == 3


# --- connections ---


def test_connections_of_a_burst_are_used_again(build):
    """All of them, even if all responses have come before the next requests do."""
    burst = 64
    all_have_come = threading.Barrier(burst, timeout=TIMEOUT)

    def handle(link):
        while True:
            link.request()
            all_have_come.wait()
            link.answer()

    with Upstream(handle) as upstream, passing(build, upstream) as server, contextlib.ExitStack() as stack:
        clients = [stack.enter_context(server.connect()) for _ in range(burst)]
        for _ in range(2):
            for client in clients:
                client.send(b"GET /api/x HTTP/1.1\r\nHost: a\r\n\r\n")
            assert [client.response().status for client in clients] == [200] * burst
            assert len(upstream.links) == burst


def test_a_request_on_a_connection_that_has_just_ended_is_repeated_once_if_it_may_be(build):
    ended = threading.Event()

    def handle(link):
        link.request()
        link.answer()
        if len(upstream.links) == 1:
            link.head()  # and no answer
            ended.set()
        else:
            echo(link)

    for method, status in (("GET", 200), ("POST", 502)):
        ended.clear()
        with Upstream(handle) as upstream, passing(build, upstream) as server, server.connect() as c:
            assert c.get("/api/1").body == b"ok"
            assert c.get("/api/2", method=method).status == status
            assert ended.is_set() and len(upstream.requests) == (3 if status == 200 else 2)


def test_an_upstream_that_refuses_is_left_out(build):
    with socket.socket() as refusing, Upstream() as upstream:
        refusing.bind(("127.0.0.1", 0))  # and does not listen
        gone = f"127.0.0.1:{refusing.getsockname()[1]}"
        with passing(build, upstream, rule=f"/api/* http://{gone},{{}}/ 200\n/gone http://{gone}/ 200") as server:
            assert [server.get("/api/").status for _ in range(10)] == [200] * 10
            response = server.get("/gone")
            assert response.status == 502 and response.body == b"our page"
            said = f"cannot connect to the upstream {gone}: Connection refused"
            assert [said in line for line in server.errors] == [True]


@pytest.mark.parametrize("reads", [False, True])
def test_an_upstream_that_ends_its_connections_is_left_out(build, reads):
    """It always has the fewest requests under way."""
    def handle(link):
        if reads:
            link.head()

    with Upstream(handle) as broken, Upstream() as good, passing(build, broken, good) as server:
        assert [server.get("/api/").status for _ in range(20)] == [200] * 20
        assert [server.get("/api/", method="POST").status for _ in range(10)] == [200] * 10
        assert reads is False or len(broken.requests) == 1
        said = f"upstream {broken.address} has ended a connection without a whole response"
        eventually(lambda: any(said in line for line in server.errors))


def test_a_request_that_ends_each_connection_is_not_sent_to_all(build):
    with Upstream(lambda link: link.head()) as one, Upstream(lambda link: link.head()) as two, Upstream(lambda link: link.head()) as three:
        with passing(build, one, two, three) as server:
            assert server.get("/api/").status == 502
            assert len(one.requests) + len(two.requests) + len(three.requests) == 2


def test_an_upstream_that_hangs_leaves_connections_for_others(plain):
    hung = threading.Event()

    def handle(link):
        link.request()
        hung.wait(TIMEOUT)

    def once(link):
        link.request()
        link.answer()

    with Upstream(handle) as upstream, Upstream(once) as good, contextlib.ExitStack() as stack:
        rule = f"/a/* http://{{}}/ 200\n/b/* http://{good.address}/ 200"
        server = stack.enter_context(passing(plain, upstream, rule=rule, **descriptors_limited_to(256)))
        address = ("127.0.0.1", server.plain_port)
        clients = [stack.enter_context(Connection(address, source=f"127.0.0.{2 + n // 4}")) for n in range(80)]
        assert server.get("/b/").status == 200  # it is known
        for client in clients:
            client.send(b"GET /a/ HTTP/1.1\r\nHost: a\r\n\r\n")
        assert select.select([client.socket for client in clients], [], [], TIMEOUT)[0]
        assert [server.get("/b/").status for _ in range(5)] == [200] * 5
        eventually(lambda: any(f"wait for {upstream.address}: further requests are answered with 503" in line for line in server.errors))
        hung.set()


def holding(release):
    """Returns a handler that answers one request, /wait only after the release."""

    def handle(link):
        if "/wait" in link.request().line:
            release.wait(TIMEOUT)
        link.answer()

    return handle


def test_a_client_leaves_connections_to_upstreams_for_others(plain):
    release = threading.Event()
    with Upstream(holding(release)) as upstream, contextlib.ExitStack() as stack:
        server = stack.enter_context(passing(plain, upstream, **descriptors_limited_to(256)))
        clients = [stack.enter_context(server.connect()) for _ in range(80)]
        for client in clients:
            client.send(b"GET /api/wait HTTP/1.1\r\nHost: a\r\n\r\n")
        assert select.select([client.socket for client in clients], [], [], TIMEOUT)[0]
        with Connection(("127.0.0.1", server.plain_port), source="127.0.0.2") as other:
            assert [other.get("/api/").status for _ in range(5)] == [200] * 5
        release.set()


def test_a_site_leaves_connections_to_upstreams_for_others(plain):
    release = threading.Event()
    handle = holding(release)
    with Upstream(handle) as one, Upstream(handle) as other, Upstream(handle) as upstream, contextlib.ExitStack() as stack:
        rules = {"evil": f"{one.address},{other.address}", "good": upstream.address}
        files = {f"{host}.example/_redirects": f"/api/* http://{addresses}/:splat 200".encode() for host, addresses in rules.items()}
        server = stack.enter_context(passing(plain, upstream, files=files, **descriptors_limited_to(256)))
        assert server.get("/api/", host="good.example").status == 200
        clients = [stack.enter_context(Connection(("127.0.0.1", server.plain_port), source=f"127.0.1.{n // 4 + 1}")) for n in range(80)]
        for client in clients:
            client.send(b"GET /api/wait HTTP/1.1\r\nHost: evil.example\r\n\r\n")
        assert select.select([client.socket for client in clients], [], [], TIMEOUT)[0]  # some are answered with 503
        assert [server.get("/api/", host="good.example").status for _ in range(5)] == [200] * 5
        release.set()


@contextlib.contextmanager
def many_upstreams(build, count, sites, handle):
    """Runs a server of sites that pass /N/ on to the Nth upstream."""
    with contextlib.ExitStack() as stack:
        upstreams = [stack.enter_context(Upstream(handle)) for _ in range(count)]
        rule = "\n".join(f"/{n}/* http://{upstream.address}/:splat 200" for n, upstream in enumerate(upstreams))
        files = {f"{site}/_redirects": rule.encode() for site in sites}
        yield stack.enter_context(passing(build, upstreams[0], rule="", files=files)), upstreams, stack


def ask_to_wait(server, stack, upstream, n, site):
    """Returns a client whose request has reached the upstream."""
    client, before = stack.enter_context(server.connect()), len(upstream.requests)
    client.send(f"GET /{n}/wait HTTP/1.1\r\nHost: {site}\r\n\r\n".encode())
    assert eventually(lambda: len(upstream.requests) > before)
    return client


def test_so_many_upstreams_are_used_at_a_time(plain):
    """One without a request under way makes room for another, and loses its idle connections."""
    release = threading.Event()
    shares = {"a.example": 32, "b.example": 16, "c.example": 8, "d.example": 4, "e.example": 2, "f.example": 1, "g.example": 1}
    most, owner = sum(shares.values()), [site for site, share in shares.items() for _ in range(share)]

    def handle(link):
        while True:
            if "/wait" in link.request().line:
                release.wait(TIMEOUT)
            link.answer()

    with many_upstreams(plain, most + 1, [*shares, "h.example"], handle) as (server, upstreams, stack):
        assert [server.get(f"/{n}/", host="a.example").status for n in range(most + 1)] == [200] * (most + 1)
        waiting = [ask_to_wait(server, stack, upstreams[n], n, owner[n]) for n in range(most)]
        assert server.get(f"/{most}/", host="h.example").status == 503
        eventually(lambda: any(f"no request is passed on to {upstreams[most].address}: {most} other" in line for line in server.errors))
        release.set()
        assert [client.response().status for client in waiting] == [200] * most
        assert server.get(f"/{most}/", host="h.example").status == 200


def test_a_site_whose_upstreams_hang_leaves_half_of_the_places(plain):
    release = threading.Event()

    def handle(link):
        while True:
            if "/wait" in link.request().line:
                release.wait(TIMEOUT)
            link.answer()

    with many_upstreams(plain, 66, ["a.example", "b.example", "c.example"], handle) as (server, upstreams, stack):
        waiting = [ask_to_wait(server, stack, upstreams[n], n, "a.example") for n in range(32)]
        assert [server.get(f"/{n}/", host="a.example").status for n in range(32, 64)] == [503] * 32
        eventually(lambda: any("no request of the site a.example is passed on to" in line for line in server.errors))
        # others are served, also by an upstream that the first one uses
        assert server.get("/64/", host="b.example").status == 200 and server.get("/0/", host="b.example").status == 200
        # the second has half of the rest, so that there is always a place for a third
        waiting += [ask_to_wait(server, stack, upstreams[n], n, "b.example") for n in range(32, 48)]
        assert [server.get(f"/{n}/", host="b.example").status for n in range(48, 64)] == [503] * 16
        assert server.get("/65/", host="c.example").status == 200
        release.set()
        assert [client.response().status for client in waiting] == [200] * 48
        assert server.get("/63/", host="a.example").status == 200


def test_an_upstream_that_does_not_take_connections_is_a_504(plain):
    """Its queue is full, so the kernel no longer answers."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(2):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listener.getsockname())
        port = listener.getsockname()[1]
        root = Root({"50x.html": b"our page", "_redirects": f"/api/* http://127.0.0.1:{port}/ 200".encode()})
        server = stack.enter_context(Server(plain, root, "-j", "1", "--upstream", f"127.0.0.1:{port}"))
        begun = time.monotonic()
        response = server.get("/api/")
        assert response.status == 504 and response.body == b"our page"
        assert 4.9 < time.monotonic() - begun < 8  # UPSTREAM_CONNECT_MS


@pytest.mark.parametrize("silence,limit", [("none", "upstream-first"), ("half", "upstream-between")])
def test_an_upstream_that_says_nothing_for_too_long_is_given_up(plain, silence, limit):
    def handle(link):
        request = link.request()
        if request.line.startswith("GET /half "):
            link.send(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
        link.ended()

    with Upstream(handle) as upstream, passing(plain, upstream, flags=("--limit", f"{limit}=2")) as server, server.connect() as c:
        begun = time.monotonic()
        c.send(f"GET /api/{silence} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        if silence == "none":
            response = c.response()
            assert response.status == 504 and response.body == b"our page"
        else:
            assert c.rest().endswith(b"\r\n\r\nhalf")  # cut off, not completed
        assert 1.9 < time.monotonic() - begun < 5
        said = f"gatling: upstream {upstream.address} has not gone on for 2 s (limit {limit})"
        eventually(lambda: said in server.errors)


def test_an_upstream_may_take_longer_than_a_client(plain):
    """A limit of more than a minute; the client that stalls has a minute all the same."""
    release = threading.Event()

    def handle(link):
        link.socket.settimeout(90)
        link.request()
        release.wait(64)
        link.answer()

    with Upstream(handle) as upstream, passing(plain, upstream, flags=("--limit", "upstream-first=90")) as server, server.connect() as c:
        c.socket.settimeout(90)
        assert c.get("/api/").status == 200


def test_the_upstream_has_its_time_from_the_end_of_a_request_on(plain):
    """Which is less than what shows that the client goes on."""
    release = threading.Event()

    def handle(link):
        link.request()
        release.wait(2)  # longer than what the limit from the head on would leave
        link.answer()

    flags = ("-T", "0", "--limit", "upstream-first=3")
    with Upstream(handle) as upstream, passing(plain, upstream, flags=flags) as server, server.connect() as c:
        c.send(b"POST /api/ HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\na")
        assert not select.select([c.socket], [], [], 2)[0]
        c.send(b"b")
        assert c.response().status == 200


def test_a_client_that_expects_a_100_waits_no_longer_than_for_a_response(plain):
    def handle(link):
        link.head()
        link.ended()

    flags = ("-T", "3", "--limit", "upstream-first=2")
    with Upstream(handle) as upstream, passing(plain, upstream, flags=flags) as server, server.connect() as c:
        begun = time.monotonic()
        c.send(b"POST /api/ HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n")
        assert c.response().status == 504
        assert 1.9 < time.monotonic() - begun < 5
        eventually(lambda: any("has not gone on for 2 s" in line for line in server.errors))


@pytest.mark.parametrize("framing", ["length", "chunks"])
@pytest.mark.parametrize("size,status", [(2_000_000, 200), (2_000_001, 413)])
def test_content_is_as_long_as_the_operator_says(build, framing, size, status):
    with Upstream() as upstream, passing(build, upstream, flags=("--limit", "body=2000000")) as server, server.connect() as c:
        content = bytes(size)
        with contextlib.suppress(ConnectionError):
            if framing == "length":
                c.send(f"POST /api/ HTTP/1.1\r\nHost: a\r\nContent-Length: {size}\r\n\r\n".encode() + content)
            else:
                c.send(b"POST /api/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
                for at in range(0, size, 100_000):
                    piece = content[at : at + 100_000]
                    c.send(b"%x\r\n%b\r\n" % (len(piece), piece))
                c.send(b"0\r\n\r\n")
        assert c.response().status == status
        if status == 413:
            said = "gatling: refused a request with more than 2000000 bytes of content for an upstream: body=SIZE of --limit, or in the file _limits, allows more"
            eventually(lambda: said in server.errors)
            assert all(len(request.body) < size for request in upstream.requests)
            assert server.get("/api/").status == 200


def test_requests_that_are_passed_on_leave_descriptors_for_other_clients(plain):
    release = threading.Event()

    def handle(link):
        link.request()
        release.wait(TIMEOUT)
        link.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    with Upstream(handle) as upstream, passing(plain, upstream, **descriptors_limited_to(128)) as server, contextlib.ExitStack() as stack:
        waiting = [stack.enter_context(server.connect()) for _ in range(40)]
        for c in waiting:
            c.send(b"GET /api/x HTTP/1.1\r\nHost: a\r\n\r\n")
        first = select.select([c.socket for c in waiting], [], [], TIMEOUT)[0][0]
        (refused,) = (c for c in waiting if c.socket is first)
        response = refused.response()
        assert response.status == 503 and response.body == b"our page"
        assert all(server.get("/there.txt").body == b"there" for _ in range(20))
        release.set()
        statuses = [c.response().status for c in waiting if c is not refused]
        assert statuses.count(200) >= 8 and set(statuses) == {200, 503}


def test_the_upstream_with_the_fewest_requests_is_asked(build):
    release = threading.Event()

    def handle(link):
        link.request()
        release.wait(20)
        link.answer()

    with Upstream(handle) as one, Upstream(handle) as other, passing(build, one, other) as server:
        clients = [server.connect() for _ in range(6)]
        for n, client in enumerate(clients):
            client.send(b"GET /api/ HTTP/1.1\r\nHost: a\r\n\r\n")
            eventually(lambda n=n: len(one.requests) + len(other.requests) == n + 1)
        assert len(one.requests) == len(other.requests) == 3
        release.set()
        for client in clients:
            assert client.response().status == 200
            client.close()


@pytest.mark.parametrize("framing", ["length", "chunks", "page"])
def test_a_client_that_has_said_all_gets_its_answer(build, framing):
    """It may end its side after its request, as on paths of files; then the connection ends."""
    release = threading.Event()

    def handle(link):
        link.request()
        assert release.wait(TIMEOUT)
        link.send({"length": b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + bytes(100_000), "page": b"nonsense\r\n\r\n",
                   "chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"}[framing])  # fmt: skip
        if framing == "chunks":
            for _ in range(3):
                link.send(b"3\r\nabc\r\n")
            link.send(b"0\r\n\r\n")

    with Upstream(handle) as upstream, passing(build, upstream) as server, server.connect() as c:
        c.send(b"POST /api/x HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc")
        eventually(lambda: upstream.requests and upstream.requests[0].body)
        c.half_close()
        assert server.get("/there.txt").body == b"there"  # the end has been seen before
        release.set()
        response = c.response()
        assert response["Connection"] == "close"
        assert (response.status, response.body) == {"length": (200, bytes(100_000)), "chunks": (200, b"abc" * 3), "page": (502, b"our page")}[framing]
        c.assert_closed()


def test_a_client_that_ends_its_side_in_the_middle_of_its_content_has_sent_no_request(build):
    ended = threading.Event()
    with Upstream(lambda link: (link.head(), link.ended(), ended.set())) as upstream, passing(build, upstream) as server, server.connect() as c:
        c.send(b"POST /api/x HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nabc")
        eventually(lambda: upstream.requests)
        c.half_close()
        c.assert_closed()
        assert ended.wait(TIMEOUT)


@pytest.mark.parametrize("half_closed", [False, True])
def test_a_client_that_goes_away_ends_the_request(build, half_closed):
    """An RST says so; a FIN may come from one that waits for its answer."""
    gone = threading.Event()

    def handle(link):
        link.request()
        link.ended()
        gone.set()

    with Upstream(handle) as upstream, passing(build, upstream) as server:
        with server.connect() as c:
            c.send(b"GET /api/ HTTP/1.1\r\nHost: a\r\n\r\n")
            eventually(lambda: upstream.requests)
            if half_closed:
                c.half_close()
                assert server.get("/there.txt").status == 200  # the FIN has been seen before
                assert not gone.is_set()
            c.reset()
        assert gone.wait(20)
        assert server.get("/there.txt").status == 200


def test_a_client_that_does_not_read_holds_the_upstream_up_and_nothing_else(build):
    """Only the buffers of a few sockets, and 64 KB, are ahead of the client; the rest has not been
    read."""
    sent = []

    def handle(link):
        link.request()
        link.send(b"HTTP/1.1 200 OK\r\nContent-Length: 200000000\r\n\r\n")
        for _ in range(2000):
            link.send(b"x" * 100_000)
            sent.append(100_000)

    with Upstream(handle) as upstream, passing(build, upstream) as server, server.connect(receive_buffer=4096) as c:
        c.send(b"GET /api/ HTTP/1.1\r\nHost: a\r\n\r\n")
        eventually(lambda: len(sent) > 3)
        assert [server.get("/there.txt").status for _ in range(20)] == [200] * 20
        count = 0
        while count < len(sent):  # until nothing goes on any more
            count = len(sent)
            for _ in range(50):
                server.get("/there.txt")
        assert sum(sent) < 30_000_000


def test_an_upstream_that_does_not_read_holds_the_client_up_and_nothing_else(build):
    release = threading.Event()

    def handle(link):
        request = link.head()
        release.wait(20)
        link.answer(str(len(link.body(request).body)).encode())

    with Upstream(handle) as upstream, passing(build, upstream) as server, server.connect() as c:
        before = server.resident()
        c.send(b"POST /api/ HTTP/1.1\r\nHost: a\r\nContent-Length: 50000000\r\n\r\n")
        c.socket.setblocking(False)
        left = 50_000_000
        with contextlib.suppress(BlockingIOError, OSError):
            while left:
                left -= c.socket.send(b"x" * min(left, 65536))
        assert left
        c.socket.settimeout(20)
        assert server.get("/there.txt").status == 200 and server.resident() - before < 20_000_000
        release.set()
        while left:
            left -= c.socket.send(b"x" * min(left, 65536))
        assert c.response().body == b"50000000"


def test_a_connection_that_is_done_leaves_no_time_wait(build):
    """It is reset, since otherwise one of 28,000 ports would be in use for a minute."""
    ends = []

    def handle(link):
        link.request()
        link.answer(b"ok", "Connection: close")
        try:
            ends.append(link.socket.recv(1))
        except ConnectionResetError:
            ends.append("reset")

    with Upstream(handle) as upstream, passing(build, upstream) as server:
        assert server.get("/api/").body == b"ok"
        eventually(lambda: ends == ["reset"])


def test_a_slow_client_over_any_transport_gets_each_byte_once(build):
    """The content is more than the buffers of its socket hold, in numbered lines."""
    content = b"".join(b"%09d\n" % n for n in range(3_000_000))

    def handle(link):
        if link.request().line == "GET /close HTTP/1.1":
            link.send(b"HTTP/1.1 200 OK\r\n\r\n" + content)
        else:
            link.answer(content)

    with Upstream(handle) as upstream, passing(build, upstream) as server:
        for path in ("/api/length", "/api/close"):
            with server.connect(receive_buffer=8192) as c:
                c.send(f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
                for _ in range(100):  # meanwhile its buffer is full
                    assert server.get("/there.txt").status == 200
                assert c.response().body == content


@pytest.mark.clear
@pytest.mark.parametrize("unix", [False, True], ids=["tcp", "unix"])
def test_much_content_of_known_length_does_not_leave_the_kernel(plain, tmp_path, unix):
    """Also with the system call filter; the log has its length."""
    content = b"".join(b"%09d\n" % n for n in range(500_000))

    def handle(link):
        while link.request():
            link.answer(content)

    def client(server):
        with server.connect() as c:
            for _ in range(3):
                assert c.get("/api/x").body == content

    rule = "/api/* http://{}: 200" if unix else None
    with Upstream(handle, unix=unix) as upstream, passing(plain, upstream, rule=rule) as server:
        calls = calls_of(server, tmp_path / "calls", client)
        read = sum(map(int, re.findall(r"recvfrom\(.* = (\d+)$", (tmp_path / "calls").read_text(), re.MULTILINE)))
        with_heads = re.findall(r'recvfrom\(\d+, "HTTP/1.1 200 .* = (\d+)$', (tmp_path / "calls").read_text(), re.MULTILINE)
        assert all(int(length) <= 16_384 for length in with_heads[1:]), with_heads  # the first may be longer
        assert read < 3 * 200_000 and calls["splice"] > 3 * 2 * 30, calls
        eventually(lambda: [line.split('" ')[1].split()[:2] for line in server.lines] == 3 * [["200", str(len(content))]])


@pytest.mark.clear
def test_what_fits_the_buffer_leaves_with_its_head(plain, tmp_path):
    """Even if little was read with the head, because the previous response was long."""

    def handle(link):
        while link.request():
            link.answer(b"x" * 100_000)
            link.request()
            link.answer(b"y" * 30_000)

    def client(server):
        with server.connect() as c:
            for _ in range(3):
                assert len(c.get("/api/").body) == 100_000 and c.get("/api/").body == b"y" * 30_000
            c.get("/there.txt")  # the last call has returned, too

    with Upstream(handle) as upstream, passing(plain, upstream) as server:
        calls_of(server, tmp_path / "calls", client)
    assert len(re.findall(r"sendmsg\b.* = 30\d{3}$", (tmp_path / "calls").read_text(), re.MULTILINE)) == 3


@pytest.mark.clear
@pytest.mark.parametrize("unix", [False, True], ids=["tcp", "unix"])
def test_nor_does_much_content_of_a_request(plain, tmp_path, unix):
    content = b"".join(b"%09d\n" % n for n in range(500_000))

    def handle(link):
        while link.request().body == content:
            link.answer(b"the same")

    def client(server):
        with server.connect() as c:
            for _ in range(3):
                c.send(f"POST /api/x HTTP/1.1\r\nHost: a\r\nContent-Length: {len(content)}\r\n\r\n".encode() + content)
                assert c.response().body == b"the same"

    rule = "/api/* http://{}: 200" if unix else None
    with Upstream(handle, unix=unix) as upstream, passing(plain, upstream, rule=rule) as server:
        calls = calls_of(server, tmp_path / "calls", client)
        read = sum(map(int, re.findall(r"recvfrom\(.* = (\d+)$", (tmp_path / "calls").read_text(), re.MULTILINE)))
        assert read < len(content) and calls["splice"] > 3 * 2 * 30, calls


def test_a_slow_upstream_gets_each_byte_of_a_request_once(build):
    """The content is more than the buffers of its socket hold; others are served meanwhile."""
    content = b"".join(b"%09d\n" % n for n in range(2_500_000))
    same = []

    def handle(link):
        request = link.head()
        full.wait(TIMEOUT)
        same.append(link.body(request).body == content)
        link.answer()

    full = threading.Event()
    with Upstream(handle) as upstream, passing(build, upstream) as server, server.connect() as c:
        head = f"POST /api/ HTTP/1.1\r\nHost: a\r\nContent-Length: {len(content)}\r\n\r\n".encode()
        sender = threading.Thread(target=c.send, args=(head + content,))
        sender.start()
        eventually(lambda: upstream.requests)
        for _ in range(100):  # meanwhile all buffers are full
            assert server.get("/there.txt").status == 200
        full.set()
        sender.join()
        assert c.response().body == b"ok" and same == [True]


def test_a_client_that_goes_away_in_the_middle_is_logged_with_what_it_got(build):
    stopped = threading.Event()

    def handle(link):
        link.request()
        link.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2000000\r\n\r\n" + bytes(1_000_000))
        stopped.wait(TIMEOUT)

    with Upstream(handle) as upstream, passing(build, upstream) as server:
        with server.connect() as c:
            c.send(b"GET /api/x HTTP/1.1\r\nHost: a\r\n\r\n")
            received = b""
            while len(received) < 1_000_000:
                received += c.socket.recv(100_000)
            c.reset()
        eventually(lambda: server.lines)
        stopped.set()
        assert '"GET /api/x HTTP/1.1" 200 1000000 ' in server.lines[0]


def test_what_comes_behind_a_response_is_never_the_answer_to_another_request(build):
    stale = threading.Event()

    def handle(link):
        link.request()
        link.answer(b"first")
        if len(upstream.links) > 1:
            return
        stale.wait(20)
        link.answer(b"stale")
        sent.set()
        link.ended()

    sent = threading.Event()
    with Upstream(handle) as upstream, passing(build, upstream) as server, server.connect() as c:
        assert c.get("/api/1").body == b"first"
        with stopped(server):
            c.send(b"GET /api/2 HTTP/1.1\r\nHost: a\r\n\r\n")
            stale.set()
            assert sent.wait(20)
        assert c.response().body == b"first"


@pytest.mark.parametrize("sent,answers", [(63_000, False), (100, False), (100, True)])
def test_a_client_that_stops_in_the_middle_of_its_content_is_not_waited_for(build, sent, answers):
    def handle(link):
        link.head()
        if answers:
            link.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc")
        link.ended()

    with Upstream(handle) as upstream, passing(build, upstream, flags=("-T", "1")) as server, server.connect() as c:
        c.send(b"POST /api/ HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n" + b"x" * sent)
        assert c.rest()[:12] == (b"HTTP/1.1 200" if answers else b"HTTP/1.1 408")
        assert upstream.requests


@pytest.mark.parametrize("goes_on", [True, False])
def test_fast_content_that_stops_is_passed_on_as_far_as_it_has_come(build, goes_on):
    """However much is awaited at a time; and the time limit remains."""
    first, little, rest, whole = b"x" * 1_000_000, b"z" * 1000, b"y" * 500_000, threading.Event()

    def handle(link):
        link.head()
        assert link.take(len(first + little)) == first + little
        whole.set()
        if goes_on:
            assert link.take(len(rest)) == rest
            link.answer()
        else:
            link.ended()

    flags = () if goes_on else ("-T", "1")
    with Upstream(handle) as upstream, passing(build, upstream, flags=flags) as server, server.connect() as c:
        c.send(f"POST /api/ HTTP/1.1\r\nHost: a\r\nContent-Length: {len(first + little + rest)}\r\n\r\n".encode() + first)
        time.sleep(0.01)  # the server has nothing left to read then
        c.send(little)
        assert whole.wait(TIMEOUT)
        if goes_on:
            c.send(rest)
            assert c.response().body == b"ok" and c.get("/there.txt").status == 200
        else:
            assert c.rest()[:12] == b"HTTP/1.1 408"


@pytest.mark.parametrize("rest", [500_000, 130_000, 60_000, 1])
def test_fast_content_may_pause(build, rest):
    """For longer than content is held back, with much left or little."""
    first, paused = b"x" * 1_000_000, threading.Event()

    def handle(link):
        link.answer(str(len(link.request().body)).encode())

    with Upstream(handle) as upstream, passing(build, upstream) as server, server.connect() as c:
        c.send(f"POST /api/ HTTP/1.1\r\nHost: a\r\nContent-Length: {len(first) + rest}\r\n\r\n".encode() + first)
        paused.wait(0.4)
        c.send(b"y" * rest)
        assert c.response().body == str(len(first) + rest).encode()
        assert c.get("/there.txt").status == 200


def test_little_content_reaches_an_upstream_that_is_answering(build):
    """Even after much that came fast, while bytes of the response move the deadline."""
    first, got, ended = b"x" * 1_000_000, threading.Event(), threading.Event()

    def handle(link):
        link.head()
        link.take(len(first))
        link.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")

        def beat():
            while not got.wait(0.01):
                link.send(b"1\r\n.\r\n")

        beating = threading.Thread(target=beat)
        beating.start()
        link.take(1000)
        got.set()
        beating.join()
        link.take(499_000)
        link.send(b"0\r\n\r\n")

    with Upstream(handle) as upstream, passing(build, upstream) as server, server.connect() as c:
        c.send(b"POST /api/ HTTP/1.1\r\nHost: a\r\nContent-Length: 1500000\r\n\r\n" + first)
        receiver = threading.Thread(target=lambda: (c.response(), ended.set()))
        receiver.start()
        got.wait(0.2)
        c.send(b"y" * 1000)
        assert got.wait(TIMEOUT)
        c.send(b"z" * 499_000)
        assert ended.wait(TIMEOUT)
        receiver.join()


def test_an_upload_goes_on_at_another_address_when_one_has_gone(build):
    """The upload uses a connection that was kept, which takes all that has come so far at once."""
    both = threading.Barrier(2)

    def handle(link):
        link.request()
        with contextlib.suppress(threading.BrokenBarrierError):
            both.wait(20)
        link.answer()
        both.abort()
        request = link.request()
        link.answer(str(len(request.body)).encode())

    with contextlib.ExitStack() as stack, Upstream(handle) as one:
        other = stack.enter_context(Upstream(handle))
        with passing(build, other, one) as server, server.connect() as c, server.connect() as d:
            for client in (c, d):
                client.send(b"GET /api/ HTTP/1.1\r\nHost: a\r\n\r\n")
            for client in (c, d):
                assert client.response().body == b"ok"
            stack.close()  # and its port
            c.send(b"POST /api/ HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n" + b"x" * 1000000)
            assert c.response().body == b"1000000"


def test_an_upstream_that_is_reset_has_not_sent_a_whole_response(build):
    def handle(link):
        link.request()
        link.send(b"HTTP/1.1 200 OK\r\n\r\npartial")
        go.wait(20)
        link.reset()

    go = threading.Event()
    with Upstream(handle) as upstream, passing(build, upstream) as server, server.connect() as c:
        c.send(b"GET /api/ HTTP/1.1\r\nHost: a\r\n\r\n")
        while b"partial" not in c.buffer:
            assert c._fill()
        go.set()
        assert not c.rest().endswith(b"0\r\n\r\n")


@pytest.mark.parametrize(
    "framing,whole",
    [("Content-Length: {}", True), ("Content-Length: 40000", False), ("Transfer-Encoding: chunked", True), ("Transfer-Encoding: chunked", False),
     ("Server: up", False)],
)  # fmt: skip
def test_an_upstream_that_is_reset_behind_the_first_16_kb_of_a_response(build, framing, whole):
    """This much is read with the head on a connection whose last response was long. A complete
    response stays complete."""
    end = b"\r\n0\r\n\r\n" if whole else b""
    length = 16_384 - len(f"HTTP/1.1 200 OK\r\n{framing.format(16_000)}\r\n\r\n")
    head = f"HTTP/1.1 200 OK\r\n{framing.format(length)}\r\n\r\n".encode()
    content = b"y" * length
    if framing.endswith("chunked"):
        content = content[8 + len(end) :]
        content = b"%06x\r\n%b%b" % (len(content), content, end)

    def handle(link):
        link.request()
        link.answer(b"x" * 100_000)
        link.request()
        with stopped(server):
            link.send(head + content)
            link.reset()

    with Upstream(handle) as upstream, passing(build, upstream) as server, server.connect() as c:
        assert len(c.get("/api/").body) == 100_000
        c.send(b"GET /api/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        got, _, body = c.rest().partition(b"\r\n\r\n")
        assert b" 200 " in got and body.count(b"y") > 16_000
        if framing.startswith("Content"):
            assert (f"Content-Length: {len(body)}\r\n".encode() in got + b"\r\n") == whole
        else:
            assert body.endswith(b"0\r\n\r\n") == whole
        assert server.get("/there.txt").status == 200


def test_only_websocket_is_changed_to(build):
    with Upstream() as upstream, passing(build, upstream) as server:
        for upgrade in ("h2c", "websocket, h2c", "TLS/1.3"):
            body = server.get("/api/", "Connection: Upgrade, HTTP2-Settings", f"Upgrade: {upgrade}", "HTTP2-Settings: AA").body
            assert b"Upgrade" not in body and b"HTTP2" not in body
        many = ["Connection: x"] * 20
        assert b"Cookie: a" in server.get("/api/", *many, "Cookie: a").body


def test_another_protocol_goes_both_ways(build):
    def handle(link):
        request = link.request()
        assert request["Connection"] == "upgrade" and request["Upgrade"] == "websocket" and request["Sec-WebSocket-Key"] == "x"
        link.send(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: y\r\n\r\nfirst")
        for _ in range(3):
            link.send(link.take(4).upper())

    with Upstream(handle) as upstream, passing(build, upstream) as server, server.connect() as c:
        response = c.get("/api/", "Connection: keep-alive, Upgrade", "Upgrade: websocket", "Sec-WebSocket-Key: x")
        assert response.status == 101 and response["Upgrade"] == "websocket" and response["Connection"] == "upgrade"
        assert response["Sec-WebSocket-Accept"] == "y" and response["Content-Length"] is None
        for _ in range(3):
            c.send(b"ping")
        assert c.rest() == b"firstPINGPINGPING"


def test_a_silent_websocket_ends(plain):
    def handle(link):
        link.request()
        link.send(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
        with contextlib.suppress(OSError):
            while octets := link.take(4):
                link.send(octets)

    with Upstream(handle) as upstream, passing(plain, upstream, flags=("--limit", "upstream-tunnel=1")) as server, server.connect() as c:
        assert c.get("/api/", "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Key: x").status == 101
        for _ in range(3):
            time.sleep(0.6)
            c.send(b"ping")
            assert c.socket.recv(4) == b"ping"
        assert c.rest() == b""


@pytest.mark.clear
def test_what_an_upstream_says_before_it_breaks_off_a_tunnel_arrives(build):
    """Also while the client sends what nobody reads: a reset of its connection could take the last message with it."""
    breaks = threading.Event()
    with Upstream(ends_tunnel(breaks, resets=True)) as upstream, passing(build, upstream) as server, server.connect() as c:
        assert c.get("/api/", "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Key: x").status == 101
        c.socket.settimeout(0.2)
        with pytest.raises(TimeoutError):
            while True:
                c.send(bytes(1 << 16))
        breaks.set()
        c.socket.settimeout(TIMEOUT)
        assert c.socket.recv(4) == b"bye" and c.socket.recv(1) == b""


@pytest.mark.parametrize("fields", [b"", b"Upgrade: h2c\r\n", b"Upgrade: websocket\r\nUpgrade: h2c\r\n", b"Upgrade: websocket, h2c\r\n"],
                         ids=["none", "another", "two", "a list"])  # fmt: skip
def test_a_protocol_that_nobody_asked_for_is_a_502(build, fields):
    answer = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n%b\r\nfirst" % fields
    with Upstream(script(answer)) as upstream, passing(build, upstream) as server, server.connect() as c:
        response = c.get("/api/", "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Key: x")
        assert response.status == 502 and response.body == b"our page" and response["Upgrade"] is None
        assert c.get("/there.txt").body == b"there"
        eventually(lambda: any(f"{upstream.address} has changed to a protocol that was not asked for" in line for line in server.errors))


# --- who may ---


@pytest.mark.decided
def test_a_rule_that_is_not_allowed_is_told_with_the_option_that_would(build):
    with Upstream() as upstream:
        root = Root({"_redirects": f"/api/* http://127.0.0.1:{upstream.port}/:splat 200\n".encode()})
        with Server(build, root, "--upstream", "127.0.0.2") as server:
            assert server.get("/api/").status == 404 and not upstream.requests
            assert eventually(lambda: any(f"_redirects:1: " in line and f"without --upstream 127.0.0.1:{upstream.port}" in line for line in server.errors))


@pytest.mark.decided
@pytest.mark.parametrize("forced", ["", "!"])
def test_passwords_come_first(build, forced):
    guard = {"api/.htaccess": f"Realm\nann:{HASHES['md5crypt']}\n".encode()}
    with Upstream() as upstream, passing(build, upstream, rule="/api/* http://{}/:splat 200" + forced, files=guard) as server:
        for method in ("GET", "POST"):
            assert server.get("/api/x", method=method).status == 401
            if forced:  # else the client is sent to the directory
                assert server.get("/api", method=method).status == 401
        assert not upstream.requests
        assert server.get("/api/x", basic("ann"), method="POST").status == 200
        eventually(lambda: any(re.search(r' ann \[.*"POST /api/x HTTP/[\d.]+" 200', line) for line in server.lines))


@pytest.mark.clear
def test_the_log_has_what_was_answered(build):
    def handle(link):
        if link.request().line.startswith("POST"):
            link.send(b"HTTP/1.1 201 Made\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n")

    with Upstream(handle) as upstream, passing(build, upstream) as server, server.connect() as c:
        assert c.get("/api/x", method="POST").body == b"hello"
        assert c.get("/api/y").status == 502
        eventually(lambda: len(server.lines) == 2)
        assert '"POST /api/x HTTP/1.1" 201 5 ' in server.lines[0]
        assert '"GET /api/y HTTP/1.1" 502 8 ' in server.lines[1]


def test_the_log_in_json_has_the_upstream(build):
    with Upstream(lambda link: (link.request(), time.sleep(0.1), link.answer(b"hello"))) as upstream:
        with passing(build, upstream, flags=("--log", "json")) as server:
            server.get("/api/x")
            server.get("/there.txt")
            eventually(lambda: len(server.lines) == 2)
            passed, file = map(json.loads, server.lines)
            assert passed["upstream"] == upstream.address and passed["upstream_status"] == passed["status"] == 200
            assert 0.09 < passed["upstream_seconds"] <= passed["seconds"] + 0.01 and "upstream" not in file


def test_the_log_in_json_has_the_upstream_that_failed(build):
    with socket.create_server(("127.0.0.1", 0)) as gone:
        closed = "127.0.0.1:%d" % gone.getsockname()[1]
    with Upstream(script()) as upstream, Upstream(unix=True) as other:
        path = f"{other.directory}/none.sock"
        rule = f"/api/* http://{upstream.address}/ 200\n/gone http://{closed}/ 200\n/none http://unix:{path}:/ 200\n"
        with passing(build, upstream, other, rule=rule, flags=("--log", "json")) as server:
            for target in ("/api/x", "/gone", "/gone", "/none"):
                assert server.get(target).status == 502
            with server.connect() as c:
                c.send(b"POST /api/x HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx")
                assert c.response().status == 502
            eventually(lambda: len(server.lines) == 5)
            lines = [json.loads(line) for line in server.lines]
            assert [line["upstream"] for line in lines] == [upstream.address, closed, closed, path, upstream.address]
            assert all(line["status"] == 502 and "upstream_status" not in line and "upstream_seconds" not in line for line in lines)


# --- compressing ---

TEXT = b"".join(b"line %d of a text that repeats itself\n" % (i % 1000) for i in range(20_000))
UNPACKED = b"%x\r\n" % len(TEXT) + TEXT + b"\r\n0\r\nX-Sum: 1\r\n\r\n"
ACCEPTS = "Accept-Encoding: br, gzip"
READERS = {"gzip": lambda: zlib.decompressobj(31), "zstd": lambda: zstandard.ZstdDecompressor().decompressobj()}


def makes_zstd(build):
    return b"ZSTD_compressStream2" in (build / "gatling").read_bytes()


@pytest.fixture(params=READERS)
def coding(request, build):
    if request.param == "zstd" and not makes_zstd(build):
        pytest.skip("this build has no zstd")
    return request.param


def framed(framing, fields=b"Content-Type: text/html; charset=utf-8\r\n"):
    """Returns the text in an answer with that framing."""
    if framing == "length":
        return b"HTTP/1.1 200 OK\r\n%bContent-Length: %d\r\n\r\n" % (fields, len(TEXT)) + TEXT
    if framing == "chunked":
        return b"HTTP/1.1 200 OK\r\n%bTransfer-Encoding: chunked\r\n\r\n" % fields + UNPACKED
    return b"HTTP/1.0 200 OK\r\n%b\r\n" % fields + TEXT


@pytest.mark.parametrize("framing", ["length", "chunked", "close"])
@pytest.mark.parametrize("step", [100, 1 << 20])
def test_what_an_upstream_answers_is_compressed_if_the_owner_says_so(build, framing, step, coding):
    fields = b'Content-Type: Text/HTML;charset=utf-8\r\nETag: "a"\r\nAccept-Ranges: bytes\r\nX: y\r\n'

    def handle(link):
        link.request()
        answer = framed(framing, fields)
        for at in range(0, len(answer), step):
            link.send(answer[at : at + step])

    with Upstream(handle) as upstream, passing(build, upstream, flags=("--upstream-gzip",)) as server, server.connect() as c:
        response = c.get("/api/", f"Accept-Encoding: br, {coding}")
        assert READERS[coding]().decompress(response.body) == TEXT and len(response.body) < len(TEXT) / 4
        assert response.trailers == ([("X-Sum", "1")] if framing == "chunked" else [])
        assert [field for field in response.fields if field[0] not in ("Server", "Date")] == [
            ("Content-Type", "Text/HTML;charset=utf-8"), ("ETag", 'W/"a"'), ("X", "y"), ("Content-Encoding", coding),
            ("Vary", "Accept-Encoding"), ("Transfer-Encoding", "chunked")]  # fmt: skip
        assert c.get("/there.txt").body == b"there"


@pytest.mark.parametrize("asked,fields,varies", [
    ([], b"Content-Type: text/html\r\n", True),
    (["Accept-Encoding: gzip;q=0"], b"Content-Type: text/html\r\nVary: Origin\r\n", True),
    ([ACCEPTS], b"Content-Type: image/png\r\n", False),
    ([ACCEPTS], b"", False),
    ([ACCEPTS], b"Content-Type: text/html\r\nContent-Encoding: br\r\n", False),
    ([ACCEPTS], b"Content-Type: text/html\r\nCache-Control: max-age=1, No-Transform\r\n", False),
], ids=["not asked", "refused", "image", "no type", "coded", "no-transform"])  # fmt: skip
def test_what_does_not_suit_is_not_compressed(build, asked, fields, varies):
    with Upstream(script(framed("length", fields))) as upstream, passing(build, upstream, flags=("--upstream-gzip",)) as server:
        response = server.get("/api/", *asked)
    assert response.body == TEXT and response["Content-Encoding"] in (None, "br") and response["Content-Length"] == str(len(TEXT))
    assert ("Accept-Encoding" in [value for name, value in response.fields if name == "Vary"]) == varies


@pytest.mark.parametrize("answer", [
    b"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-299/300\r\nContent-Type: text/html\r\nContent-Length: 300\r\n\r\n" + b"a" * 300,
    b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 200\r\n\r\n" + b"a" * 200,
], ids=["part", "short"])  # fmt: skip
def test_what_is_short_or_a_part_is_not_compressed(build, answer):
    with Upstream(script(answer)) as upstream, passing(build, upstream, flags=("--upstream-gzip",)) as server:
        response = server.get("/api/", ACCEPTS)
    assert response["Content-Encoding"] is None and response["Vary"] is None
    assert response.body == answer.partition(b"\r\n\r\n")[2]


@pytest.mark.parametrize("asked,fields,etag,vary", [
    ([ACCEPTS], b"", 'W/"a"', "Accept-Encoding"),
    ([ACCEPTS], b"Content-Type: text/html\r\nContent-Length: 256\r\n", 'W/"a"', "Accept-Encoding"),
    ([ACCEPTS], b"Vary: accept-encoding\r\n", 'W/"a"', "accept-encoding"),
    ([], b"", '"a"', "Accept-Encoding"),
    ([ACCEPTS], b"Content-Type: image/png\r\n", '"a"', None),
    ([ACCEPTS], b"Content-Length: 255\r\n", '"a"', None),
    ([ACCEPTS], b"Cache-Control: no-transform\r\n", '"a"', None),
    ([ACCEPTS], b"Content-Encoding: br\r\n", '"a"', None),
], ids=["no type", "text", "varies", "not asked", "image", "short", "no-transform", "coded"])  # fmt: skip
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_304_says_what_the_answer_would_that_it_stands_for(build, asked, fields, etag, vary, method):
    answer = b'HTTP/1.1 304 Not Modified\r\nETag: "a"\r\n%b\r\n' % fields
    with Upstream(script(answer)) as upstream, passing(build, upstream, flags=("--upstream-gzip",)) as server, server.connect() as c:
        response = c.get("/api/", 'If-None-Match: W/"a"', *asked, method=method)
        assert response.status == 304 and response["ETag"] == etag and response["Vary"] == vary and response["Content-Encoding"] in (None, "br")
        assert c.get("/there.txt").body == b"there"


@pytest.mark.parametrize("asked,chosen", [
    ("gzip, deflate, br, zstd", "zstd"),
    ("zstd;q=0.9, gzip", "gzip"),
    ("gzip;q=0.5, zstd", "zstd"),
    ("gzip, zstd;q=0", "gzip"),
    ("zstd", "zstd"),
    ("identity, gzip;q=0.5, zstd;q=0.5", None),
    ("*", "zstd"),
])  # fmt: skip
def test_the_client_has_the_coding_that_it_prefers(build, asked, chosen):
    if not makes_zstd(build):
        pytest.skip("this build has no zstd")
    with Upstream(script(framed("length"))) as upstream, passing(build, upstream, flags=("--upstream-gzip",)) as server:
        response = server.get("/api/", "Accept-Encoding: " + asked)
    assert response["Content-Encoding"] == chosen and response["Vary"] == "Accept-Encoding"
    assert (READERS[chosen]().decompress(response.body) if chosen else response.body) == TEXT


def test_without_zstd_it_has_gzip(build):
    if makes_zstd(build):
        pytest.skip("of a build without zstd")
    with Upstream(script(framed("length"))) as upstream, passing(build, upstream, flags=("--upstream-gzip",)) as server:
        response = server.get("/api/", "Accept-Encoding: zstd, gzip;q=0.5")
    assert response["Content-Encoding"] == "gzip" and zlib.decompress(response.body, 31) == TEXT


def test_large_answers_one_after_the_other_are_whole(build, coding):
    dice = random.Random(1)
    rows = [json.dumps([{"id": dice.randrange(1 << 40), "name": f"name{dice.randrange(1000)}"} for _ in range(n)]).encode() for n in (40_000, 1, 3000, 40_000)]
    answers = iter(rows)

    def handle(link):
        while link.request():
            content = next(answers)
            link.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % max(len(content), 256) + content.ljust(256))

    with Upstream(handle) as upstream, passing(build, upstream, flags=("--upstream-gzip",)) as server, server.connect() as c:
        for content in rows:
            response = c.get("/api/", f"Accept-Encoding: {coding}")
            assert response["Content-Encoding"] == coding and READERS[coding]().decompress(response.body) == content.ljust(256)


def test_the_answer_to_a_head_says_that_it_would_be_compressed(build):
    answer = b"HTTP/1.1 200 OK\r\nContent-Type: text/css\r\nContent-Length: 5000\r\n\r\n"
    with Upstream(script(answer)) as upstream, passing(build, upstream, flags=("--upstream-gzip",)) as server, server.connect() as c:
        response = c.get("/api/", ACCEPTS, method="HEAD")
        assert response["Content-Encoding"] == "gzip" and response["Content-Length"] is None and response["Vary"] == "Accept-Encoding"
        assert c.get("/there.txt").body == b"there"


@pytest.mark.parametrize("media", ["text/plain", "text/event-stream"])
def test_what_has_come_can_be_decompressed_before_there_is_more(build, coding, media):
    events = [b"data: %d\n\n" % i for i in range(20)]
    arrived = threading.Semaphore(0)

    def handle(link):
        link.request()
        link.send(b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\nTransfer-Encoding: chunked\r\n\r\n" % media.encode())
        for event in events:
            link.send(b"%x\r\n%b\r\n" % (len(event), event))
            if not arrived.acquire(timeout=TIMEOUT):
                return
        link.send(b"0\r\n\r\n")

    with Upstream(handle) as upstream, passing(build, upstream, flags=("--upstream-gzip",)) as server, server.connect() as c:
        c.send(f"GET /api/ HTTP/1.1\r\nHost: a\r\nAccept-Encoding: {coding}\r\n\r\n".encode())
        reader, chunks = READERS[coding](), c.chunks()
        for event in events:
            got = b""
            while got != event:
                got += reader.decompress(next(chunks))
            arrived.release()
        assert b"".join(map(reader.decompress, chunks)) == b"" and reader.eof


def test_a_compressed_answer_that_is_cut_short_is_never_taken_for_a_whole_one(build, coding):
    answer = framed("chunked")[:-20]
    with Upstream(script(answer)) as upstream, passing(build, upstream, flags=("--upstream-gzip",)) as server, server.connect() as c:
        c.send(f"GET /api/ HTTP/1.1\r\nHost: a\r\nAccept-Encoding: {coding}\r\n\r\n".encode())
        content = c.rest()
        assert f"Content-Encoding: {coding}".encode() in content and not content.endswith(b"0\r\n\r\n")


def test_nothing_of_an_answer_that_was_cut_short_is_in_the_next(build, coding):
    def handle(link):
        cut = "cut" in link.request().line
        link.send(framed("chunked").replace(b"line", b"xxxx")[:-20] if cut else framed("chunked"))

    with Upstream(handle) as upstream, passing(build, upstream, flags=("--upstream-gzip",)) as server:
        for _ in range(3):
            with server.connect() as c:
                c.send(f"GET /api/cut HTTP/1.1\r\nHost: a\r\nAccept-Encoding: {coding}\r\n\r\n".encode())
                assert not c.rest().endswith(b"0\r\n\r\n")
            response = server.get("/api/whole", f"Accept-Encoding: {coding}")
            assert response["Content-Encoding"] == coding and READERS[coding]().decompress(response.body) == TEXT


@pytest.mark.others
@pytest.mark.clear
def test_a_browser_reads_answers_and_events_in_zstd(build):
    if not makes_zstd(build):
        pytest.skip("this build has no zstd")
    done = threading.Event()

    def handle(link):
        if "events" in link.request().line:
            link.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: first\n\n")
            done.wait(TIMEOUT)
        else:
            link.send(framed("chunked"))

    with Upstream(handle) as upstream, passing(build, upstream, flags=("--upstream-gzip",)) as server, Browser() as browser:
        browser.go(f"http://localhost:{server.port}/")
        assert browser.run("fetch('/api/x').then(async r => [r.headers.get('content-encoding'), (await r.text()).length])") == ["zstd", len(TEXT)]
        event = "new Promise(then => { const s = new EventSource('/api/events'); s.onmessage = e => { s.close(); then(e.data) } })"
        assert browser.run(event) == "first"
        done.set()


def test_streams_of_events_leave_memory_to_other_answers(build):
    """A writer of zstd takes 124 KB, a worker has 16 MB for writers, and half of it for streams of events."""
    if not makes_zstd(build):
        pytest.skip("this build has no zstd")
    done = threading.Event()

    def handle(link):
        if "events" in link.request().line:
            link.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n")
            done.wait(TIMEOUT)
        else:
            link.send(framed("length"))

    def head(c, path):
        c.send(f"GET {path} HTTP/1.1\r\nHost: a\r\nAccept-Encoding: zstd\r\n\r\n".encode())
        return c._head()

    with Upstream(handle) as upstream, passing(build, upstream, flags=("--upstream-gzip", "-j", "1")) as server, contextlib.ExitStack() as stack:
        heads = [head(stack.enter_context(server.connect()), "/api/events") for _ in range(80)]
        packed = [b"Content-Encoding: zstd" in told for told in heads]
        assert sum(packed) == (8 << 20) // (124 << 10) and packed == sorted(packed, reverse=True)
        response = server.get("/api/x", "Accept-Encoding: zstd")
        assert response["Content-Encoding"] == "zstd" and READERS["zstd"]().decompress(response.body) == TEXT
        done.set()


# --- what is seen of it ---


def test_what_comes_of_requests_is_counted_by_upstream(build, place):
    status = place / "status"

    def show(path):
        with Connection(str(status), family=socket.AF_UNIX) as c:
            return c.get(path).body

    def shown(upstream):
        found = [u for u in json.loads(show("/json"))["upstreams"] if u["address"] == upstream.address.removeprefix("unix:")]
        return {name: value for name, value in found[0].items() if value} if found else {}

    answers = script(*[b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"] * 2, b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n", b"nonsense\r\n\r\n")
    with Upstream(answers) as upstream, Upstream(lambda link: link.ended(), unix=True) as silent:
        rules = "/api http://{0} 200\n/silent http://{1} 200\n/gone http://127.0.0.1:1 200\n".format(upstream.address, silent.address)
        with passing(build, upstream, silent, rule=rules, flags=("--status", f"unix:{status}")) as server, server.connect() as c, server.connect() as waits:
            assert c.get("/there.txt").status == 200 and json.loads(show("/json"))["upstreams"] == []
            assert b"upstream" not in show("/metrics") and b"upstream" not in show("/text")
            assert c.get("/api").status == 200
            eventually(lambda: shown(upstream).get("idle") == 1)
            waits.send(b"GET /silent HTTP/1.1\r\nHost: a\r\n\r\n")
            assert [c.get(path).status for path in ("/api", "/api", "/api", "/gone")] == [200, 500, 502, 502]
            seen = eventually(lambda: "failures" in (u := shown(upstream)) and u)
            assert seen.pop("response_seconds", 0) < 60
            assert seen == {"address": upstream.address, "requests": 4, "responses": 3, "errors": 1, "failures": 1}
            assert eventually(lambda: shown(silent) | {"address": ""} == {"address": "", "requests": 1, "active": 1})
            metrics, text = show("/metrics").decode(), show("/text").decode()
            assert f'\ngatling_upstream_requests_total{{upstream="{upstream.address}"}} 4\n' in metrics
            assert '\ngatling_upstream_failures_total{upstream="127.0.0.1:1"} 1\n' in metrics
            assert re.search(rf"\nupstream +{upstream.address}\n +requests 4  responses 3  errors 1  failures 1  mean ms \d+\n", text)
            assert max(map(len, text.splitlines())) <= 80
            waits.reset()


def test_http2_over_tls(build):
    """With curl; test_upstream_http2.py has more, without TLS."""
    content = os.urandom(300_000)
    with Upstream() as upstream, passing(build, upstream) as server:
        if not server.tls:
            pytest.skip("of TLS")
        command = ["curl", "-sk", "--http2", "--max-time", "20", "-w", "%{http_version} %{http_code}", "--data-binary", "@-", server.url("/api/x")]
        said = subprocess.run(command, input=content, check=True, capture_output=True).stdout
        assert said.endswith(b"\n\n" + content + b"2 200")
        assert upstream.requests[0]["X-Forwarded-Proto"] == "https"


def test_one_server_in_front_of_another(build):
    with Upstream() as upstream, passing(build, upstream) as inner:
        root = Root({"_redirects": f"/* http://127.0.0.1:{inner.plain_port}/:splat 200!\n".encode()})
        with Server(build, root, "--upstream", "127.0.0.1/8") as outer, outer.connect() as c:
            assert c.get("/there.txt")["ETag"]
            assert c.get("/there.txt", "Range: bytes=1-2").body == b"he"
            assert c.get("/nothing").status == 404
            c.send(b"POST /api/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n")
            assert c.response().body.endswith(b"\n\nhello")
        root.remove()


def test_a_connection_that_is_gone_is_not_taken_for_one_of_a_unix_socket(build):
    """Its other end is unknown then, though the bytes that have come can be read: proxies at unix sockets are trusted."""
    forged = b"PROXY UNKNOWN\r\nGET /api/x HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 192.0.2.66\r\n\r\n"
    flags = ("--proxy-protocol", "127.0.0.2", "--trust", "unix:", "--defer-accept", "off")
    with Upstream() as upstream, passing(build, upstream, flags=flags) as server:
        assert server.get("/api/y").status == 200  # this connection is used again, at once
        with Connection(("127.0.0.1", server.plain_port), source="127.0.0.2") as c, stopped(server):
            c.send(forged)
            c.reset()
        for _ in range(3):
            assert server.get("/there.txt").status == 200
        assert [request.line for request in upstream.requests] == ["GET /y HTTP/1.1"], upstream.requests[-1].fields
