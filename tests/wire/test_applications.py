"""Applications as they are run, behind the server, with their own clients."""

import contextlib
import glob
import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from browser import Browser
from gatling import Root, Server, eventually, unprivileged
from processes import Process
from test_proxy import haproxy

pytestmark = pytest.mark.others

HERE = Path(__file__).parent / "applications"
CLIENT = """
import sys
from websockets.sync.client import connect
with connect(sys.argv[1]) as socket:
    for n in range(100):
        socket.send(f"hello {n}")
        assert socket.recv(20) == f"/ws hello {n}"
    socket.send(b"x" * 1000000)
    assert socket.recv(20) == "/ws 1000000"
    pong = socket.ping()
    assert pong.wait(20)
print("done")
"""


@contextlib.contextmanager
def directory():
    """Makes a directory for sockets that everybody may write to."""
    path = Path(tempfile.mkdtemp(prefix="gatling-wire-"))
    path.chmod(0o777)
    yield path
    shutil.rmtree(path)


@contextlib.contextmanager
def running(command, socket, **options):
    """Runs a program that listens at a path. It ends with its children."""
    output = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with Process(command, **output, **options) as process:
        eventually(lambda: socket.exists() or process.poll() is not None)
        assert process.poll() is None, command
        socket.chmod(0o777)
        yield process
        process.stop(whole_group=True)


@contextlib.contextmanager
def serving(build, upstream, rules, source=None, **options):
    """Runs a server in front of it, with a copy of the files in a folder of applications."""
    root = Root({"index.html": b"hello", "favicon.ico": b"", "there.txt": b"there", "_redirects": rules.encode()})
    if source:
        shutil.copytree(HERE / source, root.path, dirs_exist_ok=True)
    with Server(build, root, "-j", "1", "--upstream", upstream, **options) as server:
        yield server
    root.remove()


def curl(server, path, *arguments, data=None):
    command = ["curl", "-sk", "--max-time", "60", *arguments, server.url(path)]
    return subprocess.run(command, input=data, check=True, capture_output=True).stdout


# --- ASGI ---


@pytest.fixture(scope="module")
def uvicorn(venv):
    command = [venv / "bin/python", "-m", "uvicorn", "--port", "0", "--ws-max-size", "2000000", "asgi_application:application"]
    with subprocess.Popen(command, cwd=HERE, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
        for line in process.stderr:
            if found := re.search(r"running on http://127\.0\.0\.1:(\d+)", line):
                break
        yield int(found.group(1))
        process.kill()


@pytest.fixture(scope="module")
def asgi(build, uvicorn):
    rules = f"/app/* http://127.0.0.1:{uvicorn}/:splat 200\n"
    with serving(build, f"localhost:{uvicorn}", rules) as server:
        yield server


def test_content_of_an_asgi_application(asgi):
    with asgi.connect() as c:
        scheme = "https" if asgi.tls else "http"
        assert c.get("/app/").body == f"127.0.0.1 {scheme} ".encode()
        content = bytes(range(256)) * 20_000
        c.send(f"POST /app/ HTTP/1.1\r\nHost: a\r\nContent-Length: {len(content)}\r\n\r\n".encode() + content)
        assert c.response().body.endswith(content)


def test_events_come_when_they_happen(asgi):
    with asgi.connect() as c:
        c.send(b"GET /app/events HTTP/1.1\r\nHost: a\r\n\r\n")
        eventually(lambda: b"data: 0" in c.buffer or not c._fill())  # pylint: disable=protected-access
        assert b"data: 2" not in c.buffer
        assert c.response().body == b"data: 0\n\ndata: 1\n\ndata: 2\n\n"


@pytest.mark.clear
def test_websocket(asgi, venv):
    url = f"ws://127.0.0.1:{asgi.port}/app/ws"
    done = subprocess.run([venv / "bin/python", "-c", CLIENT, url], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "done\n", done.stderr


SOCKET = """new Promise((resolve, reject) => {
    const socket = new WebSocket(`wss://${location.host}/app/ws`), said = [];
    socket.onopen = () => socket.send("hello");
    socket.onerror = () => reject("no connection");
    socket.onmessage = event => {
        said.push(event.data);
        if (said.length < 3) socket.send("x".repeat(said.length * 100));
        else socket.close();
    };
    socket.onclose = () => resolve(said.map(text => text.length));
})"""
EVENTS = """new Promise(resolve => {
    const source = new EventSource("/app/events"), said = [];
    source.onmessage = event => {
        said.push(event.data);
        if (said.length == 3) { source.close(); resolve(said); }
    };
})"""


def test_a_browser_has_websocket_and_events_over_http2(asgi):
    if not asgi.tls:
        pytest.skip("of TLS")
    with Browser() as browser:
        browser.go(asgi.url("/"))
        assert browser.run("performance.getEntriesByType('navigation')[0].nextHopProtocol") == "h2"
        assert browser.run(EVENTS) == ["0", "1", "2"]
        assert browser.run(SOCKET) == [len("/ws hello"), len("/ws ") + 100, len("/ws ") + 200]
        assert browser.run("fetch('/app/', {method: 'POST', body: 'a'.repeat(300000)}).then(r => r.text()).then(t => t.length)") > 300000
        assert not browser.messages
    eventually(lambda: any("CONNECT /app/ws HTTP/2.0" in line for line in asgi.lines))  # it is not another connection


# --- Node ---


@pytest.fixture(scope="module")
def express(build, node):
    with directory() as sockets:
        path = sockets / "app.sock"
        with running(["node", HERE / "express.js", node, path], path):
            with serving(build, sockets, f"/app/* http://unix:{path}:/:splat 200\n") as server:
                yield server


def test_an_express_application(express):
    assert json.loads(curl(express, "/app/?a=b", "-H", "Host: www.example.org")) == {
        "ip": "127.0.0.1", "protocol": "https" if express.tls else "http", "host": "www.example.org", "query": {"a": "b"}}  # fmt: skip
    said = curl(express, "/app/json", "-H", "Content-Type: application/json", "-d", '{"a": [1, 2]}', "-w", " %{http_code}")
    assert said == b'{"a":[1,2]} 201'
    assert curl(express, "/app/form", "-d", "name=ann") == b"hello ann"
    assert curl(express, "/app/file") == (HERE / "express.js").read_bytes()
    assert curl(express, "/app/file", "-r", "3-20") == (HERE / "express.js").read_bytes()[3:21]
    etag = re.search(r"ETag: (\S+)", curl(express, "/app/file", "-I", "--http1.1").decode()).group(1)
    assert curl(express, "/app/file", "-H", f"If-None-Match: {etag}", "-o", "/dev/null", "-w", "%{http_code}") == b"304"
    assert curl(express, "/there.txt") == b"there"


def test_events_of_an_express_application(express):
    assert curl(express, "/app/events", "-N") == b"".join(b"id: %d\ndata: %d\n\n" % (n, n) for n in range(3))


# --- PHP ---

POOL = """[global]
daemonize = no
error_log = {sockets}/error.log
[www]
{user}
listen = {sockets}/php.sock
listen.mode = 0666
pm = static
pm.max_children = 3
catch_workers_output = no
"""


@pytest.fixture(scope="module")
def php(build):
    (program,) = glob.glob("/usr/sbin/php-fpm*") or [shutil.which("php-fpm")]
    with directory() as sockets:
        user = "user = nobody\ngroup = nogroup" if os.geteuid() == 0 else ""
        (sockets / "fpm.conf").write_text(POOL.format(sockets=sockets, user=user))
        with running([program, "-y", sockets / "fpm.conf", "-c", "/nonexistent", "-d", f"session.save_path={sockets}"], sockets / "php.sock"):
            rules = f"/*.php fcgi://unix:{sockets}/php.sock 200\n/app/* fcgi://unix:{sockets}/php.sock:/index.php/:splat 200\n"
            with serving(build, sockets, rules, "php") as server:
                yield server


@pytest.mark.decided
@pytest.mark.tcp
def test_php_knows_where_it_is(php):
    told = dict(line.split("=", 1) for line in curl(php, "/index.php/a%20b?c=d").decode().splitlines())
    assert told["SCRIPT_NAME"] == "/index.php" and told["SCRIPT_FILENAME"] == f"{php.root.path}/index.php"
    assert told["PATH_INFO"] == "/a b" and told["PHP_SELF"] == "/index.php/a b" and told["QUERY_STRING"] == "c=d"
    assert told["REQUEST_URI"] == "/index.php/a%20b?c=d" and told["HTTPS"] == ("on" if php.tls else "")
    assert "SCRIPT_NAME=/index.php\n" in curl(php, "/app/x/y").decode()


@pytest.mark.decided
@pytest.mark.tcp
def test_php_answers(php):
    assert curl(php, "/app/redirect", "-o", "/dev/null", "-w", "%{http_code} %{redirect_url}").decode() == f"303 {php.url('/form.php')}"
    assert curl(php, "/app/missing", "-w", "%{http_code}") == b"no such page\n404"
    assert curl(php, "/none.php", "-o", "/dev/null", "-w", "%{http_code}") == b"404"
    assert curl(php, "/app/slow") == b"".join(b"%d" % n * 10000 + b"\n" for n in range(3))
    assert curl(php, "/app/fails", "-o", "/dev/null", "-w", "%{http_code}") == b"500"
    eventually(lambda: any("php.sock says: " in line and "it ?[1mfails" in line for line in php.errors))
    with tempfile.NamedTemporaryFile() as jar:
        assert [curl(php, "/app/session", "-c", jar.name, "-b", jar.name) for _ in range(3)] == [b"1", b"2", b"3"]


@pytest.mark.decided
@pytest.mark.tcp
def test_php_takes_forms_and_files(php):
    assert b"<form method=post" in curl(php, "/form.php")
    assert curl(php, "/form.php", "-d", "name=<ann>") == b"&lt;ann&gt;\n"
    with tempfile.NamedTemporaryFile() as file:
        content = os.urandom(1_500_000)
        file.write(content)
        file.flush()
        said = curl(php, "/form.php", "-F", "name=bob", "-F", f"file=@{file.name}")
        assert said == f"bob\n{len(content)} {hashlib.sha256(content).hexdigest()}\n".encode()
    content = os.urandom(1_000_000)
    raw = ("-H", "Content-Type: a/b", "--data-binary", "@-")
    assert curl(php, "/raw.php", *raw, data=content) == content
    assert curl(php, "/raw.php", *raw, "-H", "Transfer-Encoding: chunked", "--http1.1", data=content[:20000]) == content[:20000]


@pytest.mark.decided
@pytest.mark.tcp
def test_php_behind_a_server_in_a_chroot(build):
    if os.geteuid() != 0:
        pytest.skip("of root")
    (program,) = glob.glob("/usr/sbin/php-fpm*") or [shutil.which("php-fpm")]
    with directory() as sockets:
        (sockets / "fpm.conf").write_text(POOL.format(sockets=sockets, user="user = nobody\ngroup = nogroup"))
        with running([program, "-y", sockets / "fpm.conf", "-c", "/nonexistent"], sockets / "php.sock"):
            rules = f"/*.php fcgi://unix:{sockets}/php.sock 200\n"
            root = Root({"_redirects": rules.encode()})
            shutil.copytree(HERE / "php", root.path, dirs_exist_ok=True)
            with Server(build, root, "-j", "1", "-u", "nobody", "--upstream", sockets, as_root=True) as server:
                assert f"SCRIPT_FILENAME={root.path}/index.php" in curl(server, "/index.php").decode()
            root.remove()


# --- CGI ---


@pytest.fixture(scope="module")
def cgi(build):
    with directory() as sockets, running(["/usr/sbin/fcgiwrap", "-c", "2", "-s", f"unix:{sockets}/cgi.sock"], sockets / "cgi.sock", **unprivileged()):
        with serving(build, sockets, f"/*.cgi fcgi://unix:{sockets}/cgi.sock 200\n", "cgi") as server:
            yield server


@pytest.mark.decided
@pytest.mark.tcp
def test_a_shell_script_for_cgi(cgi):
    assert curl(cgi, "/hello.cgi/a?b", "-w", "%{http_code}") == b"GET /hello.cgi /a b\n201"
    assert curl(cgi, "/hello.cgi", "-d", "content") == b"POST /hello.cgi  \ncontent"


def git(*arguments, cwd):
    settings = ["-c", "user.name=ann", "-c", "user.email=ann@example.org", "-c", "http.sslVerify=false", "-c", "core.compression=0"]
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, "GIT_TERMINAL_PROMPT": "0"}
    subprocess.run(["git", *settings, *arguments], cwd=cwd, env=environment, check=True, capture_output=True, timeout=200)


@pytest.mark.decided
@pytest.mark.tcp
def test_git_pushes_and_clones_100_mb(cgi):
    repositories = cgi.root.path.with_suffix(".repositories")  # beside the site, and not shared
    shutil.rmtree(repositories, ignore_errors=True)  # of an earlier attempt
    repositories.mkdir()
    git("init", "-q", "--bare", "a.git", cwd=repositories)
    git("config", "-f", "a.git/config", "http.receivepack", "true", cwd=repositories)
    if os.geteuid() == 0:
        subprocess.run(["chown", "-R", "65534:65534", repositories], check=True)
    with tempfile.TemporaryDirectory() as here:
        git("init", "-q", "-b", "main", "work", cwd=here)
        content = os.urandom(100 << 20)
        (Path(here) / "work/file").write_bytes(content)
        git("add", "file", cwd=f"{here}/work")
        git("commit", "-q", "-m", "a file", cwd=f"{here}/work")
        # in chunks; over HTTP/2, git before 2.44 may wait for itself when it has sent all (git pull request 1608)
        git("-c", "http.version=HTTP/1.1", "push", "-q", cgi.url("/git.cgi/a.git"), "main", cwd=f"{here}/work")
        git("clone", "-q", "-b", "main", cgi.url("/git.cgi/a.git"), "copy", cwd=here)
        assert (Path(here) / "copy/file").read_bytes() == content
    shutil.rmtree(repositories)


# --- uwsgi ---


@pytest.mark.decided
@pytest.mark.tcp
@pytest.mark.parametrize("protocol", ["scgi", "fcgi"])
def test_uwsgi(build, protocol):
    name = {"scgi": "scgi", "fcgi": "fastcgi"}[protocol]
    with directory() as sockets:
        path = sockets / "app.sock"
        command = ["uwsgi_python3", "--master", "--die-on-term", f"--{name}-socket", path, "--chmod-socket=666", "--wsgi-file", HERE / "wsgi_application.py",
                   "--pythonpath", HERE, "--manage-script-name"]  # fmt: skip
        with running(command, path), serving(build, sockets, f"/app/* {protocol}://unix:{path}:/:splat 200\n") as server:
            assert curl(server, "/app/a%20b?c", "-w", "%{http_code}") == b"GET /app /a b c 127.0.0.1\n202"
            content = os.urandom(1_000_000)
            assert curl(server, "/app/x", "--data-binary", "@-", data=content) == b"POST /app /x  127.0.0.1\n" + content


# --- between others ---

FRONT = """
defaults
    mode http
    timeout connect 20s
    timeout client 20s
    timeout server 20s
frontend f
    bind unix@{directory}/plain mode 666
    option forwardfor
    default_backend b
backend b
    server s 127.0.0.1:{port}
"""


@pytest.mark.clear
def test_haproxy_in_front_and_an_application_behind(build, uvicorn, tmp_path):
    tmp_path.chmod(0o755)
    with serving(build, f"localhost:{uvicorn}", f"/app/* http://127.0.0.1:{uvicorn}/:splat 200\n") as server:
        with haproxy(tmp_path, FRONT.format(directory=tmp_path, port=server.port)):
            command = ["curl", "-s", "--max-time", "60", "--unix-socket", tmp_path / "plain"]
            content = os.urandom(2_000_000)
            for _ in range(3):
                said = subprocess.run([*command, "--data-binary", "@-", "http://a/app/"], input=content, check=True, capture_output=True).stdout
                assert said.endswith(content)
            assert subprocess.run([*command, "http://a/there.txt"], check=True, capture_output=True).stdout == b"there"


@pytest.mark.clear
def test_one_server_in_front_of_another(build, uvicorn):
    with serving(build, f"localhost:{uvicorn}", f"/app/* http://127.0.0.1:{uvicorn}/:splat 200\n") as inner:
        with serving(build, f"127.0.0.1:{inner.port}", f"/* http://127.0.0.1:{inner.port}/:splat 200!\n") as outer:
            content = os.urandom(2_000_000)
            assert curl(outer, "/app/", "--data-binary", "@-", data=content).endswith(content)
            assert curl(outer, "/there.txt", "-r", "1-2") == b"he"
