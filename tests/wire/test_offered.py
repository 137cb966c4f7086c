"""Files without a hash in their names as dictionaries for their later versions, and pages for pages (RFC 9842): browsers
made from Chromium keep them, and are sent the difference. No browser may ever show an old file for that, and others must
not notice anything."""

import json
import random

import pytest
from browser import Browser
from gatling import Root, Server, eventually
from test_dictionaries import ACCEPT, DIFFERENCES, apply, has

pytestmark = pytest.mark.decided

WORDS = random.Random(2).choices([f"word{i}" for i in range(3000)], k=3000)
OFFERED = "private, max-age=2592000"
BRANDS = 'Sec-CH-UA: "Not:A-Brand";v="8", "Chromium";v="156"'
GOES = (ACCEPT, BRANDS, "Sec-Fetch-Dest: document", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Site: cross-site")


def page(text, more=""):
    return f'<!doctype html><meta charset="utf-8"><title>x</title><p id="text">{text}</p>{more}<p>{" ".join(WORDS)}'.encode()


def difference(server, path, dictionary, *fields):
    """Returns the response with the difference, when the dictionary has been kept."""
    return eventually(lambda: (r := server.get(path, *GOES, has(dictionary), *fields))["Content-Encoding"] in DIFFERENCES and r)


@pytest.fixture(scope="module")
def site():
    root = Root({"index.html": page("front"), "about.html": page("about"), "docs/index.html": page("docs"), "docs/deep/index.html": page("deep"), "about/more.html": page("more")})
    for name in ("secret/index.html", "cookies/index.html", "lasting/index.html", "404.html", "one*two.html", "picture.svg", "app-BxK2a9fQ.js"):
        root.write(name, page(name))
    root.write("small.html", b"<p>x")
    root.write("data/words.json", json.dumps(WORDS).encode())
    root.write("style.css", page("style"))
    root.write("data/report-JEF-8Vok.js", page("script"))
    root.write("data/next.$d$slug.txt", page("data"))
    root.write("a b/page.html", page("blank"))
    root.write("secret/.htaccess", b"Friends\nann:$1$abcdefgh$vdBSIIpG7R8DPkuUogsqU0\n")
    root.write("_headers", b"/cookies/*\n  Set-Cookie: a=b\n/lasting/*\n  Cache-Control: max-age=60\n")
    root.write("_redirects", b"/app/* /index.html 200\n/sent/elsewhere /about.html 200!\n")
    yield root
    root.remove()


@pytest.fixture(scope="module")
def server(build, site):
    with Server(build, site, "-j", "1") as running:
        yield running


@pytest.mark.parametrize(
    "path, match",
    [("/", "/*"), ("/index.html", "/*"), ("/docs/", "/docs/*"), ("/docs/deep/", "/docs/deep/*"), ("/about", "/about*"), ("/about.html", "/about*")],
)
def test_a_page_is_offered(server, path, match):
    for _ in range(2):  # the second answer is known
        response = server.get(path, *GOES)
        assert response.status == 200
        assert response["Use-As-Dictionary"] == f'match="{match}", match-dest=("document")'
        assert response["Vary"] == "*" and response["Cache-Control"] == OFFERED


@pytest.mark.parametrize("path, match", [("/style.css", "/style.css*"), ("/data/words.json", "/data/words.json*"), ("/data/report-JEF-8Vok.js", "/data/report-*.js"), ("/data/next.$d$slug.txt", "/data/next.$d$slug.txt*")])
def test_other_text_is_offered(server, path, match):
    for _ in range(2):
        response = server.get(path, ACCEPT, BRANDS, "Sec-Fetch-Dest: empty", "Sec-Fetch-Site: same-origin")
        assert response["Use-As-Dictionary"] == f'match="{match}"'
        assert response["Vary"] == "*" and response["Cache-Control"] == OFFERED


@pytest.mark.parametrize("brands", ["", 'Sec-CH-UA: "Chromiumlike";v="1"', 'Sec-CH-UA: "Not Chromium";v="1", "x"'])
@pytest.mark.parametrize("path", ["/about", "/style.css"])
def test_other_clients_see_nothing_of_that(server, path, brands):
    dictionary = server.get(path).body
    difference(server, path, dictionary)
    for _ in range(2):
        response = server.get(path, ACCEPT, *filter(None, [brands]), "Sec-Fetch-Dest: document", has(dictionary))
        assert response.status == 200 and response["Cache-Control"] == "no-cache" and response["Vary"] == "Accept-Encoding"
        assert response["Use-As-Dictionary"] is None and response["Content-Encoding"] not in DIFFERENCES


@pytest.mark.parametrize("path", ["/secret/", "/cookies/", "/lasting/", "/small.html", "/picture.svg", "/app/x", "/sent/elsewhere", "/none", "/a%20b/page", "/one*two", "/app-BxK2a9fQ.js"])
def test_nothing_else_is_offered(server, path):
    for _ in range(2):
        response = server.get(path, *GOES, "Authorization: Basic YW5uOnJpZ2h0", has(page("front")))
        assert response.status == (404 if path == "/none" else 200)
        assert response["Cache-Control"] != OFFERED and response["Vary"] != "*" and response["Content-Encoding"] not in DIFFERENCES


@pytest.mark.parametrize("where", ["cross-site", "same-site"])
def test_another_site_learns_nothing_of_sizes(server, where):
    for path, text in (("/about", "about"), ("/style.css", "style")):
        difference(server, path, page(text))
        for dest in ("empty", "script", "iframe", "object"):
            response = server.get(path, ACCEPT, BRANDS, "Sec-Fetch-Dest: " + dest, "Sec-Fetch-Site: " + where, has(page(text)))
            assert response.status == 200 and response["Content-Encoding"] not in DIFFERENCES


def test_a_page_below_another_is_sent_as_the_difference(server, build):
    front = page("front")
    server.get("/", *GOES)
    for path, text in (("/docs/deep/", "deep"), ("/about", "about"), ("/about/more", "more"), ("/", "front")):
        response = difference(server, path, front)
        assert apply(response, front, build) == page(text) and len(response.body) < 200
        assert response["Use-As-Dictionary"] and response["Cache-Control"] == OFFERED
        assert response["Vary"] == "*"


def test_a_page_elsewhere_is_not(server):
    for path, text in (("/docs/", "docs"), ("/about", "about"), ("/docs/deep/", "deep")):
        difference(server, path, page(text))  # each is kept
    for path, text in (("/", "docs"), ("/about", "docs"), ("/docs/", "about"), ("/docs/", "deep")):
        assert server.get(path, *GOES, has(page(text)))["Content-Encoding"] not in DIFFERENCES


def test_a_page_that_has_not_changed_is_not_sent(server):
    tag = server.get("/about", *GOES)["ETag"]
    for dictionary in ("about", "front", "none"):
        response = server.get("/about", *GOES, has(page(dictionary)), "If-None-Match: " + tag)
        assert response.status == 304 and response["ETag"] == tag and response["Cache-Control"] == OFFERED
    # what a browser has was a difference: its validator is that of the difference to another page than it has now
    old = difference(server, "/about", page("front"))["ETag"]
    response = server.get("/about", *GOES, has(page("about")), "If-None-Match: " + old)
    assert response.status == 304 and response["ETag"] == old
    # a cache that others share may have it for another dictionary
    assert server.get("/about", ACCEPT, has(page("about")), "If-None-Match: " + old).status == 200


def test_a_page_that_has_changed_is_sent_as_the_difference(build, root):
    root.write("index.html", page("old"))
    root.write("a/page.html", page("old page"))
    root.write("style.css", page("old style"))
    with Server(build, root, "-j", "1") as server:
        for path, name in (("/", "index.html"), ("/a/page", "a/page.html"), ("/style.css", "style.css")):
            old = (root.path / name).read_bytes()
            tag = server.get(path, *GOES)["ETag"]
            difference(server, path, old)  # it is kept
            root.write(name, page("new"))
            eventually(lambda: b"new" in server.get(path).body)
            response = difference(server, path, old, "If-None-Match: " + tag)
            assert response.status == 200 and apply(response, old, build) == page("new") and len(response.body) < 150


def test_each_site_has_its_own(build):
    root = Root({f"{name}/{path}": page(name + path) for name in ("a.example", "b.example") for path in ("index.html", "docs/index.html")})
    with Server(build, root, "-j", "1", "--vhosts") as server:
        front = page("a.exampleindex.html")
        response = server.get("/docs/", *GOES, host="a.example")
        assert response["Use-As-Dictionary"] == 'match="/docs/*", match-dest=("document")'
        assert server.get("/", *GOES, host="a.example")["Use-As-Dictionary"] == 'match="/*", match-dest=("document")'
        for path in ("/", "/docs/"):
            eventually(lambda: server.get(path, *GOES, has(front), host="a.example")["Content-Encoding"] in DIFFERENCES)
        assert server.get("/docs/", *GOES, has(front), host="b.example")["Content-Encoding"] not in DIFFERENCES
    root.remove()


@pytest.mark.tcp
def test_pages_of_older_releases_are_dictionaries(build, root):
    releases = Root({"1/index.html": page("first"), "2/index.html": page("second"), "2/a/index.html": page("a"), "2/report-JEF-8Vok.js": page("old")})
    root.write("report-Dx-DPNNS.js", page("new"))
    root.write("index.html", page("third"))
    root.write("a/index.html", page("b"))
    with Server(build, root, "-j", "2", "--dictionaries", releases.path) as server:
        for path, old, new in (("/", "first", "third"), ("/", "second", "third"), ("/a/", "a", "b"), ("/a/", "second", "b"), ("/report-Dx-DPNNS.js", "old", "new")):
            assert apply(difference(server, path, page(old)), page(old), build) == page(new)
    releases.remove()


@pytest.mark.tcp
def test_what_an_older_release_kept_private_is_no_dictionary(build, root):
    """Else who guesses it is told so by the coding, as are those who know its digest."""
    releases = Root({"1/index.html": page("secret"), "1/.htaccess": b"Friends\nann:$1$abcdefgh$vdBSIIpG7R8DPkuUogsqU0\n", "2/index.html": page("second")})
    root.write("index.html", page("third"))
    with Server(build, root, "-j", "1", "--dictionaries", releases.path) as server:
        difference(server, "/", page("second"))
        for _ in range(20):  # the releases are read in any order
            assert server.get("/", *GOES, has(page("secret")))["Content-Encoding"] not in DIFFERENCES
    releases.remove()


def test_a_page_that_was_sent_as_a_difference_is_not_sent_again_after_a_restart(build, root):
    """Nor after a deploy that switches a symlink: then the dictionaries are gone, too."""
    root.write("index.html", page("front"))
    with Server(build, root, "-j", "1") as server:
        tag = difference(server, "/", page("front"))["ETag"]
    with Server(build, root, "-j", "1") as server:
        assert server.get("/", *GOES, has(page("front")), "If-None-Match: " + tag).status == 304


def test_without_a_default_cache_control_nothing_is_offered(build, site):
    with Server(build, site, "-j", "1", "--no-cache-control") as server:
        assert server.get("/", *GOES)["Use-As-Dictionary"] is None


# --- a browser ---

WORKER = b"""addEventListener('install', () => skipWaiting());
addEventListener('activate', e => e.waitUntil(clients.claim()));
addEventListener('fetch', e => { if (e.request.mode == 'navigate') e.respondWith(fetch(e.request)) });"""


FILES = {
    "index.html": lambda n: page(n, more='<link rel="preload" href="/script.js" as="script"><link rel="modulepreload" href="/module.js"><link rel="stylesheet" href="/style.css">'
                                         '<link rel="stylesheet" href="/style.css"><script src="/script.js"></script><script type="module">import { module } from "/module.js"; window.module = module</script>'
                                         '<a id="here" href="/">x</a>'),
    "script.js": lambda n: f"window.script = {n} /* {' '.join(WORDS)} */".encode(),
    "module.js": lambda n: f"export const module = {n} /* {' '.join(WORDS)} */".encode(),
    "style.css": lambda n: f"body {{ --n: {n} }} /* {' '.join(WORDS)} */".encode(),
    "words.json": lambda n: json.dumps({"n": n, "words": WORDS}).encode(),
    "worker.js": lambda n: f"onmessage = async () => postMessage([{n}, (await (await fetch('/words.json')).json()).n]) /* {' '.join(WORDS)} */".encode(),
}  # fmt: skip
SHOWN = """(async () => {
  while (window.module === undefined) await new Promise(done => setTimeout(done, 5));
  const fetched = (await (await fetch('/words.json')).json()).n;
  const worker = await new Promise(done => { const w = new Worker('/worker.js'); w.onmessage = e => done(e.data); w.postMessage(1) });
  return [+document.getElementById('text').textContent, window.script, window.module, +getComputedStyle(document.body).getPropertyValue('--n'), fetched, ...worker];
})()"""


class Visits:
    """Deploys of a site, and a browser that visits it."""

    def __init__(self, server, root, browser):
        self.server, self.root, self.browser = server, root, browser
        self.url = f"http://localhost:{server.port}/"

    def deploy(self, n):
        for name, content in FILES.items():
            self.root.write(name, content(n))
        for name, content in FILES.items():
            eventually(lambda: self.server.get("/" + name).body == content(n))

    def kept(self):
        """Waits until the server has the files as dictionaries."""
        for name in FILES:
            difference(self.server, "/" + name, (self.root.path / name).read_bytes())

    def sizes(self):
        return self.browser.run("[...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')].map(e => [new URL(e.name).pathname, e.encodedBodySize, e.transferSize])")


@pytest.fixture
def visits(build, root):
    root.write("service.js", WORKER)
    with Server(build, root, "-j", "1") as server, Browser() as browser:
        yield Visits(server, root, browser)


@pytest.mark.others
@pytest.mark.clear
@pytest.mark.tcp
def test_a_browser_shows_each_new_file_at_once(visits):
    browser = visits.browser
    visits.deploy(1)
    browser.go(visits.url)
    assert browser.run(SHOWN) == [1] * 7
    whole = {name: size for name, size, _ in visits.sizes()}
    for n, go in ((2, lambda: browser.go(visits.url)), (3, lambda: browser.follow("#here")), (4, browser.reload)):
        visits.kept()
        visits.deploy(n)
        go()
        assert browser.run(SHOWN) == [n] * 7
        sent = visits.sizes()
        assert len(sent) == len(FILES), sent  # nothing twice
        for name, size, _ in sent:
            assert size < whole[name] / 20 or name == "/worker.js", (name, size, whole)
    frame = "new Promise(done => { const f = document.createElement('iframe'); f.src = '/'; f.onload = () => done(f.contentDocument.getElementById('text').textContent); document.body.append(f) })"
    visits.deploy(5)
    assert browser.run("fetch('/').then(r => r.text())").find('"text">5<') > 0
    visits.deploy(6)
    assert browser.run(frame) == "6"


@pytest.mark.others
@pytest.mark.clear
@pytest.mark.tcp
def test_a_service_worker_gets_each_new_page_at_once(visits):
    browser = visits.browser
    visits.deploy(1)
    browser.go(visits.url)
    browser.run("navigator.serviceWorker.register('/service.js').then(() => navigator.serviceWorker.ready)")
    browser.wait("!!navigator.serviceWorker.controller")
    for n in (2, 3, 4):
        visits.deploy(n)
        browser.go(visits.url)
        assert browser.run(SHOWN) == [n] * 7


@pytest.mark.others
@pytest.mark.clear
@pytest.mark.tcp
def test_a_browser_is_sent_nothing_that_has_not_changed(visits):
    browser = visits.browser
    visits.deploy(1)
    browser.go(visits.url)
    browser.run(SHOWN)
    visits.kept()
    for _ in range(2):
        browser.go(visits.url)
        assert browser.run(SHOWN) == [1] * 7
    for name, _, transferred in visits.sizes():
        assert 0 < transferred < 1000, visits.sizes()
