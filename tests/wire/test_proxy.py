"""Behind balancers: the PROXY protocol, by hand and from HAProxy."""

import contextlib
import re
import socket
import struct
import subprocess
import threading
import time
from pathlib import Path

import pytest

from gatling import TIMEOUT, Connection, Server, certificate, eventually, listening, trusting

pytestmark = pytest.mark.moving

SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
GET = b"GET /a.txt HTTP/1.1\r\nHost: a\r\n\r\n"
LINE = b"PROXY TCP4 192.0.2.7 198.51.100.1 5000 80\r\n"


def binary(client="192.0.2.7", values=b"", command=0x21):
    addresses = socket.inet_aton(client) + socket.inet_aton("198.51.100.1") + struct.pack(">HH", 5000, 80)
    return SIGNATURE + struct.pack(">BBH", command, 0x11, len(addresses + values)) + addresses + values


def over_tls(version=b"\0\0\0\0"):
    """Returns the value for a client that used TLS."""
    return b"\x20" + struct.pack(">H", 5) + b"\x01" + version


@pytest.fixture
def proxied(build, root):
    with Server(build, root, "-j", "1", "--proxy-protocol", "127.0.0.1", "--limit", "head-timeout=2") as server:
        yield server


@contextlib.contextmanager
def behind(server, header):
    """Yields a connection of a balancer, with TLS behind the header if the server speaks it."""
    with Connection(("127.0.0.1", server.port)) as c:
        c.send(header)
        if server.tls:
            c.socket = server.tls.wrap_socket(c.socket, server_hostname="localhost")
        yield c


def addresses(server, count):
    """Returns the addresses in the log, when it has that many lines."""
    eventually(lambda: len(server.lines) >= count)
    return [line.split()[0] for line in server.lines]


@pytest.mark.parametrize("header,client", [(LINE, "192.0.2.7"), (binary(), "192.0.2.7"), (binary(values=over_tls()), "192.0.2.7"),
                                           (b"PROXY TCP6 2001:db8::7 ::1 1 2\r\n", "2001:db8::7"),
                                           (b"PROXY UNKNOWN\r\n", "127.0.0.1"), (binary(command=0x20), "127.0.0.1")])  # fmt: skip
def test_the_log_has_the_address_of_the_client(proxied, header, client):
    with behind(proxied, header) as c:
        assert c.get("/a.txt").body == b"a"
        assert c.get("/a.txt").body == b"a"
    assert addresses(proxied, 2) == [client] * 2


@pytest.mark.parametrize("header", [LINE, binary(values=over_tls())])
def test_a_header_may_come_byte_by_byte(proxied, header):
    with Connection(("127.0.0.1", proxied.port)) as c:
        c.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for i in range(len(header)):
            c.send(header[i:i + 1])  # fmt: skip
            time.sleep(0.002)
        if proxied.tls:
            c.socket = proxied.tls.wrap_socket(c.socket, server_hostname="localhost")
        assert c.send(GET).response().body == b"a"
    assert addresses(proxied, 1) == ["192.0.2.7"]


@pytest.mark.clear
@pytest.mark.parametrize("header", [LINE, binary(values=over_tls())])
def test_a_header_may_come_with_requests(proxied, header):
    with Connection(("127.0.0.1", proxied.port)) as c:
        assert c.send(header + GET + GET).response().body == b"a"
        assert c.response().body == b"a"
    assert addresses(proxied, 2) == ["192.0.2.7"] * 2


@pytest.mark.clear
def test_who_sends_no_header_is_closed_and_reported(proxied):
    with Connection(("127.0.0.1", proxied.port)) as c:
        c.send(GET).assert_closed()
    eventually(lambda: any("does not begin with a PROXY header" in line for line in proxied.errors))
    with Connection(("127.0.0.1", proxied.port)) as c:
        c.send(SIGNATURE + b"\x21\x11\xff\xff").assert_closed()
    with Connection(("127.0.0.1", proxied.port)) as c:
        c.send(LINE[:20]).assert_closed()  # after the limit head-timeout


@pytest.mark.clear
def test_a_header_from_elsewhere_is_no_request(build, root):
    with Server(build, root, "-j", "1", "--proxy-protocol", "192.0.2.0/24") as server:
        assert server.get("/a.txt").status == 200
        with server.connect() as c:
            assert c.send(LINE + GET).response().status == 400
    assert all(line.startswith("127.0.0.1 ") for line in server.lines)


@pytest.mark.clear
@pytest.mark.decided
@pytest.mark.parametrize("net,told", [("0.0.0.0/0", True), ("::/0", True), ("127.0.0.0/8", False)])
def test_a_net_of_all_addresses_is_warned_of(build, root, net, told):
    with Server(build, root, "-n", "--proxy-protocol", net) as server:
        assert any(f"--proxy-protocol {net} lets every client say" in line for line in server.errors) == told


@pytest.mark.clear
def test_a_balancer_on_a_unix_socket(build, root):
    root.path.chmod(0o777)
    path = root.path / "socket"
    with Server(build, root, "-j", "1", "--proxy-protocol", "unix:", address=("-i", f"unix:{path}")) as server:
        with Connection(str(path), family=socket.AF_UNIX) as c:
            assert c.send(LINE + GET).response().body == b"a"
        assert addresses(server, 1) == ["192.0.2.7"]


@pytest.mark.clear
def test_limits_are_those_of_the_client_not_of_the_balancer(build, root):
    with Server(build, root, "-j", "1", "--proxy-protocol", "127.0.0.0/8", "--limit", "address-connections=1", "--limit", "address-rate=2") as server:
        with behind(server, binary("192.0.2.1")) as one, behind(server, binary("192.0.2.2")) as other:
            statuses = [c.get("/a.txt").status for c in (one, one, one, other)]
            assert statuses == [200, 200, 429, 200]
            with behind(server, binary("192.0.2.1") + GET) as more:
                response = more.response()
                assert (response.status, response["Connection"]) == (429, "close")
                more.assert_closed()
        eventually(lambda: with_answer(server))


def with_answer(server):
    """Returns whether an address whose connections have ended may have another one."""
    with behind(server, binary("192.0.2.2")) as c, contextlib.suppress(AssertionError):
        return c.get("/a.txt").status == 200


@pytest.mark.clear
def test_tls_at_the_balancer_is_tls(build, root):
    cert, key = certificate()
    flags = ("--cert", cert, "--key", key, "--tls-port", "0", "--https-redirect")
    with Server(build, root, "-j", "1", "--proxy-protocol", "127.0.0.1", *flags) as server:
        with behind(server, binary()) as c:
            assert c.get("/a.txt").status == 301
        with behind(server, binary(values=over_tls())) as c:
            assert c.get("/a.txt").status == 200


# --- HAProxy ---

HAPROXY = """
defaults
    mode tcp
    timeout connect 5s
    timeout client 20s
    timeout server 20s
frontend in
    bind unix@{directory}/plain
    default_backend plain
frontend tls
    bind unix@{directory}/tls
    tcp-request inspect-delay 5s
    tcp-request content accept if {{ req.ssl_hello_type 1 }}
    use_backend tls if {{ req.ssl_sni localhost }}
backend plain
    option httpchk GET /a.txt
    server one 127.0.0.1:{port} {send} check inter 100
backend tls
    server one 127.0.0.1:{tls_port} {send}
listen status
    bind 127.0.0.1:{status_port}
    mode http
    stats enable
    stats uri /
"""


@contextlib.contextmanager
def haproxy(directory, text):
    config = directory / "haproxy.cfg"
    config.write_text(text)
    with subprocess.Popen(["/usr/sbin/haproxy", "-f", config], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            eventually(lambda: listening(directory / "plain"))
            yield
        finally:
            process.kill()


@contextlib.contextmanager
def watching_haproxy(tmp_path, server, send):
    """Runs HAProxy with a page that shows which servers are up; yields its port."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        status_port = s.getsockname()[1]
    text = HAPROXY.format(directory=tmp_path, port=server.plain_port, tls_port=server.tls_port, send=send, status_port=status_port)
    with haproxy(tmp_path, text):
        eventually(lambda: listening(status_port))
        yield status_port


def is_up(status_port):
    with Connection(("127.0.0.1", status_port)) as c:
        c.send(b"GET /;csv HTTP/1.0\r\n\r\n")
        return re.search(rb"^plain,one,.*,UP,", c.rest(), re.MULTILINE)


@pytest.mark.others
@pytest.mark.clear
@pytest.mark.parametrize("send", ["send-proxy", "send-proxy-v2"])
def test_haproxy_passes_plain_connections_and_tls_by_name_and_looks_at_health(build, root, tmp_path, send):
    cert, key = certificate()
    with Server(build, root, "-j", "2", "--proxy-protocol", "127.0.0.1", "--cert", cert, "--key", key, "--tls-port", "0") as server:
        with watching_haproxy(tmp_path, server, send) as status_port:
            eventually(lambda: is_up(status_port))
            with Connection(str(tmp_path / "plain"), family=socket.AF_UNIX) as c:
                assert c.get("/a.txt").body == b"a"
            with Connection(str(tmp_path / "tls"), family=socket.AF_UNIX, tls=trusting(cert)) as c:
                assert c.get("/a.txt").body == b"a"
            server.signal()
            eventually(lambda: not is_up(status_port), TIMEOUT)


TWO = """
defaults
    mode http
    timeout connect 5s
    timeout client 20s
    timeout server 20s
frontend in
    bind unix@{directory}/plain
    default_backend www
"""
MANUAL = (Path(__file__).resolve().parent.parent.parent / "man/gatling-operate.7").read_text()


@pytest.mark.others
@pytest.mark.clear
def test_a_server_leaves_the_balancer_before_it_ends_and_nobody_notices(build, root, tmp_path):
    """As in the manual, with the default delay."""
    flags = ("-j", "1", "--proxy-protocol", "127.0.0.1", "--health", "/health")
    answers, stopping = [], threading.Event()

    def ask():
        while not stopping.is_set():
            with Connection(str(tmp_path / "plain"), family=socket.AF_UNIX) as c:
                for _ in range(5):
                    try:
                        answers.append(c.get("/a.txt").status)
                    except (OSError, AssertionError) as error:
                        answers.append(error)
                        break

    with Server(build, root, *flags) as other, Server(build, root, *flags, drain_delay=None) as server:
        backend = re.search(r"^backend www  .*?(?=^$)", MANUAL, re.MULTILINE | re.DOTALL)[0].replace("option redispatch", "")
        for machine, one in (("192.0.2.1", server), ("192.0.2.2", other)):
            backend = backend.replace(f"{machine}:80", f"127.0.0.1:{one.port}")
        with haproxy(tmp_path, TWO.format(directory=tmp_path) + backend):
            clients = [threading.Thread(target=ask) for _ in range(4)]
            for client in clients:
                client.start()
            eventually(lambda: len(server.lines) > 100)
            server.stop()
            begun = len(answers)
            eventually(lambda: len(answers) > begun + 100)
            stopping.set()
            for client in clients:
                client.join()
    assert set(answers) == {200}, [status for status in answers if status != 200]
