"""gatling-trust(7): each of its cells, who may have the server do, read and reach what."""

import os
import re
import socket
from pathlib import Path
from urllib.parse import unquote

import pytest

from gatling import Connection, Root, Server, certificate
from test_guard import HASHES, basic
from test_programs import FcgiLink, environment
from test_status import reached, status_to
from upstream import Upstream

pytestmark = pytest.mark.decided

PAGE = Path(__file__).parents[2] / "man/gatling-trust.7"
REALM = b"realm\nann:" + HASHES["md5crypt"].encode()
STRANGER = 12345  # a user who is neither root nor the one who starts the server
TESTED = set()


def cell(person, what):
    def note(test):
        TESTED.add((person, what))
        return test

    return note


def test_each_cell_of_the_page_has_a_test():
    cells, person = set(), None
    for line in PAGE.read_text().splitlines():
        if line.startswith(".Ss "):
            person = line[4:]
        elif found := re.match(r"\.It (do|read|reach)$", line):
            cells.add((person, found[1]))
    assert len(cells) == 15 and cells == TESTED


@pytest.fixture
def up():
    with Upstream() as upstream:
        yield upstream


# --- the operator ---


@cell("The operator", "do")
def test_the_command_line_says_what_is_served_where_and_by_whom(build, root, place):
    with Server(build, root, "-u", "nobody", "-j", "1", "--log", "off", address=("-i", f"unix:{place / 'http'}"), as_root=True) as server:
        own = dict(line.split(":\t", 1) for line in Path(f"/proc/{server.pid}/status").read_text().splitlines() if ":\t" in line)
        assert own["Uid"].split() == ["65534"] * 4
        assert os.readlink(f"/proc/{server.pid}/root") == str(root.path)
        with Connection(str(place / "http"), family=socket.AF_UNIX) as connection:
            assert connection.get("/a.txt").body == b"a"
        listening = {line.split()[9] for line in Path(f"/proc/{server.pid}/net/tcp").read_text().splitlines()[1:] if line.split()[3] == "0A"}
        own = {os.readlink(link) for link in Path(f"/proc/{server.pid}/task/{server.thread_ids()[-1]}/fd").iterdir()}
        assert not own & {f"socket:[{inode}]" for inode in listening}
        assert server.lines == []


@cell("The operator", "read")
def test_keys_outside_are_used_and_never_sent(build, root):
    outside = Root()
    outside.path.chmod(0o700)
    for name, path in zip(("cert.pem", "key.pem"), certificate()):
        outside.write(name, path.read_bytes(), 0o600)
        (root.path / name).symlink_to(outside.path / name)
    with Server(build, root, "-u", "nobody", "-j", "1", "--log-file", outside.path / "log", "--cert", outside.path / "cert.pem",
                "--key", outside.path / "key.pem", "--tls-port", "0", as_root=True) as server:  # fmt: skip
        assert server.get("/a.txt").status == 200
        assert [server.get(f"/{name}").status for name in ("cert.pem", "key.pem")] == [404, 404]
    assert "/a.txt" in (outside.path / "log").read_text()
    outside.remove()


@cell("The operator", "reach")
def test_without_the_option_no_rule_reaches_anything(build, root, up):
    root.write("_redirects", f"/api/* http://{up.address}/:splat 200\n/php/* fcgi://{up.address}/:splat".encode())
    with Server(build, root, "-j", "1") as server:
        assert [server.get(path).status for path in ("/api/x", "/php/x")] == [404, 503]
        assert f"--upstream {up.allowed}" in "\n".join(server.errors)
    assert up.links == []
    with Server(build, root, "-j", "1", "--upstream", up.allowed) as server:
        assert server.get("/api/x").status == 200


# --- the owner of DIR ---


@cell("The owner of DIR", "do")
def test_directories_are_sites_by_their_names(build, root):
    hosts = ("b.example", "localhost", "uploads", "default", "shop:80")
    for name in hosts:
        root.write(f"{name}/a.txt", name.encode())
    with Server(build, root, "-j", "1") as server:
        assert [server.get("/a.txt", host=host).body for host in ("b.example", "localhost", "uploads", "none")] == [b"b.example", b"localhost", b"a", b"a"]
        root.write("new.example/a.txt", b"new")
        assert server.get("/a.txt", host="new.example").body == b"new"
    with Server(build, root, "-j", "1", "-v") as server:
        assert [server.get("/a.txt", host=host).body for host in ("uploads", "none")] == [b"uploads", b"default"]
    root.write(".htaccess_global", REALM)
    with Server(build, root, "-j", "1") as server:
        assert [server.get("/a.txt", host=host).status for host in ("b.example", "none")] == [401, 401]
    with Server(build, root, "-j", "1", "-v") as server:
        assert server.get("/a.txt", host="b.example").status == 200


@cell("The owner of DIR", "read")
def test_links_lead_to_what_everybody_may_read(build, root):
    outside = Root({"open.txt": b"open"})
    outside.write("closed.txt", b"closed", 0o600)
    for name in ("open.txt", "closed.txt"):
        (root.path / name).symlink_to(outside.path / name)
    (root.path / "inside.txt").symlink_to("a.txt")

    def seen(*flags, **options):
        with Server(build, root, "-j", "1", *flags, **options) as server:
            return [server.get(f"/{name}.txt").status for name in ("open", "closed", "inside")]

    assert seen() == [200, 403, 200]
    assert seen("--symlinks", "inside") == [403, 403, 200]
    assert seen("-u", "nobody", as_root=True) == [404, 404, 200]
    outside.remove()


@cell("The owner of DIR", "reach")
def test_rules_reach_the_allowed_upstreams_alone(build, root, up):
    other = f"127.0.0.2:{up.port}"
    root.write("_redirects", f"/up/* http://{up.address}/:splat 200\n/other/* http://{other}/:splat 200".encode())
    with Server(build, root, "-j", "1", "--upstream", up.address) as server:
        assert [server.get(path).status for path in ("/up/x", "/other/x")] == [200, 404]
        assert any(f"--upstream {other}" in line for line in server.errors)


# --- the owner of a site ---


@cell("The owner of a site", "do")
def test_what_a_site_says_holds_for_it_alone(build, root):
    root.write("a.example/_headers", b"/*\n  X-Own: yes")
    root.write("a.example/_redirects", b"/old https://else.example/ 302")
    root.write("a.example/x.txt", b"a")
    root.write("b.example/x.txt", b"b")
    with Server(build, root, "-j", "1") as server:
        assert [server.get("/x.txt", host=host)["X-Own"] for host in ("a.example", "b.example", "none")] == ["yes", None, None]
        assert [server.get("/old", host=host).status for host in ("a.example", "b.example", "none")] == [302, 404, 404]
        root.write("c.example/.htaccess_global", REALM)
        root.write("c.example/x.txt", b"c")
        assert [server.get("/x.txt", host=host).status for host in ("c.example", "b.example")] == [401, 200]


@cell("The owner of a site", "read")
def test_links_lead_around_the_passwords_of_other_sites(build, root):
    root.write("b.example/.htaccess_global", REALM)
    root.write("b.example/open.txt", b"open")
    root.write("b.example/closed.txt", b"closed", 0o600)
    root.mkdir("a.example")
    for name in ("open", "closed"):
        (root.path / f"a.example/{name}.txt").symlink_to(f"../b.example/{name}.txt")
    with Server(build, root, "-j", "1") as server:
        assert [server.get(f"/{name}.txt", host="a.example").status for name in ("open", "closed")] == [200, 403]


@cell("The owner of a site", "reach")
@pytest.mark.parametrize(("owners", "modes", "status"), [((STRANGER, STRANGER), (0o755, 0o644), 200), ((0, STRANGER), (0o755, 0o644), 503),
                                                         ((0, 0), (0o777, 0o644), 503), ((0, 0), (0o755, 0o666), 503)])  # fmt: skip
def test_rules_that_pass_requests_on_are_those_of_the_owner(build, root, up, owners, modes, status):
    rules = root.write("a.example/_redirects", f"/up/* http://{up.address}/:splat 200\n/old /new 302".encode())
    for path, owner, mode in zip((rules.parent, rules), owners, modes):
        os.chown(path, owner, owner)
        path.chmod(mode)
    with Server(build, root, "-j", "1", "--upstream", up.allowed) as server:
        assert server.get("/up/x", host="a.example").status == status
        assert server.get("/old", host="a.example").status == 302
    assert bool(up.requests) == (status == 200)


# --- the authors ---


@cell("The authors", "do")
def test_what_is_uploaded_is_served_and_guarded_but_says_nothing_more(build, root):
    root.write("d/.htaccess", REALM)
    for name in ("d/up/x.txt", "up/x.txt", "up/x.php"):
        root.write(name, b"x")
    root.write("d/up/.htaccess", b"other\nbob:" + HASHES["md5crypt"].encode())
    root.write("up/_headers", b"/*\n  X-Own: yes")
    root.write("up/_redirects", b"/x.txt /a.txt 302!\n/up/x.txt /a.txt 302!")
    with Server(build, root, "-j", "1") as server:
        assert (server.get("/up/x.txt").body, server.get("/up/x.txt")["X-Own"]) == (b"x", None)
        assert server.get("/x.txt", host="up").status == 404  # it is no site
        assert server.get("/d/up/x.txt")["WWW-Authenticate"].startswith('Basic realm="other"')
        assert [server.get("/d/up/x.txt", basic(user)).status for user in ("ann", "bob")] == [401, 200]
    with Upstream(environment, link=FcgiLink) as program:
        for rule, status in ((f"/lib/*.php fcgi://{program.address}", 403), (f"/*.php fcgi://{program.address}", 200)):
            root.write("_redirects", rule.encode())
            with Server(build, root, "-j", "1", "--upstream", program.allowed) as server:
                assert server.get("/up/x.php").status == status


@cell("The authors", "read")
def test_what_is_never_sent(build, root, up):
    _, key = certificate()
    files = {".hidden": b"", ".git/x": b"", "x.php": b"", "x.phtml": b"", "_headers": b"", "key.pem": key.read_bytes(), "big.pem": b"\n" * 100_000 + key.read_bytes()}
    for name, content in {**files, ".well-known/x": b"x", "_redirects": f"/up/* http://{up.address}/:splat 200".encode()}.items():
        root.write(name, content)
    root.write("closed.txt", b"closed", 0o640)
    with Server(build, root, "-j", "1", "--upstream", up.allowed) as server:
        assert server.get("/.well-known/x").body == b"x"
        assert {server.get(f"/{name}").status for name in (*files, "_redirects", "closed.txt")} <= {403, 404}


@cell("The authors", "reach")
def test_rules_of_authors_reach_nothing(build, root, up):
    os.chown(root.write("_redirects", f"/up/* http://{up.address}/:splat 200\n/php/* fcgi://{up.address}/:splat".encode()), STRANGER, STRANGER)
    with Server(build, root, "-j", "1", "--upstream", up.allowed) as server:
        assert [server.get(path).status for path in ("/up/x", "/php/x")] == [503, 503]
        assert any("_redirects" in line and str(STRANGER) in line and "chown" in line for line in server.errors)
    assert up.links == []


# --- a client ---


@cell("A client", "do")
def test_what_a_client_says_of_itself_is_not_believed(build, root, up):
    root.write("_redirects", f"/up/* http://{up.address}/:splat 200".encode())
    lies = ("X-Real-IP", "X-Forwarded-For", "X-Forwarded-Port", "X-Forwarded-Prefix", "X-Forwarded-Server", "X-Forwarded-Host", "X-Forwarded-Proto")
    with Server(build, root, "-j", "1", "--upstream", up.allowed) as server:
        assert server.get("/up/x", *(f"{name}: lie" for name in lies)).status == 200
    assert not any("lie" in value for _, value in up.requests[0].fields)


@cell("A client", "do")
@pytest.mark.clear
def test_the_page_of_another_site_does_not_see_the_status(first_build, root):
    with reached(first_build, root) as address:
        for host, field, status in (("localhost", "A: b", 200), ("evil.example", "A: b", 421), ("localhost", "Sec-Fetch-Site: cross-site", 403)):
            assert status_to(address, ["GET / HTTP/1.1", f"Host: {host}", field]).status == status


@cell("A client", "read")
@pytest.mark.parametrize("name", ["x", "none", "none/", "s" * 300, "p" * 4100, "/".join(["r" * 100] * 60)])
def test_a_password_is_needed_for_every_path_below_it(build, root, up, name):
    root.write("d/.htaccess", REALM)
    root.write("d/x", b"x")
    root.write("_redirects", f"/d/* http://{up.address}/:splat 200".encode())
    with Server(build, root, "-j", "1", "--upstream", up.allowed) as server:
        assert server.get(f"/d/{name}").status == 401
    assert not up.links


@cell("A client", "reach")
def test_a_path_does_not_leave_the_target_of_its_rule(build, root, up):
    root.write("_redirects", f"/shop id=:id http://{up.address}/goods/:id 200!\n/dash/:a-:b http://{up.address}/lib/:a:b 200!\n/* http://{up.address}/all/:splat 200!".encode())
    with Server(build, root, "-j", "1", "--upstream", up.allowed) as server:
        for path in ("/shop?id=../admin/", "/shop?id=a/b", "/shop?id=..", "/shop?id=%2e%2e", "/shop?id=%2e%2e%2fx", "/shop?id=x", "/dash/.-.", "/../x", "/%2e%2e/x", "/a//b"):
            server.get(path)
    lines = [request.line.split()[1] for request in up.requests]
    assert "/goods/x" in lines and "/goods/a%2Fb" in lines
    for path in lines:
        assert re.match("/(goods|lib|all)/", path) and not {".", ".."} & set(re.split(r"[/\\]", unquote(path.split("?")[0])))
