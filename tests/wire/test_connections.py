"""Connections: how long they last, slow and vanishing clients, deadlines, running out of descriptors."""

import contextlib
import os
import signal
import socket
import ssl
import time

import pytest

from gatling import Server, descriptors_limited_to, eventually
from served import BIG, SMALL

GET = b"GET /small.bin HTTP/1.1\r\nHost: a\r\n\r\n"
GET_BIG = b"GET /big.bin HTTP/1.1\r\nHost: a\r\n\r\n"


def request(version, *fields):
    return "\r\n".join([f"GET /small.bin HTTP/{version}", *fields, "", ""]).encode()


@pytest.mark.parametrize(
    "data,stays,said",
    [
        (request("1.1", "Host: a"), True, None),
        (request("1.1", "Host: a", "Connection: close"), False, "close"),
        (request("1.1", "Host: a", "Connection: Foo, CLOSE"), False, "close"),
        (request("1.1", "Host: a", "Connection: keep-alive"), True, None),
        (request("1.9", "Host: a"), True, None),
        (request("1.0"), False, "close"),
        (request("1.0", "Connection: Keep-Alive"), True, "keep-alive"),
        (request("1.0", "Host: a", "Connection: keep-alive, close"), False, "close"),
    ],
)
def test_persistence(connection, data, stays, said):
    connection.send(data)
    response = connection.response()
    assert response.status == 200 and response["Connection"] == said
    if stays:
        connection.assert_in_step()
    else:
        connection.assert_closed()


def test_what_is_pipelined_behind_the_last_request_is_not_answered(connection):
    connection.send(request("1.1", "Host: a", "Connection: close") + GET)
    assert connection.response().status == 200
    connection.assert_closed()


def test_a_client_that_reads_slowly_gets_every_byte(server):
    with server.connect(receive_buffer=4096) as c:
        c.send(GET_BIG)
        data = b""
        while len(data) < len(BIG):
            data += c.socket.recv(50_000 if len(data) < 300_000 else 1 << 20)
            if b"\r\n\r\n" in data[:1000]:
                head, data = data.split(b"\r\n\r\n", 1)
                assert b"200 OK" in head
        assert data == BIG
        c.assert_in_step()


def test_a_client_that_pipelines_without_reading_is_waited_for(server):
    with server.connect(receive_buffer=4096) as c:
        c.socket.settimeout(0.2)
        sent = 0
        try:
            while sent < 100_000:
                sent += c.socket.send(GET_BIG * 10)
        except TimeoutError:
            pass
        c.socket.settimeout(20)
        whole = sent // len(GET_BIG)
        for _ in range(min(whole, 20)):
            assert c.response().body == BIG
        assert server.get("/small.bin").body == SMALL


@pytest.fixture(scope="module")
def of_one_worker(build, files):
    with Server(build, files, "-j", "1") as running:
        assert running.get("/small.bin").body == SMALL
        yield running


@pytest.mark.parametrize("sent", [b"", b"G", GET[:30], GET, GET + GET[:20], GET_BIG, GET_BIG * 20])
@pytest.mark.parametrize("how", ["close", "reset", "read a little and reset"])
def test_a_client_may_vanish_at_any_point(of_one_worker, sent, how):
    server = of_one_worker
    before = server.descriptors()
    for _ in range(10):
        c = server.connect()
        c.send(sent)
        if how.startswith("read") and sent.endswith(b"\r\n\r\n"):
            c.socket.recv(10)
        if how == "close":
            c.close()
        else:
            c.reset()
    assert server.get("/small.bin").body == SMALL
    # only the file that the cache keeps remains open
    eventually(lambda: server.descriptors() <= before + 1)


# --- deadlines ---


@pytest.fixture(scope="module")
def impatient(build, files):
    with Server(build, files, "-T", "1", "-j", "1") as server:
        yield server


def closes_after(connection, least, most):
    started = time.monotonic()
    rest = connection.rest()
    took = time.monotonic() - started
    assert least <= took <= most, took
    return rest


def test_a_silent_connection_is_closed_without_a_word(impatient):
    with impatient.connect() as c:
        assert closes_after(c, 0.9, 5) == b""


def test_an_idle_connection_is_closed_without_a_word(impatient):
    with impatient.connect() as c:
        c.send(GET)
        assert c.response().status == 200
        assert closes_after(c, 0.9, 5) == b""


def test_each_request_starts_the_time_of_an_idle_connection_anew(impatient):
    with impatient.connect() as c:
        until = time.monotonic() + 1.8
        while time.monotonic() < until:
            c.send(GET)
            assert c.response().status == 200
            time.sleep(0.2)  # tests that this time does not add up


def test_half_a_head_is_answered_with_408_and_logged_with_the_time_that_it_took(impatient):
    with impatient.connect() as c:
        c.send(GET[:20])
        rest = closes_after(c, 0.9, 4.5)
        assert rest.startswith(b"HTTP/1.1 408 ") and b"Connection: close" in rest
    line = eventually(lambda: [line for line in impatient.lines if '"-" 408' in line])[-1]
    assert 0.9 < float(line.split()[-1]) < 4.5


def test_half_a_body_is_answered_with_408(impatient):
    with impatient.connect() as c:
        c.send(b"GET /small.bin HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nab")
        assert closes_after(c, 0.9, 4.5).startswith(b"HTTP/1.1 408 ")


def test_a_head_that_trickles_in_gets_no_more_time(impatient):
    with impatient.connect() as c:
        started = time.monotonic()
        c.send(b"GET / HTTP/1.1\r\nHost: a\r\nX: ")
        c.socket.settimeout(0.1)
        data = b""
        while not data and time.monotonic() < started + 5:
            try:
                c.send(b"a")
                data = c.socket.recv(100)
            except TimeoutError:
                pass
        assert data.startswith(b"HTTP/1.1 408 ") and time.monotonic() - started < 3


def test_a_client_that_takes_nothing_is_dropped(impatient):
    impatient.get("/big.bin")  # the cache has it open
    with impatient.connect(receive_buffer=4096) as c:
        c.send(GET)
        assert c.response().status == 200
        before = impatient.descriptors()
        c.send(GET_BIG * 10)
        eventually(lambda: impatient.descriptors() < before, 5)


def test_a_deadline_ends_with_its_connection(impatient):
    others = [impatient.connect() for _ in range(3)]
    for c in others:
        c.send(GET)
        assert c.response().status == 200
        c.close()
    time.sleep(1.6)  # their deadlines pass
    assert impatient.get("/small.bin").body == SMALL


def test_a_client_that_reads_steadily_may_take_longer_than_the_timeout(build, files):
    with Server(build, files, "-T", "1", "-j", "1") as server, server.connect(receive_buffer=4096) as c:
        c.send(GET_BIG * 4)
        started = time.monotonic()
        while time.monotonic() < started + 2.5:
            c.buffer += c.socket.recv(1 << 16)
            time.sleep(0.05)
        for _ in range(4):
            assert c.response().body == BIG


def test_a_body_that_trickles_in_gets_no_more_time(impatient):
    with impatient.connect() as c:
        c.send(b"GET /small.bin HTTP/1.1\r\nHost: a\r\nContent-Length: 99\r\n\r\n")
        c.socket.settimeout(0.1)
        started = time.monotonic()
        while not c.buffer and time.monotonic() < started + 10:
            try:
                c.send(b"x")
                c._fill()
            except TimeoutError:
                pass
        assert time.monotonic() - started < 5
        assert c.response().status == 408
        c.socket.settimeout(20)
        c.assert_closed()


# --- the end of a connection ---


def test_who_is_refused_and_stays_is_not_waited_for(build, files):
    with Server(build, files, "-j", "1") as server, server.connect() as c:
        c.send(b"BAD\r\n\r\n")
        assert c.response().status == 400
        before = server.descriptors()
        eventually(lambda: server.descriptors() < before, 10)


def test_who_is_refused_and_goes_on_sending_is_cut_off(server):
    with server.connect() as c:
        c.send(b"BAD\r\n\r\n")
        assert c.response().status == 400
        with pytest.raises((ConnectionResetError, BrokenPipeError, ssl.SSLEOFError)):
            for _ in range(100):
                c.send(b"x" * 1_000_000)


TOO_LONG = b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 3000000\r\n"
NOT_ALLOWED = b"POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 9000\r\n"


@pytest.mark.parametrize("head,status", [(TOO_LONG, 413), (NOT_ALLOWED, 405)])
def test_who_is_refused_can_still_send_and_then_reads_the_answer(server, head, status):
    for _ in range(10):
        with server.connect() as c:
            c.send(head + b"\r\n")
            time.sleep(0.02)  # the answer is there, and must not get lost
            for _ in range(3):
                c.send(b"x" * 1000)
                time.sleep(0.005)
            assert c.response().status == status
            c.assert_closed()


@pytest.mark.parametrize("path", ["/small.bin", "/big.bin"])
def test_requests_behind_the_last_one_do_not_reset_the_connection(server, path):
    with server.connect(receive_buffer=4096) as c:
        c.send(f"GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".encode() + GET * 600)
        assert c.response().body == (SMALL if path == "/small.bin" else BIG)
        assert c.socket.recv(1) == b""  # an end, not a reset


# --- descriptors ---


@pytest.fixture
def small_server(build, files):
    """A server with a limit of 64 descriptors."""
    with Server(build, files, "-j", "1", "-n", "--defer-accept", "off", "--limit", "min-rate=0", **descriptors_limited_to(64)) as server:
        yield server


def test_without_descriptors_the_server_waits_idly_and_recovers(small_server):
    clients = []
    with pytest.raises(TimeoutError):
        while len(clients) < 64:
            clients.append(small_server.connect(receive_buffer=4096).send(GET_BIG * 20))
            clients[-1].socket.settimeout(1)
            assert clients[-1]._fill()
    assert len(clients) > 8
    used = small_server.cpu_seconds()
    time.sleep(1)  # tests that nothing is done in this time
    assert small_server.cpu_seconds() - used < 0.3
    for c in clients:
        c.close()
    assert small_server.get("/small.bin").body == SMALL


def test_without_descriptors_the_connections_idle_longest_make_room(small_server):
    with small_server.connect(receive_buffer=4096) as busy:
        busy.send(GET_BIG * 20)
        busy._fill()
        idle = [small_server.connect() for _ in range(100)]
        with small_server.connect() as late:
            assert late.get("/small.bin").body == SMALL
            idle[0].assert_closed()
            late.assert_in_step()
        for _ in range(20):
            assert busy.response().body == BIG
        for c in idle:
            c.close()


def test_a_server_that_is_just_full_closes_nobody(small_server):
    clients = []
    for _ in range(60):
        clients.append(small_server.connect())
        assert clients[-1].get("/small.bin").body == SMALL
    for c in clients:
        c.socket.setblocking(False)
    open_still = [c for c in clients if still_open(c)]
    assert len(open_still) >= 20  # of 23, a few made room for the last
    for c in clients:
        c.close()


@pytest.mark.clear
def test_who_asks_again_is_not_idle_longest(small_server):
    with small_server.connect() as first, small_server.connect() as second:
        assert first.get("/small.bin").status == second.get("/small.bin").status == 200
        others = [small_server.connect() for _ in range(21)]
        for c in others:
            assert c.get("/small.bin").status == 200
        time.sleep(0.01)  # deadlines are in milliseconds
        first.assert_in_step()
        others.append(small_server.connect())
        assert others[-1].get("/small.bin").status == 200
        second.assert_closed()
        first.assert_in_step()
        for c in others:
            c.close()


def test_the_connections_that_came_first_make_room_first(small_server):
    clients = []
    for _ in range(29):
        clients.append(small_server.connect())
        assert clients[-1].get("/small.bin").status == 200
        time.sleep(0.002)
    for c in clients:
        c.socket.setblocking(False)
    open_still = [still_open(c) for c in clients]
    assert open_still == sorted(open_still) and not open_still[0] and open_still[-1]
    for c in clients:
        c.close()


def test_files_under_way_keep_nobody_out(build, root):
    for i in range(200):
        root.write(f"f{i}", b"x" * 70_000)
    with Server(build, root, "-j", "1", "-n", **descriptors_limited_to(256)) as server:
        idle = [server.connect() for _ in range(60)]
        for c in idle:
            assert c.get("/a.txt").status == 200
        greedy = []
        for i in range(30):
            greedy.append(server.connect(receive_buffer=4096))
            greedy[-1].send(b"".join(b"GET /f%d HTTP/1.1\r\nHost: a\r\n\r\n" % ((i * 16 + n) % 200) for n in range(16)))
        with server.connect() as late:
            assert late.get("/a.txt").body == b"a"
        for c in idle + greedy:
            c.close()


def test_only_a_few_make_room(build, files):
    with Server(build, files, "-j", "1", "-n", **descriptors_limited_to(256)) as server:
        clients = []
        while not clients or all(still_open(c) for c in clients):
            clients.append(server.connect(source=f"127.0.0.{1 + len(clients) % 16}"))
            assert clients[-1].get("/small.bin").status == 200
            clients[-1].socket.setblocking(False)
        assert 150 < len(clients) < 256
        assert sum(still_open(c) for c in clients) > 100
        for c in clients:
            c.close()


def test_without_a_descriptor_for_a_file_the_answer_is_503(build, root):
    for i in range(90):
        root.write(f"f{i}", b"x" * 4_000_000)
    with Server(build, root, "-j", "1", "-n", **descriptors_limited_to(128)) as server:
        clients = [server.connect(receive_buffer=4096) for _ in range(70)]
        for i, c in enumerate(clients):
            c.send(f"GET /f{i} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        statuses = set()
        for c in clients:
            while b"\r\n" not in c.buffer:
                assert c._fill()
            statuses.add(c.buffer.split(b" ", 2)[1])
        assert statuses == {b"200", b"503"}
        for c in clients:
            c.close()


def still_open(connection):
    try:
        return connection.socket.recv(1) != b""
    except (BlockingIOError, ssl.SSLWantReadError):
        return True


# --- files that change under an answer ---


@pytest.fixture
def downloading(build, root):
    """Yields a connection that has read the head and a little of a file of 30 MB."""
    root.write("huge", b"a" * 30_000_000)
    with Server(build, root, "-j", "1") as server, server.connect(receive_buffer=65536) as c:
        c.send(b"GET /huge HTTP/1.1\r\nHost: a\r\n\r\n")
        while b"\r\n\r\n" not in c.buffer:
            c._fill()
        c.buffer = c.buffer.split(b"\r\n\r\n", 1)[1]
        yield root.path / "huge", c


def test_a_file_replaced_or_removed_while_it_is_sent_is_sent_to_its_end(downloading):
    path, c = downloading
    path.unlink()
    path.write_bytes(b"b" * 30_000_000)
    data = bytearray(c.buffer)
    while len(data) < 30_000_000:
        data += c.socket.recv(1 << 20)
    assert data.count(b"a") == 30_000_000
    c.buffer = b""
    c.assert_in_step()


def test_a_file_emptied_while_it_is_sent_ends_the_connection_short(downloading):
    path, c = downloading
    os.truncate(path, 0)
    rest = c.rest()
    assert len(rest) < 30_000_000
    assert rest.strip(b"a") == b""


def test_a_file_cut_inside_a_page_while_it_is_sent_ends_the_connection_short(downloading):
    path, c = downloading
    os.truncate(path, 1000)
    # Linux fills the rest of the page with zeros, also where a socket refers to it (see
    # io/sendfile-linux.c)
    assert len(c.rest()) < 30_000_000


def test_a_small_file_that_shrinks_is_never_padded(build, root):
    root.write("f", b"a" * 5000)
    with Server(build, root, "-j", "1") as server, server.connect() as c:
        for size in (5000, 100, 0, 70_000, 3):
            with open(root.path / "f", "r+b") as f:
                f.truncate(0)
                f.write(b"b" * size)
            response = eventually(lambda: (r := c.get("/f")).body == b"b" * size and r, 3)
            assert response["Content-Length"] == str(size)


def test_tcp_clients_get_whole_answers_without_waiting_for_acknowledgements(server):
    with server.connect() as c:
        c.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        started = time.monotonic()
        for _ in range(20):
            c.send(b"GET /big.bin HTTP/1.1\r\nHost: a\r\nRange: bytes=0-9,1000-1009,5000-5009\r\n\r\n")
            assert c.response().status == 206
        # Nagle's algorithm against delayed acknowledgements would take 40 ms each
        assert time.monotonic() - started < 0.7 * 20 * 0.04


@pytest.mark.parametrize("defer_accept", ["on", "off"])
def test_a_client_that_connects_in_advance_is_taken_in_and_answered_when_it_asks(build, files, defer_accept):
    with Server(build, files, "-j", "1", "--defer-accept", defer_accept) as server:
        before = server.descriptors()
        with server.connect() as connection:
            eventually(lambda: server.descriptors() > before)
            assert connection.get("/small.bin").body == SMALL


def test_bytes_behind_the_last_request_do_not_cost_its_answer(build, files):
    """They may come while the answer waits for the FIN, and would reset a connection that is simply
    closed."""
    with Server(build, files, "-j", "1", "-n") as server:
        for _ in range(1000):
            with server.connect() as connection:
                connection.send(request("1.1", "Host: a", "Connection: close"))
                with contextlib.suppress(OSError):
                    connection.send(b"\r\n")
                assert connection.response().body == SMALL


def test_who_sends_on_without_reading_costs_the_others_nothing(build, files):
    with Server(build, files, "-j", "1", "-n") as server:
        silent = [server.connect(receive_buffer=4096) for _ in range(300)]
        for connection in silent:
            assert connection.get("/small.bin").body == SMALL
            connection.send(GET_BIG)
            connection._fill()
            connection.send(b"G")
        with server.connect() as connection:
            assert connection.get("/small.bin").body == SMALL

            def rests():
                used = server.cpu_seconds()
                time.sleep(0.5)  # tests that nothing is done in this time
                return server.cpu_seconds() - used < 0.1

            eventually(rests)  # when the sockets are full
            assert connection.get("/small.bin").body == SMALL
        for connection in silent:
            connection.close()


def test_requests_that_are_there_when_the_server_is_told_to_end_are_answered(build, files):
    with Server(build, files, "-j", "1", "-n") as server:
        connections = [server.connect() for _ in range(100)]
        for connection in connections:
            assert connection.get("/small.bin").body == SMALL
        server.signal(signal.SIGSTOP)
        for connection in connections:
            connection.send(GET)
        server.signal(signal.SIGTERM)
        server.signal(signal.SIGCONT)
        for connection in connections:
            assert connection.response().body == SMALL
            connection.close()
        server.wait()


@pytest.mark.clear
def test_the_port_is_free_when_the_server_has_ended(build, files):
    with Server(build, files, "-j", "2", "-n") as server:
        assert server.get("/small.bin").body == SMALL
    for _ in range(3):
        with Server(build, files, "-j", "2", "-n", "-p", str(server.port)) as again:
            assert again.port == server.port and again.get("/small.bin").body == SMALL
