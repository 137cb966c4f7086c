"""Pages that are asked for without their extension, with and without a slash at the end: the hosts that builders
write for agree on what /about is, and relative links on a page depend on it."""

import base64
import gzip

import pytest

from gatling import Root, Server, eventually
from http2 import Http2

pytestmark = pytest.mark.decided

FILES = (
    "index.html", "file.html", "folder/index.html", "both.html", "both/index.html", "parts.html", "parts/chunk.txt", "parts/deep.html",
    "parts/deep/chunk.txt", "bare/x.txt", "plain", "plain.html", "8.0.0.html", "8.0.0/chunk.txt", "v1.2/index.html", "a.b/x.txt", "photo.jpg",
    "lost.html/x.txt", "index/x.txt", ".well-known.html", ".well-known/x.txt",
)  # fmt: skip
ANSWERS = {
    "/": "index.html",
    "/index": "index.html",
    "/index/": "301 /index",
    "/file": "file.html",
    "/file/": "301 /file",
    "/file.html": "file.html",
    "/file.html/": "404",
    "/folder": "301 /folder/",
    "/folder/": "folder/index.html",
    "/both": "both.html",
    "/both/": "both/index.html",
    "/both/index.html": "both/index.html",
    "/parts": "parts.html",
    "/parts/": "301 /parts",
    "/parts/?a=b&c": "301 /parts?a=b&c",
    "/parts?a=b": "parts.html",
    "/parts/chunk.txt": "parts/chunk.txt",
    "/parts/deep": "parts/deep.html",
    "/parts/deep/": "301 /parts/deep",
    "/parts/index.html": "404",
    "/parts/deep/index.html": "404",
    "//parts//": "301 /parts",
    "/parts/.": "301 /parts",
    "/parts/deep/..": "301 /parts",
    "/bare": "301 /bare/",
    "/bare/": "listing",
    "/plain": "plain",
    "/8.0.0": "8.0.0.html",
    "/8.0.0/": "301 /8.0.0",
    "/v1.2": "301 /v1.2/",
    "/v1.2/": "v1.2/index.html",
    "/a.b": "301 /a.b/",
    "/photo": "404",
    "/photo.jpg": "photo.jpg",
    "/photo.jpg/": "404",
    "/lost": "404",
    "/lost/": "404",
    "/.well-known": "301 /.well-known/",
    "/.well-known/": "listing",
    "/.htaccess": "404",
    "/nothing": "404",
    "/nothing/": "404",
    "/nothing.txt": "404",
}


def said(response):
    """Returns what an answer is, in short."""
    if response.status in (301, 302):
        return f"{response.status} {response['Location'] or response['location']}"
    if response.status != 200:
        return str(response.status)
    return "listing" if b"<table" in response.body else response.body.decode()


def basic(user, password):
    return "Authorization: Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


@pytest.fixture(scope="module")
def shared(build):
    root = Root({name: name.encode() for name in FILES})
    with Server(build, root, "-j", "1", "-V", "-d") as server:
        yield server
    root.remove()


@pytest.mark.parametrize("path", ANSWERS)
def test_a_path_leads_to_the_file_or_the_page_or_the_directory(shared, path):
    assert said(shared.get(path)) == ANSWERS[path]


@pytest.mark.tcp
def test_it_is_the_same_again_and_again_and_on_http2(shared):
    with shared.connect() as connection:
        for _ in range(3):
            assert {path: said(connection.get(path)) for path in ANSWERS} == ANSWERS
    with Http2(shared) as client:
        for path in ("/parts", "/parts/?a", "/8.0.0/", "/both"):
            assert said(client.get(path)) == said(shared.get(path))


def test_without_listings_too(build, root):
    for name in FILES:
        root.write(name, name.encode())
    with Server(build, root, "-j", "1", "-V", "-D") as server:
        assert {path: said(server.get(path)) for path in ANSWERS} == {path: answer.replace("listing", "403") for path, answer in ANSWERS.items()}


def test_browsers_do_not_keep_the_redirects_when_a_page_moves(build, root):
    """One that kept both would be sent back and forth for ever."""
    root.write("about.html", b"page")
    with Server(build, root, "-j", "1") as server:
        assert said(server.get("/about/")) == "301 /about" and server.get("/about/")["Cache-Control"] == "no-cache"
        (root.path / "about.html").unlink()
        root.write("about/index.html", b"index")
        eventually(lambda: said(server.get("/about")) == "301 /about/")  # a second passes until the old file is forgotten
        assert server.get("/about")["Cache-Control"] == "no-cache" and said(server.get("/about/")) == "index"
        root.write("about.html", b"page again")
        assert said(server.get("/about")) == "page again" and said(server.get("/about/")) == "index"
        (root.path / "about/index.html").unlink()
        eventually(lambda: said(server.get("/about/")) == "301 /about")
    with Server(build, root, "-j", "1", "--no-cache-control") as server:
        assert server.get("/about/")["Cache-Control"] is None


def test_pages_in_other_codings(build, root):
    root.write("only.html.gz", gzip.compress(b"only"))
    root.write("only/x.txt", b"x")
    with Server(build, root, "-j", "1") as server:
        assert said(server.get("/only")) == "only" and said(server.get("/only/")) == "301 /only"
        packed = server.get("/only", "Accept-Encoding: gzip")
        assert packed["Content-Encoding"] == "gzip" and gzip.decompress(packed.body) == b"only"


def test_targets_of_rules(build, root):
    for name in ("8.0.0.html", "parts.html", "parts/x.txt", "both.html", "both/index.html", "folder/index.html", "index.html"):
        root.write(name, name.encode())
    rules = ["/latest /8.0.0 200", "/dots/ /8.0.0/ 200", "/p /parts 200", "/p/slash /parts/ 200", "/b /both 200", "/b/slash /both/ 200", "/f /folder 200",
             "/d/* /:splat 200", "/parts/old /parts 301", "/gone /parts/ 410"]  # fmt: skip
    root.write("_redirects", "\n".join(rules).encode())
    answers = {"/latest": "8.0.0.html", "/dots": "8.0.0.html", "/p": "parts.html", "/p/slash": "parts.html", "/b": "both.html",
               "/b/slash": "both/index.html", "/f": "folder/index.html", "/d/8.0.0": "8.0.0.html", "/d/8.0.0/": "8.0.0.html", "/d/": "index.html",
               "/d/nothing/": "404", "/parts/old": "301 /parts", "/parts/": "301 /parts"}  # fmt: skip
    with Server(build, root, "-j", "1") as server:
        assert {path: said(server.get(path)) for path in answers} == answers
        gone = server.get("/gone")
        assert gone.status == 410 and gone.body == b"parts.html"


@pytest.mark.parametrize("files", [("8.0.0.html",), ("8.0.0.html", "8.0.0/x.txt"), ("8.0.0/index.html",)], ids=" ".join)
def test_redirects_form_no_circle_if_there_is_a_page(build, root, files):
    for name in files:
        root.write(name, b"page")
    root.write("_redirects", b"/latest /8.0.0 301\n/8.0.0/ /latest/ 301\n")
    with Server(build, root, "-j", "1") as server:
        assert said(server.get("/latest")) == "301 /8.0.0" and said(server.get("/8.0.0")) in ("page", "301 /8.0.0/")
        assert not [line for line in server.errors if "circle" in line]


def test_before_the_rule_of_a_single_page_application_and_404_html(build, root):
    for name in ("index.html", "about.html", "team.html", "team/x.txt", "bare/x.txt", "404.html"):
        root.write(name, name.encode())
    answers = {"/about": "about.html", "/about/": "301 /about", "/team": "team.html", "/team/": "301 /team", "/team/x.txt": "team/x.txt"}
    with Server(build, root, "-j", "1", "-D") as server:
        assert {path: said(server.get(path)) for path in answers} == answers
        missing = server.get("/nowhere/")
        assert missing.status == 404 and missing.body == b"404.html"
        assert server.get("/404/")["Location"] == "/404" and server.get("/404").status == 200
    root.write("_redirects", b"/* /index.html 200\n")
    answers |= {"/team/other": "index.html", "/nowhere/": "index.html", "/nowhere": "index.html", "/8.0.0": "index.html", "/bare/": "index.html"}
    with Server(build, root, "-j", "1", "-D") as server:
        assert {path: said(server.get(path)) for path in answers} == answers
    with Server(build, root, "-j", "1", "-r", "https://example.org") as server:
        assert said(server.get("/team/")) == "301 /team"


REALM = b"R\nann:$1$ab$dslkcXxVH.x8LwW1W/oAB/\n"  # "secret"
ANN = basic("ann", "secret")


def test_a_page_beside_a_protected_directory_is_protected_by_its_own_path(build, root):
    for name in ("open.html", "open/x.txt", "closed/shut.html", "closed/shut/x.txt", "closed/index.html", "bad.html", "bad/x.txt"):
        root.write(name, name.encode())
    for directory, text in (("open", REALM), ("closed", REALM), ("bad", b"")):
        root.write(f"{directory}/.htaccess", text)
    with Server(build, root, "-j", "1", "-V", "-d") as server:
        assert said(server.get("/open")) == "open.html"
        for path in ("/open/", "/open/index.html", "/open/x.txt", "/open/nothing", "/closed/shut", "/closed/shut/", "/closed/nothing/"):
            assert server.get(path).status == 401, path
        assert said(server.get("/closed/shut", ANN)) == "closed/shut.html"
        assert said(server.get("/closed/shut/", ANN)) == "301 /closed/shut"
        assert said(server.get("/open/", ANN)) == "301 /open" and said(server.get("/open/index.html", ANN)) == "404"
        assert said(server.get("/bad")) == "bad.html" and said(server.get("/bad/")) == "403" and said(server.get("/bad/", ANN)) == "403"
    root.write(".htaccess", REALM.replace(b"R\n", b"Above\n").replace(b"ann:", b"bob:"))
    with Server(build, root, "-j", "1", "-V", "-d") as server:
        assert server.get("/open").status == 401
        # whoever may enter the directory, but not see the page, is not told that there is one
        assert server.get("/open/", ANN).status == server.get("/open", ANN).status == 401
        assert said(server.get("/closed/shut/", ANN)) == "301 /closed/shut"


def test_a_page_that_is_not_sent_takes_no_place(build, root):
    for name in ("secret.html", "secret/x.txt", "hidden.html", "run.html", "run/x.txt"):
        root.write(name, name.encode())
    for name in ("secret.html", "hidden.html"):
        (root.path / name).chmod(0o640)
    root.write("_redirects", b"/*.html fcgi://127.0.0.1:9 200\n")
    with Server(build, root, "-j", "1", "-V", "-d") as server:  # nothing may be passed on here, so what the rule would run is hidden
        assert said(server.get("/secret")) == "301 /secret/" and said(server.get("/secret/")) == "listing"
        assert said(server.get("/hidden")) == said(server.get("/hidden/")) == "404"
        assert said(server.get("/run")) == "301 /run/" and said(server.get("/run/")) == "listing"


def test_no_page_of_another_site(build, root):
    for name in ("a.example.html", "a.example/index.html", "b.example/x.txt", "b.example.html", "b.example/c.html", "b.example/c/x.txt"):
        root.write(name, name.encode())
    with Server(build, root, "-j", "1", "-d") as server:
        assert said(server.get("/", host="a.example")) == "a.example/index.html"
        assert said(server.get("/", host="b.example")) == "listing"
        assert said(server.get("/c", host="b.example")) == "b.example/c.html"
        assert said(server.get("/c/", host="b.example")) == "301 /c"
        assert said(server.get("/b.example")) == "b.example.html" and said(server.get("/b.example/c/")) == "301 /b.example/c"


@pytest.mark.parametrize("options", [(), ("--symlinks", "inside")], ids=["anywhere", "inside"])
def test_links(build, root, options):
    outside = Root({"page.html": b"outside", "d/x.txt": b"outside"})
    for name in ("real.html", "real/x.txt", "url/x.txt"):
        root.write(name, name.encode())
    for name, target in (("alias.html", "real.html"), ("alias", "real"), ("out.html", outside.path / "page.html"), ("dangling.html", "nowhere"),
                         ("lone.html", "real.html"), ("url/index.html", "https://example.org/"), ("url.html", "real.html"),
                         ("far", "https://example.org/far"), ("far.html", "real.html")):  # fmt: skip
        (root.path / name).symlink_to(target)
    answers = {"/alias": "real.html", "/alias/": "301 /alias", "/lone": "real.html", "/lone/": "301 /lone", "/dangling": "404", "/dangling/": "404",
               "/url": "real.html", "/url/": "301 https://example.org/", "/far": "real.html",
               "/out": "404" if options else "outside", "/out/": "404" if options else "301 /out"}  # fmt: skip
    with Server(build, root, "-j", "1", *options) as server:
        assert {path: said(server.get(path)) for path in answers} == answers
    outside.remove()


def test_long_names(build, root):
    fits, longer, longest = "a" * 250, "b" * 251, "c" * 255
    for name in (f"{fits}.html", f"{longer}/x.txt", f"{longest}/x.txt", longest[:-1]):
        root.write(name, b"x")
    answers = {f"/{fits}": "x", f"/{fits}/": f"301 /{fits}", f"/{longer}": f"301 /{longer}/", f"/{longer}/": "listing", f"/{longest}": f"301 /{longest}/",
               f"/{longest}/": "listing", "/" + "d" * 256: "404", "/" + "d" * 256 + "/": "404", "/" + "e/" * 2000: "404",
               "/" + "/".join(["f" * 250] * 20) + "/": "404"}  # fmt: skip
    with Server(build, root, "-j", "1", "-V", "-d") as server:
        assert {path: said(server.get(path)) for path in answers} == answers


def test_what_cannot_be_known_is_not_served(build, root):
    for name in ("locked.html", "locked/index.html", "unread.html", "unread/index.html"):
        root.write(name, name.encode())
    (root.path / "locked").chmod(0o700)
    (root.path / "unread/index.html").chmod(0)
    with Server(build, root, "-j", "1", "-V", "-d") as server:
        assert said(server.get("/locked")) == "locked.html" and said(server.get("/locked/")) == "403"
        assert said(server.get("/unread")) == "unread.html" and said(server.get("/unread/")) == "403"
