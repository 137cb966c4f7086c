"""Alternates by Accept: pictures in newer formats, and the Markdown of pages, beside the files that are asked for."""

import os
import subprocess
import time

import pytest
from gatling import Root, Server, eventually
from http2 import Http2

pytestmark = pytest.mark.decided

JPEG, AVIF, WEBP = b"\xff\xd8" + b"j" * 500, b"avif" + b"a" * 100, b"RIFF" + b"w" * 200
CHROME = "image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8"
PAGE, MARKDOWN = b"<!doctype html><title>x</title><p>page", b"# page\n"


@pytest.fixture(scope="module")
def site():
    root = Root({})
    for name in ("photo.jpg", "alone.jpg", "large.png", "LOUD.JPG", "secret/photo.jpg", "typed/photo.jpg", "old.jpg"):
        root.write(name, JPEG)
    for name in ("photo", "LOUD", "secret/photo", "typed/photo", "old"):
        root.write(f"{name}.avif", AVIF)
        root.write(f"{name}.webp", WEBP)
    root.write("large.webp", WEBP * 10)
    root.write("hidden.jpg", JPEG)
    root.write("hidden.webp", WEBP, 0o600)
    root.write("dir.jpg", JPEG)
    root.mkdir("dir.webp")
    for name in ("page", "index", "docs/index", "plain"):
        root.write(f"{name}.html", PAGE)
    for name in ("page", "index", "docs/index"):
        root.write(f"{name}.md", MARKDOWN)
    root.write("404.html", b"missing")
    root.write("404.md", b"# missing")
    root.write("secret/.htaccess", b"Require all denied\n")
    root.write("_headers", b"/typed/*\n  Content-Type: image/jpeg\n")
    then = time.time() - 3600
    for name in ("old.avif", "old.webp", "page.md"):
        os.utime(root.path / name, (then, then))
    yield root
    root.remove()


@pytest.fixture(scope="module")
def server(build, site):
    with Server(build, site, "-j", "1") as running:
        yield running


def varies(response):
    """Returns whether the response depends on Accept."""
    return "Accept" in [value for name, value in response.fields if name.lower() == "vary"]


def of(server, path, accept, *fields):
    return server.get(path, *([] if accept is None else ["Accept: " + accept]), *fields)


@pytest.mark.parametrize(
    "accept, body, kind",
    [
        (None, JPEG, "image/jpeg"),
        ("*/*", JPEG, "image/jpeg"),
        ("image/*,*/*;q=0.8", JPEG, "image/jpeg"),
        (CHROME, AVIF, "image/avif"),
        ("image/webp,*/*", WEBP, "image/webp"),
        ("IMAGE/WEBP, */*", WEBP, "image/webp"),
        ("image/webp;q=0.9,*/*;q=0.8", WEBP, "image/webp"),
        ("image/webp;q=0.5,image/jpeg", JPEG, "image/jpeg"),
        ("image/avif;q=0,image/webp,*/*", WEBP, "image/webp"),
        ("image/avif;q=0.9,image/webp", WEBP, "image/webp"),
        ("image/avif;level=9,*/*", JPEG, "image/jpeg"),
        ("image/avifx, ximage/avif, image/avi", JPEG, "image/jpeg"),
        ("image/avif", AVIF, "image/avif"),
    ],
)
def test_a_picture_is_sent_in_the_best_format_that_the_client_names(server, accept, body, kind):
    for _ in range(2):  # what was decided is not remembered for others
        response = of(server, "/photo.jpg", accept)
        assert response.status == 200 and response.body == body and response["Content-Type"] == kind
        assert varies(response)


def test_fields_of_a_request_may_come_in_several_lines(server):
    assert server.get("/photo.jpg", "Accept: */*;q=0.8", "Accept: image/webp").body == WEBP


@pytest.mark.parametrize("path, body", [("/alone.jpg", JPEG), ("/photo.avif", AVIF), ("/photo.webp", WEBP), ("/page.md", MARKDOWN), ("/plain", PAGE)])
def test_what_has_no_alternates_or_is_one_does_not_depend_on_accept(server, path, body):
    for accept in (CHROME, "text/markdown, image/avif", None):
        response = of(server, path, accept)
        assert response.body == body and not varies(response)


@pytest.mark.parametrize("path, body", [("/large.png", JPEG), ("/hidden.jpg", JPEG), ("/dir.jpg", JPEG), ("/old.jpg", JPEG), ("/typed/photo.jpg", JPEG),
                                        ("/LOUD.JPG", AVIF)])  # fmt: skip
def test_an_alternate_has_to_be_smaller_readable_and_not_older(server, path, body):
    assert of(server, path, CHROME).body == body


def test_each_representation_has_its_own_entity_tag_and_ranges(server):
    original, avif = of(server, "/photo.jpg", None), of(server, "/photo.jpg", CHROME)
    assert original["ETag"] != avif["ETag"] == of(server, "/photo.avif", None)["ETag"]
    again = of(server, "/photo.jpg", CHROME, "If-None-Match: " + avif["ETag"])
    assert again.status == 304 and varies(again)
    assert of(server, "/photo.jpg", None, "If-None-Match: " + avif["ETag"]).status == 200
    part = of(server, "/photo.jpg", CHROME, "Range: bytes=0-3", "If-Range: " + avif["ETag"])
    assert part.status == 206 and part.body == AVIF[:4] and varies(part)
    assert of(server, "/photo.jpg", None, "Range: bytes=0-3", "If-Range: " + avif["ETag"]).status == 200
    assert server.get("/photo.jpg", "Accept: image/webp", method="HEAD")["Content-Length"] == str(len(WEBP))


@pytest.mark.parametrize("path", ["/page.html", "/page", "/", "/docs/"])
@pytest.mark.parametrize(
    "accept, markdown",
    [
        (None, False),
        ("*/*", False),
        ("text/*", False),
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", False),
        ("text/markdown", True),
        ("text/markdown, text/html, */*", True),
        ("text/markdown, text/html;q=0.9", True),
        ("text/html, text/markdown;q=0.9", False),
        ("text/markdown;q=0, */*", False),
    ],
)
def test_a_page_is_sent_as_markdown_to_who_asks_for_it(server, path, accept, markdown):
    response = of(server, path, accept)
    assert response.status == 200 and response.body == (MARKDOWN if markdown else PAGE)
    assert response["Content-Type"].startswith("text/markdown" if markdown else "text/html")
    assert varies(response)


def test_who_may_not_have_the_file_may_not_have_an_alternate(server):
    for accept in (None, CHROME):
        assert of(server, "/secret/photo.jpg", accept).status == 403


@pytest.mark.parametrize("name, status", [("no.avif", 200), ("no.jpg", 403)])
def test_whom_only_one_of_them_is_for_gets_that(build, root, name, status):
    root.write("no.jpg", JPEG)
    root.write("no.avif", AVIF)
    root.write(".htaccess", f'<Files "{name}">\nRequire all denied\n</Files>\n'.encode())
    with Server(build, root) as server:
        response = of(server, "/no.jpg", CHROME)
        assert response.status == status and (response.body == JPEG) == (status == 200)


def test_a_date_says_nothing_of_which_alternate_a_client_has(build, root):
    for name, octets in (("photo.jpg", JPEG), ("photo.avif", AVIF)):
        os.utime(root.write(name, octets), (10**9, 10**9))
    with Server(build, root, "-j", "1") as server:
        date = of(server, "/photo.jpg", None)["Last-Modified"]
        response = of(server, "/photo.jpg", CHROME, "Range: bytes=0-3", "If-Range: " + date)
        assert response.status == 200 and response.body == AVIF and response["Last-Modified"] == date


@pytest.mark.tcp
@pytest.mark.clear
def test_streams_have_them_too(server):
    with Http2(server) as connection:
        for accept, body in ((CHROME, AVIF), ("image/webp", WEBP), ("*/*", JPEG)):
            assert connection.get("/photo.jpg", ("accept", accept)).body == body


def test_error_pages_have_none(server):
    assert of(server, "/none", "text/markdown").body == b"missing"


def test_a_new_alternate_is_found_and_a_removed_one_is_not_missed(build, root):
    root.write("a.png", JPEG)
    with Server(build, root, "-j", "1") as server, server.connect() as connection:
        assert connection.get("/a.png", "Accept: " + CHROME).body == JPEG
        root.write("a.webp", WEBP)
        eventually(lambda: connection.get("/a.png", "Accept: " + CHROME).body == WEBP)
        root.write("a.avif", AVIF)
        eventually(lambda: connection.get("/a.png", "Accept: " + CHROME).body == AVIF)
        assert connection.get("/a.png", "Accept: image/*").body == JPEG
        (root.path / "a.avif").unlink()
        eventually(lambda: connection.get("/a.png", "Accept: " + CHROME).body == WEBP)
        (root.path / "a.webp").unlink()
        response = eventually(lambda: (r := connection.get("/a.png", "Accept: " + CHROME)).body == JPEG and r)
        assert response.status == 200


@pytest.mark.tcp
def test_check_says_which_are_out_of_date(build, site):
    said = subprocess.run([build / "gatling", "-c", site.path, "--check"], capture_output=True, text=True, check=False, timeout=20)
    lines = [line for line in (said.stdout + said.stderr).splitlines() if "older than" in line]
    assert len(lines) == 2 and all("old.jpg" in line for line in lines), said


def test_what_stands_in_for_a_missing_path_has_none(build, root):
    root.write("_redirects", b"/* /index.html 200\n")
    root.write("index.html", PAGE)
    root.write("index.md", MARKDOWN)
    with Server(build, root) as server:
        assert server.get("/app/route", "Accept: text/markdown").body == PAGE
        assert server.get("/", "Accept: text/markdown").body == MARKDOWN
