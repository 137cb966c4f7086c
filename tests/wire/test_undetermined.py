"""What cannot be determined is denied, and what cannot exist is missing: long names, links in circles, directories that
are out of reach."""

import contextlib
import os
import shutil

import pytest

from gatling import Root, Server, eventually
from test_guard import HASHES, basic
from test_programs import FcgiLink, environment
from upstream import Upstream

pytestmark = pytest.mark.decided

REALM = b"private\nann:" + HASHES["md5crypt"].encode()
NAME_MAX, PATH_MAX = 255, 4096
SEGMENT, PATH = "s" * (NAME_MAX + 1), "/".join(["p" * 200] * 21)  # no file system here has such a name, or path
TOO_LONG = [SEGMENT, PATH, "q" * 4100, "/".join(["r" * 100] * 60)]


@contextlib.contextmanager
def passing(build, upstream, rules, files=None, flags=()):
    rules = rules.format(up=upstream.address)
    root = Root({"index.html": b"start", "private/.htaccess": REALM, "private/x": b"private", "_redirects": rules.encode(), **(files or {})})
    with Server(build, root, "-j", "1", "--upstream", upstream.allowed, *flags) as server:
        yield server
    root.remove()


@pytest.mark.parametrize("tail", ["x", "x/", *TOO_LONG, *(f"{name}/" for name in TOO_LONG), f"x/{SEGMENT}", f"a/b/c/d/e/f/{PATH}"])
@pytest.mark.parametrize("method", ["GET", "POST", "PROPFIND"])
def test_no_path_below_a_password_is_too_long_for_it(build, tail, method):
    with Upstream() as up, passing(build, up, "/private/* http://{up}/:splat 200!") as server:
        response = server.get(f"/private/{tail}", "Content-Length: 0", method=method)
        assert (response.status, up.requests) == (401, [])
        assert server.get(f"/private/{tail}", basic("ann"), "Content-Length: 0", method=method).status == 200
        assert up.requests[0].line == f"{method} /{tail} HTTP/1.1"


@pytest.mark.parametrize("rule", ["/private/* http://{up}/:splat 200", "/* http://{up}/:splat 200"])
@pytest.mark.parametrize("tail", TOO_LONG)
def test_what_cannot_exist_needs_the_password_of_what_can(build, rule, tail):
    with Upstream() as up, passing(build, up, rule) as server:
        assert server.get(f"/private/{tail}").status == 401
        assert server.get(f"/private/{tail}", basic("ann")).status == 200
        assert len(up.requests) == 1


@pytest.mark.parametrize("rule", ["/private/*.php fcgi://{up}", "/private/*.php fcgi://{up} 200!", "/private/* fcgi://{up}/private/app.php/:splat 200!"])
@pytest.mark.parametrize("tail", ["x", *TOO_LONG])
def test_no_path_behind_a_protected_script_is_too_long_for_its_password(build, rule, tail):
    files = {"private/app.php": b"<?php"}
    with Upstream(environment, link=FcgiLink) as up, passing(build, up, rule, files) as server:
        assert server.get(f"/private/app.php/{tail}").status == 401
        assert not up.requests
        assert server.get(f"/private/app.php/{tail}", basic("ann")).status == 200
        assert len(up.requests) == 1


@pytest.mark.parametrize("name", TOO_LONG)
def test_a_name_that_is_too_long_is_that_of_a_missing_file(build, name):
    rules = "/token/* http://{up}/:splat 200\n/old/* /new/:splat 302\n/page/* /index.html 200"
    files = {"page/other.txt": b"", "token/other.txt": b"", "404.html": b"our 404"}
    with Upstream() as up, passing(build, up, rules, files) as server:
        for _ in range(80):  # until the names in the directories are remembered
            assert server.get(f"/page/{name}").body == b"start"
        assert server.get(f"/old/{name}")["Location"] == f"/new/{name}"
        for method in ("GET", "POST"):
            with server.connect() as connection:
                assert server.get(f"/token/{name}", "Content-Length: 0", method=method).status == 200
            assert up.requests[-1].line == f"{method} /{name} HTTP/1.1"
        assert server.get(f"/{name}").body == b"our 404"
        assert server.get(f"/{name}/").body == b"our 404"


def test_a_name_that_is_too_long_leads_to_the_fallback(build, root):
    with Server(build, root, "-j", "1", "--fallback", "http://else.example/") as server:
        assert server.get(f"/{SEGMENT}")["Location"] == f"http://else.example/{SEGMENT}"


@pytest.fixture
def deep(root):
    """Makes a directory whose path is so long that a .htaccess in it would have one that is too long. Returns its
    path."""
    names = ["d" * 240] * 16 + ["e" * (PATH_MAX - 8 - 16 * 241)]
    at = os.open(root.path, os.O_DIRECTORY)
    for name in names:
        os.mkdir(name, 0o755, dir_fd=at)
        below = os.open(name, os.O_DIRECTORY, dir_fd=at)
        os.close(at)
        at = below
    with os.fdopen(os.open("f", os.O_CREAT | os.O_WRONLY, 0o644, dir_fd=at), "w") as file:
        file.write("deep")
    os.close(at)
    root.write("_redirects", b"")
    yield "/" + "/".join(names)
    shutil.rmtree(root.path / names[0])


def test_where_no_password_can_be_looked_for_nobody_gets_in(build, root, deep):
    with Upstream() as up:
        root.write("_redirects", f"/none/* http://{up.address}/:splat 200!\n/{deep.split('/')[1]}/* http://{up.address}/:splat 200".encode())
        with Server(build, root, "-j", "1", "--upstream", "127.0.0.1") as server:
            for path in (f"{deep}/f", f"{deep}/g", f"{deep}/"):
                assert server.get(path).status == 403
            assert not up.requests
            assert server.get(f"{deep[:-1]}/f").status == 200  # this directory does not exist
            assert len(up.requests) == 1


@pytest.mark.parametrize("target", [".htaccess", "nowhere", "/"])
def test_a_password_that_is_no_file_admits_nobody(build, target):
    with Upstream() as up, passing(build, up, "/private/* http://{up}/:splat 200!") as server:
        (server.root.path / "loop").mkdir()
        (server.root.path / "loop/.htaccess").symlink_to(target)
        (server.root.path / "circle").symlink_to("circle")
        (server.root.path / "_redirects").write_text(f"/loop/* http://{up.address}/:splat 200!\n/circle/* http://{up.address}/:splat 200!")
        assert server.get("/loop/x").status == 403
        assert server.get(f"/loop/{PATH}").status == 403
        assert server.get("/circle/x").status == 403
        assert not up.requests


@pytest.mark.parametrize("rule", ["/*.php fcgi://{up}", "/run/* fcgi://{up}/private/:splat 200"])
def test_a_script_that_cannot_be_seen_is_neither_run_nor_sent_and_no_other_rule_answers(plain, root, rule):
    path, name = "/private/app.php" if rule.startswith("/*") else "/run/app.php", "private/app.php"
    tracer = ["strace", "-f", "-qq", "-o", "/dev/null", "-P", name, "-e", "trace=newfstatat", "-e", "inject=newfstatat:error=EIO"]
    with Upstream(environment, link=FcgiLink) as up:
        root.write(name, b"<?php")
        root.write("_redirects", f"{rule.format(up=up.address)}\n/* /index.html 200".encode())
        with Server(plain, root, "-j", "1", "--upstream", up.allowed, tracer=tracer) as server:
            assert server.get(path).status == 503
            assert not up.requests


def cannot_be_read(path, how):
    if how == "mode":
        path.write_text("/secret/* /404.html 404!")
        path.chmod(0o600)
    elif how == "directory":
        path.mkdir()
    else:
        path.symlink_to(how)


@pytest.mark.parametrize("how", ["mode", "directory", "nowhere", "_redirects"])
def test_a_site_whose_rules_cannot_be_read_is_denied_until_they_can(build, root, how):
    root.write("secret/x", b"secret")
    root.write("b.example/x", b"other")
    path = root.path / "_redirects"
    cannot_be_read(path, how)
    with Server(build, root, "-j", "1") as server:
        assert [server.get(path).status for path in ("/secret/x", "/a.txt", "/none")] == [403, 403, 403]
        assert eventually(lambda: any(line.startswith("gatling: _redirects: ") for line in server.errors))
        assert server.get("/x", host="b.example").status == 403  # they may hide files of inner sites, too
        root.write("new", b"/secret/* /404.html 404!")
        if how == "directory":
            path.rmdir()
        (root.path / "new").rename(path)
        assert eventually(lambda: server.get("/a.txt").status == 200)
        assert server.get("/x", host="b.example").status == 200
        assert server.get("/secret/x").status == 404
        path.unlink()
        cannot_be_read(path, how)
        root.write("_headers", b"/*\n  X-Looked: at both")
        assert eventually(lambda: server.get("/a.txt")["X-Looked"])
        assert [server.get(path).status for path in ("/secret/x", "/a.txt")] == [404, 200]  # as they were last


HIDING = {
    "/none 404!": 404,
    "/none 499!": 503,
    "/none 404 !": 503,
    "none.html 404!": 503,
    "/none 404! 5": 503,
    "/%zz 200!": 503,
    "http://127.0.0.1:9/:splat 200!": 503,  # without --upstream
    "/none 404": 200,
    "/none 302!x": 200,
    "/none 302! Country=de": 200,
    "/none 404! Country=de": 200,  # a rule with a condition never applies
    "/none 410! Language=de": 200,
}


@pytest.mark.parametrize("rule", HIDING)
def test_a_wrong_rule_that_would_hide_files_does_not_show_them(build, root, rule):
    root.write("secret/x", b"secret")
    root.write("_redirects", f"/secret/* {rule}".encode())
    with Server(build, root, "-j", "1") as server:
        assert [server.get(path).status for path in ("/secret/x", "/a.txt")] == [HIDING[rule], 200]
