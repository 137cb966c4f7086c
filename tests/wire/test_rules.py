"""What rules of _redirects do, beyond what netlify/ compares."""

import pytest

from gatling import Connection, Root, Server, certificate, trusting
from http2 import Http2

pytestmark = pytest.mark.decided


def ask(server, path, *fields, host="h.test", secure=False):
    """Returns the status and the target of a redirect, or the content."""
    port, tls = (server.tls_port, trusting()) if secure else (server.plain_port, None)
    with Connection(("127.0.0.1", port), tls=tls) as connection:
        response = connection.get(path, *fields, host=host)
    return response.status, response["Location"] or response.body


@pytest.fixture
def with_https():
    cert, key = certificate()
    return ["--cert", cert, "--key", key, "--tls-port", "0"]


@pytest.mark.clear
@pytest.mark.parametrize("pattern", ["http://h.test/*", "/*"])
def test_a_redirect_to_https_applies_on_the_plain_port(build, with_https, pattern):
    root = Root({"page.html": b"page", "_redirects": f"{pattern} https://h.test/:splat 301!\n".encode()})
    with Server(build, root, *with_https) as server:
        for path in ("/page.html", "/page", "/missing", "/"):
            assert ask(server, path) == (301, f"https://h.test{path}")
        assert ask(server, "/page.html", secure=True) == (200, b"page")
    root.remove()


@pytest.mark.clear
def test_a_pattern_with_https_is_for_https(build, with_https):
    root = Root({"page.html": b"page", "_redirects": b"https://www.h.test/* https://h.test/:splat 301!\n"})
    with Server(build, root, *with_https) as server:
        assert ask(server, "/page.html", host="www.h.test") == (200, b"page")
        assert ask(server, "/page.html", host="www.h.test", secure=True) == (301, "https://h.test/page.html")
    with Server(build, root) as server:  # perhaps behind a proxy that has HTTPS
        assert ask(server, "/page.html", host="www.h.test") == (301, "https://h.test/page.html")
    root.remove()


@pytest.mark.clear
def test_without_https_the_page_is_not_sent_by_a_rule_for_http(build):
    root = Root({"page.html": b"page", "_redirects": b"http://h.test/* https://h.test/:splat 301!\n"})
    with Server(build, root) as server:
        assert ask(server, "/page.html") == (301, "https://h.test/page.html")
        assert ask(server, "/page.html", host="other.test") == (200, b"page")
    root.remove()


def test_the_status_of_a_rule_is_not_that_of_other_methods(build):
    root = Root({"page.html": b"page", "_redirects": b"/a /page.html 401\n/b/* /none 500\n"})
    with Server(build, root, "--upstream", "127.0.0.1") as server:
        for path in ("/a", "/b/x"):
            assert server.get(path).status in (401, 500)
            assert server.get(path, method="DELETE").status == 405
            assert server.get(path, method="OPTIONS").status == 204
    root.remove()


@pytest.mark.clear
@pytest.mark.parametrize("protocol", ["1.1", "2"])
def test_conditions_are_those_of_the_client_over_each_protocol(build, protocol):
    rules = b"/l/* /de/:splat 302! Language=de,fr\n/c/* /beta/:splat 302! Cookie=beta,alpha\n"
    root = Root({"l/x": b"here", "c/x": b"here", "_redirects": rules})
    with Server(build, root) as server, Http2(server) if protocol == "2" else server.connect() as c:
        for path, fields, target, vary in (
            ("/l/x", {}, None, "Accept-Language"),
            ("/l/x", {"accept-language": "de-AT,en;q=0.5"}, "/de/x", "Accept-Language"),
            ("/l/x", {"accept-language": "en, de"}, None, "Accept-Language"),
            ("/c/x", {}, None, "Cookie"),
            ("/c/x", {"cookie": "a=b; alpha=1"}, "/beta/x", "Cookie"),
            ("/c/x", {"cookie": "alphabet=1"}, None, "Cookie"),
        ):
            lines = fields.items() if protocol == "2" else (f"{name}: {value}" for name, value in fields.items())
            response = c.get(path, *lines)
            location, varies = (response[name.lower() if protocol == "2" else name] for name in ("Location", "Vary"))
            assert (location, vary in varies) == (target, True), (path, fields)
    root.remove()
