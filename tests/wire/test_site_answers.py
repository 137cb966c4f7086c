"""A site as a bundler makes it, and its answers without any configuration: freshness, types,
codings, error pages, methods, names; and the options that change these."""

import gzip
import os
import subprocess

import pytest

from browser import Browser
from gatling import Root, Server, eventually, runnable, unprivileged
from http2 import Http2

pytestmark = pytest.mark.decided

SCRIPT = b"export const answer = 42\n" * 40
IMMUTABLE, REVALIDATED = "public, max-age=31536000, immutable", "no-cache"


def built():
    """Makes a site, in which precompressed files are not older."""
    root = Root(
        {
            "index.html": b"<!doctype html><p>index",
            "404.html": b"<p>not here",
            "403.html": b"<p>not for you",
            "50x.html": b"<p>sorry",
            "docs/index.html": b"<p>docs",
            "empty/file.txt": b"x",
            "assets/index-BxK2a9fQ.css": b"p { color: red }",
            "assets/app.3f2a9c1b.js": SCRIPT,
            "assets/app.3f2a9c1b.js.gz": gzip.compress(SCRIPT),
            "assets/app.3f2a9c1b.js.br": b"as brotli",
            "assets/app.3f2a9c1b.js.zst": b"as zstandard",
            "404.html.gz": gzip.compress(b"<p>not here"),
        }
    )
    root.write("secret.txt", b"secret", 0o600)
    return root


@pytest.fixture
def site():
    root = built()
    yield root
    root.remove()


@pytest.fixture(scope="module")
def shared(build):
    """A server of such a site, which its tests do not change."""
    root = built()
    with Server(build, root, "-j", "1") as server:
        yield server
    root.remove()


# --- codings ---


@pytest.mark.parametrize(
    "accepted,coding,body",
    [
        ("gzip, deflate, br, zstd", "br", b"as brotli"),
        ("gzip, zstd", "zstd", b"as zstandard"),
        ("gzip, deflate", "gzip", None),
        ("x-gzip", "gzip", None),
        ("br;q=0.5, gzip;q=0.8", "gzip", None),
        ("gzip;q=0, *;q=0.1, br;q=0", "zstd", b"as zstandard"),
        ("identity", None, SCRIPT),
        ("deflate", None, SCRIPT),
        ("*;q=0", None, SCRIPT),
        ("", None, SCRIPT),
    ],
)
def test_siblings_are_served_to_who_likes_them(shared, accepted, coding, body):
    response = shared.get("/assets/app.3f2a9c1b.js", "Accept-Encoding: " + accepted)
    assert response.status == 200 and response["Content-Encoding"] == coding and response["Vary"] == "Accept-Encoding, Available-Dictionary"
    assert (gzip.decompress(response.body) if coding == "gzip" else response.body) == (body or SCRIPT)
    assert response["Content-Type"] == "text/javascript; charset=utf-8" and response["Cache-Control"] == IMMUTABLE
    again = shared.get("/assets/app.3f2a9c1b.js", "Accept-Encoding: " + accepted, "If-None-Match: " + response["ETag"])
    assert again.status == 304 and again["Vary"] == "Accept-Encoding, Available-Dictionary" and again["Cache-Control"] == IMMUTABLE


def test_each_coding_has_an_etag_of_its_own(build, site):
    with Server(build, site, "-j", "1") as server:
        tags = {server.get("/assets/app.3f2a9c1b.js", f"Accept-Encoding: {coding}")["ETag"] for coding in ("br", "zstd", "gzip", "x")}
        assert len(tags) == 4


def test_a_sibling_that_is_older_is_none(build, site):
    os.utime(site.path / "assets/app.3f2a9c1b.js.br", (1, 1))
    with Server(build, site, "-j", "1") as server:
        assert server.get("/assets/app.3f2a9c1b.js", "Accept-Encoding: br, zstd")["Content-Encoding"] == "zstd"


@pytest.mark.clear
def test_the_same_over_http2(build, site):
    with Server(build, site, "-j", "1") as server, Http2(server) as c:
        answer = c.get("/assets/app.3f2a9c1b.js", ("accept-encoding", "gzip, br"))
        assert answer.body == b"as brotli" and answer["content-encoding"] == "br" and answer["cache-control"] == IMMUTABLE
        missing = c.get("/none", ("accept-encoding", "gzip"))
        assert missing.status == 404 and missing["content-encoding"] == "gzip" and gzip.decompress(missing.body) == b"<p>not here"
        assert c.get("/secret.txt").body == b"<p>not for you"


# --- freshness ---


@pytest.mark.parametrize(
    "name,value",
    [
        ("a.html", REVALIDATED),
        ("a.3f2a9c1b.html", REVALIDATED),
        ("app.3f2a9c1b.js", IMMUTABLE),
        ("app.3f2a9c1b.js.map", IMMUTABLE),
        ("index-BxK2a9fQ.css", IMMUTABLE),
        ("chunk-7XQ2MZP4.js", IMMUTABLE),
        ("deep/er/app.3f2a9c1b.css", IMMUTABLE),
        ("app.js", REVALIDATED),
        ("plain", REVALIDATED),
        ("jquery-3.6.0.min.js", REVALIDATED),
        ("photo-20240131.jpg", REVALIDATED),
        ("facade01.png", REVALIDATED),
        ("Release2.zip", REVALIDATED),
        ("my-Release2.zip", REVALIDATED),
        ("main.deadbeef.css", REVALIDATED),
        ("3f2a9c1b/app.js", REVALIDATED),
        ("live/index.m3u8", REVALIDATED),
        ("feed.xml", REVALIDATED),
        ("latest.yml", REVALIDATED),
        ("dists/stable/InRelease", REVALIDATED),
        ("_next/static/build/_buildManifest.js", REVALIDATED),
        ("_next/static/chunks/02-lciv-6s-s3.js", IMMUTABLE),
    ],
)
def test_cache_control_without_being_told(put, name, value):
    assert put(name, b"x")("/" + name)["Cache-Control"] == value


@pytest.mark.others
@pytest.mark.clear
def test_after_an_edit_a_browser_shows_the_new_page_with_its_new_stylesheet(build, root):
    def deploy(colour):
        for name, content in (("style.css", f"p {{ color: rgb({colour}, 0, 0) }}"), ("value.js", f"window.value = {colour}")):
            root.write(name + ".new", content.encode())
            (root.path / (name + ".new")).rename(root.path / name)
        for page in ("one.html", "two.html"):
            root.write(page, b"<!doctype html><link rel=stylesheet href=style.css><script src=value.js></script><p>%d" % colour)

    def shown(browser, page):
        browser.go(server.url(page))
        return browser.run("[document.querySelector('p').textContent, window.value, getComputedStyle(document.querySelector('p')).color].join(' ')")

    deploy(1)
    with Server(build, root, "-j", "1") as server, Browser() as browser:
        assert shown(browser, "/one.html") == "1 1 rgb(1, 0, 0)"
        deploy(2)
        eventually(lambda: b"2" in server.get("/value.js").body and b"2" in server.get("/style.css").body and b">2" in server.get("/two.html").body, 5)
        assert shown(browser, "/two.html") == "2 2 rgb(2, 0, 0)"


def test_cache_control_that_the_owner_gives_replaces_it(build, root):
    with Server(build, root, "-j", "1") as server:
        assert server.get("/index.html")["Cache-Control"] == REVALIDATED
        root.write("_headers", b"/*\n  Cache-Control: no-store\n")
        eventually(lambda: server.get("/index.html")["Cache-Control"] == "no-store", 4)


def test_no_cache_control_leaves_it_to_the_owner(build, site):
    site.write("_headers", b"/docs/*\n  Cache-Control: no-store\n")
    with Server(build, site, "-j", "1", "--no-cache-control") as server:
        for path in ("/", "/assets/app.3f2a9c1b.js", "/none"):
            assert server.get(path)["Cache-Control"] is None
        assert server.get("/docs/")["Cache-Control"] == "no-store"


# --- pages for errors ---


def test_errors_have_the_pages_of_the_site(build, site):
    with Server(build, site, "-j", "1", "-D") as server:
        for path, status, body in (("/none", 404, b"<p>not here"), ("/secret.txt", 403, b"<p>not for you"), ("/empty/", 403, b"<p>not for you")):
            response = server.get(path)
            assert response.status == status and response.body == body and response["Content-Type"] == "text/html; charset=utf-8"
            assert response["ETag"] is None and response["Last-Modified"] is None and response["Location"] is None
            assert server.get(path, method="HEAD").status == status
            conditional = server.get(path, "If-None-Match: *", "Range: bytes=0-1")
            assert conditional.status == status and conditional.body == body
        assert gzip.decompress(server.get("/none", "Accept-Encoding: gzip").body) == b"<p>not here"
        assert server.get("/404.html").status == 200
        assert server.get("/a%00").status == 400 and b"not here" not in server.get("/a%00").body


def test_a_page_that_is_not_for_everybody_is_not_shown(build, site):
    site.write("404.html", b"secret", 0o600)
    (site.path / "404.html.gz").unlink()
    with Server(build, site, "-j", "1") as server:
        response = server.get("/none")
        assert response.status == 404 and b"secret" not in response.body and b"not for you" not in response.body


# --- elsewhere ---


def test_what_is_missing_is_sent_to_the_fallback_with_path_and_query(build, site):
    for url in ("https://mirror.example/base", "https://mirror.example/base/"):
        with Server(build, site, "-j", "1", "--fallback", url) as server:
            for path, rest in (("/none", "/none"), ("/no/ne?a=b&c", "/no/ne?a=b&c"), ("/caf%C3%A9%20", "/caf%C3%A9%20"), ("/a/../none", "/a/../none")):
                response = server.get(path)
                assert response.status == 302 and response["Location"] == "https://mirror.example/base" + rest
            for path, status in (("/", 200), ("/docs/", 200), ("/docs", 301), ("/secret.txt", 403), ("/%zz", 400), ("/.git/x", 404)):
                response = server.get(path)
                assert response.status == status and "mirror" not in (response["Location"] or ""), path


def test_rules_come_before_the_fallback(build, site):
    site.write("_redirects", b"/moved /here\n")
    with Server(build, site, "-j", "1", "-r", "http://mirror.example") as server:
        assert server.get("/moved")["Location"] == "/here"
        assert server.get("/none")["Location"] == "http://mirror.example/none"


@pytest.mark.parametrize("url", ["mirror.example", "https://a b", "https://x/" + "y" * 2000, "https://é", ""])
def test_a_fallback_that_is_no_url_is_refused(first_build, root, url):
    done = subprocess.run([runnable(first_build), "-c", root.path, "--fallback", url], capture_output=True, check=False, timeout=20, **unprivileged())
    assert done.returncode == 2 and b"--fallback" in done.stderr and done.stderr.count(b"\n") == 1


@pytest.mark.parametrize("options", [(), ("--symlinks", "inside")], ids=["anywhere", "inside"])
def test_a_link_to_a_url_is_a_redirect(build, site, options):
    for name, target in (
        ("go", "https://example.org/a?b=c#d"),
        ("elsewhere/index.html", "http://example.org/"),
        ("odd", "https://example.org/\r\nSet-Cookie: a=b é"),
        ("broken", "nowhere"),
        ("relative", "//example.org/x"),
    ):
        (site.path / name).parent.mkdir(exist_ok=True)
        (site.path / name).symlink_to(target)
    with Server(build, site, "-j", "1", *options) as server:
        for path, location in (
            ("/go", "https://example.org/a?b=c#d"),
            ("/go?mine", "https://example.org/a?b=c#d"),
            ("/elsewhere/", "http://example.org/"),
            ("/elsewhere/index.html", "http://example.org/"),
            ("/odd", "https://example.org/%0D%0ASet-Cookie:%20a=b%20%C3%A9"),
        ):
            response = server.get(path)
            assert response.status == 301 and response["Location"] == location and response["Set-Cookie"] is None, path
        assert server.get("/elsewhere")["Location"] == "/elsewhere/"
        assert server.get("/broken").status == 404 and server.get("/relative").status == (403 if options else 404)


# --- types ---


@pytest.mark.parametrize(
    "name,kind",
    [
        ("a.wasm", "application/wasm"), ("a.webp", "image/webp"), ("a.avif", "image/avif"), ("a.woff2", "font/woff2"),
        ("a.mjs", "text/javascript; charset=utf-8"), ("a.webmanifest", "application/manifest+json"), ("a.js.map", "application/json"),
        ("a.SVG", "image/svg+xml"), ("a.html", "text/html; charset=utf-8"), ("a.tar.gz", "application/gzip"), ("a.md", "text/plain; charset=utf-8"),
    ],
)  # fmt: skip
def test_types_out_of_the_box(put, name, kind):
    response = put(name, b"x")("/" + name)
    assert response["Content-Type"] == kind and response["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize(
    "content,text",
    [
        (b"", True), (b"plain\r\n\ttext\f\n", True), ("\u00fcber \u2603 \U0001f600".encode(), True), (b"\xef\xbb\xbfmark", True),
        ("\u2603".encode() * 70_000, True),  # a character lies across the end of the first KB
        (b"x" * 1023 + b"\xe2", False), (b"x" * 1022 + b"\xe2x" + b"x" * 70_000, False),
        (b"a\0b", False), (b"\x7fELF\x02", False), (b"latin \xfc", False), (b"\xff\xfea\0", False), (b"\xed\xa0\x80", False),
        (b"x" * 1024 + b"\0" + b"x" * 70_000, None),  # that is not looked at
    ],
    ids=range(13),
)  # fmt: skip
@pytest.mark.parametrize("name", ["README", "a.go", "d.js/a.unheard", "dot."])
def test_what_the_name_does_not_tell_is_shown_if_it_is_text(put, name, content, text):
    response = put(name, content)("/" + name)
    kinds = {True: "text/plain; charset=utf-8", None: "text/plain", False: "application/octet-stream"}
    assert response["Content-Type"] == kinds[text]
    assert response["X-Content-Type-Options"] == "nosniff" and response.body == content


def test_types_of_a_file_come_first(build, root):
    types = root.write("mime.types", b"\xef\xbb\xbftext/x-one one\r\n# own\n\ntext/x-own\town OTHER # more\napplication/x-js js\nimage/none\n"
                       b"application/x-long sarif-external-properties sarif-external-properties.json\n")  # fmt: skip
    for name in ("a.own", "a.Other", "a.one", "a.js", "a.css", "a.none", "a.sarif-external-properties"):
        root.write(name, b"\0" if name == "a.none" else b"x")
    with Server(build, root, "-j", "1", "--mime", types) as server:
        for name, kind in (("own", "text/x-own; charset=utf-8"), ("Other", "text/x-own; charset=utf-8"), ("one", "text/x-one; charset=utf-8"), ("js", "application/x-js"),
                           ("css", "text/css; charset=utf-8"), ("none", "application/octet-stream"), ("sarif-external-properties", "application/x-long")):  # fmt: skip
            assert server.get("/a." + name)["Content-Type"] == kind


@pytest.mark.parametrize(
    "text,line",
    [
        (b"text/plain a\nplain b\n", 2),
        (b"text/ a\n", 1),
        (b"/plain a\n", 1),
        (b"\n# x\ntext/a/b c\n", 3),
        (b"text/pl\x01ain a\n", 1),
        (b"text/plain;charset=x a\n", 1),
        (b"text/plain " + b"x" * 64 + b"\n", 1),
        (b"text/" + b"y" * 200 + b" a\n", 1),
    ],
)
def test_a_line_that_is_no_type_ends_it(first_build, root, text, line):
    types = root.write("mime.types", text)
    done = subprocess.run([runnable(first_build), "-c", root.path, "-p", "0", "--mime", types], capture_output=True, check=False, timeout=20, **unprivileged())
    assert done.returncode == 1 and f"{types}:{line}".encode() in done.stderr and done.stderr.count(b"\n") == 1, done.stderr


@pytest.mark.parametrize("what,why", [("none", b"No such file"), ("secret", b"Permission denied"), ("directory", b"it is not a file")])
def test_types_that_cannot_be_read_end_it(first_build, root, what, why):
    types = root.path / what
    if what == "secret":
        root.write(what, b"text/plain a\n", 0)
    if what == "directory":
        types.mkdir()
    done = subprocess.run([runnable(first_build), "-c", root.path, "-p", "0", "--mime", types], capture_output=True, check=False, timeout=20, **unprivileged())
    assert done.returncode == 1 and os.fsencode(types) + b": " + why in done.stderr and done.stderr.count(b"\n") == 1, done.stderr


# --- methods and names ---


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "TRACE", "CONNECT", "PATCH"])
@pytest.mark.parametrize("path", ["/", "/none", "/docs"])
def test_methods_that_change_something_are_not_allowed(shared, method, path):
    with shared.connect() as c:
        response = c.get(path, "Content-Length: 0", method=method)
        assert response.status == 405 and response["Allow"] == "GET, HEAD, OPTIONS" and response["Location"] is None
        c.assert_in_step()


def test_options_say_what_is_allowed(build, site):
    with Server(build, site, "-j", "1") as server, server.connect() as c:
        for path in ("/", "/none", "*", "/assets/app.3f2a9c1b.js"):
            response = c.get(path, method="OPTIONS")
            assert response.status == 204 and response["Allow"] == "GET, HEAD, OPTIONS" and response.body == b""
        c.assert_in_step()
        assert c.get("*").status == 400
    with Server(build, site, "-j", "1") as server:
        assert server.get("/", method="BREW").status == 501


@pytest.mark.clear
def test_methods_over_http2(build, site):
    with Server(build, site, "-j", "1") as server, Http2(server) as c:
        for method in ("POST", "PUT", "DELETE", "TRACE", "PATCH"):
            answer = c.get("/", method=method)
            assert answer.status == 405 and answer["allow"] == "GET, HEAD, OPTIONS"
        assert c.get("/", method="OPTIONS").status == 204


@pytest.mark.parametrize(
    "name,path",
    [
        ("é€.txt", "/%C3%A9%E2%82%AC.txt"),
        ("é€.txt", "/%c3%a9%e2%82%ac.txt"),
        ("é€.txt", "/\u00c3\u00a9\u00e2\u0082\u00ac.txt"),  # the octets, not encoded
        ("日本.html", "/%E6%97%A5%E6%9C%AC.html"),
        ("a+b.txt", "/a+b.txt"),
        ("a+b.txt", "/a%2Bb.txt"),
        ("a b.txt", "/a%20b.txt"),
        ("a%20b.txt", "/a%2520b.txt"),
        ("a?b#c.txt", "/a%3Fb%23c.txt"),
        ("a.txt", "/%61%2e%74xt"),
        ("a:b;c=d,e@f!$&'()*.txt", "/a:b;c=d,e@f!$&'()*.txt"),
        ("_x.txt", "/_x.txt"),
    ],
)
def test_names(put, name, path):
    response = put(name, name.encode())(path)
    assert response.status == 200 and response.body == name.encode()


@pytest.mark.parametrize("path,status", [("/d%2Fa", 404), ("/d%2fa", 404), ("/a+b", 404), ("/d%5Ca", 404), ("/%2e%2e/%2e%2e/etc/passwd", 404), ("/d/%2e%2e/x", 200)])
def test_names_that_are_none(build, root, path, status):
    root.write("d/a", b"x")
    root.write("a b", b"x")
    root.write("x", b"x")
    with Server(build, root, "-j", "1") as server:
        assert server.get(path).status == status


def test_a_page_is_found_without_its_extension(build, root):
    for name in ("about.html", "both.html", "both", "dir.html", "dir/index.html", "a.b.html", "sub/page.html"):
        root.write(name, name.encode())
    root.write("packed.html.gz", gzip.compress(b"packed"))
    root.write("_redirects", b"/about /no 301\n/us /about 200\n")
    with Server(build, root, "-j", "1") as server:
        assert server.get("/about").body == b"about.html"
        assert server.get("/about")["Content-Type"] == "text/html; charset=utf-8" and server.get("/about")["Cache-Control"] == "no-cache"
        assert server.get("/sub/page").body == b"sub/page.html" and server.get("/packed").body == b"packed"
        assert server.get("/us").body == b"about.html"
        assert server.get("/both").body == b"both"
        assert server.get("/dir").body == b"dir.html" and server.get("/dir/").body == b"dir/index.html"
        assert server.get("/a.b").body == b"a.b.html"
        assert server.get("/sub/page/")["Location"] == "/sub/page" and server.get("/nothing").status == 404


@pytest.mark.others
@pytest.mark.clear
def test_a_browser_loads_the_site_without_a_word(build, root):
    page = (b'<!doctype html><html lang=en><meta charset=utf-8><title>site</title><link rel=icon href="/icon.svg">'
            b'<link rel=stylesheet href="/assets/index-BxK2a9fQ.css"><h1>x</h1><script type=module src="/assets/app.3f2a9c1b.js"></script>')  # fmt: skip
    script = b"import {answer} from './lib-DiwR4Tda.js';\ndocument.querySelector('h1').textContent = answer;\n" + b"//" * 200
    root.write("index.html", page)
    root.write("assets/index-BxK2a9fQ.css", b"h1{color:rgb(1,2,3)}" * 40)
    root.write("assets/app.3f2a9c1b.js", script)
    root.write("assets/app.3f2a9c1b.js.gz", gzip.compress(script))
    root.write("assets/lib-DiwR4Tda.js.gz", gzip.compress(b"export const answer = 42;\n"))
    root.write("icon.svg", b'<svg xmlns="http://www.w3.org/2000/svg"/>')
    root.write("_headers", b"/*\n  Content-Security-Policy: default-src 'self'\n  Referrer-Policy: no-referrer\n")
    root.write("_redirects", b"/app/* /index.html 200\n/old / 301\n")
    with Server(build, root, "-j", "2") as server, Browser() as browser:
        for path in ("/", "/app/deep/link", "/old"):
            browser.go(server.url(path))
            assert browser.run("document.querySelector('h1').textContent") == "42"
            assert browser.run("getComputedStyle(document.querySelector('h1')).color") == "rgb(1, 2, 3)"
        assert browser.run("location.pathname") == "/"
        assert browser.messages == []
