"""_headers and _redirects over the wire: what the documents of their inventors promise, and what
they do not."""

import base64
import gzip
import re
import subprocess
import time

import pytest

from gatling import Root, Server, eventually
from http2 import Http2

pytestmark = pytest.mark.decided

MANY = 1_000_000  # lines
ALL = 20  # connections, of which each of two workers gets some


def redirected(location, status=301):
    return {"status": status, "Location": location}


def content(body, status=200, **fields):
    return {"status": status, "body": body, "Location": None, **{name.replace("_", "-"): value for name, value in fields.items()}}


def page(name):
    return f"<p>{name}</p>\n".encode()


def check(response, wanted, what):
    """Compares a response with what redirected() or content() returned."""
    assert response.status == wanted["status"], f"{what}: {response.status}, {response.fields}"
    for name, value in wanted.items():
        if name == "body":
            assert response.body == value, f"{what}: {response.body!r}"
        elif name != "status":
            assert response[name] == value, f"{what}: {name}: {response[name]!r}"


# --- the examples of the documents: a site, and what is asked of it ---

NETLIFY_HEADERS = """
# a path:
/templates/index.html
  # headers for that path:
  X-Frame-Options: DENY
# another path:
/templates/index2.html
  # headers for that path:
  X-Frame-Options: SAMEORIGIN
/multi/*
  cache-control: max-age=0
  cache-control: no-cache
  cache-control: no-store
  cache-control: must-revalidate
/placeholders/:placeholder/tickets
  X-Frame-Options: SAMEORIGIN
/wild/*
  Access-Control-Allow-Origin: *
"""

CLOUDFLARE_HEADERS = """
# This is a comment
/secure/page
  X-Frame-Options: DENY
  X-Content-Type-Options: nosniff
  Referrer-Policy: no-referrer

/static/*
  Access-Control-Allow-Origin: *
  X-Robots-Tag: nosnippet

https://myproject.pages.dev/*
  X-Robots-Tag: noindex
"""

CLOUDFLARE_HEADERS_MORE = """
/*
  Content-Security-Policy: default-src 'self';

/*.jpg
  ! Content-Security-Policy

/movies/:title
  x-movie-name: You are watching ":title"

/app/*
  X-Frame-Options: DENY
  X-Content-Type-Options: nosniff
  Referrer-Policy: no-referrer
  Permissions-Policy: document-domain=()

https://:project.pages.dev/*
  Access-Control-Allow-Origin: https://staging.:project.pages.dev/

https://:version.myproject.pages.dev/*
  X-Robots-Tag: noindex

/static/*
  Cache-Control: public, max-age=31556952, immutable
"""

NETLIFY_REDIRECTS = """
# Redirects from what the browser requests to what we serve
/home              /
/blog/my-post.php  /blog/my-post
/news              /blog
/cuties            https://www.petsofnetlify.com
/authors/c%C3%A9line /authors/about-c%C3%A9line
# Redirect with a 302
/my-redirect       /              302
# Show a custom 404 for this path
/ecommerce         /store-closed  404
# Rewrite a path
/pass-through      /index.html    200
# This will redirect /jobs/customer-ninja-rockstar
/jobs/customer-ninja-rockstar  /careers/support-engineer
# This will redirect all paths under /jobs except the path above
/jobs/*  /careers/:splat
# This will never trigger, because the rule above will trigger first
/jobs/outdated-job-link  /careers/position-filled
/en/*  /en/404.html  404
/de/*  /de/404.html  404
"""

NETLIFY_OPTIONS = """
/news/:month/:date/:year/:slug  /blog/:year/:month/:date/:slug
/old/*  /blog/:splat
/store id=:id  /blog/:id  301
/articles id=:id tag=:tag  /posts/:tag/:id  301
/path/* param1=:value1 param2=:value2  /otherpath/:value1/:value2/:splat
/path/* param1=:value1  /otherpath/:value1/:splat
/path/*  /otherpath/:splat
/forced     /other  301!
/shadowed   /other  301
/app/*      /app/index.html  200
http://blog.yoursite.com/*   https://www.yoursite.com/blog/:splat  301!
https://blog.yoursite.com/*  https://www.yoursite.com/blog/:splat  301!
/blog/remove-my-slashes/  /blog/remove-my-slashes  301!
/  /anz  302  Country=au,nz
/china/*  /china/zh-cn/:splat  302  Language=zh
/admin/*  /secret/:splat  200!  Role=admin
/preview/*  /branch/:splat  302  Cookie=nf_ab
"""

CLOUDFLARE_REDIRECTS = """
/home301 / 301
/home302 / 302
/querystrings /?query=string 301
/twitch https://twitch.tv
/trailing /trailing/ 301
/notrailing/ /nottrailing 301
/page/ /page2/#fragment 301
/blog/* https://blog.my.domain/:splat
/products/:code/:name /products?code=:code&name=:name
/movies/:title /media/:title
/proxied/* /news/:splat 200
"""

SECURE = {"X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"}
HOST = "host"

SITES = {
    "netlify-headers": (
        {"_headers": NETLIFY_HEADERS},
        ["templates/index.html", "templates/index2.html", "multi/x", "placeholders/red/tickets", "placeholders/red/x/tickets", "wild/a/b"],
        [
            ("/templates/index.html", content(page("templates/index.html"), X_Frame_Options="DENY")),
            ("/templates/index2.html", content(page("templates/index2.html"), X_Frame_Options="SAMEORIGIN")),
            ("/multi/x", content(page("multi/x"), Cache_Control="max-age=0, no-cache, no-store, must-revalidate")),
            ("/placeholders/red/tickets", content(page("placeholders/red/tickets"), X_Frame_Options="SAMEORIGIN")),
            ("/placeholders/red/x/tickets", content(page("placeholders/red/x/tickets"), X_Frame_Options=None)),
            ("/wild/a/b", content(page("wild/a/b"), Access_Control_Allow_Origin="*", X_Frame_Options=None)),
        ],
    ),
    "cloudflare-headers": (
        {"_headers": CLOUDFLARE_HEADERS},
        ["secure/page", "static/image.jpg", "static/styles.css", "home"],
        [
            ("/secure/page", content(page("secure/page"), **SECURE, X_Robots_Tag=None)),
            ("/static/image.jpg", content(page("static/image.jpg"), Access_Control_Allow_Origin="*", X_Robots_Tag="nosnippet")),
            ("/home", content(page("home"), X_Robots_Tag=None)),
            (HOST, "myproject.pages.dev"),
            ("/home", content(page("home"), X_Robots_Tag="noindex")),
            ("/secure/page", content(page("secure/page"), **SECURE, X_Robots_Tag="noindex")),
            ("/static/styles.css", content(page("static/styles.css"), Access_Control_Allow_Origin="*", X_Robots_Tag="nosnippet, noindex")),
            (HOST, "MyProject.pages.dev:1234"),  # port and scheme do not count
            ("/home", content(page("home"), X_Robots_Tag="noindex")),
        ],
    ),
    "cloudflare-headers-more": (
        {"_headers": CLOUDFLARE_HEADERS_MORE},
        ["index.html", "a/b.jpg", "movies/jaws", "app/index.html", "static/x.png"],
        [
            ("/", content(page("index.html"), Content_Security_Policy="default-src 'self';")),
            ("/a/b.jpg", content(page("a/b.jpg"), Content_Security_Policy=None)),
            ("/movies/jaws", content(page("movies/jaws"), x_movie_name='You are watching "jaws"')),
            ("/app/", content(page("app/index.html"), **SECURE, Permissions_Policy="document-domain=()")),
            ("/static/x.png", content(page("static/x.png"), Cache_Control="public, max-age=31556952, immutable")),
            (HOST, "shop.pages.dev"),
            ("/", content(page("index.html"), Access_Control_Allow_Origin="https://staging.shop.pages.dev/", X_Robots_Tag=None)),
            (HOST, "v2.myproject.pages.dev"),
            ("/", content(page("index.html"), Access_Control_Allow_Origin=None, X_Robots_Tag="noindex")),
        ],
    ),
    "netlify-redirects": (
        {"_redirects": NETLIFY_REDIRECTS},
        ["index.html", "store-closed", "en/404.html", "de/404.html", "en/there.html", "404.html"],
        [
            ("/home", redirected("/")),
            ("/home/", redirected("/")),  # a slash at the end makes no difference
            ("/blog/my-post.php", redirected("/blog/my-post")),
            ("/news", redirected("/blog")),
            ("/cuties", redirected("https://www.petsofnetlify.com")),
            ("/authors/c%C3%A9line", redirected("/authors/about-c%C3%A9line")),
            ("/authors/c\u00c3\u00a9line", redirected("/authors/about-c%C3%A9line")),  # the octets, not encoded
            ("/my-redirect", redirected("/", 302)),
            ("/ecommerce", content(page("store-closed"), 404)),
            ("/pass-through", content(page("index.html"))),
            ("/jobs/customer-ninja-rockstar", redirected("/careers/support-engineer")),
            ("/jobs/a/b", redirected("/careers/a/b")),
            ("/jobs/outdated-job-link", redirected("/careers/outdated-job-link")),
            ("/en/missing", content(page("en/404.html"), 404)),
            ("/de/missing", content(page("de/404.html"), 404)),
            ("/en/there.html", content(page("en/there.html"))),
            ("/elsewhere", content(page("404.html"), 404)),
            ("/HOME", content(page("404.html"), 404)),  # case counts
        ],
    ),
    "netlify-options": (
        {"_redirects": NETLIFY_OPTIONS},
        ["index.html", "forced", "shadowed", "app/index.html", "app/style.css", "admin/index.html", "blog/remove-my-slashes", "china/x"],
        [
            ("/news/02/12/2004/my-story", redirected("/blog/2004/02/12/my-story")),
            ("/news/02/12/2004", {"status": 404}),
            ("/old/2004/01/10/my-story", redirected("/blog/2004/01/10/my-story")),
            ("/store?id=my-blog-post", redirected("/blog/my-blog-post")),
            ("/store", {"status": 404}),
            ("/articles?id=1&tag=x", redirected("/posts/x/1")),
            ("/articles?tag=x&id=1", redirected("/posts/x/1")),
            ("/articles?id=1", {"status": 404}),
            ("/path/x?param1=1&param2=2", redirected("/otherpath/1/2/x")),
            ("/path/x?param1=1", redirected("/otherpath/1/x")),
            ("/path/x", redirected("/otherpath/x")),
            ("/path/x?other=1", redirected("/otherpath/x?other=1")),
            ("/forced", redirected("/other")),
            ("/shadowed", content(page("shadowed"))),
            ("/app/deep/route", content(page("app/index.html"))),
            ("/app/style.css", content(page("app/style.css"))),
            ("/blog/remove-my-slashes", content(page("blog/remove-my-slashes"))),
            ("/", content(page("index.html"))),  # conditions cannot be told here
            ("/china/x", content(page("china/x"))),
            ("/china/y", {"status": 404}),
            ("/admin/", content(page("admin/index.html"))),
            ("/preview/x", {"status": 404}),
            (HOST, "blog.yoursite.com"),
            ("/a/b?c=d", redirected("https://www.yoursite.com/blog/a/b?c=d")),
            ("/forced", redirected("/other")),  # the first in the file
            ("/app/style.css", content(page("app/style.css"))),  # /app/* comes first
        ],
    ),
    "cloudflare-redirects": (
        {"_redirects": CLOUDFLARE_REDIRECTS},
        ["index.html", "trailing/index.html", "nottrailing", "news/today"],
        [
            ("/home301", redirected("/")),
            ("/home302", redirected("/", 302)),
            ("/querystrings", redirected("/?query=string")),
            ("/querystrings?mine=1", redirected("/?query=string")),
            ("/twitch", redirected("https://twitch.tv")),
            ("/trailing", redirected("/trailing/")),
            ("/trailing/", content(page("trailing/index.html"))),
            ("/notrailing/", redirected("/nottrailing")),
            ("/nottrailing", content(page("nottrailing"))),
            ("/page/", redirected("/page2/#fragment")),
            ("/page/?q", redirected("/page2/?q#fragment")),
            ("/blog/a/b", redirected("https://blog.my.domain/a/b")),
            ("/blog/", redirected("https://blog.my.domain/")),
            ("/products/42/lamp", redirected("/products?code=42&name=lamp")),
            ("/products/4%262/l%3Dp%20", redirected("/products?code=4%262&name=l%3Dp%20")),
            ("/movies/jaws", redirected("/media/jaws")),
            ("/proxied/today", content(page("news/today"))),
            ("/proxied/tomorrow", {"status": 404}),
        ],
    ),
}  # fmt: skip


def served(site):
    texts, names, _ = SITES[site]
    return Root({**{name: text.encode() for name, text in texts.items()}, **{name: page(name) for name in names}})


@pytest.mark.parametrize("site", SITES)
def test_the_documents_examples_do_what_they_promise(build, site):
    root, host = served(site), "custom.domain"
    with Server(build, root, "-j", "2") as server, server.connect() as connection:
        for path, wanted in SITES[site][2]:
            if path == HOST:
                host = wanted
                continue
            check(connection.get(path, host=host), wanted, path)
            head = connection.get(path, host=host, method="HEAD")
            check(head, {**wanted, "body": b""}, "HEAD " + path)
        for own in ("/_headers", "/_redirects"):
            assert connection.get(own).status == 404
        assert not [line for line in server.errors if "_headers" in line]
    root.remove()


@pytest.mark.clear
@pytest.mark.parametrize("site", SITES)
def test_the_same_over_http2(build, site):
    root, host = served(site), "custom.domain"
    with Server(build, root, "-j", "1") as server, Http2(server) as connection:
        for path, wanted in SITES[site][2]:
            if path == HOST:
                host = wanted
            elif path.isascii():
                check(connection.get(path, host=host), {k if k == "body" else k.lower(): v for k, v in wanted.items()}, path)
    root.remove()


# --- _headers ---


def serve(build, files, *flags):
    return Server(build, Root({name: text.encode() if isinstance(text, str) else text for name, text in files.items()}), *flags)


def test_what_the_server_says_by_itself_can_be_taken_away_and_overruled(build):
    rules = """
/bare/*
  ! Cache-Control
  ! X-Content-Type-Options
/typed/*
  Content-Type: text/x-own; charset=koi8-r
  X-Content-Type-Options: none
  Cache-Control: no-store
  Vary: Cookie
/wide/*
  X-Wide: 1
  Set-Cookie: a=1
  Set-Cookie: b=2
/wide/narrow
  ! X-Wide
  ! Set-Cookie
  Set-Cookie: c=3
"""
    files = {"_headers": rules, "typed/a.html": "typed", "typed/a.html.gz": gzip.compress(b"typed")}
    files |= {name: name for name in ("bare/a.txt", "plain.txt", "wide/narrow", "wide/x")}
    with serve(build, files, "-j", "1") as server:
        plain = server.get("/plain.txt")
        assert plain["Cache-Control"] == "no-cache" and plain["X-Content-Type-Options"] == "nosniff"
        bare = server.get("/bare/a.txt")
        assert bare.status == 200 and bare["Cache-Control"] is None and bare["X-Content-Type-Options"] is None
        for fields in ([], ["Accept-Encoding: gzip"]):
            typed = server.get("/typed/a.html", *fields)
            assert typed["Content-Type"] == "text/x-own; charset=koi8-r" and typed["Cache-Control"] == "no-store"
            assert typed["X-Content-Type-Options"] == "none" and typed["Vary"] == "Accept-Encoding, Cookie"
            assert typed["Content-Encoding"] == ("gzip" if fields else None)
        part = server.get("/typed/a.html", "Range: bytes=0-0,2-2")
        assert part.status == 206 and part.body.count(b"Content-Type: text/x-own; charset=koi8-r\r\n") == 2
        assert part["Cache-Control"] == "no-store" and part["Content-Type"].startswith("multipart/byteranges")
        wide, narrow = server.get("/wide/x"), server.get("/wide/narrow")
        assert [v for n, v in wide.fields if n.lower() == "set-cookie"] == ["a=1", "b=2"] and wide["X-Wide"] == "1"
        assert [v for n, v in narrow.fields if n.lower() == "set-cookie"] == ["c=3"] and narrow["X-Wide"] is None


def test_the_owners_fields_are_with_every_answer_about_a_path(build):
    rules = "/*\n  X-Frame-Options: DENY\n  X-Path: <:splat>\n"
    files = {"_headers": rules, "a.txt": "abc", "404.html": "<p>404", "403.html": "<p>403", "d/a": "", "dark/a": ""}
    with serve(build, files, "-j", "1", "-D") as server:
        tag = server.get("/a.txt")["ETag"]
        asked = [
            ("/a.txt", [], 200), ("/a.txt", ["Range: bytes=1-1"], 206), ("/a.txt", ["Range: bytes=0-0,2-2"], 206),
            ("/a.txt", ["If-None-Match: " + tag], 304), ("/a.txt", ['If-Match: "x"'], 412), ("/a.txt", ["Range: bytes=9-"], 416),
            ("/none", [], 404), ("/d/", [], 403),
        ]  # fmt: skip
        for path, fields, status in asked:
            response = server.get(path, *fields)
            assert response.status == status and response["X-Frame-Options"] == "DENY", (path, status, response.fields)
            assert response["X-Path"] == f"<{path[1:]}>"
    with serve(build, {"_headers": rules, "d/a": "x"}, "-j", "1", "-d") as server:
        for path, status in (("/d/", 200), ("/none", 404)):  # a listing, and what has no page
            response = server.get(path)
            assert response.status == status and response["X-Frame-Options"] == "DENY" and response["X-Path"] == f"<{path[1:]}>"


@pytest.mark.tcp
def test_they_are_with_what_asks_for_a_password_too(build):
    realm = "r" * 128 + '"' * 128  # as long as it may be, and longer where it is quoted
    rules = "/*\n  X-Frame-Options: DENY\n  X-Path: <:splat>\n  Cache-Control: max-age=86400\n  X-Long: " + "x" * 7900 + "\n"
    files = {"_headers": rules, "d/.htaccess": f"{realm}\nann:*\n", "d/a": "x"}
    with serve(build, files, "-j", "1") as server, Http2(server) as connection:
        for path in ("d/a", "d/none", "d/"):
            response, answer = server.get("/" + path), connection.get("/" + path)
            assert response.status == answer.status == 401 and response["X-Frame-Options"] == answer["x-frame-options"] == "DENY"
            assert response["X-Path"] == answer["x-path"] == f"<{path}>" and len(response["X-Long"]) == 7900
            assert response["Cache-Control"] is None and response["WWW-Authenticate"].startswith('Basic realm="rrr')
        guesses = [server.get("/d/a", f"Authorization: Basic {base64.b64encode(b'ann:%d' % i).decode()}") for i in range(12)]
        assert guesses[-1].status == 429 and guesses[-1]["Retry-After"] and guesses[-1]["X-Frame-Options"] == "DENY"


def test_caches_do_not_keep_what_is_about_one_request(build):
    files = {"_headers": "/*\n  Cache-Control: public, max-age=300\n  X-Own: yes\n", "a.txt": "abc", "l/a": "", "d/.htaccess": "Friends\nann:*\n", "d/a": ""}
    with serve(build, files, "-j", "1") as server:
        for path, fields, status in (
            ("/a.txt", ['If-Match: "x"'], 412), ("/a.txt", ["Range: bytes=9-"], 416), ("/l/", ['If-Match: "x"'], 412), ("/d/a", [], 401),
            *(("/d/a", [f"Authorization: Basic {base64.b64encode(b'ann:%d' % i).decode()}"], 401) for i in range(10)),
            ("/d/a", ["Authorization: Basic YW5uOnB3"], 429),
        ):  # fmt: skip
            response = server.get(path, *fields)
            assert (response.status, response["Cache-Control"], response["X-Own"]) == (status, None, "yes"), path
        for path, fields, status in (("/a.txt", [], 200), ("/a.txt", ["Range: bytes=0-1"], 206), ("/a.txt", ["If-None-Match: *"], 304), ("/none", [], 404)):
            response = server.get(path, *fields)
            assert (response.status, response["Cache-Control"]) == (status, "public, max-age=300")


@pytest.mark.clear
def test_the_owners_fields_are_with_every_answer_over_http2(build):
    files = {"_headers": "/*\n  X-Static: s\n  X-Path: <:splat>\n", "a.txt": "abc", "404.html": "<p>404"}
    with serve(build, files, "-j", "1") as server, Http2(server) as connection:
        for path, status in (("/a.txt", 200), ("/a.txt", 200), ("/none", 404)):
            for method in ("GET", "HEAD"):
                answer = connection.get(path, method=method)
                assert answer.status == status and answer["x-static"] == "s" and answer["x-path"] == f"<{path[1:]}>"


def test_values_that_are_filled_in_are_of_each_request(build):
    rules = """
/:section/:page
  X-Where: :section/:page :other
  X-Static: 1
/a/*
  X-Where: under a: :splat
  Cache-Control: max-age=:splat
"""
    files = {"_headers": rules, "_redirects": "/spa/* /index.html 200\n", "index.html": "<p>index", "404.html": "<p>404"}
    files |= {"a/1": "one", "a/2": "two", "b/1": "three"}
    with serve(build, files, "-j", "1") as server, server.connect() as c:
        for _ in range(2):
            for path, body, where, cached in (
                ("/a/1", b"one", "a/1 :other, under a: 1", "max-age=1"),
                ("/a/2", b"two", "a/2 :other, under a: 2", "max-age=2"),
                ("/b/1", b"three", "b/1 :other", "no-cache"),
                ("/spa/x", b"<p>index", "spa/x :other", "no-cache"),
                ("/spa/y", b"<p>index", "spa/y :other", "no-cache"),
                ("/no/where", b"<p>404", "no/where :other", "no-cache"),
                ("/spa/a%0D%0ASet-Cookie:%20x", b"<p>index", "spa/a%0D%0ASet-Cookie%3A%20x :other", "no-cache"),
                ("/spa/%22,%20x%7F%C3%A9%25", b"<p>index", "spa/%22%2C%20x%7F%C3%A9%25 :other", "no-cache"),
            ):  # fmt: skip
                response = c.get(path)
                assert response.body == body and response["X-Where"] == where, (path, response.fields)
                assert response["Cache-Control"] == cached and response["X-Static"] == "1" and response["Set-Cookie"] is None


def test_invented_paths_cost_no_memory_and_no_place_in_the_cache(build, plain):
    files = {"_headers": "/*\n  X-Path: :splat\n", "_redirects": "/* /index.html 200\n", "index.html": b"x" * 60_000}
    with serve(plain, files, "-j", "1") as server, server.connect(tls=None) as c:
        for i in range(50):
            c.get(f"/{i}")
        before = server.resident()
        for i in range(2000):
            assert c.get(f"/invented/{i}")["X-Path"] == f"invented/{i}"
        assert server.resident() - before < 4 << 20  # a place for each would take more than 60


def test_more_fields_than_a_response_may_have_are_refused_and_said_once(build):
    long = "x" * 4000
    rules = f"/a*\n  X-A: {long}\n/*b\n  X-B: {long}\n/ab*\n  X-C: {long}\n/f/*\n  X-F: :splat/{long}\n"
    files = {"_headers": rules, "a": "a", "b": "b", "ab": "ab", "abc": "abc", "f/x": "f", "50x.html": "<p>sorry"}
    with serve(build, files, "-j", "2") as server:
        assert server.get("/a")["X-A"] == long and server.get("/b")["X-B"] == long
        for i in range(20):
            for path in ("/abc", f"/abc{i}", "/f/" + "%20" * (1400 + i)):
                response = server.get(path)
                if path.startswith("/abc"):
                    assert response.status == 200 or response.status == 404, path
                else:
                    assert response.status == 500 and response.body == b"<p>sorry" and response["X-F"] is None
            assert server.get("/ab").status == 500
            assert server.get(f"/ab{i}b").status == 500
        assert server.get("/f/x")["X-F"] == "x/" + long
        lines = eventually(lambda: len(found := about(server, "8192")) > 1 and found)
        assert len(lines) == 2, server.errors  # one for each rule, whatever paths there are
        assert "_headers:5: " in lines[0] + lines[1] and "_headers:7: " in lines[0] + lines[1]


# --- _redirects ---


def test_a_single_page_application(build):
    files = {"_redirects": "/* /index.html 200\n", "index.html": "<p>app", "app.3f2a9c1b.js": "1", "d/index.html": "<p>d"}
    with serve(build, files, "-j", "1") as server:
        for path in ("/", "/route", "/deep/er/route?x=y", "/route.with.dots", "/d/none", "/%C3%A9"):
            response = server.get(path)
            assert response.status == 200 and response.body == b"<p>app" and response["Cache-Control"] == "no-cache", path
            assert response["Content-Type"] == "text/html; charset=utf-8"
        assert server.get("/app.3f2a9c1b.js").body == b"1" and server.get("/d/").body == b"<p>d"
        assert server.get("/d")["Location"] == "/d/"
        tag = server.get("/route")["ETag"]
        assert server.get("/other", f"If-None-Match: {tag}").status == 304
        assert server.get("/route", "Range: bytes=0-2").body == b"<p>"
        assert {server.get(path).status for path in ("/_redirects", "/_headers", "/.git/config", "/a%2Fb")} == {404}
        assert server.get("/%zz").status == 400


def test_what_stands_in_for_a_missing_file_is_not_immutable(build):
    for_ever = "public, max-age=31536000, immutable"
    files = {"_redirects": "/assets/* /index.html 200\n/icons/* /none.3f2a9c1b.png 200\n/old/* /gone.html 410\n/css/* /new/:splat\n"
             "/page/* /index.html 200!\n/none/* /gone.html 410!\n/lost2/* /none.txt 404\n/new/* /index.html 200\n",
             "_headers": f"/assets/*\n  Cache-Control: {for_ever}\n  X-Frame-Options: DENY\n/old/*\n  cache-control: IMMUTABLE\n"
             f"/page/*\n  Cache-Control: {for_ever}\n/lost/*\n  Cache-Control: {for_ever}\n/404/*\n  Cache-Control: max-age=5\n"
             f"/none/*\n  Cache-Control: {for_ever}\n/lost2/*\n  Cache-Control: s-maxage=\"86400\"\n/new/*\n  Cache-Control: s-maxage=9, max-age=86400\n",
             "index.html": "<p>index", "gone.html": "<p>gone", "assets/app-BxK2a9fQ.js": "1", "none.3f2a9c1b.png": "none", "lost/dir/x": "", "none.txt": "none"}  # fmt: skip
    with serve(build, files, "-j", "1", "-d") as server:
        for path, status, wanted in (
            ("/assets/app-BxK2a9fQ.js", 200, for_ever), ("/assets/app-C3f9Qa1x.js", 200, "no-cache"), ("/index.html", 200, "no-cache"),
            ("/none.3f2a9c1b.png", 200, for_ever), ("/icons/x.png", 200, "no-cache"), ("/old/x", 410, "no-cache"),
            ("/page/x", 200, for_ever), ("/lost/x", 404, None), ("/lost/dir/", 200, "no-cache"), ("/none/x", 410, "no-cache"), ("/lost2/x", 404, "no-cache"), ("/new/x", 200, "no-cache"), ("/404/x", 404, "max-age=5"), ("/assets/app-BxK2a9fQ.js", 200, for_ever),
        ):  # fmt: skip
            response = server.get(path)
            assert (response.status, response["Cache-Control"]) == (status, wanted), path
        assert server.get("/assets/x")["X-Frame-Options"] == "DENY"
        refused = server.get("/assets/app-BxK2a9fQ.js", 'If-Match: "x"')
        assert (refused.status, refused["Cache-Control"]) == (412, None)


def test_a_forced_rule_comes_before_a_file(build):
    rules = "/a.txt /b.txt 200!\n/c.txt /b.txt 200\n/gone.txt /page 410!\n/moved.txt https://example.org/:x 308!\n"
    rules = rules.replace("/:x", "/x")
    files = {"_redirects": rules, "page": "<p>gone"} | {f"{n}.txt": n for n in ("a", "b", "c", "gone", "moved")}
    with serve(build, files, "-j", "1") as server:
        assert server.get("/a.txt").body == b"b" and server.get("/c.txt").body == b"c"
        gone = server.get("/gone.txt")
        assert gone.status == 410 and gone.body == b"<p>gone" and gone["ETag"] is None
        assert server.get("/moved.txt").status == 308 and server.get("/moved.txt")["Location"] == "https://example.org/x"


def test_a_parameter_leads_around_no_forced_rule(build):
    files = {"_redirects": "/secret/* /404.html 404!\n/shop id=:id /goods/:id 200\n",
             "404.html": "<p>404", "secret/x": "secret", "goods/7": "seven"}  # fmt: skip
    with serve(build, files, "-j", "1") as server:
        assert server.get("/shop?id=7").body == b"seven"
        for value in ("../secret/x", "..%2Fsecret/x", "%2e%2e/secret/x", "..", ".%2e"):
            response = server.get("/shop?id=" + value)
            assert (response.status, response.body) == (404, b"<p>404"), value


def test_rules_with_a_status_of_an_error(build):
    rules = "/old/* /gone.html 410\n/lost/* /lost.html 404\n/broken /none 404\n/hidden /.git/x 200\n/own /_headers 200\n/vanished /none 410\n"
    files = {"_redirects": rules, "_headers": "", "gone.html": "<p>gone", "lost.html": "<p>lost", "404.html": "<p>404", "old/there": "x"}
    with serve(build, files, "-j", "1") as server:
        for path, status, body in (
            ("/old/x", 410, b"<p>gone"), ("/old/there", 200, b"x"), ("/lost/x", 404, b"<p>lost"), ("/broken", 404, b"<p>404"),
            ("/hidden", 404, b"<p>404"), ("/own", 404, b"<p>404"),
        ):  # fmt: skip
            response = server.get(path)
            assert (response.status, response.body) == (status, body), path
        assert server.get("/vanished").status == 410
        error = server.get("/old/x", "Range: bytes=0-1", "If-None-Match: *")
        assert error.status == 410 and error.body == b"<p>gone" and error["ETag"] is None and error["Last-Modified"] is None


def test_a_rewrite_leads_to_directories_and_their_index(build):
    files = {"_redirects": "/x /d 200\n/y /d/ 200\n/z/* /:splat/ 200\n", "d/index.html": "<p>index", "e/f": ""}
    with serve(build, files, "-j", "1") as server:
        assert {server.get(path).body for path in ("/x", "/y", "/z/d")} == {b"<p>index"}
        assert server.get("/z/e").status == 404


def test_a_rewrite_to_a_symlink_to_a_url_redirects_as_a_request_for_it_does(build):
    with serve(build, {"_redirects": "/x/* /:splat 200 Language=de,en\n"}, "-j", "1") as server:
        (server.root.path / "d").mkdir()
        for name in ("url", "d/index.html"):
            (server.root.path / name).symlink_to("https://example.org/there")
        for path in ("/url", "/d/", "/x/url", "/x/d/", "/x/d"):
            moved = server.get(path, "Accept-Language: de")
            assert (moved.status, moved["Location"]) == (301, "https://example.org/there"), path
            assert moved["Vary"] == ("Accept-Language" if path.startswith("/x") else None), path


@pytest.fixture(scope="module")
def redirecting(build):
    rules = "/to/* /:splat\n/host/:name https://:name.mine.example/\n/query to=:where /:where\n/keep /kept\n"
    with serve(build, {"_redirects": rules}, "-j", "1") as server:
        yield server


@pytest.mark.parametrize(
    "path,location",
    [
        ("/to//evil.example", "/evil.example"),
        ("/to/%5Cevil.example", "/%5Cevil.example"),
        ("/to///evil.example", "/evil.example"),
        ("/to/%09/evil.example", "/%09/evil.example"),
        ("/to/..//evil.example", None),
        ("/to/a%0D%0ASet-Cookie:%20a=b", "/a%0D%0ASet-Cookie:%20a=b"),
        ("/to/%00", None),
        ("/to/x%3Fy%23z", "/x%3Fy%23z"),
        ("/to/javascript:alert(1)", "/javascript:alert(1)"),
        ("/to/%E2%80%AE%C3%A9", "/%E2%80%AE%C3%A9"),
        ("/host/evil.example", "https://evil.example.mine.example/"),
        ("/host/evil.example%2Fx", None),
        ("/host/a%40evil.example", None),
        ("/host/evil.example%3Fx", None),
        ("/query?to=//evil.example", "/%2F%2Fevil.example"),
        ("/query?to=%0d%0aX:y", "/%0d%0aX:y"),
        ("/keep?a=b%0D%0A", "/kept?a=b%0D%0A"),
        ("/keep?%22<>", "/kept?%22%3C%3E"),
    ],
)
def test_a_redirect_leads_nowhere_but_where_the_owner_wants_it(redirecting, path, location):
    response = redirecting.get(path)
    assert response["Location"] == location and response["Set-Cookie"] is None and response["X"] is None
    assert response.status == (301 if location else response.status) and (location or response.status in (400, 404))
    if location and location.startswith("/"):
        assert not re.match(r"/[/\\]", location)


def test_the_query_goes_with_a_redirect_unless_the_rule_has_its_own(build):
    rules = "/a /b\n/c /d?e=f\n/g h=:i /j\n/k https://example.org/l 302\n/m /n#o\n/p /index.html 200\n"
    with serve(build, {"_redirects": rules, "index.html": "<p>"}, "-j", "1") as server:
        for path, location in (
            ("/a?x=1&y", "/b?x=1&y"), ("/a?", "/b"), ("/c?x=1", "/d?e=f"), ("/g?h=1&x=2", "/j"), ("/k?x", "https://example.org/l?x"),
            ("/m?x", "/n?x#o"), ("/p?x", None),
        ):  # fmt: skip
            assert server.get(path)["Location"] == location, path


def test_a_rule_that_leads_to_itself_does_not(build):
    rules = "/a/* /a/:splat 301\n/b /b/ 301\n/c http://same.example/c 302\n/d /e 301\n"
    with serve(build, {"_redirects": rules}, "-j", "1") as server:
        assert server.get("/a/x").status == 404 and server.get("/b/").status == 404
        assert server.get("/c", host="same.example").status == (302 if server.tls else 404)  # the target is in the clear
        assert server.get("/c", host="other.example")["Location"] == "http://same.example/c"
        assert server.get("/d")["Location"] == "/e"


# --- when the files are wrong, and when they change ---


def about(server, name):
    return [line for line in server.errors if name in line]


def test_rules_that_are_a_link_to_nowhere_are_told_once(first_build):
    root = Root({"a": b"a"})
    (root.path / "_headers").symlink_to("none")
    with Server(first_build, root, "-j", "2") as server:
        for _ in range(20):
            assert server.get("/a").status == 200
        assert eventually(lambda: about(server, "_headers")) == ["gatling: _headers: it is a symbolic link to nothing that the server can see"]


WRONG = [
    ("_headers", "  X-Wrong", "there is no ':'"),
    ("_headers", "/**", "second '*'"),
    ("_headers", "  Content-Length: 3", "only the server"),
    ("_headers", "  Basic-Auth: me:secret", ".htaccess"),
    ("_redirects", "/y", "no path or URL to go to"),
    ("_redirects", "/y /z 299", "not a status"),
    ("_redirects", "/api/* https://api.example.com/:splat 200", "without --upstream https://api.example.com"),
    ("_redirects", "/admin/* 200! Role=admin", "Role is never met"),
    ("_redirects", "/y /z 200 Country=de", "Country is never met"),
]  # fmt: skip
RULES = {"_headers": "# a site\n/x\n  X-State: {0}\n{1}\n", "_redirects": "# a site\n/x /y?{0}\n\n{1}\n"}


@pytest.fixture(scope="module")
def made_wrong(build):
    """Returns the messages of a server with a site for each of the wrong lines, which come into its
    files at the same time."""
    root = Root()

    def write(state, wrong):
        for place, (name, line, _) in enumerate(WRONG):
            root.write(f"{place}.example/{name}", RULES[name].format(state, line if wrong else "").encode())

    def states():
        for place, (name, _, _) in enumerate(WRONG):
            yield server.get("/x", host=f"{place}.example")["X-State" if name == "_headers" else "Location"]

    write("old", wrong=False)
    with Server(build, root, "-j", "2") as server:
        assert all("old" in state for _ in range(ALL) for state in states())
        assert not server.errors
        write("new", wrong=True)
        eventually(lambda: all("new" in state for _ in range(ALL) for state in states()), 6)
        time.sleep(2.5)  # each worker looks at them, more than once
    yield server.errors
    root.remove()


@pytest.mark.parametrize("name,wrong,why", WRONG)
def test_a_line_that_is_wrong_is_left_out_and_said_once(made_wrong, name, wrong, why):
    shown = wrong.strip().replace(": me:secret", "")  # a password is not for the log
    place = [line for _, line, _ in WRONG].index(wrong)
    lines = [line for line in made_wrong if f"{place}.example/{name}" in line]
    assert len(lines) == 1, made_wrong
    assert lines[0].startswith(f"gatling: {place}.example/{name}:4: '{shown}': ") and why in lines[0]


def test_after_many_lines_that_are_wrong_it_says_how_many_more(build, root):
    root.write("_redirects", b"wrong\n" * 30 + b"/x /y\n")
    with Server(build, root, "-j", "1") as server:
        assert server.get("/x")["Location"] == "/y"
        eventually(lambda: len(about(server, "_redirects")) == 17)
        assert about(server, "_redirects")[-1] == "gatling: _redirects: 14 more lines are wrong: gatling --check names them"


@pytest.mark.parametrize("name,text,find", [("_headers", "/*\n  X-State: {}\n", "X-State"), ("_redirects", "/x /{}\n", "Location")])
def test_a_change_counts_within_two_seconds(build, root, name, text, find):
    with Server(build, root, "-j", "1") as server:
        assert server.get("/x")[find] is None
        for state in ("one", "two", "one"):
            root.write(name, text.format(state).encode())
            eventually(lambda: state in (server.get("/x")[find] or ""), 2)
        (root.path / name).unlink()
        eventually(lambda: server.get("/x")[find] is None, 2)
        assert not about(server, name)


def test_an_error_at_the_start_is_said_and_the_site_is_served(build):
    with serve(build, {"_headers": "X: y\n", "_redirects": "x\n", "a.txt": "a"}, "-j", "2") as server:
        for _ in range(8):
            assert server.get("/a.txt").status == 200
        eventually(lambda: len(server.errors) == 2)
        assert len(about(server, "_headers:1:")) == 1 and len(about(server, "_redirects:1:")) == 1 and len(server.errors) == 2


def test_a_file_of_a_million_lines_is_refused_and_costs_nothing(build):
    rules = "".join(f"/{i}\n  X: {i}\n" for i in range(MANY // 2))
    assert rules.count("\n") == MANY
    with serve(build, {"_headers": rules, "a.txt": "a"}, "-j", "2") as server:
        started = time.monotonic()
        for _ in range(50):
            assert server.get("/a.txt").body == b"a"
        assert time.monotonic() - started < 5
        time.sleep(1.5)
        assert [server.get("/a.txt")["X"] for _ in range(ALL)] == [None] * ALL  # each worker has looked again
        eventually(lambda: about(server, "_headers"))
        assert server.errors == ["gatling: _headers: the file is too large: more than 1048576 bytes"]


def test_more_rules_than_a_file_may_have_are_left_out(build):
    with serve(build, {"_redirects": "".join(f"/{i} /x\n" for i in range(4097)), "a.txt": "a"}, "-j", "1") as server:
        assert server.get("/1").status == 301 and server.get("/4096").status == 404 and server.get("/a.txt").status == 200
        eventually(lambda: about(server, "_redirects:4097: "))


def test_a_pattern_that_is_made_to_be_slow_is_not(build):
    shape = "/" + "-".join(f":n{i}" for i in range(15))
    files = {"_headers": f"{shape}-*-x\n  X-Slow: 1\n", "_redirects": "/-*-x /z\n", "a.txt": "a"}
    path = "/" + "-" * 7900
    with serve(build, files, "-j", "1") as server, server.connect() as c:
        c.get("/a.txt")
        started = time.monotonic()
        for _ in range(50):
            assert c.get(path).status == 404
        assert time.monotonic() - started < 5
        assert not about(server, "_")


def test_the_files_are_not_to_be_had_in_any_spelling(build):
    files = {"_headers": "/*\n  X-A: 1\n", "_redirects": "/alias /_headers 200\n", "d/_headers": "mine", "404.html": "<p>404"}
    with serve(build, files, "-j", "1", "-V") as server:
        for path in ("/_headers", "/_redirects", "/%5fheaders", "//_headers", "/d/../_headers", "/./_redirects", "/alias"):
            response = server.get(path)
            assert response.status == 404 and b"X-A" not in response.body, path
        assert server.get("/_headers/").status == 404
        assert server.get("/d/_headers").body == b"mine"  # of a directory it is a file like others
        listing = server.get("/")
        assert listing.status == 200 and b"_headers" not in listing.body


def test_each_host_has_its_own_files(build):
    files = {"_headers": "/*\n  X-Site: root\n", "_redirects": "/x /root\n", "default/a": "default"}
    for host in ("a.example", "b.example"):
        files |= {f"{host}/_headers": f"/*\n  X-Site: {host}\n", f"{host}/_redirects": f"/x /{host}\n", f"{host}/a": host}
    files |= {"bare.example/a": "bare", "wrong.example/_headers": "x", "wrong.example/a": "wrong"}
    with serve(build, files, "-j", "1", "-v") as server:
        for host, site in (("a.example", "a.example"), ("B.EXAMPLE:80", "b.example"), ("bare.example", None), ("other", None)):
            response = server.get("/a", host=host)
            assert response["X-Site"] == site and response.status == 200, host
            assert server.get("/x", host=host)["Location"] == (f"/{site}" if site else None)
            assert server.get("/_headers", host=host).status == 404
        assert server.get("/a", host="wrong.example").body == b"wrong"
        assert eventually(lambda: about(server, "wrong.example/_headers:1: ")) == server.errors


def test_a_password_comes_before_any_rule(build):
    hashed = subprocess.run(["openssl", "passwd", "-6", "secret"], check=True, capture_output=True, text=True).stdout.strip()
    files = {"_redirects": "/x /y 301!\n/* /index.html 200\n", "_headers": "/*\n  X-Path: :splat\n", "index.html": "<p>in"}
    with serve(build, files | {".htaccess_global": f"realm\nme:{hashed}\n"}, "-j", "1") as server:
        for path in ("/x", "/", "/none", "/_headers"):
            response = server.get(path)
            assert response.status == (404 if path == "/_headers" else 401) and response["Location"] is None, path
        me = "Authorization: Basic bWU6c2VjcmV0"
        assert server.get("/x", me)["Location"] == "/y"
        inside = server.get("/none", me)
        assert inside.body == b"<p>in" and inside["Cache-Control"] == "private, no-cache" and inside["X-Path"] == "none"


def test_options_get_the_fields_of_the_path_so_that_preflights_work(build, root):
    root.write("_headers", b"/api/*\n  Access-Control-Allow-Origin: *\n  Access-Control-Allow-Headers: X-Token\n")
    root.write(".htaccess_global", b"Friends\nann:*\n")
    with Server(build, root, "-j", "1") as server, server.connect() as c:
        response = c.get("/api/%61", "Origin: https://a.example", "Access-Control-Request-Method: GET", method="OPTIONS")
        assert response.status == 204 and response["Allow"] == "GET, HEAD, OPTIONS"
        assert response["Access-Control-Allow-Origin"] == "*" and response["Access-Control-Allow-Headers"] == "X-Token"
        for other in ("/", "/x/../b", "*", "/%zz"):
            assert c.get(other, method="OPTIONS")["Access-Control-Allow-Origin"] is None


# --- what is not there ---


# Requests whose answers fit in the buffer that a connection keeps: AddressSanitizer does not reuse those that are freed.
BATCH = 25


@pytest.mark.clear
def test_a_flood_of_missing_names_leaves_nothing_behind_and_hides_nothing_new(build, root):
    root.write("dir/a.txt", b"a")
    with Server(build, root, "-j", "1", "-n") as server, server.connect() as c:

        def flood(count):
            for start in range(0, count, BATCH):
                names = [(f"/dir/{n}.txt", f"/{n}/x", f"/dir/{n}/{n}")[n % 3] for n in range(start, start + BATCH)]
                c.send("".join(f"GET {name} HTTP/1.1\r\nHost: a\r\n\r\n" for name in names).encode())
                assert {c.response().status for _ in names} == {404}

        flood(2000)
        before = server.resident()
        flood(20000)
        assert server.resident() - before < 1 << 20
        root.write("dir/new.txt", b"new")
        assert c.get("/dir/new.txt").body == b"new"  # at once
        root.write("new/index.html", b"index")
        assert c.get("/new/").body == b"index"
        root.write("dir/.htaccess", b"Friends\nann:*\n")
        assert c.get("/dir/a.txt").status == 401


HIDDEN = ["dir/a.txt", "dir/b.txt", "dir/c.txt", "dir/d.txt", "dir/e.txt"]


@pytest.fixture
def known(build, root):
    """Yields a connection to a server that has just read a directory whose files are not recent."""
    for name in HIDDEN:
        root.write(name, name.encode())
    root.write("next/c.txt", b"next")
    root.write("next/.htaccess", b"Friends\nann:*\n")
    time.sleep(2.5)
    with Server(build, root, "-j", "1", "-n") as server, server.connect() as c:
        for _ in range(70):  # so often that the directory is read
            assert c.get("/dir/none").status == 404
        assert c.get("/dir/a.txt").body == b"dir/a.txt"
        yield c


@pytest.mark.clear
def test_a_file_that_another_coding_replaces_is_not_missed(known, root):
    root.write("dir/b.txt.gz", gzip.compress(b"b"))
    (root.path / "dir/b.txt").unlink()
    assert known.get("/dir/b.txt").body == b"b"


@pytest.mark.clear
def test_what_is_newer_than_its_guard_is_guarded_at_once(known, root):
    root.write("dir/.htaccess", b"Friends\nann:*\n")
    root.write("dir/b.txt", b"secret")
    assert known.get("/dir/b.txt").status == 401


@pytest.mark.clear
def test_what_comes_with_another_directory_is_guarded_at_once(known, root):
    (root.path / "dir").rename(root.path / "last")
    (root.path / "next").rename(root.path / "dir")
    assert known.get("/dir/c.txt").status == 401


@pytest.mark.clear
def test_a_guard_is_noticed_within_a_second_whatever_was_asked_for_before(known, root):
    root.write("dir/.htaccess", b"Friends\nann:*\n")
    begun = time.monotonic()
    assert known.get("/dir/b.txt").status in (200, 401)
    time.sleep(1 - (time.monotonic() - begun))
    assert [known.get(f"/{name}").status for name in HIDDEN] == [401] * len(HIDDEN)
