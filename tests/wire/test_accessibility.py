"""The server's own pages, for people with a screen reader, a keyboard, a phone, or a dark screen: axe-core in a browser."""

import pytest

from authority import free_port
from browser import Browser
from gatling import Root, Server, eventually

pytestmark = [pytest.mark.decided, pytest.mark.clear]

FILES = {"a.txt": b"a", "sub/deep/b.txt": b"b" * 5000, "sub/secret": b"c", "sub/<odd> & name": b"d", "empty/.hidden": b"",
         "shut/index.html": b"x", "_redirects": b"/gone /none 410\n"}  # fmt: skip
VIOLATIONS = "axe.run().then(r => r.violations.map(v => v.id + ': ' + v.nodes.map(n => n.html + ' ' + n.failureSummary).join('; ')))"


@pytest.fixture(scope="module")
def site():
    root = Root(FILES)
    (root.path / "sub/secret").chmod(0o600)
    (root.path / "shut/index.html").chmod(0o600)
    yield root
    root.remove()


@pytest.fixture(scope="module")
def axe(node):
    path = node / "axe-core" / "axe.min.js"
    if not path.exists():
        pytest.skip("axe-core is not installed")
    with Browser() as browser:
        browser.axe = path.read_text()
        yield browser


def violations(browser, url, before=None):
    """Returns what axe finds on a page, light and dark, on a screen and a phone."""
    found = set()
    for scheme in ("light", "dark"):
        browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        for width in (1000, 320):
            browser.resize(width, 700)
            browser.go(url)
            if before:
                before()
            browser.run(browser.axe + ";0")
            found |= {f"{scheme} {width}: {violation}" for violation in browser.run(VIOLATIONS)}
    return found


@pytest.mark.parametrize("path", ["/", "/sub/", "/sub/deep/", "/empty/"])
def test_a_listing_has_no_barrier(build, site, axe, path):
    def sort_and_filter():
        axe.run("document.querySelector('button').click()")
        axe.run("{const i = document.querySelector('input'); i.value = 'b'; i.dispatchEvent(new Event('input'))}")

    with Server(build, site, "-j", "1") as server:
        assert violations(axe, server.url(path)) == set()
        assert violations(axe, server.url(path), sort_and_filter) == set()


@pytest.mark.parametrize("path,status", [("/none", 404), ("/shut/", 403), ("/gone", 410)])
def test_an_error_page_has_no_barrier(build, site, axe, path, status):
    with Server(build, site, "-j", "1") as server:
        assert server.get(path).status == status
        assert violations(axe, server.url(path)) == set()


def test_the_status_page_has_no_barrier(build, site, axe):
    address = f"127.0.0.1:{free_port()}"
    with Server(build, site, "-j", "2", "--status", address) as server:
        server.get("/none")
        rows = "document.querySelectorAll('#workers tr').length"
        assert violations(axe, f"http://{address}/", lambda: eventually(lambda: axe.run(rows) == 3)) == set()


@pytest.mark.parametrize("path", ["/none", "/shut/", "/gone", "/%00", "/" + "x" * 100_000])
def test_an_error_page_says_its_language_and_fits_a_phone_and_a_dark_screen(build, site, path):
    with Server(build, site, "-j", "1") as server:
        page = server.get(path)
        assert page.status >= 400
        text, title = page.body.decode(), f"{page.status} {page.reason}"
        for part in ("<!doctype html>", "<html lang=en>", "<meta name=viewport content=width=device-width>", '<meta name=color-scheme content="light dark">',
                     f"<title>{title}</title>", "<main>", f"<h1>{title}</h1>", "</main>"):  # fmt: skip
            assert text.count(part) == 1, part
