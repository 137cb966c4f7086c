"""Sites that Next.js and SvelteKit have built (tests/tools), as a browser sees them. A page has a release in five places, of
which its builder names three by their content."""

import json
import re
import shutil

import pytest

from browser import Browser
from gatling import TIMEOUT, Root, Server, eventually

PAGES = ("/", "/about", "/blog", "/blog/first", "/docs/guide/start")
# Of the page itself, a style and a script that are bundled, and those that are not.
RELEASES = """(() => {
    const root = document.documentElement, style = name => getComputedStyle(root).getPropertyValue(name).replaceAll('"', '').trim();
    return [root.dataset.page, style('--bundled'), root.dataset.bundle, style('--plain'), root.dataset.plain].map(r => r ?? '').join(' ');
})()"""
STARTED = "document.documentElement.dataset.bundle !== undefined"

pytestmark = [pytest.mark.decided, pytest.mark.tcp]


@pytest.fixture(scope="module", params=["next", "sveltekit"])
def site(request, sites):
    root = Root()
    shutil.copytree(sites / request.param / "out", root.path, dirs_exist_ok=True)
    yield root
    root.remove()


@pytest.fixture(name="server", scope="module")
def server_fixture(build, site):
    with Server(build, site, "-j", "1") as server:
        yield server


def is_at(page):
    return f"location.pathname === {json.dumps(page)} && document.querySelector('h1').textContent === {json.dumps(page)}"


def test_each_page_is_found_by_its_links_and_when_it_is_reloaded(server):
    with Browser() as browser:
        browser.go(server.url("/"))
        for page in [*PAGES[1:], PAGES[0]]:
            browser.wait(STARTED)
            browser.run(f"document.querySelector('nav a[href={json.dumps(page)}]').click()")
            browser.wait(is_at(page))
            browser.reload()
            browser.wait(f"{is_at(page)} && {STARTED}")
            assert browser.run(RELEASES) == "0 0 0 0 0"
        assert not browser.messages


def test_a_page_is_found_with_a_slash_too_many(server):
    with Browser() as browser:
        for page in PAGES[1:]:
            browser.go(server.url(page + "/"))
            browser.wait(f"{is_at(page)} && {STARTED}")
            assert browser.run(RELEASES) == "0 0 0 0 0"
        assert not browser.messages


def test_what_is_edited_is_seen_when_the_page_is_reloaded(server, site):
    with Browser() as browser:
        browser.go(server.url("/about"))
        browser.wait(STARTED)

        def seen():
            browser.reload()
            browser.wait(STARTED)
            return browser.run(RELEASES)

        for name, expected in (("about.html", "1 0 0 0 0"), ("plain.css", "0 0 0 1 0"), ("plain.js", "0 0 0 0 1")):
            text = site.path.joinpath(name).read_text()
            site.write(name, re.sub('(: |= |data-page=)"0"', r'\1"1"', text).encode())
            eventually(lambda: seen() == expected, TIMEOUT)  # pylint: disable=cell-var-from-loop
            site.write(name, text.encode())
