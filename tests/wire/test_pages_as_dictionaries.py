"""Pages as dictionaries for pages (RFC 9842): browsers made from Chromium keep what a user goes to, and are sent the
difference to it. They must never show an old page for that, and others must not notice anything."""

import random

import pytest
from browser import Browser
from gatling import Root, Server, eventually
from test_dictionaries import ACCEPT, apply, digest, has

pytestmark = pytest.mark.decided

WORDS = random.Random(2).choices([f"word{i}" for i in range(3000)], k=3000)
OFFERED = "private, max-age=0, stale-while-revalidate=2592000"
BRANDS = 'Sec-CH-UA: "Not:A-Brand";v="8", "Chromium";v="156"'
GOES = (ACCEPT, BRANDS, "Sec-Fetch-Dest: document", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Site: cross-site")


def page(text, title="x", more=""):
    return f'<!doctype html><meta charset="utf-8"><title>{title}</title><p id="text">{text}</p>{more}<p>{" ".join(WORDS)}'.encode()


def difference(server, path, dictionary, *fields):
    """Returns the response in dcz, when the dictionary has been kept."""
    return eventually(lambda: (r := server.get(path, *GOES, has(dictionary), *fields))["Content-Encoding"] == "dcz" and r)


@pytest.fixture(scope="module")
def site():
    root = Root({"index.html": page("front"), "about.html": page("about"), "docs/index.html": page("docs"), "docs/deep/index.html": page("deep"), "about/more.html": page("more")})
    for name in ("secret/index.html", "cookies/index.html", "lasting/index.html", "404.html", "one*two.html"):
        root.write(name, page(name))
    root.write("small.html", b"<p>x")
    root.write("plain.txt", page("text"))
    root.write("secret/.htaccess", b"Friends\nann:$1$abcdefgh$vdBSIIpG7R8DPkuUogsqU0\n")
    root.write("_headers", b"/cookies/*\n  Set-Cookie: a=b\n/lasting/*\n  Cache-Control: max-age=60\n")
    root.write("_redirects", b"/app/* /index.html 200\n")
    yield root
    root.remove()


@pytest.fixture(scope="module")
def server(build, site):
    with Server(build, site, "-j", "1") as running:
        yield running


@pytest.mark.parametrize(
    "path, match",
    [("/", "*"), ("/index.html", "*"), ("/docs/", "*"), ("/docs/deep/", "*"), ("/about", "about*"), ("/about.html", "about*")],
)
def test_a_page_is_offered_to_those_who_go_to_it(server, path, match):
    for _ in range(2):  # the second answer is known
        response = server.get(path, *GOES)
        assert response.status == 200
        assert response["Use-As-Dictionary"] == f'match="{match}", match-dest=("document")'
        assert response["Vary"] == "Accept-Encoding, Available-Dictionary, Sec-Fetch-Dest"
        assert response["Cache-Control"] == OFFERED


@pytest.mark.parametrize(
    "fields",
    [
        (),
        (ACCEPT,),
        (ACCEPT, "Sec-Fetch-Dest: document"),  # another browser
        (ACCEPT, "Sec-Fetch-Dest: document", 'Sec-CH-UA: "Chromiumlike";v="1"'),
        (ACCEPT, BRANDS),
        (ACCEPT, BRANDS, "Sec-Fetch-Dest: empty"),  # fetch(), a service worker
        (ACCEPT, BRANDS, "Sec-Fetch-Dest: iframe"),
    ],
)
def test_nobody_else_sees_that(server, fields):
    dictionary = page("about")
    difference(server, "/about", dictionary)
    for _ in range(2):
        response = server.get("/about", *fields, has(dictionary))
        assert response.status == 200 and response["Cache-Control"] == "no-cache" and response["Vary"] == "Accept-Encoding"
        assert response["Use-As-Dictionary"] is None and response["Content-Encoding"] != "dcz"


@pytest.mark.parametrize("path", ["/secret/", "/cookies/", "/lasting/", "/small.html", "/plain.txt", "/app/x", "/none", "/one*two"])
def test_no_other_page_is_offered(server, path):
    for _ in range(2):
        response = server.get(path, *GOES, "Authorization: Basic YW5uOnJpZ2h0", has(page("front")))
        assert response.status == (404 if path == "/none" else 200)
        assert response["Use-As-Dictionary"] is None and response["Cache-Control"] != OFFERED
        assert response["Content-Encoding"] != "dcz"


def test_a_page_below_another_is_sent_as_the_difference(server):
    front = page("front")
    server.get("/", *GOES)
    for path, text in (("/docs/deep/", "deep"), ("/about", "about"), ("/about/more", "more"), ("/", "front")):
        response = difference(server, path, front)
        assert apply(response.body, front) == page(text) and len(response.body) < 200
        assert response["Use-As-Dictionary"] and response["Cache-Control"] == OFFERED
        assert response["Vary"] == "Accept-Encoding, Available-Dictionary, Sec-Fetch-Dest"


def test_a_page_elsewhere_is_not(server):
    for path, text in (("/docs/", "docs"), ("/about", "about"), ("/docs/deep/", "deep")):
        difference(server, path, page(text))  # each is kept
    for path, text in (("/", "docs"), ("/about", "docs"), ("/docs/", "about"), ("/docs/", "deep")):
        assert server.get(path, *GOES, has(page(text)))["Content-Encoding"] != "dcz"


def test_a_page_that_has_not_changed_is_not_sent(server):
    tag = server.get("/about", *GOES)["ETag"]
    for dictionary in ("about", "front", "none"):
        response = server.get("/about", *GOES, has(page(dictionary)), "If-None-Match: " + tag)
        assert response.status == 304 and response["ETag"] == tag and response["Cache-Control"] == OFFERED
    # what a browser has was a difference: its validator is that of the difference to another page than it has now
    old = difference(server, "/about", page("front"))["ETag"]
    response = difference(server, "/about", page("about"), "If-None-Match: " + old)
    assert response.status == 200 and apply(response.body, page("about")) == page("about") and len(response.body) < 100
    assert server.get("/about", *GOES, has(page("about")), "If-None-Match: " + response["ETag"]).status == 304


def test_a_page_that_has_changed_is_sent_as_the_difference(build, root):
    root.write("index.html", page("old"))
    root.write("a/page.html", page("old page"))
    with Server(build, root, "-j", "1") as server:
        for path, name in (("/", "index.html"), ("/a/page", "a/page.html")):
            old = (root.path / name).read_bytes()
            tag = server.get(path, *GOES)["ETag"]
            difference(server, path, old)  # it is kept
            root.write(name, page("new"))
            eventually(lambda: b"new" in server.get(path).body)
            response = difference(server, path, old, "If-None-Match: " + tag)
            assert response.status == 200 and apply(response.body, old) == page("new") and len(response.body) < 150


@pytest.mark.tcp
def test_pages_of_older_releases_are_dictionaries(build, root):
    releases = Root({"1/index.html": page("first"), "2/index.html": page("second"), "2/a/index.html": page("a")})
    root.write("index.html", page("third"))
    root.write("a/index.html", page("b"))
    with Server(build, root, "-j", "2", "--dictionaries", releases.path) as server:
        for path, old, new in (("/", "first", "third"), ("/", "second", "third"), ("/a/", "a", "b"), ("/a/", "second", "b")):
            assert apply(difference(server, path, page(old)).body, page(old)) == page(new)
    releases.remove()


def test_without_a_default_cache_control_nothing_is_offered(build, site):
    with Server(build, site, "-j", "1", "--no-cache-control") as server:
        assert server.get("/", *GOES)["Use-As-Dictionary"] is None


# --- a browser ---

WORKER = b"""addEventListener('install', () => skipWaiting());
addEventListener('activate', e => e.waitUntil(clients.claim()));
addEventListener('fetch', e => { if (e.request.mode == 'navigate') e.respondWith(fetch(e.request)) });"""


class Visits:
    def __init__(self, server, root, browser):
        self.server, self.root, self.browser = server, root, browser

    def deploy(self, text):
        self.root.write("index.html", page(text, more='<a id="here" href="/">x</a>'))
        eventually(lambda: text.encode() in self.server.get("/").body)

    def shown(self):
        return self.browser.run("document.getElementById('text').textContent")

    def size(self):
        return self.browser.run("performance.getEntriesByType('navigation')[0].encodedBodySize")

    def kept(self):
        content = (self.root.path / "index.html").read_bytes()
        difference(self.server, "/", content)


@pytest.fixture
def visits(build, root):
    root.write("worker.js", WORKER)
    with Server(build, root, "-j", "1") as server, Browser() as browser:
        yield Visits(server, root, browser)


@pytest.mark.others
@pytest.mark.clear
@pytest.mark.tcp
def test_a_browser_shows_each_new_page_at_once(visits):
    url, browser = f"http://localhost:{visits.server.port}/", visits.browser
    visits.deploy("first")
    browser.go(url)
    assert visits.shown() == "first"
    whole = visits.size()
    for text, go in (("second", lambda: browser.go(url)), ("third", lambda: browser.follow("#here")), ("fourth", browser.reload)):
        visits.kept()
        visits.deploy(text)
        go()
        assert visits.shown() == text
        assert 0 < visits.size() < whole / 20, (visits.size(), whole)
    visits.deploy("fifth")
    assert "fifth" in browser.run("fetch('/').then(r => r.text())")
    frame = "new Promise(done => { const f = document.createElement('iframe'); f.src = '/'; f.onload = () => done(f.contentDocument.body.textContent); document.body.append(f) })"
    visits.deploy("sixth")
    assert "sixth" in browser.run(frame)


@pytest.mark.others
@pytest.mark.clear
@pytest.mark.tcp
def test_a_service_worker_gets_each_new_page_at_once(visits):
    url, browser = f"http://localhost:{visits.server.port}/", visits.browser
    visits.deploy("first")
    browser.go(url)
    browser.run("navigator.serviceWorker.register('/worker.js').then(() => navigator.serviceWorker.ready)")
    browser.wait("!!navigator.serviceWorker.controller")
    for text in ("second", "third", "fourth"):
        visits.deploy(text)
        browser.go(url)
        assert visits.shown() == text
