"""The links in sites that builders wrote (tests/builds), against what the hosts answer for which they wrote them."""

import gzip
import posixpath
import urllib.parse
from pathlib import Path

import pytest

from gatling import Root, Server

pytestmark = pytest.mark.decided

DIRECTORY = Path(__file__).resolve().parent.parent / "builds"
BUILDS = sorted(path.name.removesuffix(".gz") for path in DIRECTORY.glob("*.gz"))


def read(name):
    """Returns the names of the files of a build, and for each link the answers of the hosts: the name of a file, ">"
    and a location, "listing", or a status."""
    names, links = gzip.decompress((DIRECTORY / f"{name}.gz").read_bytes()).decode().split("\n\n")
    table = [line.split("\t") for line in links.splitlines()]
    return names.split("\n"), {link: set(answers) or {urllib.parse.unquote(link[1:])} for link, *answers in table}


def said(response):
    if response.status in (301, 308):
        return ">" + response["Location"]
    if response.status != 200:
        return str(response.status)
    return "listing" if b"<table" in response.body else response.body.decode()


def is_page(answer):
    return answer not in ("listing", "403", "404") and not answer.startswith(">")


def is_wrong(link, answers, answer, after):
    """Returns what is wrong with an answer, or "". after: what a redirect leads to, or the answer itself."""
    if is_page(answer) and posixpath.dirname(link) != posixpath.dirname("/" + urllib.parse.quote(answer, safe="/!$&'()*+,;=:@~")):
        return "relative links on the page lead elsewhere"
    if all(is_page(a) or a.startswith(">") for a in answers) and not is_page(after):
        return "everybody else has a page"
    if answer in answers or (after == "listing" and "listing" in answers):
        return ""
    return "nobody else says so"


@pytest.mark.parametrize("name", BUILDS)
def test_each_link_is_answered_as_one_of_the_hosts_answers(build, name):
    names, links = read(name)
    root = Root({file: file.encode() for file in names})
    wrong = []
    with Server(build, root, "-j", "1", "-V", "-d") as server, server.connect() as connection:
        for link, answers in links.items():
            answer = after = said(connection.get(link))
            if answer.startswith(">"):
                after = said(connection.get(answer[1:]))
            if is_wrong(link, answers, answer, after):
                wrong.append((link, is_wrong(link, answers, answer, after), answer, sorted(answers)))
    root.remove()
    assert len(links) >= 10 and not wrong


def test_there_are_pages_beside_directories_and_dots_in_names():
    beside = {name for name in BUILDS if any(file.endswith(".html") and any(other.startswith(file[:-5] + "/") for other in names)
                                             for names in [read(name)[0]] for file in names)}  # fmt: skip
    assert {"next", "nuxt-files", "sveltekit", "vitepress"} <= beside
    assert all(any("8.0.0" in link for link in read(name)[1]) for name in BUILDS if not name.startswith("storybook"))
