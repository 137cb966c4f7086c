"""Input: any legal chunking, and every way to be wrong."""

import pytest

from gatling import Server

pytestmark = pytest.mark.decided

GOOD = b"GET /small.bin HTTP/1.1\r\nHost: a\r\n\r\n"


@pytest.mark.tcp
@pytest.mark.parametrize("size", [1, 2, 3, 7, 20])
def test_a_request_may_come_in_pieces_of_any_size(connection, size):
    for i in range(0, len(GOOD), size):
        connection.send(GOOD[i : i + size])
    assert connection.response().status == 200
    connection.assert_in_step()


@pytest.mark.tcp
def test_pipelined_requests_are_answered_in_order(connection):
    paths = [b"/small.bin", b"/nope", b"/", b"/dir/", b"/big.bin", b"/empty.txt"] * 40
    connection.send(b"".join(b"GET " + p + b" HTTP/1.1\r\nHost: a\r\n\r\n" for p in paths))
    lengths = {b"/small.bin": 1024, b"/": 15, b"/dir/": 6, b"/big.bin": 3_000_000, b"/empty.txt": 0}
    for path in paths:
        response = connection.response()
        assert response.status == (404 if path == b"/nope" else 200)
        if path in lengths:
            assert len(response.body) == lengths[path]
    connection.assert_in_step()


@pytest.mark.tcp
def test_empty_lines_before_a_request_are_skipped(connection):
    connection.send(b"\r\n\r\n" + GOOD)
    assert connection.response().status == 200
    connection.assert_in_step()


BAD = {
    "nul in the target": (400, b"GET /\0 HTTP/1.1\r\nHost: a\r\n\r\n"),
    "nul in a field": (400, b"GET / HTTP/1.1\r\nHost: a\r\nX: \0\r\n\r\n"),
    "bare lf": (400, b"GET / HTTP/1.1\nHost: a\n\n"),
    "bare cr": (400, b"GET / HTTP/1.1\r\nHost: a\r\nX: a\rb\r\n\r\n"),
    "obs-fold": (400, b"GET / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n"),
    "space before the colon": (400, b"GET / HTTP/1.1\r\nHost : a\r\n\r\n"),
    "no field name": (400, b"GET / HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n"),
    "no host": (400, b"GET / HTTP/1.1\r\n\r\n"),
    "two hosts": (400, b"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n"),
    "a bad host": (400, b"GET / HTTP/1.1\r\nHost: a/../b\r\n\r\n"),
    "http/0.9": (400, b"GET /\r\n"),
    "no version": (400, b"GET / \r\n\r\n"),
    "http/2": (505, b"GET / HTTP/2.0\r\nHost: a\r\n\r\n"),
    "two lengths": (400, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\na"),
    "a list of lengths": (400, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1,1\r\n\r\na"),
    "a length with a sign": (400, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\na"),
    "length and coding": (
        400,
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ),
    "a coding on 1.0": (400, b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    "an unknown coding": (501, b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
    "chunked twice": (400, b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n"),
    "a bad chunk size": (400, b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n"),
    "a chunk without its end": (400, b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\naX"),
    "a body too long": (413, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1048577\r\n\r\n"),
    "a chunk too long": (413, b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n100001\r\n"),
    "no length on 1.0": (411, b"POST / HTTP/1.0\r\n\r\n"),
    "an unknown expectation": (417, b"GET / HTTP/1.1\r\nHost: a\r\nExpect: the unexpected\r\n\r\n"),
    "a long target": (414, b"GET /" + b"a" * 8192 + b" HTTP/1.1\r\nHost: a\r\n\r\n"),
    "an endless target": (414, b"GET /" + b"a" * 10000),
    "a long head": (431, b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"a" * 16384),
    "many fields": (431, b"GET / HTTP/1.1\r\nHost: a\r\n" + b"X: y\r\n" * 100 + b"\r\n"),
    "many options": (431, b"GET / HTTP/1.1\r\nHost: a\r\nConnection: " + b"a," * 101 + b"\r\n\r\n"),
    "authority-form": (400, b"GET a:80 HTTP/1.1\r\nHost: a\r\n\r\n"),
    "asterisk-form": (400, b"GET * HTTP/1.1\r\nHost: a\r\n\r\n"),
    "another scheme": (400, b"GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n"),
    "userinfo": (400, b"GET http://u:p@a/ HTTP/1.1\r\nHost: a\r\n\r\n"),
    "a fragment": (400, b"GET /#a HTTP/1.1\r\nHost: a\r\n\r\n"),
    "a tls hello": (400, bytes.fromhex("16030100f0010000ec0303")),
    "an ssh client": (400, b"SSH-2.0-OpenSSH_9.2\r\n"),
    "printable noise": (400, b"a" * 20 + b"(" * 64),
    "a long method": (501, b"a" * 64),
    "an address that is none": (400, b"GET / HTTP/1.1\r\nHost: [1.2.3.4]\r\n\r\n"),
    "a zone": (400, b"GET / HTTP/1.1\r\nHost: [fe80::1%eth0]\r\n\r\n"),
    "a port that is none": (400, b"GET / HTTP/1.1\r\nHost: a:65536\r\n\r\n"),
    "an empty coding": (400, b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: ,chunked\r\n\r\n0\r\n\r\n"),
    "a broken extension": (400, b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1;=\r\n"),
    "noise beyond ascii": (400, b"\xe9" * 30000),
    "an endless target beyond ascii": (414, b"GET /" + b"\xe9" * 30000),
    "a long line that is no request": (400, b"GET " + b"\xe9 " * 8000 + b"\r\n"),
}


@pytest.mark.tcp
@pytest.mark.parametrize("name", BAD)
def test_bad_input_gets_its_status_and_the_connection_ends(connection, name):
    status, data = BAD[name]
    connection.send(data)
    response = connection.response()
    assert response.status == status
    assert response["Connection"] == "close"
    assert str(status).encode() in response.body
    connection.half_close()
    connection.assert_closed()


@pytest.mark.tcp
@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_too_when_it_comes_byte_by_byte_behind_a_good_request(connection, name):
    status, data = BAD[name]
    connection.send(GOOD)
    assert connection.response().status == 200
    step = 1 if len(data) < 300 else 997
    try:
        for i in range(0, len(data), step):
            connection.send(data[i : i + step])
    except (BrokenPipeError, ConnectionResetError):
        pass  # refused before its end
    assert connection.response().status == status


BAD_PATHS = {
    "/%": 400,
    "/%4": 400,
    "/%zz": 400,
    "/%00": 400,
    "/small.bin%00.html": 400,
    "/%c0%ae%c0%ae/": 400,
    "/%e0%80%af": 400,
    "/a%2fb": 404,
    "/..%2fetc/passwd": 404,
    "/.hidden": 404,
    "/.git/config": 404,
    "/%2egit/config": 404,
    "/" + "a" * 300: 404,
    "/" + "a/" * 3000: 404,
    "/small.bin/": 404,
    "/small.bin/x": 404,
    "/secret.txt": 403,
    "/nope": 404,
}


@pytest.mark.parametrize("path", BAD_PATHS, ids=lambda p: p[:20])
def test_bad_paths_get_their_status_and_the_connection_goes_on(connection, path):
    assert connection.get(path).status == BAD_PATHS[path]
    connection.assert_in_step()


@pytest.mark.parametrize(
    "path",
    ["//small.bin", "/./small.bin", "/x/../small.bin", "/../../small.bin", "/%2e%2e/small.bin", "/%73mall.bin",
     "/dir/%2E./small.bin", "/small.bin?x=/../y"],
)  # fmt: skip
def test_paths_that_mean_the_same_file(connection, path):
    response = connection.get(path)
    assert response.status == 200 and len(response.body) == 1024
    connection.assert_in_step()


@pytest.mark.tcp
@pytest.mark.parametrize("url", ["http://localhost/small.bin", "HTTP://other:1/small.bin?x"])
def test_the_target_may_be_a_url(connection, url):
    response = connection.get(url)
    assert response.status == 200 and len(response.body) == 1024
    connection.assert_in_step()


def test_plus_is_a_plus_and_percent_20_a_blank(connection):
    assert connection.get("/a+b.txt").body == b"plus"
    assert connection.get("/dir/a%20b&c.txt").body == b"odd"
    assert connection.get("/a%20b.txt").status == 404


def test_well_known_is_served_though_its_name_begins_with_a_dot(connection):
    assert connection.get("/.well-known/security.txt").body == b"well known"


@pytest.mark.tcp
def test_a_client_that_half_closes_gets_its_answer(server):
    with server.connect() as c:
        c.send(b"GET /big.bin HTTP/1.1\r\nHost: a\r\n\r\n")
        c.half_close()
        assert len(c.response().body) == 3_000_000
        c.assert_closed()


HEADS = {
    "a long target": (414, b"HEAD /" + b"a" * 9000 + b" HTTP/1.1\r\nHost: a\r\n\r\n"),
    "a target in two": (400, b"HEAD /a b HTTP/1.1\r\nHost: a\r\n\r\n"),
    "a version to come": (505, b"HEAD / HTTP/2.0\r\nHost: a\r\n\r\n"),
    "a broken chunk": (400, b"HEAD / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nx"),
}


@pytest.mark.tcp
@pytest.mark.parametrize("name", HEADS)
def test_the_refusal_of_a_head_has_no_body(connection, name):
    status, data = HEADS[name]
    connection.send(data)
    assert connection.response("HEAD").status == status
    connection.assert_closed()


@pytest.mark.clear
def test_a_path_of_many_segments_costs_little(plain, root):
    """It does not take the square of their number, which took 3 ms a request."""
    root.write("_redirects", b"/*.php  fcgi://127.0.0.1:9\n")
    path = "/".join(["", *["a" * 55 + ".php"] * 63])
    with Server(plain, root, "-j", "1", "--log", "off", "--upstream", "127.0.0.1:9") as server, server.connect() as connection:
        before = server.cpu_seconds()
        for _ in range(100):
            connection.send(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode() * 20)
            for _ in range(20):
                assert connection.response().status == 404
        assert server.cpu_seconds() - before < 1.5
