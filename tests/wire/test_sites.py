"""Directories: index, redirect, listing; links; virtual hosts."""

import html
import os
import re
import shutil
import socket
import threading
import urllib.parse

import pytest

from gatling import Connection, Root, Server, eventually

pytestmark = pytest.mark.decided


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
        links = re.findall(r'<td><a href="([^"]*)">([^<]*)</a>', text)
        assert links[0] == ("../", "../") and links[1] == ("./sub/", "sub/")
        shown = [html.unescape(label) for _, label in links[2:]]
        assert shown == sorted(NAMES, key=str.encode)
        for href, label in links[2:]:
            path = urllib.parse.urljoin("/d/", href)
            assert server.get(path).body == html.unescape(label).encode()
        assert "<b>" not in text.partition("<script>")[0]
    root.remove()


def test_a_directory_whose_index_is_not_for_everybody_is_not_listed(build, root):
    root.write("d/index.html", b"secret", 0o640)
    with Server(build, root, "-j", "1") as server:
        response = server.get("/d/")
        assert response.status == 403 and b"index" not in response.body


@pytest.mark.parametrize("flag,status", [("-d", 200), ("-D", 403)])
def test_an_index_that_is_a_directory_is_none(build, root, flag, status):
    root.mkdir("d/index.html")
    with Server(build, root, "-j", "1", flag) as server:
        assert server.get("/d/").status == status


def test_a_listing_shows_where_it_is_and_the_way_up(build, root):
    root.mkdir("<b>x/y")
    (root.path / "index.html").unlink()
    with Server(build, root, "-j", "1") as server:
        top, below = server.get("/").body, server.get("/%3Cb%3Ex/").body
        assert b"../" not in top and b'"../"' in below
        assert b"<b>" not in below and b"&lt;b&gt;x" in below


def test_virtual_hosts_only_means_no_listings_unless_asked(build, root):
    root.mkdir("default/d")
    for flags, status in ((["-v"], 403), (["-v", "-d"], 200), (["-d", "-v"], 200)):
        with Server(build, root, "-j", "1", *flags) as server:
            assert server.get("/d/").status == status


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
    with socket.socket(socket.AF_UNIX) as s, Server(build, root, "-j", "1") as server:
        s.bind(str(root.path / "socket"))
        assert server.get("/fifo").status == 403
        assert server.get("/socket").status == 403
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
        assert b">in<" in listing and b">out" not in listing and b">loop" not in listing
    outside.remove()


def test_what_lies_outside_cannot_be_told_when_links_stay_inside(build, root):
    outside = Root({"f": b"outside", "d/f": b"x", "secret": b"x"})
    (outside.path / "secret").chmod(0o600)
    root.write("moved/f", b"inside")
    (root.path / "out").symlink_to(outside.path)
    (root.path / "host.example").symlink_to(outside.path)
    root.write("default/f", b"default")
    with Server(build, root, "-j", "1", "-v", "--symlinks", "inside") as server:
        assert {server.get(path, host="x").status for path in ("/out/f", "/out/d", "/out/secret")} == {404}  # in default/
        assert server.get("/f", host="host.example").body == b"default"
    with Server(build, root, "-j", "1", "-V", "--symlinks", "inside") as server:
        paths = ("/out/f", "/out/d", "/out/d/", "/out/secret", "/out/none")
        assert {server.get(path).status for path in paths} == {403}
        assert server.get("/moved/f").body == b"inside"
        shutil.move(root.path / "moved", outside.path / "moved")
        (root.path / "moved").symlink_to(outside.path / "moved")
        eventually(lambda: server.get("/moved/f").status == 403, 5)
    outside.remove()


def test_a_listing_opens_nothing(build, root):
    os.mkfifo(root.path / ".fifo")
    root.mkdir("d")
    (root.path / "d/link").symlink_to("../.fifo")
    writer = threading.Thread(target=lambda: os.close(os.open(root.path / ".fifo", os.O_WRONLY)))
    writer.start()
    with Server(build, root, "-j", "1") as server:
        for _ in range(10):
            assert b">link<" not in server.get("/d/").body
            assert server.get("/d/link").status == 403
    assert writer.is_alive()
    os.close(os.open(root.path / ".fifo", os.O_RDONLY))
    writer.join()


def test_a_listing_names_nothing_that_cannot_be_asked_for(build, root):
    root.mkdir("d")
    names = [b"\xc0\xaf", b"\xa4\xa4\xc1\xa6", b"\xe0\x80x", b"caf\xe9"]
    for name in names:
        with open(os.fsencode(root.path / "d") + b"/" + name, "wb"):
            pass
    with Server(build, root, "-j", "1") as server:
        links = re.findall(rb'href="\./([^"]*)"', server.get("/d/").body)
        assert links == [b"caf%E9"]
        assert server.get("/d/caf%E9").status == 200


# --- virtual hosts ---


def with_hosts():
    root = Root({"f": b"root", "a.example/f": b"a", "default/f": b"default", "[::1]/f": b"v6"})
    (root.path / "alias.example").symlink_to("a.example")
    return root


@pytest.fixture
def hosts():
    root = with_hosts()
    yield root
    root.remove()


@pytest.fixture(scope="module")
def hosted(build):
    """Servers of such a root, which their tests do not change: one also serves the root itself, the
    other only hosts."""
    root = with_hosts()
    with Server(build, root, "-j", "1") as also, Server(build, root, "-j", "1", "-v") as only:
        yield {"": also, "-v": only}
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
        ("b.example", None),
        ("a.example.b", None),
        ("f", None),
        ("[::1]:80", b"v6"),
    ],
)
@pytest.mark.parametrize("flag,others", [("", b"root"), ("-v", b"default")])
def test_hosts_are_directories(hosted, flag, others, host, body):
    assert served(hosted[flag], host) == (body or others)


def test_without_a_host_it_is_the_local_address(build, hosts):
    hosts.write("127.0.0.1/f", b"v4")
    with Server(build, hosts, "-j", "1", address=("-i", "127.0.0.1", "-i", "::1")) as server:
        for family, address, body in ((socket.AF_INET6, "::1", b"v6"), (socket.AF_INET, "127.0.0.1", b"v4")):
            port = int(re.search(re.escape(address) + r"\]?:(\d+)", server.banner).group(1))
            with Connection((address, port), family=family) as c:
                c.send(b"GET /f HTTP/1.0\r\n\r\n")
                assert c.response().body == body


def test_a_host_with_the_port_comes_first(build, hosts):
    with Server(build, hosts, "-j", "1") as server:
        hosts.write(f"a.example:{server.port}/f", b"with port")
        assert served(server, "a.example") == b"with port"
        assert served(server, f"a.example:{server.port + 1}") == b"with port"


def test_without_virtual_hosts_it_is_always_the_root(build, hosts):
    with Server(build, hosts, "-j", "1", "-V") as server:
        assert served(server, "a.example") == b"root"


@pytest.mark.parametrize("flags,others", [((), b"root"), (("-v",), b"default")])
def test_hosts_come_and_go_while_it_runs(build, hosts, flags, others):
    with Server(build, hosts, "-j", "1", *flags) as server:
        assert served(server, "new.example") == others
        hosts.write("new.example/f", b"new")
        eventually(lambda: served(server, "new.example") == b"new", 5)
        (hosts.path / "new.example").rename(hosts.path / "gone")
        eventually(lambda: served(server, "new.example") == others, 5)
        (hosts.path / "default").rename(hosts.path / "gone2")
        eventually(lambda: served(server, "new.example") == (404 if flags else b"root"), 5)


def test_with_virtual_hosts_only_an_unknown_one_is_not_found(build, hosts):
    (hosts.path / "default").rename(hosts.path / "d")
    with Server(build, hosts, "-j", "1", "--vhosts") as server:
        assert served(server, "b.example") == 404
        assert served(server, "a.example") == b"a"


UPLOADED = {"f": b"root", "uploads/f": b"uploaded", "uploads/_redirects": b"/f /uploaded 301!\n/* /f 200\n", "default/f": b"default"}


@pytest.mark.parametrize("host", ["uploads", "UPLOADS", "uploads.", "uploads:80", "uploads.:80", "default", "default.", "other", "b.example"])
def test_only_with_v_any_directory_is_a_host_and_default_that_of_the_others(build, host):
    """Who may create files in a directory below the root would otherwise have a site, with rules, and
    a directory of content that is named default would be that of all hosts."""
    root = Root(UPLOADED)
    with Server(build, root, "-j", "1") as server:
        assert served(server, host) == b"root"
        assert served(server, "uploads") == b"root" and server.get("/nothing", host=host).status == 404
        assert server.get("/uploads/f", host=host).body == b"uploaded" and server.get("/uploads/_redirects", host=host).status == 404
    with Server(build, root, "-j", "1", "-v") as server:
        assert served(server, host) == (301 if "uploads" in host.lower() else b"default")
    root.remove()


def test_without_v_a_host_has_a_dot_or_a_colon_or_is_localhost(build):
    root = Root({"f": b"root", "localhost/f": b"localhost", "127.0.0.1/f": b"address", "[::1]/f": b"v6", "a.b/f": b"a.b"})
    with Server(build, root, "-j", "1") as server:
        root.write(f"intranet:{server.port}/f", b"with port")
        for host, body in (("localhost", b"localhost"), ("127.0.0.1", b"address"), ("[::1]", b"v6"), ("a.b", b"a.b"), ("intranet", b"with port")):
            assert served(server, host) == body
    root.remove()


def test_the_hosts_that_were_found_are_named_at_the_start(build):
    root = Root({"index.html": b"", "uploads/index.html": b"", "file.txt": b"", "UPPER.example/f": b"", "dot.example./f": b""})
    five = "h0.org, h1.org, h2.org, h3.org, h4.org"
    for count, named in (0, None), (1, "h0.org"), (2, "h0.org, h1.org"), (5, five), (6, f"{five} and 1 other"), (9, f"{five} and 4 others"):
        for i in range(count):
            root.mkdir(f"h{i}.org")
        with Server(build, root, "-j", "1", "-n") as server:
            assert server.hosts == (named and f"gatling: hosts: {named}") and not server.errors
    for i in range(9):
        root.mkdir(f"{i}.a-long-name-of-a-host.example")
    root.mkdir(f"{'a' * 60}.{'b' * 60}.example")
    for flag, first, others in (("-d", "0.a-long-name-of-a-host.example", 18), ("-v", "0.a-long-name-of-a-host.example", 19), ("-V", None, 0)):
        with Server(build, root, "-j", "1", "-n", flag) as server:
            assert server.hosts == (first and f"gatling: hosts: {first} and {others} others")
            assert not server.hosts or len(server.hosts) <= 80
    root.remove()


def test_a_default_that_needs_v_is_told(build):
    root = Root({"default/picture.jpg": b""})
    says = "gatling: default/: only with -v is it the site of all hosts that have no directory"
    for told, flags in (([], ()), ([says], ()), ([], ("-v",)), ([], ("-V",))):
        with Server(build, root, "-j", "1", "-n", *flags) as server:
            assert server.errors == told
        root.write("default/index.html", b"")
    root.remove()


@pytest.mark.parametrize("host", ["..", ".", "../a.example", "a.example/", "a.example\\..", ".hidden", "a\0b", "a.example/../.."])
def test_a_host_cannot_climb(hosted, host):
    assert served(hosted[""], host) == 400


@pytest.mark.tcp
def test_a_request_without_host_is_for_the_address_it_came_to(build, hosts):
    hosts.write("127.0.0.1/f", b"address")
    with Server(build, hosts, "-j", "1") as server, server.connect() as c:
        c.send(b"GET /f HTTP/1.0\r\n\r\n")
        assert c.response().body == b"address"


def test_the_redirect_of_a_hosts_directory_is_seen_from_outside(build, hosts):
    hosts.mkdir("a.example/d")
    with Server(build, hosts, "-j", "1") as server:
        assert server.get("/d", host="a.example")["Location"] == "/d/"
