"""Files that exist and are not served: clients get a 403, and the owner is told why."""

import html

import pytest

from gatling import Root, Server, eventually

pytestmark = pytest.mark.decided

NOBODY = ("-u", "nobody")


@pytest.fixture
def site():
    root = Root({"index.html": b"hello", "open/a": b"a", "closed/deep/a": b"a"})
    root.write("a.css", b"x", 0o640)
    root.write("b.css", b"x", 0o600)
    root.write("keys.key", b"x", 0o600)
    (root.path / "closed").chmod(0o750)
    yield root
    root.remove()


def test_why_something_is_forbidden_is_said_once(build, site):
    with Server(build, site, "-j", "2", "-n") as server:
        for _ in range(4):
            for path in ("/a.css", "/closed/deep/a", "/closed/none", "/keys.key"):
                assert server.get(path).status == 403
        assert server.get("/none").status == 404 and server.get("/open/a").status == 200
        eventually(lambda: len(server.errors) == 2)
        assert sorted(server.errors) == ["gatling: a.css: mode 0640, not readable by everyone: chmod o+r would publish it",
                                         "gatling: closed: mode 0750, the server may not enter it: chmod o+x"]  # fmt: skip


def test_of_many_files_it_is_said_for_some(build, site):
    for n in range(80):
        site.write(f"{n}.css", b"x", 0o600)
    with Server(build, site, "-j", "1", "-n") as server, server.connect() as c:
        for n in range(80):
            assert c.get(f"/{n}.css").status == 403
        eventually(lambda: len(server.errors) == 65)
        assert "gatling --check lists all" in server.errors[-1]


def test_an_index_that_cannot_be_served_is_said_at_the_start(build, site):
    (site.path / "index.html").chmod(0o600)
    with Server(build, site, "-j", "1", "-n") as server:
        assert server.errors == ["gatling: index.html: mode 0600, not readable by everyone: chmod o+r would publish it"]


@pytest.mark.clear
def test_a_root_that_its_user_cannot_enter_is_said_at_the_start(build, site):
    site.path.chmod(0o700)
    with Server(build, site, "-j", "1", "-n", *NOBODY, as_root=True) as server:
        assert server.errors[0] == f"gatling: nobody cannot enter {site.path} (mode 0700): chmod o+x"
        assert server.get("/open/a").status == 403


def test_a_listing_says_how_many_it_leaves_out(build, site):
    with Server(build, site, "-j", "1", "-n") as server:
        site.write("open/b", b"x", 0o600)
        assert "1 entry is not shown: not readable by everyone" in html.unescape(server.get("/open/").body.decode())
        (site.path / "index.html").unlink()
        text = eventually(lambda: (r := server.get("/")).status == 200 and r.body.decode())
        assert "3 entries are not shown: not readable by everyone" in text
