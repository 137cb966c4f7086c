"""--explain: what a request would be answered with, and why."""

import os
import subprocess

import pytest

from gatling import Root, Server, runnable, unprivileged

pytestmark = [pytest.mark.decided, pytest.mark.clear]
RULES = b"# moved\n/old/* /new/:splat 301\n/gone /410.html 410!\n/api/* http://127.0.0.1:3000/v1/:splat 200\n/app/* /index.html 200\n"
FIELDS = b"/a.txt\n  X-A: b\n/app/*\n  X-App: yes\n"
FILES = {"index.html": b"hello", "a.txt": b"a", "404.html": b"not here", "_redirects": RULES, "_headers": FIELDS, "sub/x": b"x",
         "secret/.htaccess": b"Friends\nann:$5$wYGyyq6av6A32MH3$Mxe5zp6ZK2Oz/J92gUDRsT.8kFwil71nKqN44pPpNUA\n", "b.example.org/index.html": b"b", "b.example.org/_redirects": b"/c /d 302\n"}  # fmt: skip
SITE = ("site      the served directory itself",)


@pytest.fixture(scope="module")
def root():
    root = Root(FILES)
    yield root
    root.remove()


def explain(build, root, url, *flags, status=0):
    """Returns the lines that say why, the head of the response, and what was on stderr."""
    done = subprocess.run([runnable(build), "--upstream", "127.0.0.1", *flags, "--explain", url, root.path], capture_output=True, text=True,
                          timeout=30, check=False, **unprivileged())  # fmt: skip
    assert done.returncode == status, done.stderr
    why, _, head = done.stdout.partition("\n\n")
    return tuple(why.splitlines()), head, done.stderr


@pytest.mark.parametrize(
    "path,why,line",
    [
        ("/", ("file      index.html",), "200 OK"),
        ("/a.txt", ("fields    _headers:1: /a.txt", "file      a.txt"), "200 OK"),
        ("/old/x?y", ("rule      _redirects:2: /old/* /new/:splat 301",), "301 Moved Permanently"),
        ("/gone", ("rule      _redirects:3: /gone /410.html 410!",), "410 Gone"),
        ("/app/deep", ("rule      _redirects:5: /app/* /index.html 200", "fields    _headers:3: /app/*", "file      index.html"), "200 OK"),
        ("/none", ("file      none; the site has a page for this status",), "404 Not Found"),
        ("/sub/", ("file      none; a listing",), "200 OK"),
        ("/secret/x", (".htaccess asks for a password or an address, which the request has not",), "401 Unauthorized"),
    ],
)
def test_an_answer_is_explained(build, root, path, why, line):
    said, head, _ = explain(build, root, f"http://a.example.org{path}")
    assert said == SITE + why and head.startswith(f"HTTP/1.1 {line}\n")


def test_a_request_that_is_passed_on_is_explained(build, root):
    said, head, _ = explain(build, root, "http://a.example.org/api/x?y=z")
    assert said == (*SITE, "rule      _redirects:4: /api/* http://127.0.0.1:3000/v1/:splat 200", "upstream  127.0.0.1:3000, with the target /v1/x?y=z")
    assert head == ""


def test_the_site_of_a_host_is_named(build, root):
    said, head, _ = explain(build, root, "https://b.example.org/c")
    assert said == ("site      b.example.org/", "rule      b.example.org/_redirects:1: /c /d 302") and "Location: /d\n" in head


def test_the_head_is_that_of_the_server(build, root):
    with Server(build, root, "-j", "1") as server:
        for path in ("/", "/a.txt", "/none", "/old/x", "/app/x", "/sub/", "/b.example.org/c"):
            answer = server.get(path, host="a.example.org")
            fields = {f"{name}: {value}" for name, value in answer.fields if name not in ("Server", "Date")}
            status, *lines = explain(build, root, f"http://a.example.org{path}")[1].splitlines()
            assert status.startswith(f"HTTP/1.1 {answer.status} ") and set(lines) == fields


@pytest.mark.parametrize("url", ["", "/a", "www.example.org/a", "http:///a", "http://a b/", "http://a/\n"])
def test_what_is_no_url_is_refused(first_build, root, url):
    _, _, said = explain(first_build, root, url, status=2)
    assert said.startswith("gatling: cannot explain") and said.endswith(": it is no URL, such as https://www.example.org/path\n")


@pytest.mark.skipif(os.geteuid() != 0, reason="takes root")
def test_root_sees_what_the_user_sees(first_build, root):
    done = subprocess.run([first_build / "gatling", "-u", "nobody", "--explain", "http://a/a.txt", root.path], capture_output=True, text=True, check=True)
    assert "\nfile      a.txt\n" in done.stdout
