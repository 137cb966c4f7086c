"""Directories: index, redirect, listing; links; virtual hosts."""

import html
import os
import re
import urllib.parse

import pytest

from gatling import Root, Server, eventually


def test_a_directory_is_its_index(connection):
    response = connection.get("/dir/")
    assert response.status == 200 and response.body == b"in dir" and response["Content-Type"].startswith("text/html")


@pytest.mark.parametrize(
    "path,location",
    [
        ("/dir", "/dir/"),
        ("/dir?a=b&c", "/dir/?a=b&c"),
        ("//dir", "/dir/"),
        ("///example.org/../dir", "/dir/"),
        ("/%64ir", "/dir/"),
    ],
)
def test_a_directory_without_its_slash_is_redirected(connection, path, location):
    response = connection.get(path)
    assert response.status == 301 and response["Location"] == location
    connection.assert_in_step()


def test_redirects_stay_on_this_host_and_hold_no_line_break(build, root):
    root.mkdir("evil.example")
    root.mkdir("a\r\nSet-Cookie: x=y")
    root.mkdir("q?#é")
    with Server(build, root, "-j", "1") as server:
        assert server.get("//evil.example")["Location"] == "/evil.example/"
        assert server.get("/%2e%2e//evil.example")["Location"] == "/evil.example/"
        response = server.get("/a%0d%0aSet-Cookie:%20x=y")
        assert response["Location"] == "/a%0D%0ASet-Cookie%3A%20x%3Dy/" and response["Set-Cookie"] is None
        assert server.get("/q%3F%23%C3%A9")["Location"] == "/q%3F%23%C3%A9/"


NAMES = ["plain.txt", "a b.txt", "<b>&\"'.txt", "100%.txt", "q?x#y.txt", "é€.txt", "a:b.txt", "javascript:alert(1)", "\\", "tab\t.txt"]


def test_a_listing_leads_to_every_file_whatever_its_name(build):
    root = Root({f"d/{name}": name.encode() for name in NAMES} | {"d/sub/x": b"", "d/.hidden": b"", "d/..x": b""})
    root.write("d/secret", b"", 0o600)
    os.mkfifo(root.path / "d/fifo")
    with Server(build, root, "-j", "1") as server:
        page = server.get("/d/")
        assert page.status == 200 and page["Content-Type"] == "text/html; charset=utf-8"
        text = page.body.decode()
        links = re.findall(r'<a href="([^"]*)">([^<]*)</a>', text)
        assert links[0] == ("../", "../") and links[1] == ("./sub/", "sub/")
        shown = [html.unescape(label) for _, label in links[2:]]
        assert shown == sorted(NAMES, key=str.encode)
        for href, label in links[2:]:
            path = urllib.parse.urljoin("/d/", href)
            assert server.get(path).body == html.unescape(label).encode()
        assert "<b>" not in text
    root.remove()


def test_without_listings_a_directory_without_index_is_forbidden(build, files):
    for flags in (["-D"], ["--no-listings"], ["-v"]):
        with Server(build, files, *flags, "-j", "1") as server:
            assert server.get("/list/").status == (404 if flags == ["-v"] else 403)
            assert server.get("/nope/").status == 404
            assert server.get("/list/file.txt").status == (404 if flags == ["-v"] else 200)


def test_a_directory_that_not_everybody_may_read_is_not_listed(build, root):
    root.mkdir("d")
    (root.path / "d").chmod(0o711)
    root.write("d/known.txt", b"x")
    with Server(build, root, "-j", "1") as server:
        assert server.get("/d/").status == 403
        assert server.get("/d/known.txt").status == 200


def test_special_files_are_forbidden_and_block_nobody(build, root):
    os.mkfifo(root.path / "fifo")
    with Server(build, root, "-j", "1") as server:
        assert server.get("/fifo").status == 403
        assert server.get("/a.txt").status == 200


def test_links_may_lead_out_unless_told_to_stay_inside(build, root):
    outside = Root({"out.txt": b"outside"})
    (root.path / "out").symlink_to(outside.path / "out.txt")
    (root.path / "outdir").symlink_to(outside.path)
    (root.path / "in").symlink_to("a.txt")
    (root.path / "loop").symlink_to("loop")
    with Server(build, root, "-j", "1") as server:
        assert server.get("/out").body == b"outside"
        assert server.get("/outdir/out.txt").body == b"outside"
        assert server.get("/outdir/../a.txt").body == b"a"
        assert server.get("/loop").status == 404
    with Server(build, root, "--symlinks", "inside", "-j", "1") as server:
        assert server.get("/out").status == 403
        assert server.get("/outdir/out.txt").status == 403
        assert server.get("/in").body == b"a"
        (root.path / "index.html").unlink()
        listing = eventually(lambda: (r := server.get("/")).body.count(b"a.txt") and r).body
        assert b">in<" in listing and b"out" not in listing and b"loop" not in listing
    outside.remove()


# --- virtual hosts ---


@pytest.fixture
def hosts():
    root = Root({"f": b"root", "a.example/f": b"a", "default/f": b"default", "[::1]/f": b"v6"})
    (root.path / "alias.example").symlink_to("a.example")
    yield root
    root.remove()


def served(server, host):
    response = server.get("/f", host=host)
    return response.body if response.status == 200 else response.status


@pytest.mark.parametrize(
    "host,body",
    [
        ("a.example", b"a"),
        ("A.EXAMPLE", b"a"),
        ("a.example.", b"a"),
        ("a.example:9999", b"a"),
        ("alias.example", b"a"),
        ("b.example", b"default"),
        ("a.example.b", b"default"),
        ("f", b"default"),
        ("[::1]:80", b"v6"),
    ],
)
@pytest.mark.parametrize("flags", [[], ["-v"]])
def test_hosts_are_directories(build, hosts, flags, host, body):
    with Server(build, hosts, "-j", "1", *flags) as server:
        assert served(server, host) == body


def test_a_host_with_the_port_comes_first(build, hosts):
    with Server(build, hosts, "-j", "1") as server:
        hosts.write(f"a.example:{server.port}/f", b"with port")
        assert served(server, "a.example") == b"with port"
        assert served(server, f"a.example:{server.port + 1}") == b"with port"


def test_without_virtual_hosts_it_is_always_the_root(build, hosts):
    with Server(build, hosts, "-j", "1", "-V") as server:
        assert served(server, "a.example") == b"root"


def test_hosts_come_and_go_while_it_runs(build, hosts):
    with Server(build, hosts, "-j", "1") as server:
        assert served(server, "new.example") == b"default"
        hosts.write("new.example/f", b"new")
        eventually(lambda: served(server, "new.example") == b"new", 5)
        (hosts.path / "new.example").rename(hosts.path / "gone")
        eventually(lambda: served(server, "new.example") == b"default", 5)
        (hosts.path / "default").rename(hosts.path / "gone2")
        eventually(lambda: served(server, "new.example") == b"root", 5)


def test_with_virtual_hosts_only_an_unknown_one_is_not_found(build, hosts):
    (hosts.path / "default").rename(hosts.path / "d")
    with Server(build, hosts, "-j", "1", "--vhosts") as server:
        assert served(server, "b.example") == 404
        assert served(server, "a.example") == b"a"


@pytest.mark.parametrize("host", ["..", ".", "../a.example", "a.example/", "a.example\\..", ".hidden", "a\0b", "a.example/../.."])
def test_a_host_cannot_climb(build, hosts, host):
    with Server(build, hosts, "-j", "1") as server:
        assert served(server, host) == 400


def test_a_request_without_host_is_for_the_address_it_came_to(build, hosts):
    hosts.write("127.0.0.1/f", b"address")
    with Server(build, hosts, "-j", "1") as server, server.connect() as c:
        c.send(b"GET /f HTTP/1.0\r\n\r\n")
        assert c.response().body == b"address"


def test_the_redirect_of_a_hosts_directory_is_seen_from_outside(build, hosts):
    hosts.mkdir("a.example/d")
    with Server(build, hosts, "-j", "1") as server:
        assert server.get("/d", host="a.example")["Location"] == "/d/"
