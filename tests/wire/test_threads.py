"""The workers under the thread sanitizer: load from many clients, over TCP and a unix socket, and every way to end."""

import signal
import socket
import threading

import pytest

from gatling import Connection, Root, Server, certificate, eventually, trusting
from http2 import Http2
from served import BIG, SMALL
from test_https import Tls, install, shown

CLIENTS = 8
REQUESTS = 30
GET_BIG = b"GET /big.bin HTTP/1.1\r\nHost: a\r\n\r\n"


def load(connect, wrong):
    try:
        for i in range(REQUESTS):
            with connect() as c:
                assert c.get("/small.bin").body == SMALL
                assert c.get("/list/").status == 200
                assert c.get(f"/missing/{i}").status == 404
                assert c.get("/big.bin", "Range: bytes=100000-299999").body == BIG[100000:300000]
    except AssertionError as error:
        wrong.append(error)


def look(connect):
    """Requests the status page in all of its forms."""
    for path in ("/", "/json", "/metrics", "/text") * 10:
        with connect() as c:
            assert c.get(path).status == 200


def run_clients(connects):
    wrong = []
    clients = [threading.Thread(target=load, args=(connect, wrong)) for connect in connects]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    assert not wrong


@pytest.fixture
def unix_path():
    root = Root()
    root.path.chmod(0o777)
    yield root.path / "socket"
    root.remove()


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT, signal.SIGQUIT])
def test_workers_under_load_race_for_nothing(threads, files, unix_path, end):
    address = ("-i", "127.0.0.1", "-i", f"unix:{unix_path}")
    status = unix_path.with_name("status")
    errors = unix_path.with_name("errors")
    flags = ("--status", f"unix:{status}", "--error-log", errors, "--trust", "127.0.0.1", "--health", "/health")
    with Server(threads, files, "-j", "4", *flags, address=address) as server:
        over_unix = lambda: Connection(str(unix_path), family=socket.AF_UNIX)
        over_status = lambda: Connection(str(status), family=socket.AF_UNIX)
        looking = threading.Thread(target=look, args=(over_status,))
        looking.start()
        server.signal(signal.SIGHUP)
        run_clients([server.connect, over_unix] * (CLIENTS // 2))
        looking.join()
        with server.connect(receive_buffer=4096) as busy:
            busy.send(GET_BIG)
            busy._fill()
            server.signal(end)
            assert busy.response().body == BIG
        server.wait()
        assert len(server.lines) == CLIENTS * REQUESTS * 4 + 1


def test_a_second_signal_under_load_ends_all_workers(threads, files):
    with Server(threads, files, "-j", "4") as server:
        busy = [server.connect(receive_buffer=4096).send(GET_BIG * 5) for _ in range(8)]
        for c in busy:
            c._fill()
        server.signal()
        server.signal(signal.SIGINT)
        server.wait()
        for c in busy:
            c.close()


def test_certificates_change_under_load(threads, files):
    """Over TLS, with sessions resumed by any worker: tickets and certificates are all that workers
    share."""
    root = Root({"small.bin": SMALL})
    install(root.path / "server.pem", *certificate("DNS:localhost"))
    with Tls(threads, root, "-j", "4", "--tls-port", "0") as server:

        def resuming():
            context, session = trusting(), None
            wrong = []
            for _ in range(REQUESTS):
                with Connection(("127.0.0.1", server.tls_port), tls=context, session=session) as c:
                    wrong += [c] * (c.get("/small.bin").body != SMALL)
                    session = c.socket.session
            assert not wrong

        clients = [threading.Thread(target=resuming) for _ in range(4)]
        for client in clients:
            client.start()
        install(root.path / "server.pem", *certificate("DNS:localhost,DNS:new"))
        for client in clients:
            client.join()
        eventually(lambda: shown(server) == "DNS:localhost, DNS:new")
        with Http2(server) as c:
            assert c.get("/small.bin").body == SMALL
