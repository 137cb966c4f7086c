"""Behind HTTP proxies: the client's address from X-Forwarded-For and Forwarded."""

import contextlib
import socket
import subprocess

import pytest

from gatling import Connection, Server, eventually, listening
from http2 import Http2
from served import BIG
from test_proxy import LINE, addresses

pytestmark = [pytest.mark.clear, pytest.mark.decided]
OTHER = "127.0.0.2"
GET = "GET /a.txt HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: {}\r\n\r\n"


@pytest.fixture
def trusting(build, root):
    """Starts a server that trusts 127.0.0.1."""
    root.write("big.bin", BIG)
    with contextlib.ExitStack() as running:

        def start(*flags, trust="127.0.0.1", **options):
            return running.enter_context(Server(build, root, "-j", "1", "--trust", trust, *flags, **options))

        yield start


@pytest.mark.parametrize("trust,field,client", [
    ("127.0.0.1", "X-Forwarded-For: 192.0.2.7", "192.0.2.7"), ("127.0.0.1", "x-forwarded-for: 203.0.113.1, 2001:db8::7", "2001:db8::7"),
    ("127.0.0.1", "X-Forwarded-For: 192.0.2.7, 127.0.0.1", "192.0.2.7"), ("127.0.0.1", "X-Forwarded-For: me", "127.0.0.1"),
    ("127.0.0.1", "Forwarded: for=192.0.2.7", "127.0.0.1"), ("127.0.0.1,forwarded", "Forwarded: for=192.0.2.7;proto=https", "192.0.2.7"),
    ("127.0.0.1,forwarded", "X-Forwarded-For: 192.0.2.7", "127.0.0.1"), ("127.0.0.0/30,X-Forwarded-For", "X-Forwarded-For: 192.0.2.7", "192.0.2.7"),
    ("192.0.2.0/24", "X-Forwarded-For: 203.0.113.1", "127.0.0.1")])  # fmt: skip
def test_the_log_has_the_address_of_the_client_if_the_proxy_is_trusted(trusting, trust, field, client):
    server = trusting(trust=trust)
    with server.connect() as c, Http2(server) as h:
        assert c.get("/a.txt", field).body == b"a"
        name, value = field.split(": ")
        assert h.get("/a.txt", (name.lower(), value)).body == b"a"
    assert addresses(server, 2) == [client] * 2


def test_each_request_of_a_connection_has_its_own_client(trusting):
    server = trusting("--log", "json")
    with server.connect() as c:
        c.send("".join(GET.format(f"192.0.2.{n}") for n in (1, 2, 1)).encode() + b"GET /a.txt HTTP/1.1\r\nHost: a\r\n\r\nGET\r\n\r\n")
        assert [c.response().status for _ in range(5)] == [200] * 4 + [400]
    eventually(lambda: len(server.lines) == 5)
    assert [line.split('"address":"')[1].split('"')[0] for line in server.lines] == ["192.0.2.1", "192.0.2.2", "192.0.2.1", "127.0.0.1", "127.0.0.1"]


def test_a_proxy_on_a_unix_socket(build, root, place):
    path = place / "socket"
    with Server(build, root, "-j", "1", "--trust", "unix:", address=("-i", f"unix:{path}")) as server:
        with Connection(str(path), family=socket.AF_UNIX) as c:
            assert c.get("/a.txt", "X-Forwarded-For: 192.0.2.7").body == b"a"
            assert c.get("/a.txt").body == b"a"
        assert addresses(server, 2) == ["192.0.2.7", "unix:"]


def test_a_proxy_behind_a_balancer(build, root):
    flags = ("--proxy-protocol", "127.0.0.1", "--trust", "192.0.2.7", "--limit", "address-rate=1:2")
    with Server(build, root, "-j", "1", *flags) as server, server.connect() as c, Http2(server, start=False) as h:
        c.send(LINE)  # from 192.0.2.7
        assert c.get("/a.txt", "X-Forwarded-For: 203.0.113.1").body == b"a"
        assert c.get("/a.txt").body == b"a"
        h.send(LINE)
        h.start()
        assert h.get("/a.txt", ("x-forwarded-for", "203.0.113.2")).body == b"a"
        assert h.get("/a.txt").body == b"a"
        assert addresses(server, 4) == ["203.0.113.1", "192.0.2.7", "203.0.113.2", "192.0.2.7"]
        assert c.get("/a.txt").status == 429  # the proxy's own, whatever the protocol
        assert c.send(b"GET\r\n\r\n").response().status == 400
        assert addresses(server, 6)[4:] == ["192.0.2.7"] * 2
    with Server(build, root, "-j", "1", *flags) as server, server.connect() as c:
        c.send(LINE.replace(b"192.0.2.7", b"192.0.2.8"))  # on the same descriptor
        assert c.get("/a.txt", "X-Forwarded-For: 203.0.113.1").body == b"a"
        assert addresses(server, 1) == ["192.0.2.8"]


def test_a_body_that_is_refused_is_the_clients(trusting):
    server = trusting()
    with server.connect() as c:
        c.send(b"POST /a.txt HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 192.0.2.1\r\nTransfer-Encoding: chunked\r\n\r\nwrong\r\n")
        assert c.response().status == 400
    assert addresses(server, 1) == ["192.0.2.1"]


def test_a_server_at_its_limit_is_well(trusting):
    server = trusting("--limit", "rate=1:2", "--health", "/health")
    with server.connect() as c, Http2(server) as h:
        assert [c.get("/a.txt").status for _ in range(3)] == [200, 200, 503]
        assert [c.get("/health").status for _ in range(3)] == [200] * 3
        assert [h.get("/health").status, h.get("/a.txt").status] == [200, 503]


@pytest.mark.parametrize("trust,said", [("0.0.0.0/0", "would believe everybody"), ("::/0,forwarded", "would believe everybody"),
                                        ("10.0.0.1,10.0.0.2", "each NET takes a --trust"), ("here", "takes an address")])  # fmt: skip
def test_a_net_that_cannot_be_meant_is_refused(plain, trust, said):
    done = subprocess.run([plain / "gatling", "--trust", trust], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and said in done.stderr


@pytest.mark.parametrize("http2", [False, True], ids=["http1", "http2"])
def test_rates_are_those_of_clients(trusting, http2):
    server = trusting("--limit", "address-rate=1:2")
    with Http2(server) if http2 else server.connect() as c:

        def ask(client):
            return c.get("/a.txt", ("x-forwarded-for", client) if http2 else f"X-Forwarded-For: {client}").status

        assert [ask(f"192.0.2.{n}") for n in (1, 1, 1, 2, 2, 2)] == [200, 200, 429] * 2


@pytest.mark.parametrize("http2", [False, True], ids=["http1", "http2"])
def test_requests_under_way_are_those_of_clients(trusting, http2):
    server = trusting("--limit", "address-requests=1")

    def status(client):
        with server.connect() as c:
            return c.get("/a.txt", f"X-Forwarded-For: {client}").status

    with Http2(server, window=1) if http2 else server.connect(receive_buffer=4096) as c:
        if http2:
            c.ask("/big.bin", ("x-forwarded-for", "192.0.2.1"))
        else:
            c.send(GET.format("192.0.2.1").replace("a.txt", "big.bin").encode())
        eventually(lambda: status("192.0.2.1") == 429)
        assert status("192.0.2.2") == 200
    eventually(lambda: status("192.0.2.1") == 200)


def test_connections_of_a_proxy_are_not_those_of_one_client(trusting):
    server = trusting("--limit", "address-connections=1")
    with contextlib.ExitStack() as open_ones:
        for _ in range(3):
            assert open_ones.enter_context(server.connect()).get("/a.txt").status == 200
        assert open_ones.enter_context(server.connect(source=OTHER)).get("/a.txt").status == 200
        with server.connect(source=OTHER) as c:
            assert c.get("/a.txt").status == 429


def test_a_proxy_with_most_connections_is_not_refused_as_heavy(trusting):
    server = trusting("-n", "--limit", "connections=100")
    with contextlib.ExitStack() as open_ones:
        for source, count in ((OTHER, 40), ("127.0.0.1", 55)):
            for _ in range(count):
                c = open_ones.enter_context(server.connect(source=source, receive_buffer=4096))
                c.send(b"GET /big.bin HTTP/1.1\r\nHost: a\r\n\r\n")
                assert c.socket.recv(12) == b"HTTP/1.1 200"
        assert server.get("/a.txt").status == 200
        with server.connect(source=OTHER) as c:
            assert c.get("/a.txt").status == 503


# --- nginx ---

NGINX = """
daemon off;
pid {directory}/pid;
error_log stderr;
worker_processes 1;
events {{ worker_connections 64; }}
http {{
    access_log off;
    client_body_temp_path {directory}/body;
    proxy_temp_path {directory}/proxy;
    fastcgi_temp_path {directory}/fastcgi;
    uwsgi_temp_path {directory}/uwsgi;
    scgi_temp_path {directory}/scgi;
    upstream www {{ server 127.0.0.1:{port}; keepalive 4; }}
    server {{
        listen unix:{directory}/plain;
        set_real_ip_from unix:;
        real_ip_header X-Test-Client;
        location / {{
            proxy_max_temp_file_size 0;
            proxy_pass http://www;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
        }}
    }}
}}
"""


@contextlib.contextmanager
def nginx(directory, port):
    (directory / "conf").write_text(NGINX.format(directory=directory, port=port))
    command = ["/usr/sbin/nginx", "-p", directory, "-c", directory / "conf", "-e", "stderr"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            eventually(lambda: listening(directory / "plain"))
            yield directory / "plain"
        finally:
            process.terminate()


@pytest.mark.others
def test_nginx_in_front(trusting, tmp_path):
    """The client begins the field itself; nginx adds what it knows."""
    server = trusting()
    with nginx(tmp_path, server.port) as path, Connection(str(path), family=socket.AF_UNIX) as c:
        for n in (1, 2):
            assert c.get("/a.txt", "X-Forwarded-For: 203.0.113.9", f"X-Test-Client: 192.0.2.{n}").body == b"a"
        big = c.get("/big.bin", "X-Test-Client: 192.0.2.3")
        assert big.body == BIG
    assert addresses(server, 3) == ["192.0.2.1", "192.0.2.2", "192.0.2.3"]
