"""The system calls of a request, counted by strace(1)."""

import signal
import time
from pathlib import Path

import pytest

from gatling import Server, certificate, eventually
from served import BIG, SMALL
from system_calls import calls_of
from test_shedding import Young

WAIT = "epoll_wait"
REQUEST = b"GET /small.bin HTTP/1.1\r\nHost: a\r\n\r\n"
LAST_REQUEST = b"GET /small.bin HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"


def test_a_request_on_a_connection_kept_open_is_a_read_and_a_write(traced):
    started = time.monotonic()

    def client(server):
        with server.connect() as connection:
            for _ in range(500):
                connection.send(REQUEST)
                assert connection.response().body == SMALL

    calls = traced(client)
    waits = calls.pop(WAIT)
    assert waits <= 510
    looks = 6 * (1 + int(time.monotonic() - started))  # at the site and the file, in each second that begins
    assert 1000 <= sum(calls.values()) <= 1000 + 20 + looks, calls
    assert calls["recvfrom"] <= 510 and calls["sendto"] <= 510


def test_pipelined_requests_share_their_calls(traced):
    def client(server):
        with server.connect() as connection:
            connection.send(REQUEST * 200)
            for _ in range(200):
                assert connection.response().body == SMALL

    calls = traced(client)
    assert calls["sendto"] >= 4  # no client has more than 64 answers made at a time
    assert sum(calls.values()) < 100


def test_a_request_that_comes_with_its_connection_never_meets_the_event_mechanism(traced):
    def client(server):
        server.signal(signal.SIGSTOP)
        connections = [server.connect().send(LAST_REQUEST) for _ in range(50)]
        server.signal(signal.SIGCONT)
        for connection in connections:
            assert connection.response().body == SMALL
            connection.assert_closed()

    calls = traced(client)
    assert calls["accept4"] >= 50
    assert "epoll_ctl" not in calls


def test_a_connection_whose_request_comes_later_is_taken_in_with_it(traced):
    def client(server):
        for _ in range(50):
            with server.connect() as connection:  # the handshake is over before the request goes out
                assert connection.send(LAST_REQUEST).response().body == SMALL
                connection.assert_closed()

    calls = traced(client)
    assert "epoll_ctl" not in calls
    assert sum(calls.values()) <= 50 * 7 + 10, calls


def test_what_ends_a_handshake_goes_with_the_answer(plain, files, tmp_path):
    if Path("/proc/net/tls_stat").exists():
        pytest.skip("the kernel encrypts, and sends")
    cert, key = certificate()
    with Server(plain, files, "-j", "1", "-n", "--cert", cert, "--key", key, "--tls-port", "0") as server:
        calls = calls_of(server, tmp_path / "calls", lambda _: [Young(server).get() for _ in range(20)])
    assert 20 * 2 <= calls["sendto"] < 20 * 2 + 10, calls


def test_a_file_that_does_not_change_is_looked_at_once_a_second(traced, files):
    changed = (files.path / "small.bin").stat().st_ctime
    eventually(lambda: time.time() > changed + 4)

    def client(server):
        until = time.monotonic() + 1.5
        with server.connect() as connection:
            while time.monotonic() < until:
                assert connection.send(REQUEST).response().body == SMALL

    # twice three for the site, three for its files, four for the file and those beside it, one for who may have it;
    # more if it had just been written when it was loaded
    assert traced(client)["newfstatat"] <= 28


def test_what_is_not_there_takes_a_look_at_each_directory(traced, files):
    """There is no call for each name that could be meant: sidecars, .html, .htaccess, 404.html, a
    link that is a URL. A directory that has just changed is not read."""
    eventually(lambda: all(time.time() > d.stat().st_ctime + 0.2 for d in (files.path, files.path / "list")))

    def calls_of(count):
        def client(server):
            with server.connect() as connection:
                for n in range(count):
                    assert connection.get(f"/list/missing{n}").status == 404

        return traced(client)

    few, many = calls_of(100), calls_of(300)  # until the directories have been read there are more, under load once again
    assert many["newfstatat"] - few["newfstatat"] <= 2 * 200 + 40, many - few
    assert many["openat"] + many["readlinkat"] <= 10, many


def test_a_page_beside_a_directory_takes_a_look_at_the_directory_that_it_is_in(plain, root, tmp_path):
    root.write("team.html", SMALL)
    root.write("team/x.txt", b"x")
    eventually(lambda: all(time.time() > d.stat().st_ctime + 0.2 for d in (root.path, root.path / "team")))

    def calls_for(server, path, status):
        def client(_):
            with server.connect() as connection:
                for _ in range(200):
                    assert connection.get(path).status == status

        client(server)  # until the directories have been read there are more
        calls = calls_of(server, tmp_path / "calls", client)
        return calls["newfstatat"], calls["openat"] + calls["readlinkat"]

    with Server(plain, root, "-j", "1", "-D") as server:
        looks, opened = calls_for(server, "/team", 200)
        assert looks <= 200 + 40 and opened <= 10
        looks, opened = calls_for(server, "/team/", 301)
        assert looks <= 2 * 200 + 40 and opened <= 10


def test_the_head_waits_for_the_first_bytes_of_a_large_file(traced, tmp_path):
    def client(server):
        assert server.get("/big.bin").body == BIG

    calls = traced(client)
    assert calls["sendfile"] >= 1 and "MSG_MORE" in (tmp_path / "calls").read_text()


def test_small_ranges_of_a_large_file_are_sent_together(traced):
    ranges = [(n * 100_000, n * 100_000 + 9) for n in range(10)]
    field = "Range: bytes=" + ",".join(f"{first}-{last}" for first, last in ranges)

    def client(server):
        with server.connect() as connection:
            for _ in range(20):
                answer = connection.get("/big.bin", field)
                assert answer.status == 206 and all(BIG[first : last + 1] in answer.body for first, last in ranges)

    calls = traced(client)
    assert not calls["sendfile"] and calls["sendmsg"] + calls["sendto"] <= 22, calls


def test_a_connection_that_was_given_up_does_not_keep_the_next_one_waiting(traced):
    def client(server):
        for _ in range(5):
            assert server.get("/small.bin").body == SMALL

    calls = traced(client, "-e", "inject=accept4:error=ECONNABORTED:when=1+2")
    assert calls["accept4"] >= 10
