"""Directories as pages: what they show, in a browser, as JSON; large ones; those that change."""

import gzip
import json
import os
import re
import subprocess
import threading
import time
import urllib.parse

import pytest

from browser import Browser
from gatling import Root, Server, eventually
from http2 import Http2

pytestmark = pytest.mark.decided

ODD = ["<b>bold &\"'.txt", "naïve ☃.txt", "a:b?c#d.txt", "new\nline.txt", "%41.txt", "javascript:alert(1).txt", "x" * 250]
LARGE = 100_000


@pytest.fixture(scope="module")
def site():
    root = Root({"d/10.txt": b"x" * 300, "d/9.txt": b"x" * 2_000_000, "d/1.txt": b"x", "d/folder/inside.txt": b"in", "d/a/x": b""})
    for i, name in enumerate(("1.txt", "10.txt", "9.txt")):
        os.utime(root.path / "d" / name, (10**9 + i, 10**9 + i))
    for name in ODD:
        root.write("odd/" + name, name.encode())
    (root.path / "odd" / os.fsdecode(b"latin-\xe9.txt")).write_bytes(b"latin")
    (root.path / "odd/elsewhere").symlink_to("https://example.org/there")
    root.write("_headers", b"/*\n  X-Listed: yes\n")
    root.mkdir("empty")
    yield root
    root.remove()


@pytest.fixture(scope="module")
def server(build, site):
    with Server(build, site, "-j", "2") as running:
        yield running


def names(browser):
    return browser.run("[...document.querySelectorAll('tbody:not(.parent) tr td:first-child')].map(td => td.textContent)")


def arrows(browser):
    shown = browser.run("[...document.querySelectorAll('th button')].map(b => getComputedStyle(b, '::after').content)")
    return [arrow.strip('"') for arrow in shown]


def heads(browser):
    """Returns where the text of each head ends, from the top."""
    range_of = "button => { const r = document.createRange(); r.selectNodeContents(button); return r }"
    return browser.run(f"[...document.querySelectorAll('th button')].map({range_of}).map(r => r.getBoundingClientRect().bottom)")


def click(browser, column):
    browser.run(f"document.querySelectorAll('th button')[{column}].click()")


@pytest.mark.others
@pytest.mark.clear
def test_a_browser_sorts_opens_a_folder_and_shows_odd_names(server):
    with Browser() as browser:
        browser.go(server.url("/d/"))
        assert names(browser) == ["a/", "folder/", "1.txt", "9.txt", "10.txt"]
        assert arrows(browser) == ["\u2191", "", ""] and len(set(heads(browser))) == 1
        click(browser, 1)  # folders stay first
        assert names(browser) == ["a/", "folder/", "1.txt", "10.txt", "9.txt"]
        assert arrows(browser) == ["", "\u2191", ""] and len(set(heads(browser))) == 1
        click(browser, 1)
        assert names(browser)[2:] == ["9.txt", "10.txt", "1.txt"]
        assert arrows(browser) == ["", "\u2193", ""]
        click(browser, 2)
        assert names(browser)[2:] == ["1.txt", "10.txt", "9.txt"]
        click(browser, 0)
        assert names(browser) == ["a/", "folder/", "1.txt", "9.txt", "10.txt"]
        click(browser, 0)
        assert names(browser) == ["folder/", "a/", "10.txt", "9.txt", "1.txt"]
        browser.run("const f = document.querySelector('input'); f.value = '9'; f.dispatchEvent(new Event('input'))")
        shown = "[...document.querySelectorAll('tbody:not(.parent) tr')].filter(r => !r.hidden).length"
        said = "document.querySelector('output').textContent"
        assert browser.run(shown) == 1 and browser.run(said) == "; 1 found"
        browser.run("const g = document.querySelector('input'); g.value = ''; g.dispatchEvent(new Event('input'))")
        assert browser.run(shown) == 5 and browser.run(said) == ""
        browser.follow('a[href="./folder/"]')
        assert names(browser) == ["inside.txt"] and browser.run("location.pathname") == "/d/folder/"
        browser.follow(".parent a")
        assert browser.run("location.pathname") == "/d/"
        browser.go(server.url("/odd/"))
        found = names(browser)
        assert set(ODD) - set(found) == {"new\nline.txt"} and "new␊line.txt" in found and "latin-\ufffd.txt" in found
        for width in (320, 360, 1200):
            browser.resize(width, 700)
            assert browser.run("document.documentElement.scrollWidth") <= width
            assert browser.run("[...document.querySelectorAll('td')].every(td => td.scrollWidth <= td.offsetWidth)")
        browser.resize(360, 700)  # size and date have a line of their own
        assert browser.run("[...document.querySelectorAll('tbody:not(.parent) tr')].every(({cells: [name, size, time]}) => "
                           "name.getBoundingClientRect().bottom <= time.getBoundingClientRect().top + 1)")  # fmt: skip
        answers = browser.run("Promise.all([...document.querySelectorAll('tbody:not(.parent) a')]"
                              ".filter(a => !a.textContent.includes('elsewhere'))"
                              ".map(a => fetch(a.href).then(r => r.status)))")  # fmt: skip
        assert answers == [200] * (len(ODD) + 1)
        assert browser.messages == []


def test_without_scripts_it_is_a_table(server):
    page = server.get("/d/").body.decode()
    assert page.startswith("<!doctype html>") and "hidden" in page and "<button" not in page.partition("<script>")[0]
    assert 'title="2000000 bytes">1.9 MiB' in page and "<time datetime=2001-09-09T01:46:42Z>2001-09-09 01:46</time>" in page
    assert '<a href="../">' in page and "1.txt" in page


def test_head_is_as_long_as_the_page(server):
    for path in ("/d/", "/odd/", "/empty/", "/odd/?format=json"):
        got, head = server.get(path), server.get(path, method="HEAD")
        assert got.status == 200 and int(head["Content-Length"]) == len(got.body)


def test_it_has_the_owners_fields(server):
    response = server.get("/d/")
    assert response["X-Listed"] == "yes" and response["X-Content-Type-Options"] == "nosniff"


def test_caches_ask_for_it_again_unless_the_owner_says_otherwise(build, root):
    root.write("_headers", b"/own/*\n  Cache-Control: max-age=5\n/long/*\n  Cache-Control: max-age=86400\n/none/*\n  ! Cache-Control\n")
    root.write("secret/.htaccess", b"Friends\nann:" + subprocess.check_output(["openssl", "passwd", "-6", "pw"]))
    wanted = {"plain": "no-cache", "own": "max-age=5", "long": "no-cache", "none": None, "secret": "private, no-cache"}
    for name in wanted:
        root.write(name + "/a", b"")
    ann = "Authorization: Basic YW5uOnB3"
    with Server(build, root, "-j", "1") as server:
        for name, value in wanted.items():
            for query in ("", "?format=json"):
                response = server.get(f"/{name}/{query}", ann)
                assert (response.status, response["Cache-Control"]) == (200, value), name
    with Server(build, root, "-j", "1", "--no-cache-control") as server:
        assert server.get("/plain/")["Cache-Control"] is None and server.get("/own/")["Cache-Control"] == "max-age=5"


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("path", ["/d/", "/odd/?format=json"])
def test_it_exists_but_has_no_entity_tag_or_date(server, method, path):
    then, status = "Sun, 09 Sep 2001 01:46:39 GMT", {}
    for field in ("If-None-Match: *", "If-None-Match: \"x\"", f"If-Modified-Since: {time.strftime('%a, %d %b %Y %T GMT', time.gmtime())}",
                  "If-Match: *", "If-Match: \"x\"", f"If-Unmodified-Since: {then}"):  # fmt: skip
        status[field] = server.get(path, field, method=method).status
    assert list(status.values()) == [304, 200, 200, 200, 412, 200], status
    whole, same = server.get(path, method=method), server.get(path, "If-None-Match: *", method=method)
    for name in ("Cache-Control", "Vary", "X-Listed"):
        assert same[name] == whole[name] and same[name]
    with server.connect() as client:  # there is no content behind the head
        assert client.get(path, "If-None-Match: *", method=method)["Content-Type"] is None
        client.assert_in_step()


def test_json_says_the_same(server):
    response = server.get("/d/?format=json")
    assert response["Content-Type"] == "application/json"
    found = json.loads(response.body)
    assert [entry["name"] for entry in found] == ["a", "folder", "1.txt", "9.txt", "10.txt"]
    assert found[2] == {"name": "1.txt", "type": "file", "size": 1, "mtime": "2001-09-09T01:46:40Z"}
    assert found[0]["type"] == "directory" and "size" not in found[0]
    assert json.loads(server.get("/empty/?x=1&format=json").body) == []


def test_json_leads_to_odd_names_too(server):
    found = json.loads(server.get("/odd/?format=json").body)
    assert {entry["name"] for entry in found} == {*ODD, "latin-\ufffd.txt", "elsewhere"}
    for entry in found:
        if entry["name"] != "elsewhere":
            assert server.get("/odd/" + entry.get("href", urllib.parse.quote(entry["name"]))).status == 200


@pytest.mark.parametrize("path", ["/d/", "/odd/?format=json"])
def test_it_is_compressed_for_who_takes_that(build, server, site, path):
    plain, packed = server.get(path), server.get(path, "Accept-Encoding: gzip, br")
    assert packed["Content-Encoding"] == "gzip" and gzip.decompress(packed.body) == plain.body
    assert plain["Content-Encoding"] is None and {plain["Vary"], packed["Vary"]} == {"Accept-Encoding"}
    head = server.get(path, "Accept-Encoding: gzip", method="HEAD")
    assert head["Content-Encoding"] == "gzip" and int(head["Content-Length"]) == len(packed.body)
    with Server(build, site, "-j", "1", "--limit", "gzip-cache=0") as modest:
        assert modest.get(path, "Accept-Encoding: gzip")["Content-Encoding"] is None


def test_a_short_one_is_as_it_is(server):
    response = server.get("/empty/?format=json", "Accept-Encoding: gzip")
    assert response["Content-Encoding"] is None and response.body == b"[]\n"


def test_what_turns_text_around_is_not_shown(build, root):
    """It would read "a-exe.txt"."""
    for c in "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u2028\u2029":
        root.write(f"d/a-{c}txt.exe", b"")
    with Server(build, root, "-j", "1") as server:
        page = server.get("/d/").body.decode()
        assert page.count(">a-\ufffdtxt.exe</a>") == 14 and not re.search("[\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]", page)
        assert "%E2%80%AE" in page


@pytest.mark.others
@pytest.mark.clear
def test_lftp_sees_sizes_and_times(server, tmp_path):
    env = os.environ | {"LFTP_HOME": str(tmp_path), "TZ": "UTC"}
    commands = f"open {server.url('/d/')}; cls -l --block-size=1 --time-style=%Y-%m-%d"
    seen = subprocess.run(["lftp", "-c", commands], env=env, capture_output=True, text=True, timeout=30, check=True).stdout
    assert sorted(line.split()[-3:] for line in seen.splitlines() if line.endswith(".txt")) == [
        [size, "2001-09-09", name] for size, name in (("1", "1.txt"), ("2000000", "9.txt"), ("300", "10.txt"))]  # fmt: skip


@pytest.mark.parametrize("query", ["?format=html", "?format=jsonx", "?xformat=json", "?", "?format"])
def test_any_other_query_is_a_page(server, query):
    assert server.get("/d/" + query)["Content-Type"].startswith("text/html")


def test_the_files_that_say_how_the_site_is_served_are_not_shown(server):
    assert b"_headers" not in server.get("/").body


@pytest.mark.parametrize(
    "flag,host,path,hidden",
    [
        ("-d", "localhost", "/", True),
        ("-d", "localhost", "/www.example.org/", True),
        ("-d", "localhost", "/www.example.org/deep/", False),
        ("-d", "www.example.org", "/", True),
        ("-d", "www.example.org", "/deep/", False),
        ("-V", "localhost", "/www.example.org/", False),
    ],
)
def test_nor_are_those_of_a_site_in_this_one(build, root, flag, host, path, hidden):
    files = {"_headers", "_redirects", "_redirects.gz", "_headers.br"}
    for name in files:
        for directory in ("", "www.example.org/", "www.example.org/deep/"):
            root.write(directory + name, b"")
    (root.path / "index.html").unlink()
    with Server(build, root, "-j", "1", flag) as server:
        listed = {entry["name"] for entry in json.loads(server.get(path + "?format=json", host=host).body)}
        assert listed & files == (set() if hidden else files)
        assert all(server.get(path + name, host=host).status == (404 if hidden else 200) for name in files)


def test_an_empty_directory_says_so(server):
    assert b"Nothing is here" in server.get("/empty/").body


def test_a_new_file_is_seen_within_seconds(build, root):
    root.mkdir("d")
    with Server(build, root, "-j", "1") as server:
        assert b"new.txt" not in server.get("/d/").body
        root.write("d/new.txt", b"")
        eventually(lambda: b"new.txt" in server.get("/d/").body, 5)


@pytest.fixture(scope="module")
def large():
    root = Root({"index.html": b"small"})
    root.mkdir("many")
    (root.path / "many/0").write_bytes(b"")
    for i in range(1, LARGE):
        os.link(root.path / f"many/{(i - 1) // 50_000 * 50_000}", root.path / f"many/{i}") if i % 50_000 else (
            root.path / f"many/{i}"
        ).write_bytes(b"")
    yield root
    root.remove()


def test_a_large_directory_holds_up_nobody_and_takes_bounded_memory(plain, large):
    with Server(plain, large, "-j", "1") as server, server.connect() as other, server.connect() as lister:
        other.get("/")
        before = server.resident()
        lister.send(b"GET /many/ HTTP/1.1\r\nHost: x\r\n\r\n")
        started, slowest = time.monotonic(), 0
        while not lister.buffer and time.monotonic() - started < 20:
            asked = time.monotonic()
            assert other.get("/").body == b"small"
            slowest = max(slowest, time.monotonic() - asked)
            lister.socket.setblocking(False)
            try:
                lister._fill()  # pylint: disable=protected-access
            except BlockingIOError:
                pass
        lister.socket.settimeout(20)
        response = lister.response()
        assert response.body.count(b"<tr><td>") == LARGE + 1
        assert slowest < (time.monotonic() - started) / 2
        assert server.resident() - before < 48 << 20
        assert len(json.loads(server.get("/many/?format=json").body)) == LARGE


def test_who_reads_a_large_listing_slowly_costs_no_copy_of_it(plain, large):
    with Server(plain, large, "-j", "1") as server:
        server.get("/many/")
        before = server.resident()
        slow = [server.connect(receive_buffer=4096) for _ in range(50)]
        for connection in slow:
            connection.send(b"GET /many/ HTTP/1.1\r\nHost: x\r\n\r\n")
        for connection in slow:
            connection._fill()  # pylint: disable=protected-access
        assert server.resident() - before < 40 << 20
        for connection in slow:
            connection.close()


def test_a_directory_that_changes_under_its_listing(build, root):
    root.mkdir("d")
    done = threading.Event()

    def change():
        i = 0
        while not done.is_set():
            name = root.path / f"d/{i % 500}"
            name.unlink() if name.exists() else name.write_bytes(b"x")
            i += 1

    thread = threading.Thread(target=change)
    thread.start()
    try:
        with Server(build, root, "-j", "1") as server, server.connect() as connection:
            until = time.monotonic() + 3
            while time.monotonic() < until:
                assert b"</html>" not in connection.get("/d/").body  # complete: the length was right
                json.loads(connection.get("/d/?format=json").body)
            connection.assert_in_step()
    finally:
        done.set()
        thread.join()


@pytest.mark.clear
def test_listings_travel_in_frames(build, site):
    with Server(build, site, "-j", "1") as server, Http2(server) as client:
        assert client.get("/d/").body == server.get("/d/").body
        streams = [client.ask("/odd/?format=json") for _ in range(20)]
        assert {len(json.loads(answer.body)) for answer in client.answers(*streams)} == {len(ODD) + 2}
        assert client.get("/d/", method="HEAD").body == b""
        same = client.get("/d/", ("if-none-match", "*"))
        assert (same.status, same.body, same["vary"]) == (304, b"", "Accept-Encoding")


def test_one_directory_after_another_is_listed(build, root):
    for i in range(40):
        root.write(f"d{i}/x.txt", b"")
    with Server(build, root, "-j", "1") as server, server.connect() as connection:
        assert [connection.get(f"/d{i}/").status for i in range(40)] == [200] * 40


def test_who_goes_while_it_is_made_is_forgotten(plain, large):
    with Server(plain, large, "-j", "1") as server:
        for _ in range(20):
            connection = server.connect()
            connection.send(b"GET /many/ HTTP/1.1\r\nHost: x\r\n\r\n")
            connection.reset()
        assert server.get("/").body == b"small"
        assert server.get("/many/").status == 200
