"""Content codings: precompressed files, compression by the server, and unpacking; they are
negotiated, and each is a representation."""

import gzip
import os
import random
import re
import signal
import struct
import subprocess
import threading
import time

import brotli
import pytest
import zstandard

from gatling import Root, Server, eventually
from http2 import RST_STREAM, Http2, frame

pytestmark = [pytest.mark.decided, pytest.mark.tcp]

TEXT = "Größe\n".encode() + b"".join(b"line %d of a page that gets %x\n" % (i, i * i) for i in range(2000))
NOISE = random.Random(2).randbytes(5000)
TAGGED_SOON = 4 << 20  # a larger file is sent before the hash that is its entity-tag is known
BIG = random.Random(3).randbytes(600_000).hex().encode()
UNPACK = {
    "br": brotli.decompress,
    "zstd": lambda data: zstandard.ZstdDecompressor().decompress(data, 1 << 24),
    "gzip": gzip.decompress,
    None: bytes,
}
PACK = {"br": brotli.compress, "zst": zstandard.ZstdCompressor(level=19).compress, "gz": gzip.compress}


def age(root, name, seconds):
    then = time.time() - seconds
    os.utime(root.path / name, (then, then))


@pytest.fixture(scope="module")
def site():
    root = Root({"page.html": TEXT, "big.txt": BIG, "noise.txt": NOISE, "small.txt": b"x" * 256, "just.txt": b"x" * 257})
    root.write("image.png", TEXT)
    root.write("huge.txt", b"0123456789abcdef" * (1 << 19))  # 8 MiB
    root.write("over.txt", b"0123456789abcdef" * (1 << 19) + b"x")
    root.write("all.html", TEXT)
    for suffix, pack in PACK.items():
        root.write(f"all.html.{suffix}", pack(TEXT))
        root.write(f"only-{suffix}.html.{suffix}", pack(TEXT))
    root.write("dir/index.html.gz", gzip.compress(TEXT))
    root.write("two.txt.gz", gzip.compress(TEXT) + gzip.compress(b"and more"))
    root.write("padded.txt.gz", gzip.compress(TEXT) + bytes(512))
    root.write("large.txt.gz", gzip.compress(BIG * 20, 1))
    root.write("stale.txt", TEXT)
    root.write("stale.txt.gz", gzip.compress(b"old"))
    age(root, "stale.txt.gz", 3600)
    root.write("same.txt", TEXT)
    root.write("same.txt.br", brotli.compress(b"as old"))
    for name in ("same.txt", "same.txt.br"):
        os.utime(root.path / name, (10**9, 10**9))
    root.write("broken.txt", TEXT)
    root.write("broken.txt.gz", b"this is no gzip")
    root.write("alone.txt.gz", b"this is no gzip")
    root.write("cut.txt.gz", gzip.compress(TEXT)[:-20])
    root.write("odd.txt", TEXT)
    root.mkdir("odd.txt.gz")
    root.write("secret.txt", TEXT)
    root.write("secret.txt.gz", gzip.compress(b"not for everybody"), 0o640)
    yield root
    root.remove()


@pytest.fixture(scope="module")
def server(build, site):
    with Server(build, site, "-j", "2") as running:
        yield running


@pytest.fixture
def connection(server):
    with server.connect() as connected:
        yield connected


def ask(connection, path, accept=None, *fields, **options):
    accepted = () if accept is None else ("Accept-Encoding: " + accept,)
    return connection.get(path, *accepted, *fields, **options)


def ask_again(connection, path, accept, coding):
    """Returns the response in a coding that is made only for a file that is requested again."""
    return eventually(lambda: (r := ask(connection, path, accept))["Content-Encoding"] == coding and r)


@pytest.mark.parametrize(
    "accept, coding",
    [
        (None, None),
        ("", None),
        ("identity", None),
        ("gzip", "gzip"),
        ("x-gzip", "gzip"),
        ("zstd", "zstd"),
        ("br", "br"),
        ("gzip, deflate, br, zstd", "br"),
        ("gzip, zstd", "zstd"),
        ("GZIP", "gzip"),
        ("gzip;q=1.0, br;q=0.5", "gzip"),
        ("br;q=0, zstd;q=0, gzip;q=0.001", "gzip"),
        ("br;q=0", None),
        ("*", "br"),
        ("*;q=0", None),
        ("gzip, *;q=0", "gzip"),
        ("br;q=0, *", "zstd"),
        ("identity;q=1, gzip;q=0.5", None),
        ("identity;q=0.2, gzip;q=0.5", "gzip"),
        ("identity;q=0, zstd", "zstd"),
        ("deflate", None),
    ],
)
def test_the_best_of_what_the_client_likes_is_sent(connection, accept, coding):
    response = ask(connection, "/all.html", accept)
    assert response.status == 200
    assert response["Content-Encoding"] == coding
    assert UNPACK[coding](response.body) == TEXT
    assert response["Vary"] == "Accept-Encoding" and response["Content-Type"] == "text/html; charset=utf-8"


def test_several_lines_of_the_field_are_one(connection):
    assert connection.get("/all.html", "Accept-Encoding: gzip;q=0.5", "Accept-Encoding: zstd")["Content-Encoding"] == "zstd"


def test_what_is_beside_it_is_sent_as_it_is(connection, site):
    for coding, suffix in (("br", "br"), ("zstd", "zst"), ("gzip", "gz")):
        assert ask(connection, "/all.html", coding).body == (site.path / f"all.html.{suffix}").read_bytes()


def test_each_coding_has_an_entity_tag_of_its_own(connection):
    for path in ("/all.html", "/page.html"):
        tags = {ask_again(connection, path, coding or "", coding)["ETag"] for coding in ("br", "zstd", "gzip", None)}
        assert len(tags) == 4 and None not in tags


@pytest.mark.parametrize("path", ["/all.html", "/page.html"])
@pytest.mark.parametrize("accept", ["", "gzip", "br"])
def test_validators_and_vary_are_those_of_the_coding_in_304_and_206(connection, path, accept):
    whole = ask_again(connection, path, accept, accept or None)
    not_modified = ask(connection, path, accept, "If-None-Match: " + whole["ETag"])
    assert not_modified.status == 304
    assert not_modified["Last-Modified"] is None
    for name in ("ETag", "Vary", "Cache-Control"):
        assert not_modified[name] == whole[name] and whole[name]
    part = ask(connection, path, accept, "Range: bytes=10-19", "If-Range: " + whole["ETag"])
    assert part.status == 206 and part.body == whole.body[10:20]
    assert part["Content-Range"] == f"bytes 10-19/{len(whole.body)}"
    for name in ("ETag", "Vary", "Content-Encoding", "Content-Type"):
        assert part[name] == whole[name]
    parts = ask(connection, path, accept, "Range: bytes=0-1,5-6")
    assert parts.status == 206 and whole.body[0:2] in parts.body and whole.body[5:7] in parts.body
    assert parts["Content-Encoding"] == whole["Content-Encoding"] and parts["Vary"] == "Accept-Encoding"


def test_the_entity_tag_of_one_coding_is_none_of_another(connection):
    etag = ask(connection, "/page.html", "gzip")["ETag"]
    assert ask(connection, "/page.html", None, "If-None-Match: " + etag).status == 200
    assert ask(connection, "/page.html", None, "If-Match: " + etag).status == 412
    part = ask(connection, "/page.html", None, "Range: bytes=0-9", "If-Range: " + etag)
    assert part.status == 200


def test_a_suffix_longer_than_the_coded_bytes_is_all_of_them(connection):
    whole = ask(connection, "/all.html", "br")
    part = ask(connection, "/all.html", "br", f"Range: bytes=-{len(TEXT)}")
    assert part.status in (200, 206) and part.body == whole.body


@pytest.mark.parametrize("path", ["/page.html", "/just.txt", "/big.txt", "/huge.txt"])
def test_text_is_compressed_here(connection, site, path):
    original = (site.path / path[1:]).read_bytes()
    first = ask(connection, path, "gzip, deflate")
    assert first["ETag"] or len(original) > TAGGED_SOON
    second = eventually(lambda: (r := ask(connection, path, "gzip"))["ETag"] and r)
    assert first["Content-Encoding"] == second["Content-Encoding"] == "gzip"
    assert gzip.decompress(first.body) == original and first.body == second.body
    assert first["ETag"] in (second["ETag"], None) and len(first.body) < len(original)


@pytest.mark.parametrize("path", ["/small.txt", "/noise.txt", "/image.png", "/over.txt"])
def test_what_is_small_or_large_or_gets_no_smaller_is_sent_as_it_is(connection, site, path):
    response = ask(connection, path, "gzip")
    assert response["Content-Encoding"] is None
    assert response.body == (site.path / path[1:]).read_bytes()
    assert response["Vary"] == ("Accept-Encoding" if path == "/noise.txt" else None)


@pytest.mark.parametrize(
    "accept, soon, later",
    [
        ("gzip, deflate, br, zstd", "gzip", "br"),
        ("gzip, deflate, br", "gzip", "br"),
        ("gzip, zstd", "gzip", "zstd"),
        ("zstd, br;q=0.9", None, "zstd"),
        ("br", None, "br"),
        ("gzip, br;q=0.9", "gzip", "gzip"),
    ],
)
def test_what_is_requested_again_gets_as_small_as_the_client_can_read(build, root, accept, soon, later):
    root.write("page.html", TEXT)
    with Server(build, root, "-j", "1") as server, server.connect() as connection:
        first = ask(connection, "/page.html", accept)
        assert first["Content-Encoding"] == soon and UNPACK[soon](first.body) == TEXT
        best = ask_again(connection, "/page.html", accept, later)
        assert UNPACK[later](best.body) == TEXT and best["Vary"] == first["Vary"] == "Accept-Encoding"
        assert len(best.body) < len(first.body) or later == soon
        assert best["ETag"] != first["ETag"] or later == soon
        assert ask(connection, "/page.html", accept, "If-None-Match: " + best["ETag"]).status == 304
        root.write("page.html", TEXT + b"changed")
        changed = eventually(lambda: (r := ask(connection, "/page.html", accept))["ETag"] not in (best["ETag"], first["ETag"]) and r)
        assert UNPACK[changed["Content-Encoding"]](changed.body) == TEXT + b"changed"


def test_what_the_owner_has_compressed_best_is_left_alone(build, root):
    for suffix in ("gz", "zst"):
        root.write(f"{suffix}.html", TEXT)
        root.write(f"{suffix}.html.{suffix}", PACK[suffix](TEXT))
    root.write("br.html", TEXT)
    root.write("br.html.br", brotli.compress(TEXT, quality=1))
    with Server(build, root, "-j", "1") as server, server.connect() as connection:
        assert ask_again(connection, "/gz.html", "gzip, br", "br").body  # gzip is not the best
        cases = (("/zst.html", "zstd, br, gzip", "zstd"), ("/zst.html", "br, gzip", "gzip"),
                 ("/br.html", "zstd, br, gzip", "br"), ("/br.html", "zstd, gzip", "gzip"))  # fmt: skip
        for path, accept, coding in cases:
            for _ in range(5):
                assert ask(connection, path, accept)["Content-Encoding"] == coding
        root.write("last.html", TEXT)
        ask_again(connection, "/last.html", "br", "br")  # after all that the thread had to do before
        for path, accept, coding in cases:
            assert ask(connection, path, accept)["Content-Encoding"] == coding


def test_of_what_the_client_likes_as_much_the_smallest_is_sent(build, root):
    root.write("a.html", TEXT)
    root.write("a.html.br", brotli.compress(TEXT, quality=0))
    root.write("a.html.gz", gzip.compress(TEXT, 9))
    with Server(build, root) as server:
        assert (root.path / "a.html.gz").stat().st_size < (root.path / "a.html.br").stat().st_size
        assert server.get("/a.html", "Accept-Encoding: br, gzip")["Content-Encoding"] == "gzip"
        assert server.get("/a.html", "Accept-Encoding: br, gzip;q=0.9")["Content-Encoding"] == "br"


def test_without_room_nothing_is_compressed(build, site):
    with Server(build, site, "--limit", "gzip-cache=0") as server, server.connect() as connection:
        for _ in range(3):
            assert ask(connection, "/page.html", "gzip, br")["Content-Encoding"] is None
        assert server.get("/all.html", "Accept-Encoding: gzip")["Content-Encoding"] == "gzip"


def test_what_is_compressed_stays_within_its_limit(plain, root):
    for i in range(20):
        root.write(f"{i}.txt", random.Random(i).randbytes(100_000).hex().encode())
    with Server(plain, root, "-j", "1", "--limit", "gzip-cache=300K") as server, server.connect() as connection:
        before = server.resident()
        for _ in range(2):
            for i in range(20):
                response = ask(connection, f"/{i}.txt", "gzip")
                assert gzip.decompress(response.body) == (root.path / f"{i}.txt").read_bytes()
        assert server.resident() - before < (20 << 20)


@pytest.mark.parametrize("flag", ["-1", "64X", "64MM", "", "M", "99999999999G"])
def test_a_size_that_is_none_is_refused(build, flag):
    found = subprocess.run([build / "gatling", "--limit", f"gzip-cache={flag}"], capture_output=True, text=True, check=False, timeout=20)
    assert found.returncode == 2 and "--limit gzip-cache" in found.stderr and found.stderr.count("\n") == 1


def test_nobody_waits_while_another_file_is_compressed(build, root):
    for i in range(8):
        root.write(f"{i}.txt", random.Random(i).randbytes(2 << 20).hex().encode())
    with Server(build, root, "-j", "1") as server, server.connect() as other:
        other.get("/a.txt")
        waiting = [server.connect() for _ in range(8)]
        for i, connection in enumerate(waiting):
            connection.send(b"GET /%d.txt HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip\r\n\r\n" % i)
        before = time.monotonic()
        for _ in range(20):
            other.get("/a.txt")
        answered = time.monotonic() - before
        for i, connection in enumerate(waiting):
            response = connection.response()
            text = UNPACK[response["Content-Encoding"]](response.body)
            assert text == (root.path / f"{i}.txt").read_bytes()
            connection.close()
        assert answered < (time.monotonic() - before) / 2


def test_requests_behind_one_that_waits_are_answered_in_order(build, root):
    root.write("long.txt", BIG)
    root.write("long2.txt", BIG + b"2")
    with Server(build, root, "-j", "1") as server, server.connect() as connection:
        gzipped = b"Host: x\r\nAccept-Encoding: gzip\r\n\r\n"
        connection.send(b"GET /a.txt HTTP/1.1\r\n%sGET /long.txt HTTP/1.1\r\n%sGET /long2.txt HTTP/1.1\r\n%sGET /a.txt HTTP/1.1\r\n%s"
                        % (gzipped, gzipped, gzipped, gzipped))  # fmt: skip
        assert connection.response().body == b"a"
        assert gzip.decompress(connection.response().body) == BIG
        assert gzip.decompress(connection.response().body) == BIG + b"2"
        assert connection.response().body == b"a"


def test_who_goes_while_waiting_is_forgotten(build, root):
    for i in range(20):
        root.write(f"{i}.txt", BIG + b"%d" % i)
    with Server(build, root, "-j", "1") as server:
        for i in range(20):
            connection = server.connect()
            connection.send(b"GET /%d.txt HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip\r\n\r\n" % i)
            connection.reset() if i % 2 else connection.close()
        assert server.get("/a.txt").body == b"a"
        eventually(lambda: server.get("/19.txt", "Accept-Encoding: gzip")["Content-Encoding"] == "gzip")


def test_a_server_that_ends_answers_who_waits(build, root):
    root.write("long.txt", random.Random(9).randbytes(3 << 20).hex().encode())
    with Server(build, root, "-j", "1") as server, server.connect() as connection:
        connection.get("/a.txt")
        threads = len(server.thread_ids())
        connection.send(b"GET /long.txt HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip\r\n\r\n")
        eventually(lambda: len(server.thread_ids()) > threads)
        server.signal(signal.SIGTERM)
        response = connection.response()
        assert response.status == 200 and response["Connection"] == "close"
        server.wait()


def test_a_server_that_is_killed_twice_does_not_wait(build, root):
    root.write("long.txt", random.Random(9).randbytes(3 << 20).hex().encode())
    with Server(build, root, "-j", "1") as server, server.connect() as connection:
        connection.send(b"GET /long.txt HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip\r\n\r\n")
        server.signal(signal.SIGTERM)
        server.signal(signal.SIGINT)
        server.wait()


@pytest.mark.parametrize("path, coding", [("/only-gz.html", "gzip"), ("/only-br.html", "br"), ("/only-zst.html", "zstd")])
def test_what_is_there_in_a_coding_alone_is_served_by_its_own_name(connection, path, coding):
    response = ask(connection, path, "gzip, br, zstd")
    assert response["Content-Encoding"] == coding and UNPACK[coding](response.body) == TEXT
    assert response["Content-Type"] == "text/html" + "; charset=utf-8" * (coding == "gzip")  # the others are not looked into


@pytest.mark.parametrize("path, coding", [("/only-br.html", "br"), ("/only-zst.html", "zstd")])
def test_what_a_client_cannot_read_is_not_acceptable(connection, path, coding):
    refused = ask(connection, path, "gzip")
    assert refused.status == 406 and refused["Vary"] == "Accept-Encoding"
    assert ask(connection, path)["Content-Encoding"] == coding  # no field: nothing is refused


def test_caches_know_that_it_depends_on_the_client(build, root):
    root.write("_headers", b"/*\n  Cache-Control: max-age=300\n  X-Own: yes\n/own.html\n  Vary: Cookie\n")
    for name in ("page.html.br", "own.html.br"):
        root.write(name, b"")
    with Server(build, root, "-j", "1") as server:
        for path, others in (("/page.html", set()), ("/own.html", {"Cookie"})):
            refused = server.get(path, "Accept-Encoding: gzip")
            assert refused.status == 406 and refused["X-Own"] == "yes"
            assert {value for name, value in refused.fields if name == "Vary"} == {"Accept-Encoding"} | others


def test_so_does_the_page_of_an_error_that_is_there_in_a_coding_alone(build, root):
    root.write("404.html.br", b"<p>packed")
    with Server(build, root, "-j", "1") as server:
        page, plain = (server.get("/none", f"Accept-Encoding: {coding}") for coding in ("br", "gzip"))
        assert page.status == plain.status == 404 and page.body == b"<p>packed" and plain.body != page.body
        assert page["Vary"] == plain["Vary"] == "Accept-Encoding"


@pytest.mark.parametrize("coding", ["gzip", "br"])
def test_the_page_of_an_error_is_compressed_for_later_ones(build, root, coding):
    """The first is not made to wait."""
    root.write("404.html", TEXT)
    with Server(build, root, "-j", "1") as server, server.connect() as connection:
        first = ask(connection, "/none", coding)
        assert (first.status, first["Content-Encoding"], first.body) == (404, None, TEXT)
        later = ask_again(connection, "/none", coding, coding)
        assert later.status == 404 and UNPACK[coding](later.body) == TEXT and later["Vary"] == "Accept-Encoding"


def test_a_private_key_is_not_sent_packed_or_not(build, root):
    key = b"-----BEGIN PRIVATE KEY-----\n"
    packed, plain = ("a.pem", "b.key", "C.PEM"), ("d.pem", "e.key", "F.KEY")
    for name in packed:
        root.write(name + ".gz", gzip.compress(key))
        root.write(name + ".br", brotli.compress(key))
    for name in plain:
        root.write(name, key)
    with Server(build, root, "-j", "1") as server:
        for accept in ("", "gzip", "br"):
            assert all(server.get("/" + name, "Accept-Encoding: " + accept).status == 404 for name in packed)
            assert all(server.get("/" + name, "Accept-Encoding: " + accept).status == 403 for name in plain)


def test_nobody_waits_long_when_much_is_to_be_compressed(build, root):
    root.write("big.txt", b"0123456789abcdef" * (1 << 19))
    for i in range(30):
        os.link(root.path / "big.txt", root.path / f"{i}.txt")
    with Server(build, root, "-j", "1") as server:
        connections = [server.connect() for _ in range(30)]
        for i, connection in enumerate(connections):
            connection.send(b"GET /%d.txt HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip\r\n\r\n" % i)
        codings = [connection.response()["Content-Encoding"] for connection in connections]
        assert "gzip" in codings and codings.count(None) >= 20  # whichever has its file in memory first
        for connection in connections:
            connection.close()


def test_what_is_still_being_sent_counts(plain, root):
    for i in range(4):
        root.write(f"{i}.txt", random.Random(i).randbytes(2 << 20).hex().encode())
    with Server(plain, root, "-j", "1", "--limit", "gzip-cache=4M") as server:
        before, slow = server.resident(), []
        for i in range(40):
            slow.append(server.connect(receive_buffer=4096))
            slow[-1].send(b"GET /%d.txt HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip\r\n\r\n" % (i % 4))
            slow[-1]._fill()  # pylint: disable=protected-access
        assert server.resident() - before < 30 << 20
        for connection in slow:
            connection.close()


@pytest.mark.parametrize(
    "path, wanted",
    [("/only-gz.html", TEXT), ("/dir/", TEXT), ("/two.txt", TEXT + b"and more"), ("/padded.txt", TEXT), ("/large.txt", BIG * 20)],
    ids=["page", "index", "two members", "padded", "large"],
)
def test_gzip_is_unpacked_for_who_does_not_read_it(connection, path, wanted):
    assert eventually(lambda: ask(connection, path, method="HEAD")["ETag"])  # hashing a large one takes a while
    plain, head = ask(connection, path), ask(connection, path, method="HEAD")
    packed = ask(connection, path, "gzip")
    assert plain.status == 200 and plain.body == wanted
    assert plain["Content-Encoding"] is None and plain["Vary"] == packed["Vary"] == "Accept-Encoding"
    assert head["Content-Length"] == str(len(wanted)) and plain["ETag"] != packed["ETag"]
    assert ask(connection, path, None, "If-None-Match: " + plain["ETag"]).status == 304
    # the offset of a byte cannot be known without unpacking what is before it
    assert plain["Accept-Ranges"] == "none"
    assert ask(connection, path, None, "Range: bytes=0-9").status == 200


@pytest.mark.parametrize("path", ["/alone.txt", "/cut.txt"])
def test_broken_gzip_is_sent_as_it_is_and_never_unpacked(connection, site, path):
    for accept in ("gzip", None):
        response = ask(connection, path, accept)
        assert response["Content-Encoding"] == "gzip" and response.body == (site.path / (path[1:] + ".gz")).read_bytes()
    for _ in range(2):
        assert ask(connection, path, "br").status == 406


def test_broken_gzip_beside_a_file_is_the_owners(connection):
    assert ask(connection, "/broken.txt", "gzip").body == b"this is no gzip"
    assert ask(connection, "/broken.txt").body == TEXT


def test_what_is_older_than_the_file_is_not_served(connection):
    response = ask(connection, "/stale.txt", "gzip")
    assert gzip.decompress(response.body) == TEXT
    assert brotli.decompress(ask(connection, "/same.txt", "br").body) == b"as old"


def test_times_that_are_cut_to_seconds_are_as_old_and_what_is_older_is_said(build, root):
    """As those of Debian's brotli are."""
    second = 1_700_000_000 * 10**9
    for name, ns in (("a.txt", 500_000_007), ("a.txt.br", 0), ("a.txt.gz", 500_000_001), ("b.txt", 500_000_007), ("b.txt.zst", 500_000_000)):
        root.write(name, name.encode())
        os.utime(root.path / name, ns=(second + ns, second + ns))
    with Server(build, root, "-j", "2", "-n") as server:
        for _ in range(4):
            assert server.get("/a.txt", "Accept-Encoding: br").body == b"a.txt.br"
            assert server.get("/b.txt", "Accept-Encoding: zstd").body == b"b.txt.zst"
            assert server.get("/a.txt", "Accept-Encoding: gzip").body != b"a.txt.gz"
        eventually(lambda: server.errors)
        assert server.errors == ["gatling: a.txt.gz is older than a.txt, and not used: make it again"]


@pytest.mark.parametrize("path", ["/odd.txt", "/secret.txt"])
def test_a_directory_or_what_is_not_for_everybody_is_nothing_beside_a_file(connection, path):
    assert gzip.decompress(ask(connection, path, "gzip").body) == TEXT


def test_the_packed_file_itself_is_a_file(connection, site):
    response = ask(connection, "/all.html.gz", "gzip")
    assert response["Content-Encoding"] is None and response["Content-Type"] == "application/gzip"
    assert response.body == (site.path / "all.html.gz").read_bytes()


def test_what_is_put_beside_a_file_or_taken_away_counts_within_seconds(build, root):
    root.write("a.txt", TEXT)
    with Server(build, root, "-j", "1") as server:
        assert ask_once(server, "/a.txt", "br") == (None, TEXT)
        root.write("a.txt.br", brotli.compress(TEXT))
        eventually(lambda: ask_once(server, "/a.txt", "br") == ("br", TEXT), 5)
        root.write("a.txt", TEXT + b"new")
        eventually(lambda: ask_once(server, "/a.txt", "br") == (None, TEXT + b"new"), 5)
        os.utime(root.path / "a.txt.br")
        eventually(lambda: ask_once(server, "/a.txt", "br") == ("br", TEXT), 5)
        (root.path / "a.txt.br").unlink()
        eventually(lambda: ask_once(server, "/a.txt", "br") == (None, TEXT + b"new"), 5)


def ask_once(server, path, accept):
    response = server.get(path, "Accept-Encoding: " + accept)
    return response["Content-Encoding"], UNPACK[response["Content-Encoding"]](response.body)


def test_a_file_that_changes_while_it_is_compressed_never_goes_out_under_another_tag(build, root):
    """The tag of a compressed answer shows which state of the file it was made of."""
    states = {}
    root.write("a.txt", BIG)
    done = threading.Event()

    def change():
        for i in range(200):
            (root.path / "new").write_bytes(BIG[:200_000] + b"%d" % i)
            (root.path / "new").chmod(0o644)
            (root.path / "new").rename(root.path / "a.txt")
            if done.wait(0.02 if i % 8 else 0.4):  # what has just changed is not hashed
                return

    thread = threading.Thread(target=change)
    thread.start()
    try:
        with Server(build, root, "-j", "1") as server, server.connect() as connection:
            until = time.monotonic() + 3
            while time.monotonic() < until:
                for accept in ("gzip", ""):
                    response = ask(connection, "/a.txt", accept)
                    text = UNPACK[response["Content-Encoding"]](response.body)
                    if response["ETag"]:  # a file that is replaced before it is hashed has none
                        tag = re.match('"[0-9a-f]+', response["ETag"])[0]
                        assert states.setdefault(tag, text) == text
        assert len(states) > 1
    finally:
        done.set()
        thread.join()


@pytest.mark.clear
def test_streams_wait_side_by_side(build, root):
    for i in range(30):
        root.write(f"{i}.txt", BIG[: 100_000 + i])
    with Server(build, root, "-j", "1") as server, Http2(server) as client:
        streams = [client.ask(f"/{i}.txt", ("accept-encoding", "gzip")) for i in range(30)]
        *answers, small = client.answers(*streams, client.ask("/a.txt"))
        assert small.body == b"a"
        for i, answer in enumerate(answers):
            assert answer["content-encoding"] == "gzip"
            assert gzip.decompress(answer.body) == BIG[: 100_000 + i]


@pytest.mark.clear
def test_a_stream_that_waits_can_be_reset_and_its_connection_closed(build, root):
    for i in range(20):
        root.write(f"{i}.txt", BIG + b"%d" % i)
    with Server(build, root, "-j", "1") as server:
        with Http2(server) as client:
            streams = [client.ask(f"/{i}.txt", ("accept-encoding", "gzip")) for i in range(10)]
            for stream in streams[::2]:
                client.send(frame(RST_STREAM, 0, stream, struct.pack(">I", 8)))
            for answer in client.answers(*streams[1::2]):
                assert gzip.decompress(answer.body).startswith(BIG)
        with Http2(server) as client:
            for i in range(10, 20):
                client.ask(f"/{i}.txt", ("accept-encoding", "gzip"))
        assert server.get("/a.txt").body == b"a"
