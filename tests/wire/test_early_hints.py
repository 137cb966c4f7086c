"""Early hints (RFC 8297): what _headers says of links goes ahead of an application's answer."""

import threading

import pytest

from gatling import Root, Server
from http2 import HEADERS as HEADERS_FRAME
from http2 import Http2
from upstream import Upstream

pytestmark = [pytest.mark.decided, pytest.mark.tcp]

HEADERS = b"""/app/*
  Link: </app.css>; rel=preload; as=style
  X-Own: owner
/app/two
  Link: <https://fonts.example>; rel="preconnect"
/canonical
  Link: <https://example.org/>; rel=canonical
/app/none
  ! Link
/file.html
  Link: </app.css>; rel=preload; as=style
"""
REDIRECTS = "/app/* http://{0}/:splat 200!\n/canonical http://{0}/ 200!\n/plain http://{0}/ 200!\n"
BOTH = "</app.css>; rel=preload; as=style, <https://fonts.example>; rel=\"preconnect\""
NAVIGATES = "Sec-Fetch-Mode: navigate"


@pytest.fixture(scope="module")
def site(build):
    """A server, in front of an application that answers when it is told to."""
    go = threading.Event()

    def handle(link):
        while link.request():
            assert go.wait(20)
            link.answer(b"page")

    with Upstream(handle) as upstream:
        root = Root({"file.html": b"file", "_headers": HEADERS, "_redirects": REDIRECTS.format(upstream.address).encode()})
        with Server(build, root, "-j", "1", "--upstream", upstream.allowed) as server:
            server.go = go
            yield server
        root.remove()


@pytest.mark.parametrize("path, link", [("/app/", "</app.css>; rel=preload; as=style"), ("/app/two", BOTH)])
def test_they_come_before_the_application_has_answered(site, path, link):
    site.go.clear()
    for _ in range(2):
        with site.connect() as connection:
            hints = connection.get(path, NAVIGATES)
            assert hints.status == 103 and hints["Link"] == link
            assert {name for name, _ in hints.fields} == {"Link"}
            site.go.set()
            response = connection.response()
            assert response.status == 200 and response.body == b"page" and response["Link"] is None


def test_a_head_leaves_them_to_the_next_get(site):
    site.go.set()
    for _ in range(2):
        assert site.get("/app/", NAVIGATES, method="HEAD").status == 200
        assert site.get("/app/", NAVIGATES).status == 103


@pytest.mark.parametrize(
    "path, fields, options",
    [
        ("/app/", [], {}),
        ("/app/", ["Sec-Fetch-Mode: cors"], {}),
        ("/app/", [NAVIGATES], {"method": "POST"}),
        ("/app/none", [NAVIGATES], {}),
        ("/canonical", [NAVIGATES], {}),
        ("/plain", [NAVIGATES], {}),
        ("/file.html", [NAVIGATES], {}),
    ],
)
def test_only_pages_of_applications_with_such_links_have_them(site, path, fields, options):
    site.go.set()
    response = site.get(path, *fields, **options)
    assert response.status == 200 and response.body == (b"file" if path == "/file.html" else b"page")


def test_http_1_0_has_none(site):
    site.go.set()
    with site.connect() as connection:
        connection.send(b"GET /app/ HTTP/1.0\r\nSec-Fetch-Mode: navigate\r\n\r\n")
        assert connection.rest().startswith(b"HTTP/1.1 200 ")


def test_over_http_2_every_client_gets_them(site):
    site.go.clear()
    with Http2(site) as connection:
        stream = connection.ask("/app/")
        frame = connection.frame()
        while (frame.type, frame.stream) != (HEADERS_FRAME, stream):
            frame = connection.frame()
        assert dict(frame.fields) == {":status": "103", "link": "</app.css>; rel=preload; as=style"}
        site.go.set()
        answer = connection.answers(stream)[0]
        assert answer.status == 200 and answer.body == b"page"


def test_what_follows_a_failure_is_an_error(build, root):
    root.write("_headers", HEADERS)
    with Upstream(lambda link: link.request() and link.reset()) as upstream:
        root.write("_redirects", REDIRECTS.format(upstream.address).encode())
        with Server(build, root, "-j", "1", "--upstream", upstream.allowed) as server, server.connect() as connection:
            assert connection.get("/app/", NAVIGATES).status == 103
            assert connection.response().status == 502
            assert connection.get("/plain", NAVIGATES).status == 502
