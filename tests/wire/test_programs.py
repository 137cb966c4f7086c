"""Requests passed on over unix sockets, and to programs over FastCGI and SCGI."""

import contextlib
import gzip
import os
import re
import signal
import socket
import struct
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from gatling import Root, Server, certificate, children, eventually
from http2 import DATA, Http2, frame
from test_guard import HASHES, basic
from test_upstream import passing
from upstream import Link, Request, Upstream, echo

pytestmark = [pytest.mark.decided, pytest.mark.tcp]

BEGIN_REQUEST, END_REQUEST, PARAMS, STDIN, STDOUT, STDERR = 1, 3, 4, 5, 6, 7
OVERLOADED = 2


def record(kind, content=b"", padding=0, request=1, version=1):
    return struct.pack(">BBHHBB", version, kind, request, len(content), padding, 0) + content + bytes(padding)


END = record(END_REQUEST, bytes(8))


class FcgiLink(Link):
    """A FastCGI connection to a program."""

    def record(self):
        version, kind, request, length, padding, _ = struct.unpack(">BBHHBB", self.take(8))
        assert version == 1 and request == 1
        content = self.take(length)
        self.take(padding)
        return kind, content

    def stream(self, wanted):
        content = b""
        while True:
            kind, piece = self.record()
            assert kind == wanted
            if not piece:
                return content
            content += piece

    def head(self):
        kind, begin = self.record()
        assert (kind, begin) == (BEGIN_REQUEST, b"\0\1\0\0\0\0\0\0")
        data, fields, at = self.stream(PARAMS), [], 0

        def length():
            nonlocal at
            n = data[at] if data[at] < 128 else int.from_bytes(data[at : at + 4]) & 0x7FFFFFFF
            at += 1 if data[at] < 128 else 4
            return n

        while at < len(data):
            name, value = length(), length()
            fields.append((data[at : at + name].decode(), data[at + name : at + name + value].decode("latin-1")))
            at += name + value
        request = Request("", fields, b"")
        self.requests.append(request)
        return request

    def body(self, request):
        request.body = self.stream(STDIN)
        return request

    def say(self, data, piece=1000, padding=3):
        """Sends data as parts of a response."""
        for at in range(0, len(data), piece):
            self.send(record(STDOUT, data[at : at + piece], padding))

    def answer(self, body=b"ok", *fields):
        self.say("\r\n".join(["Content-Type: text/plain", *fields, "", ""]).encode() + body)
        self.send(record(STDOUT) + END)
        self.ended()  # the server closes the connection: the program is free for another one


class ScgiLink(Link):
    def head(self):
        length = b""
        while (octet := self.take(1)) != b":":
            length += octet
        words = self.take(int(length)).split(b"\0")
        assert self.take(1) == b"," and words.pop() == b""
        assert words[0] == b"CONTENT_LENGTH" and words[2:4] == [b"SCGI", b"1"]
        request = Request("", [(name.decode(), value.decode("latin-1")) for name, value in zip(words[::2], words[1::2])], b"")
        self.requests.append(request)
        return request

    def body(self, request):
        request.body = self.take(int(request["CONTENT_LENGTH"]))
        return request

    def answer(self, body=b"ok", *fields):
        self.send("\r\n".join(["Content-Type: text/plain", *fields, "", ""]).encode() + body)


def environment(link):
    """Answers with the variables that the program gets."""
    request = link.request()
    link.answer("\n".join(f"{name}={value}" for name, value in request.fields).encode() + b"\n\n" + request.body)


def told(response):
    lines = response.body.split(b"\n\n", 1)[0].decode("latin-1").split("\n")
    variables = dict(line.split("=", 1) for line in lines)
    assert len(variables) == len(lines)  # each once
    return variables


PROGRAMS = {"fcgi": FcgiLink, "scgi": ScgiLink}


@pytest.fixture(params=["fcgi", "scgi"])
def program(request):
    return request.param


def running(build, program, handle=environment, rule=None, unix=False, **options):
    upstream = Upstream(handle, link=PROGRAMS[program], unix=unix)
    return upstream, passing(build, upstream, rule=rule or f"/app/* {program}://{{}}{':' if unix else ''}/:splat 200", **options)


# --- unix sockets ---


def test_a_unix_socket_is_an_upstream(build):
    with Upstream(echo, unix=True) as upstream, passing(build, upstream, rule="/api/* http://{}:/x/:splat 200") as server, server.connect() as c:
        assert c.get("/api/a?b").body.startswith(b"GET /x/a?b HTTP/1.1\n")
        assert c.get("/api/c").status == 200
        assert len(upstream.links) == 1  # it is kept


def test_a_disk_of_certificates_that_hangs_does_not_hold_up_a_request(plain):
    cert, key = certificate()

    def handle(link):
        link.request()
        link.answer(b"ok", "Connection: close")

    def opens_files(process):
        return any(name.resolve() == server.root.path for name in Path(f"/proc/{process}/fd").iterdir())

    flags = ("--cert", cert, "--key", key, "--tls-port", "0")
    with Upstream(handle, unix=True) as upstream, passing(plain, upstream, rule="/api/* http://{}: 200", flags=flags) as server:
        (broker,) = filter(opens_files, children(server.pid))
        os.kill(broker, signal.SIGSTOP)
        try:
            assert [server.get("/api/").status for _ in range(3)] == [200] * 3
        finally:
            os.kill(broker, signal.SIGCONT)


def test_a_service_that_starts_again_has_a_new_directory(build):
    def handle(link):
        link.request()
        link.answer(b"ok", "Connection: close")

    with Upstream(handle, unix=True) as upstream, passing(build, upstream, rule="/api/* http://{}: 200") as server:
        assert server.get("/api/").status == 200
        moved = upstream.directory.rename(f"{upstream.directory}-old")
        assert server.get("/api/").status == 502
        eventually(lambda: any("cannot connect to" in line and "app.sock" in line for line in server.errors))
        moved.rename(upstream.directory)
        eventually(lambda: server.get("/api/").status == 200)


def test_only_sockets_of_allowed_directories_are_connected_to(build):
    with Upstream(echo, unix=True) as upstream:
        (upstream.directory / "file").write_bytes(b"")
        os.symlink("app.sock", upstream.directory / "link.sock")
        os.lchown(upstream.directory / "link.sock", 1, 1)
        directory = upstream.directory
        rules = f"/a http://unix:{directory}/file 200\n/b http://unix:{directory}/link.sock 200\n/c http://unix:{directory}/none 200\n"
        root = Root({"_redirects": f"{rules}/d http://unix:/run/app.sock 200\n".encode()})
        with Server(build, root, "--upstream", directory) as server:
            assert [server.get(path).status for path in ("/a", "/b", "/c", "/d")] == [502, 502, 502, 404]
            eventually(lambda: any("nothing is passed on to /run/app.sock without --upstream unix:/run/app.sock" in line for line in server.errors))
        assert not upstream.requests
        root.remove()


def test_a_socket_that_takes_no_more_connections_is_told(build, tmp_path):
    full = SimpleNamespace(address=f"unix:{tmp_path}/app.sock", allowed=str(tmp_path))
    with contextlib.ExitStack() as stack, passing(build, full, rule="/api/* http://{}:/ 200") as server:
        for directory in (tmp_path, *tmp_path.parents[:-2]):
            directory.chmod(0o755)
        listener = stack.enter_context(socket.socket(socket.AF_UNIX))
        listener.bind(f"{tmp_path}/app.sock")
        (tmp_path / "app.sock").chmod(0o777)
        listener.listen(0)
        with contextlib.suppress(BlockingIOError):
            while True:
                waiting = stack.enter_context(socket.socket(socket.AF_UNIX))
                waiting.setblocking(False)
                waiting.connect(f"{tmp_path}/app.sock")
        assert server.get("/api/").status == 503
        eventually(lambda: any(f"cannot connect to the upstream {tmp_path}/app.sock: its queue is full" in line for line in server.errors))


# --- programs ---


def test_what_a_program_is_told(build, program):
    upstream, server = running(build, program)
    with upstream, server as server, server.connect() as c:
        response = c.get("/app/a%20b?c=d&e", "Accept: a/b", "Accept: c", "Cookie: a=b", "Cookie: c=d", "Proxy: evil", "X_A: 1", "X-A-b: 2",
                         "Content-Type: x/y", "Content-Length: 5", "X-Forwarded-For: 192.0.2.1\r\n\r\nhello", host="www.example.org:81")  # fmt: skip
        assert response.status == 200 and response["Content-Type"] == "text/plain" and response.body.endswith(b"\n\nhello")
        expected = {"GATEWAY_INTERFACE": "CGI/1.1", "SERVER_SOFTWARE": "gatling", "SERVER_PROTOCOL": "HTTP/1.1", "SERVER_NAME": "www.example.org",
                    "SERVER_PORT": str(server.port), "REQUEST_SCHEME": "http", "REDIRECT_STATUS": "200", "REQUEST_METHOD": "GET",
                    "QUERY_STRING": "c=d&e", "REQUEST_URI": "/app/a%20b?c=d&e", "SCRIPT_NAME": "/app", "PATH_INFO": "/a b",
                    "DOCUMENT_URI": "/app/a b", "DOCUMENT_ROOT": str(server.root.path),
                    "REMOTE_ADDR": "127.0.0.1", "CONTENT_TYPE": "x/y", "CONTENT_LENGTH": "5", "HTTP_HOST": "www.example.org:81",
                    "HTTP_ACCEPT": "a/b, c", "HTTP_COOKIE": "a=b; c=d", "HTTP_X_A_B": "2"}  # fmt: skip
        if program == "scgi":
            expected |= {"SCGI": "1", "PATH_TRANSLATED": f"{server.root.path}/a b"}
        if server.tls:
            expected |= {"HTTPS": "on", "REQUEST_SCHEME": "https"}
        assert told(response) == expected


@pytest.mark.parametrize("trust,proto,scheme", [("127.0.0.1", "https", "https"), ("127.0.0.1,forwarded", "https", "http"), ("192.0.2.1", "https", "http")])
def test_the_scheme_is_that_which_a_trusted_proxy_says(build, program, trust, proto, scheme):
    upstream, server = running(build, program, flags=("--trust", trust))
    with upstream, server as server:
        variables = told(server.get("/app/x", "X-Forwarded-For: 192.0.2.7", f"X-Forwarded-Proto: {proto}"))
        expected = "https" if server.tls else scheme
        assert variables["REQUEST_SCHEME"] == expected and variables.get("HTTPS") == ("on" if expected == "https" else None)


def test_who_was_authenticated_is_told(build, program):
    files = {"app/.htaccess": f"Realm\nann:{HASHES['md5crypt']}\n".encode()}
    upstream, server = running(build, program, files=files)
    with upstream, server as server, server.connect() as c:
        assert c.get("/app/x").status == 401
        variables = told(c.get("/app/x", basic("ann")))
        assert variables["REMOTE_USER"] == "ann" and variables["AUTH_TYPE"] == "Basic"


@pytest.mark.parametrize("path,name,info", [("/index.php", "/index.php", None), ("/index.php/a/b", "/index.php", "/a/b"), ("/index.php/", "/index.php", "/"),
                                            ("/dir.php/a.php", "/dir.php/a.php", None), ("/in%64ex.php", "/index.php", None),
                                            ("/a/../index.php", "/index.php", None)])  # fmt: skip
def test_a_script_of_the_site_is_found(build, path, name, info):
    files = {"index.php": b"<?php", "dir.php/a.php": b"<?php"}
    upstream, server = running(build, "fcgi", rule="/*.php fcgi://{} 200", files=files)
    with upstream, server as server:
        variables = told(server.get(f"{path}?a"))
        assert (variables["SCRIPT_NAME"], variables.get("PATH_INFO"), variables["QUERY_STRING"]) == (name, info, "a")
        assert variables["SCRIPT_FILENAME"] == f"{server.root.path}{name}"


@pytest.mark.parametrize("path,name", [("/wp-admin/", "/wp-admin/index.php"), ("/wp-admin/?a=b", "/wp-admin/index.php"),
                                       ("/wp-admin/none", "/index.php"), ("/empty/", "/index.php"), ("/none/", "/index.php"),
                                       ("/p%%6c%61in/../wp-admin//".replace("%%", "%"), "/wp-admin/index.php"), ("/plain/", None)])  # fmt: skip
def test_a_directory_is_answered_by_its_own_index_php(build, path, name):
    files = {name: b"<?php" for name in ("index.php", "wp-admin/index.php", "plain/index.php")} | {"plain/index.html": b"page", "empty/a": b"a"}
    upstream, server = running(build, "fcgi", rule="/*.php fcgi://{0} 200\n/* fcgi://{0}/index.php 200", files=files)
    with upstream, server as server:
        response = server.get(path)
        if not name:
            assert response.body == b"page" and not upstream.requests
            return
        variables = told(response)
        assert variables["SCRIPT_NAME"] == name and variables["SCRIPT_FILENAME"] == f"{server.root.path}{name}"
        assert variables["REQUEST_URI"] == path and variables["QUERY_STRING"] == path.partition("?")[2]
        posted = told(server.get(path, "Content-Length: 3\r\n\r\na=b", method="POST"))
        assert posted["SCRIPT_NAME"] == name and posted["REQUEST_METHOD"] == "POST"


def test_an_index_php_is_only_run_by_a_rule_for_it_and_with_its_passwords(build):
    files = {"a/index.php": b"<?php", "b/index.php": b"<?php", "b/.htaccess": f"Realm\nann:{HASHES['md5crypt']}\n".encode(), "c/index.php/x": b"",
             ".hidden/index.php": b"<?php", "moved/index.php": b"<?php"}  # fmt: skip
    upstream, server = running(build, "fcgi", rule="/moved/index.php /elsewhere 301!\n/:dir/*.php fcgi://{0} 200", files=files)
    with upstream, server as server:
        assert told(server.get("/a/"))["SCRIPT_NAME"] == "/a/index.php"
        assert server.get("/b/").status == 401 and told(server.get("/b/", basic("ann")))["SCRIPT_NAME"] == "/b/index.php"
        before = len(upstream.requests)
        assert server.get("/").status == 200 and server.get("/c/").status == 200  # listings
        assert server.get("/.hidden/").status == 404 and server.get("/moved/").status == 200
        assert server.get("/a").status == 301
        assert len(upstream.requests) == before


@pytest.mark.parametrize("path,status", [("/none.php", 404), ("/picture.jpg/x.php", 404), ("/picture.jpg", 200), ("/none.php/x", 404), ("/dir.php", 301),
                                         ("/dir.php/", 200), ("/_redirects/a.php", 404)])  # fmt: skip
def test_what_is_no_script_is_never_run(build, path, status):
    """In front of PHP, a picture that a user has uploaded must not become a script."""
    files = {"index.php": b"<?php", "picture.jpg": b"<?php", "dir.php/a.txt": b""}
    upstream, server = running(build, "fcgi", rule="/*.php fcgi://{} 200", files=files)
    with upstream, server as server:
        assert server.get(path).status == status
        assert not upstream.requests


@pytest.mark.parametrize("rule,path,script", [
    ("/app/* fcgi://{}/:splat", "/app/uploads/evil.jpg", None),
    ("/app/* fcgi://{}/:splat", "/app/uploads/evil.jpg/x.php", None),
    ("/app/* fcgi://{}/:splat", "/app/index.php/a", "/index.php"),
    ("/app/* fcgi://{}/uploads/:splat", "/app/evil.jpg", None),
    ("/app/* fcgi://{}/uploads/evil:splat", "/app/.jpg", None),
    ("/app p=:p fcgi://{}/run/:p", "/app?p=../uploads/evil.jpg", None),
    *(("/app p=:p fcgi://{}/tool.tcl/:p", f"/app?p={value}", None) for value in ("../index.php", "..%2Findex.php", "%2e%2e/index.php", "..", "a/../../index.php")),
    ("/app p=:p fcgi://{}/tool.tcl/:p", "/app?p=index.php", "/tool.tcl"),
    ("/app p=:p fcgi://{}/tool.:p/index.php", "/app?p=.", None),
    ("/app p=:p fcgi://{}/a:p", "/app?p=/../index.php", None),
    ("/app/:x-:y fcgi://{}/tool.tcl/:x:y/index.php", "/app/a-.", "/tool.tcl"),
    ("/app/x:x-:y fcgi://{}/tool.tcl/:x:y/index.php", "/app/x.-.", None),
    ("/app p=:p fcgi://{}/tool.tclx:p", "/app?p=/../tool.tcl", None),
    ("/app/:x fcgi://{}/tool.:x", "/app/tcl", None),
    ("/app/* fcgi://{}/%74ool.tcl/:splat", "/app/x", "/tool.tcl"),
    ("/app/* fcgi://{}/tool.tcl?a=:splat", "/app/x", "/tool.tcl"),
    ("/app/* fcgi://{}/:splat.tcl", "/app/tool", "/tool.tcl"),
])  # fmt: skip
def test_a_client_chooses_no_script_but_one_with_the_name_of_a_script(build, rule, path, script):
    files = {name: b"<?php" for name in ("index.php", "tool.tcl", "uploads/evil.jpg")}
    upstream, server = running(build, "fcgi", rule=rule, files=files)
    with upstream, server as server:
        response = server.get(path)
        if script:
            assert told(response)["SCRIPT_NAME"] == script
        else:
            assert response.status == 404 and not upstream.requests


@pytest.mark.parametrize("rules,path", [
    ("/*.php fcgi://{} 200\n/front/* /index.php 200", "/front/x"),
    ("/*.html fcgi://{} 200", "/about"),
    ("/cgi-bin/* fcgi://{} 200", "/cgi-bin/"),
    ("/*.php fcgi://{} 200", "/only.php"),
    ("*.php fcgi://{} 200", "/index.php"),
    ("/*.php 200 fcgi://{}", "/index.php"),
    ("/*.php fcgi:{} 200", "/index.php"),
    ("/*.php id=:id fcgi://{} 200", "/index.php"),
    ("https://example.org/*.php fcgi://{} 200", "/index.php"),
    ("/app/* fcgi://{}/index.php 200", "/index.php"),
    ("/* fcgi://{}/run/:splat 200", "/index.php"),
    ("/x/* fcgi://{}/tool.tcl 200", "/tool.tcl"),
    ("/*.php fcgi://{} 200", "/loop" * 33 + "/index.php"),
    ("/x http://{} 200", "/example.org/index.php"),
    ("/*.html fcgi://{} 200", "/none"),
    ("/*.php fcgi://{} 200", "/copied.php.br"),
    ("/x http://{} 200", "/copied.php.br"),
    ("/x fcgi://{}/copied.tcl 200", "/copied.tcl.zst"),
])  # fmt: skip
def test_a_script_is_never_sent_whatever_leads_to_it(build, rules, path):
    names = ["index.php", "about.html", "404.html", "cgi-bin/index.html", "tool.tcl", "example.org/index.php"]
    names += ["copied.php.br", "copied.tcl.zst"]  # made by what compresses all files in a directory
    files = {name: b"secret" for name in names} | {"only.php.gz": gzip.compress(b"secret")}
    upstream, server = running(build, "fcgi", rule=rules, files=files)
    with upstream, server as server, server.connect() as c:
        os.symlink(".", server.root.path / "loop")
        for method, field in (("GET", "X: y"), ("GET", "Range: bytes=0-3"), ("POST", "X: y")):
            assert b"secret" not in c.get(path, field, method=method).body


def test_a_program_is_told_the_path_and_not_what_else_was_in_memory(build):
    upstream, server = running(build, "fcgi", rule="/*.php fcgi://{} 200", files={"env.php": b""})
    with upstream, server as server, server.connect() as c:
        for length in (1000, 4000, 8000):
            variables = told(c.get("/env.php/x?" + "/pic.jpg" * (length // 8), "X: " + "y" * 3000))
            assert variables["SCRIPT_FILENAME"] == f"{server.root.path}/env.php" and variables["PATH_INFO"] == "/x"


def test_a_script_has_the_passwords_of_its_own_directory(build):
    files = {"admin/.htaccess": f"Realm\nann:{HASHES['md5crypt']}\n".encode(), "admin/x.php": b""}
    upstream, server = running(build, "fcgi", rule="/run/* fcgi://{}/:splat 200", files=files)
    with upstream, server as server, server.connect() as c:
        assert c.get("/run/admin/x.php").status == 401
        assert told(c.get("/run/admin/x.php", basic("ann")))["REMOTE_USER"] == "ann"


@pytest.mark.parametrize("where", ["", "up/"])
@pytest.mark.parametrize("section", ['Files "*.php"', "FilesMatch \\.php$", "FilesMatch ^(x|index)"])
@pytest.mark.parametrize("rule", ["/*.php fcgi://{} 200", "/*.php fcgi://{0}\n/run/* fcgi://{0}/:splat", "/*.php fcgi://{}\n/* /index.php 200"])
def test_a_script_that_a_section_of_htaccess_denies_is_not_run(build, rule, section, where):
    denied = f"<{section}>\nRequire all denied\n</{section.split()[0]}>\n".encode()
    files = {f"{where}.htaccess": denied, "up/x.php": b"", "up/index.php": b"", "other/y.php": b"", "run/none": b""}
    upstream, server = running(build, "fcgi", rule=rule, files=files)
    with upstream, server as server, server.connect() as c:
        for path in ("/up/x.php", "/up/x.php/info", "/up/x.php/", "/up/x.php?a", "/up//x.php", "/up/index.php", "/up/", "/run/up/x.php", "/run/up/x.php/info"):
            assert path.startswith("/run/") and "/run/" not in rule or c.get(path).status == 403, path
        assert c.get("/up/x.php", method="POST").status in (403, 405)
        if where:
            assert told(c.get("/other/y.php"))["SCRIPT_NAME"] == "/other/y.php"


def test_a_path_that_a_section_of_htaccess_denies_is_not_passed_on(build):
    files = {".htaccess": b'<Files "*.php">\nRequire all denied\n</Files>\n'}
    with Upstream() as upstream, passing(build, upstream, rule="/* http://{} 200", files=files) as server, server.connect() as c:
        assert [c.get(path).status for path in ("/a/x.php", "/a/x.php?b", "/a/x")] == [403, 403, 200]


def test_what_visitors_have_uploaded_is_sent_and_not_run_as_the_manual_says(build):
    page = (Path(__file__).parents[2] / "man/gatling-site.5").read_text()
    first = re.search(r"^\.Dl (/uploads/\* .*)$", page, re.MULTILINE)[1]
    files = {"uploads/x.php": b"<?php", "uploads/x.jpg": b"picture", "uploads/dir/index.php": b"<?php", "a.php": b"<?php"}
    upstream, server = running(build, "fcgi", rule=f"{first}\n/*.php fcgi://{{}} 200", files=files)
    with upstream, server as server, server.connect() as c:
        assert c.get("/uploads/x.jpg").body == b"picture" and told(c.get("/a.php/y"))["PATH_INFO"] == "/y"
        for path in ("/x.php", "/x.php/", "/x.php/y", "/x.php/y.php", "/%78.php", "//x.php", "/dir/", "/x.PHP", "/none.php"):
            assert c.get(f"/uploads{path}").status in (403, 404)
        assert len(upstream.links) == 1


def test_fields_that_a_program_would_take_for_others_are_dropped(build, program):
    upstream, server = running(build, program)
    with upstream, server as server:
        response = server.get("/app/x", "X.Forwarded.For: 1", "X!Y: 1", "X_Y: 1", "Content-Type: a/b", "Content-Type: c/d", "X-Z: 1")
        variables = told(response)
        assert {name for name in variables if name.startswith("HTTP_")} == {"HTTP_HOST", "HTTP_X_Z"}
        assert variables["CONTENT_TYPE"] == "a/b, c/d"


def test_the_mount_point_without_a_slash_is_the_script(build, program):
    upstream, server = running(build, program)
    with upstream, server as server:
        for path in ("/app", "/app/"):
            variables = told(server.get(path))
            assert (variables["SCRIPT_NAME"], variables["PATH_INFO"]) == ("/app", "/")


def test_a_site_in_a_directory_has_its_own_scripts(build):
    files = {"www.example.org/a.php": b"<?php", "b.php": b"<?php"}
    with Upstream(environment, link=FcgiLink) as upstream:
        root = Root({**files, "www.example.org/_redirects": f"/*.php fcgi://{upstream.address} 200\n".encode()})
        with Server(build, root, "-v", "--upstream", upstream.allowed) as server:
            variables = told(server.get("/a.php", host="www.example.org"))
            assert variables["DOCUMENT_ROOT"] == f"{root.path}/www.example.org"
            assert variables["SCRIPT_FILENAME"] == f"{root.path}/www.example.org/a.php"
            assert server.get("/b.php", host="www.example.org").status == 404
        root.remove()


def test_one_script_may_be_for_all_that_is_no_file(build):
    files = {"index.php": b"<?php", "other.php": b"<?php"}
    upstream, server = running(build, "fcgi", rule="/* fcgi://{}/index.php 200", files=files)
    with upstream, server as server:
        variables = told(server.get("/blog/today?a"))
        assert variables["SCRIPT_NAME"] == "/index.php" and variables["REQUEST_URI"] == "/blog/today?a" and variables["QUERY_STRING"] == "a"
        assert server.get("/there.txt").body == b"there" and server.get("/").body == b"hello"
        for path in ("/index.php", "/other.php"):  # and no script is sent
            assert told(server.get(path))["SCRIPT_NAME"] == "/index.php"


@pytest.mark.parametrize("rule", ["/*.php fcgi://unix:/run/none/php.sock 200", "/*.php fcgi://127.0.0.1:1x 200", "/*.php fcgi:// 200",
                                  "/*.php fcgi://{} 404", "/*.php fcgi://{} 200 Country=x", "/*.php fcgi://{}/%zz 200"])  # fmt: skip
def test_a_wrong_rule_never_shows_a_script(build, rule):
    upstream, server = running(build, "fcgi", rule=rule, files={"index.php": b"secret"})
    with upstream, server as server:
        assert server.get("/index.php").status == 503 and server.get("/there.txt").status == 200
        assert server.get("/index.php", method="POST").status == 503
        eventually(lambda: any("_redirects:1" in line for line in server.errors))


@pytest.mark.parametrize("length", [0, 1, 65535, 65536, 2_000_000])
def test_content_goes_through_in_both_directions(build, program, length):
    content = (bytes(range(256)) * (length // 256 + 1))[:length]
    upstream, server = running(build, program, lambda link: link.answer(link.request().body), unix=True)
    with upstream, server as server, server.connect() as c:
        for _ in range(2):
            c.send(f"POST /app/x HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n".encode() + content)
            assert c.response().body == content


@pytest.mark.clear
def test_content_over_http2(build, program):
    content = bytes(range(256)) * 200
    upstream, server = running(build, program)
    with upstream, server as server, Http2(server) as c:
        stream = c.ask("/app/x", ("content-length", str(len(content))), method="POST", end=False)
        for at in range(0, len(content), 100):
            piece = content[at : at + 100]
            c.send(len(piece).to_bytes(3) + b"\0" + bytes([at + 100 >= len(content)]) + stream.to_bytes(4) + piece)
        answer = c.answers(stream)[0]
        assert answer.status == 200 and answer.body.split(b"\n\n", 1)[1] == content
        assert "CONTENT_LENGTH=51200" in answer.body.split(b"\n\n", 1)[0].decode()


def test_scgi_needs_to_know_how_long_content_is(build):
    upstream, server = running(build, "scgi")
    with upstream, server as server, server.connect() as c:
        c.send(b"POST /app/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n")
        assert c.response().status == 411 and not upstream.requests


@pytest.mark.parametrize("length", [0, 5, 32768, 200_000, 1_000_000])
def test_content_in_chunks_has_a_length_if_it_is_short(build, length):
    content = (bytes(range(256)) * (length // 256 + 1))[:length]
    upstream, server = running(build, "fcgi")
    with upstream, server as server, server.connect() as c:
        c.send(b"POST /app/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
        for at in range(0, length, 1000):
            piece = content[at : at + 1000]
            c.send(b"%x\r\n%b\r\n" % (len(piece), piece))
        c.send(b"0\r\n\r\n")
        response = c.response()
        variables = told(response)
        assert response.body.endswith(b"\n\n" + content)
        assert variables.get("CONTENT_LENGTH") == (str(length) if length <= 32768 else None)
        assert variables.get("HTTP_TRANSFER_ENCODING") == (None if length <= 32768 else "chunked")


def test_a_client_that_waits_for_a_100_gets_one(build, program):
    upstream, server = running(build, program)
    with upstream, server as server, server.connect() as c:
        c.send(b"POST /app/x HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n")
        assert c.response().status == 100
        c.send(b"hello")
        response = c.response()
        assert response.body.endswith(b"hello") and "HTTP_EXPECT" not in told(response)


@pytest.mark.parametrize("head,status,fields", [
    (b"Content-Type: a/b\n\n", 200, {"Content-Type": "a/b"}),
    (b"Status: 404 Not Found\r\nX: y\r\n\r\n", 404, {"X": "y", "Status": None}),
    (b"Status: 404\n\n", 404, {}),
    (b"Location: /elsewhere\r\n\r\n", 302, {"Location": "/elsewhere"}),
    (b"Status: 201 Created\r\nLocation: /new\r\n\r\n", 201, {"Location": "/new"}),
    (b"Location: /new\r\nStatus: 201 Created\r\n\r\n", 201, {"Location": "/new"}),
    (b"\n", 200, {}),
    (b"Connection: close\r\nServer: x\r\nDate: y\r\n\r\n", 200, {"Server": "gatling"}),
])  # fmt: skip
@pytest.mark.parametrize("piece", [1, 1000])
def test_the_head_of_a_response(build, head, status, fields, piece):
    def handle(link):
        link.request()
        link.say(head + b"content", piece)
        link.send(END)
        link.ended()

    upstream, server = running(build, "fcgi", handle)
    with upstream, server as server, server.connect() as c:
        response = c.get("/app/x")
        assert response.status == status and response.body == b"content"
        assert {name: response[name] for name in fields} == fields


BAD_ANSWERS = {
    "nothing": b"",
    "no head": record(STDOUT, b"hello") + END,
    "no header": b"HTTP/1.1 200 OK\r\n\r\n",
    "another version": record(STDOUT, b"\n", version=2) + END,
    "another request": record(STDOUT, b"\n", request=2) + END,
    "a status that is none": record(STDOUT, b"Status: 20\n\n") + END,
    "an interim status": record(STDOUT, b"Status: 101 X\n\n") + END,
    "a coding": record(STDOUT, b"Transfer-Encoding: chunked\n\n0\n\n") + END,
    "two lengths": record(STDOUT, b"Content-Length: 1\nContent-Length: 1\n\na") + END,
    "a folded line": record(STDOUT, b"A: b\n c\n\n") + END,
    "a short end": record(END_REQUEST, b"a"),
    "1 MB of fields": b"".join([record(STDOUT, b"X: " + b"a" * 60000 + b"\n")] * 18),
}


@pytest.mark.parametrize("name", BAD_ANSWERS)
def test_a_malformed_response_is_a_502(build, name):
    def handle(link):
        link.request()
        link.send(BAD_ANSWERS[name])

    upstream, server = running(build, "fcgi", handle)
    with upstream, server as server, server.connect() as c:
        assert c.get("/app/x").status == 502
        c.assert_in_step()


@pytest.mark.parametrize("answer", [b"\r\n" + b"a" * 100, b"Content-Length: 200\r\n\r\n" + b"a" * 100])
def test_a_response_that_is_cut_short_is_never_taken_for_a_whole_one(build, answer):
    def handle(link):
        link.request()
        link.say(answer)

    upstream, server = running(build, "fcgi", handle)
    with upstream, server as server, server.connect() as c:
        c.send(b"GET /app/x HTTP/1.1\r\nHost: a\r\n\r\n")
        assert not c.rest().endswith(b"0\r\n\r\n")


def test_a_program_with_too_much_to_do_is_a_503(build):
    def handle(link):
        link.request()
        link.send(record(END_REQUEST, bytes([0, 0, 0, 0, OVERLOADED, 0, 0, 0])))
        link.ended()

    upstream, server = running(build, "fcgi", handle)
    with upstream, server as server:
        assert server.get("/app/x").status == 503
        eventually(lambda: any(f"upstream {upstream.address} has refused: it has too much to do" in line for line in server.errors))


def test_what_a_program_complains_about_is_told_up_to_a_limit(build):
    def handle(link):
        link.request()
        link.send(record(STDERR, b"it \x1b[1m fails\nand a"))
        link.send(record(STDERR, b"gain"))
        link.send(record(STDERR, b"\n" + b"x" * 60_000))
        link.answer()

    upstream, server = running(build, "fcgi", handle)
    with upstream, server as server:
        assert server.get("/app/x").body == b"ok"
        for line in ("it ?[1m fails", "and again"):
            eventually(lambda line=line: any(e.endswith(f"{upstream.address} says: {line}") for e in server.errors))
        assert sum(len(line) for line in server.errors) < 10_000


def test_a_program_that_stalls_costs_only_its_own_request(build, program):
    release = threading.Event()

    def handle(link):
        if link.head()["PATH_INFO"] == "/slow":
            release.wait(20)
        link.answer()

    upstream, server = running(build, program, handle)
    with upstream, server as server, server.connect() as slow, server.connect() as c:
        slow.send(b"GET /app/slow HTTP/1.1\r\nHost: a\r\n\r\n")
        assert all(c.get("/app/x").body == b"ok" for _ in range(10))
        release.set()
        assert slow.response().body == b"ok"


@pytest.mark.parametrize("connect", [Server.connect, Http2], ids=["http1", "http2"])
def test_content_without_a_length_that_stops_is_not_waited_for(build, connect):
    """It is held back, to tell the program its length."""
    upstream, server = running(build, "fcgi", flags=("-T", "1"))
    with upstream, server as server, connect(server) as c:
        if connect is Http2:
            c.ask("/app/x", method="POST", end=False)
            c.send(frame(DATA, 0, 1, b"x" * 100))
        else:
            c.send(b"POST /app/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n64\r\n" + b"x" * 100)
        begun, used = time.monotonic(), server.cpu_seconds()
        while c.socket.recv(4096):
            assert time.monotonic() < begun + 10
        assert server.cpu_seconds() - used < 0.5  # meanwhile nothing is done


def test_more_connections_than_a_program_takes_are_a_503(build):
    with socket.socket(socket.AF_UNIX) as listener, Upstream(unix=True) as upstream:
        path = upstream.directory / "full.sock"
        listener.bind(str(path))
        path.chmod(0o777)
        listener.listen(0)
        root = Root({"_redirects": f"/* http://unix:{path}: 200\n".encode()})
        with Server(build, root, "-j", "1", "--upstream", upstream.directory) as server:
            waiting = [server.connect().send(b"GET /x HTTP/1.1\r\nHost: a\r\n\r\n") for _ in range(3)]
            statuses = []
            for c in waiting[1:]:
                c.socket.settimeout(1)
                try:
                    statuses.append(c.response().status)
                except TimeoutError:
                    pass
            assert set(statuses) == {503}
            for c in waiting:
                c.reset()
        root.remove()


@pytest.mark.clear
@pytest.mark.parametrize(
    "directory, script, allowed, host, path",
    [
        ("www.example.org/", "app.inc", True, "unknown.example", "/www.example.org/app.inc"),
        ("", "lib.example/app.inc", True, "lib.example", "/app.inc"),
        ("www/", "app.inc", True, "unknown.example", "/www/app.inc"),
        ("", "app.inc", False, "localhost", "/app.inc"),
    ],
    ids=["of a site in this one", "of the site around this one", "of a directory in this one", "a rule that is refused"],
)
def test_the_source_of_a_program_is_sent_in_no_other_way(build, directory, script, allowed, host, path):
    rule = f"/api/*  fcgi://127.0.0.1:9/{script}  200\n".encode()
    root = Root({f"{directory}_redirects": rule, f"{directory}{script}": b"secret", "index.html": b"root"})
    with Server(build, root, "-j", "1", *(("--upstream", "127.0.0.1:9") if allowed else ())) as server:
        response = server.get(path, host=host)
        assert response.status == 403 and b"secret" not in response.body


@pytest.mark.clear
def test_the_source_of_a_program_is_sent_with_no_error_either(build):
    """A rule of the site around this one runs its error page."""
    root = Root({"_redirects": b"/a.example/404.html  fcgi://127.0.0.1:9  200\n", "a.example/404.html": b"secret", "b.example/404.html": b"page"})
    with Server(build, root, "-j", "1", "--upstream", "127.0.0.1:9") as server:
        response = server.get("/nothing", host="a.example")
        assert response.status == 404 and b"secret" not in response.body
        assert server.get("/nothing", host="b.example").body == b"page"
    root.remove()
