"""The representation of a file: fields, validators, preconditions, ranges."""

import email.utils
import gzip
import os
import random
import re
import time
from pathlib import Path

import pytest

from gatling import Root, Server, eventually
from http2 import Http2
from served import BIG, SMALL

pytestmark = pytest.mark.decided


def test_a_file_comes_with_all_its_fields(connection):
    response = connection.get("/small.bin")
    assert response.status == 200 and response.reason == "OK" and response.body == SMALL
    assert response["Content-Type"] == "application/octet-stream"
    assert response["Accept-Ranges"] == "bytes"
    assert response["Server"] == "gatling"
    assert re.fullmatch(r'"[0-9a-f]{32}"', response["ETag"])
    assert response["Connection"] is None
    date = email.utils.parsedate_to_datetime(response["Date"]).timestamp()
    assert abs(date - time.time()) < 3
    assert email.utils.parsedate_to_datetime(response["Last-Modified"]).timestamp() <= date


def test_the_last_modification_is_the_files(build, root):
    os.utime(root.path / "a.txt", (784111777, 784111777))
    with Server(build, root) as server:
        assert server.get("/a.txt")["Last-Modified"] == "Sun, 06 Nov 1994 08:49:37 GMT"


def test_a_modification_in_the_future_is_said_to_be_now(build, root):
    os.utime(root.path / "a.txt", (4102444800, 4102444800))
    with Server(build, root) as server:
        response = server.get("/a.txt")
        said = email.utils.parsedate_to_datetime(response["Last-Modified"]).timestamp()
        assert said <= email.utils.parsedate_to_datetime(response["Date"]).timestamp()


def test_a_modification_before_http_could_say_it_is_the_epoch(build, root):
    os.utime(root.path / "a.txt", (-(10**9), -(10**9)))
    with Server(build, root) as server:
        assert server.get("/a.txt")["Last-Modified"] == "Thu, 01 Jan 1970 00:00:00 GMT"


def test_the_date_goes_on(build, root):
    with Server(build, root, "-j", "1") as server:
        first = server.get("/a.txt")["Date"]
        eventually(lambda: server.get("/a.txt")["Date"] != first, 5)


@pytest.mark.tcp  # these files are not in the Debian of the server
def test_files_that_have_not_changed_for_long_come_whole(build):
    """Most of them are read before their status is; for a large one this is not enough."""
    headers = [path for path in Path("/usr/include/linux").glob("*.h") if not path.is_symlink()]
    assert min(path.stat().st_size for path in headers) < 1024 < 64 * 1024 < max(path.stat().st_size for path in headers)
    with Server(build, "/usr/include/linux", "-j", "1") as server, server.connect() as connection:
        for path in headers:
            assert connection.get("/" + path.name).body == path.read_bytes(), path


@pytest.mark.parametrize("ranges", ["0-1", "0-1,5-6"])
def test_a_part_carries_the_validators_of_the_whole(connection, ranges):
    whole, part = connection.get("/small.bin"), connection.get("/small.bin", "Range: bytes=" + ranges)
    assert part.status == 206
    assert part["ETag"] == whole["ETag"] and part["Last-Modified"] == whole["Last-Modified"]
    kind = part["Content-Type"]
    assert kind.startswith("multipart/byteranges; boundary=") if "," in ranges else kind == whole["Content-Type"]


def test_no_two_boundaries_are_alike(connection):
    kinds = {connection.get("/small.bin", "Range: bytes=0-1,5-6")["Content-Type"] for _ in range(10)}
    assert len(kinds) == 10


@pytest.mark.parametrize("path", ["/small.bin", "/", "/nope", "/list/", "/dir", "/empty.txt"])
def test_head_is_get_without_the_body(connection, path):
    got, head = connection.get(path), connection.get(path, method="HEAD")
    connection.assert_in_step()
    assert head.status == got.status
    ignored = ("Date",)
    assert [f for f in head.fields if f[0] not in ignored] == [f for f in got.fields if f[0] not in ignored]


@pytest.mark.parametrize("path", ["/small.bin", "/big.bin", "/empty.txt", "/dir/"])
def test_bodies_are_the_files_bytes(connection, path):
    body = {"/small.bin": SMALL, "/big.bin": BIG, "/empty.txt": b"", "/dir/": b"in dir"}[path]
    for _ in range(2):
        assert connection.get(path).body == body
    connection.assert_in_step()


@pytest.mark.parametrize(
    "name,kind",
    [("a.html", "text/html; charset=utf-8"), ("a.css", "text/css; charset=utf-8"), ("a.JS", "text/javascript; charset=utf-8"),
     ("a.svg", "image/svg+xml"), ("a.wasm", "application/wasm"), ("a.json", "application/json"), ("a.txt", "text/plain; charset=utf-8"),
     ("a.bin", "application/octet-stream"), ("a.tar.gz", "application/gzip")],
)  # fmt: skip
def test_media_types(build, root, name, kind):
    root.write(name, b"x")
    with Server(build, root, "-j", "1") as server:
        assert server.get("/" + name)["Content-Type"] == kind


# --- change ---


@pytest.mark.parametrize("size", [5, 200_000])
@pytest.mark.parametrize("how", ["in place", "by rename"])
def test_the_etag_changes_with_the_content_when_neither_size_nor_time_do(build, root, size, how):
    root.write("f", b"a" * size)
    os.utime(root.path / "f", (1, 1))
    with Server(build, root, "-j", "1") as server:
        before = eventually(lambda: (r := server.get("/f"))["ETag"] and r)
        changed = root.path / ("f" if how == "in place" else "new")
        with open(changed, "r+b" if how == "in place" else "wb") as f:
            f.write(b"b" * size)
        os.utime(changed, (1, 1))
        changed.rename(root.path / "f")
        after = eventually(lambda: (r := server.get("/f")).body[:1] == b"b" and r["ETag"] and r, 5)
        assert after["ETag"] != before["ETag"] and after["Last-Modified"] == before["Last-Modified"]
        assert after.body == b"b" * size
        assert server.get("/f", "If-None-Match: " + before["ETag"]).status == 200


@pytest.mark.parametrize("size", [1000, 100_000])
def test_a_file_that_has_not_changed_for_long_is_seen_to_change(build, root, size):
    changed = root.write("f", b"a" * size).stat().st_ctime
    eventually(lambda: time.time() > changed + 4)
    with Server(build, root, "-j", "1") as server:
        assert server.get("/f").body == b"a" * size
        root.write("f", b"b" * size)
        eventually(lambda: server.get("/f").body == b"b" * size, 5)


def test_files_that_appear_change_mode_and_go_are_seen_within_a_second(build, root):
    with Server(build, root, "-j", "1") as server:
        assert server.get("/new.txt").status == 404
        root.write("new.txt", b"new")
        assert server.get("/new.txt").body == b"new"
        (root.path / "new.txt").chmod(0o640)
        eventually(lambda: server.get("/new.txt").status == 403, 5)
        (root.path / "new.txt").chmod(0o644)
        eventually(lambda: server.get("/new.txt").status == 200, 2)
        (root.path / "new.txt").unlink()
        eventually(lambda: server.get("/new.txt").status == 404, 2)


# --- preconditions ---

LONG_AGO = "Sun, 06 Nov 1994 08:49:37 GMT"
TO_COME = "Fri, 01 Jan 2100 00:00:00 GMT"


@pytest.mark.parametrize(
    "fields,status",
    [
        (["If-None-Match: {etag}"], 304),
        (["If-None-Match: W/{etag}"], 304),
        (['If-None-Match: "x", {etag}'], 304),
        (["If-None-Match: *"], 304),
        (['If-None-Match: "x"'], 200),
        (['If-None-Match: "x"', "If-Modified-Since: " + TO_COME], 200),
        (["If-Modified-Since: {date}"], 304),
        (["If-Modified-Since: " + TO_COME], 304),
        (["If-Modified-Since: " + LONG_AGO], 200),
        (["If-Modified-Since: Sunday, 06-Nov-94 08:49:37 GMT"], 200),
        (["If-Modified-Since: nonsense"], 200),
        (["If-Modified-Since: {date}", "If-Modified-Since: {date}"], 200),
        (["If-Match: {etag}"], 200),
        (["If-Match: *"], 200),
        (["If-Match: W/{etag}"], 412),
        (['If-Match: "x"'], 412),
        (["If-Unmodified-Since: {date}"], 200),
        (["If-Unmodified-Since: " + LONG_AGO], 412),
        (["If-Unmodified-Since: Sun, 06 Nov 94 08:49:37 GMT"], 200),
        (["If-Unmodified-Since: " + LONG_AGO, "If-Unmodified-Since: " + LONG_AGO], 200),
        (["If-Match: {etag}", "If-Unmodified-Since: " + LONG_AGO], 200),
        (["If-Match: {etag}", "If-None-Match: {etag}"], 304),
        (["If-None-Match: {etag}", "Range: bytes=0-1"], 304),
    ],
)
@pytest.mark.parametrize("path", ["/small.bin", "/big.bin"])
def test_preconditions(connection, path, fields, status):
    plain = connection.get(path)
    filled = [f.format(etag=plain["ETag"], date=plain["Last-Modified"]) for f in fields]
    response = connection.get(path, *filled)
    assert response.status == status
    if status == 304:
        assert response["ETag"] == plain["ETag"] and response["Last-Modified"] is None and response["Accept-Ranges"] is None
        assert response["Date"] and response["Content-Type"] is None
    connection.assert_in_step()


def test_preconditions_on_what_does_not_exist_change_nothing(connection):
    assert connection.get("/nope", "If-None-Match: *").status == 404
    assert connection.get("/nope", 'If-Match: "x"').status == 404


# --- ranges ---


def content(path):
    return SMALL if path == "/small.bin" else BIG


@pytest.mark.parametrize("path", ["/small.bin", "/big.bin"])
def test_any_single_range_is_exactly_those_bytes(connection, path):
    whole = content(path)
    chance = random.Random(path)
    cuts = [(0, 0), (0, len(whole) - 1), (len(whole) - 1, len(whole) - 1), (0, len(whole) + 5)]
    cuts += [tuple(sorted(chance.sample(range(len(whole)), 2))) for _ in range(20)]
    for first, last in cuts:
        response = connection.get(path, f"Range: bytes={first}-{last}")
        last = min(last, len(whole) - 1)
        assert response.status == 206
        assert response["Content-Range"] == f"bytes {first}-{last}/{len(whole)}"
        assert response.body == whole[first : last + 1]
    connection.assert_in_step()


def test_open_and_suffix_ranges(connection):
    assert connection.get("/small.bin", "Range: bytes=1000-").body == SMALL[1000:]
    assert connection.get("/small.bin", "Range: bytes=-5").body == SMALL[-5:]
    response = connection.get("/small.bin", "Range: bytes=-5000")
    assert response.status == 206 and response.body == SMALL
    assert response["Content-Range"] == "bytes 0-1023/1024"


@pytest.mark.parametrize("value", ["bytes=1024-", "bytes=-0", "bytes=9999999999999999999999-", "bytes=2000-3000,4000-"])
def test_what_cannot_be_satisfied_is_416(connection, value):
    response = connection.get("/small.bin", "Range: " + value)
    assert response.status == 416 and response["Content-Range"] == "bytes */1024"
    connection.assert_in_step()


@pytest.mark.parametrize("value,status", [("0-", 200), ("0-499", 200), ("-1", 200), ("0-,-1", 200), ("1-", 416), ("-0", 416)])
def test_whoever_asks_for_an_empty_file_from_its_beginning_gets_it(connection, value, status):
    response = connection.get("/empty.txt", "Range: bytes=" + value)
    assert response.status == status and response["Content-Range"] == ("bytes */0" if status == 416 else None)
    assert status == 416 or response.body == b""
    connection.assert_in_step()


@pytest.mark.parametrize(
    "value",
    ["bytes=5-4", "bytes=a-b", "lines=0-1", "bytes", "bytes=0-1,x", "bytes=0-1023,0-1023",
     "bytes=" + ",".join("0-0" for _ in range(17)), "bytes=" + ",".join("0-" for _ in range(200))],
)  # fmt: skip
def test_bad_foreign_and_abusive_ranges_are_ignored(connection, value):
    response = connection.get("/small.bin", "Range: " + value)
    assert response.status == 200 and response.body == SMALL and response["Content-Range"] is None
    connection.assert_in_step()


def test_ranges_are_for_get_alone(connection):
    response = connection.get("/small.bin", "Range: bytes=0-1", method="HEAD")
    assert response.status == 200 and response["Content-Length"] == "1024"


def test_of_several_ranges_with_one_to_be_had_that_one_is_sent_plainly(connection):
    response = connection.get("/small.bin", "Range: bytes=0-1,5000-6000")
    assert response.status == 206 and response.body == SMALL[:2] and response["Content-Range"] == "bytes 0-1/1024"


def parts(response):
    """Returns the parts of a multipart/byteranges body: (Content-Range, Content-Type, bytes)."""
    boundary = re.fullmatch(r"multipart/byteranges; boundary=(\S+)", response["Content-Type"]).group(1).encode()
    pieces = response.body.split(b"\r\n--" + boundary)
    assert pieces[0] == b"" and pieces[-1] == b"--\r\n"
    found = []
    for piece in pieces[1:-1]:
        head, body = piece.split(b"\r\n\r\n", 1)
        fields = dict(line.split(": ", 1) for line in head.decode().strip().split("\r\n"))
        found.append((fields["Content-Range"], fields["Content-Type"], body))
    return found


@pytest.mark.parametrize("path", ["/small.bin", "/big.bin"])
@pytest.mark.parametrize("count", [2, 3, 16])
def test_several_ranges_come_as_multipart_in_the_order_asked_for(connection, path, count):
    whole = content(path)
    chance = random.Random(count)
    size = len(whole) // 40
    cuts = [(first, first + chance.randrange(size)) for first in chance.sample(range(len(whole) - size), count)]
    response = connection.get(path, "Range: bytes=" + ", ".join(f"{a}-{b}" for a, b in cuts))
    assert response.status == 206 and response["Content-Range"] is None
    wanted = [(f"bytes {a}-{b}/{len(whole)}", "application/octet-stream", whole[a : b + 1]) for a, b in cuts]
    assert parts(response) == wanted
    connection.assert_in_step()


@pytest.mark.parametrize(
    "validator,status",
    [("{etag}", 206), ("{date}", 206), ("W/{etag}", 200), ('"x"', 200), (LONG_AGO, 200), (TO_COME, 200), ("nonsense", 200),
     ("{date}\r\nIf-Range: {date}", 200)],
)  # fmt: skip
def test_if_range(connection, validator, status):
    plain = connection.get("/small.bin")
    value = validator.format(etag=plain["ETag"], date=plain["Last-Modified"])
    eventually(lambda: connection.get("/index.html")["Date"] > plain["Last-Modified"])  # a date of the same second is weak
    response = connection.get("/small.bin", "Range: bytes=0-1", "If-Range: " + value)
    assert response.status == status
    assert response.body == (SMALL[:2] if status == 206 else SMALL)


def seconds(date):
    return email.utils.parsedate_to_datetime(date).timestamp()


def test_if_range_with_a_date_that_is_not_the_files_gets_the_whole(build, root):
    """It may be the same for each version: tools leave times out, and one in the future is said to be now."""
    os.utime(root.path / "a.txt", (1, 1))
    os.utime(root.path / "index.html", (4102444800, 4102444800))
    with Server(build, root, "-j", "1") as server:
        for path in ("/a.txt", "/index.html"):
            date = server.get(path)["Last-Modified"]
            eventually(lambda: seconds(server.get("/none")["Date"]) > seconds(date) + 1)
            assert server.get(path, "Range: bytes=0-0", "If-Range: " + date).status == 200
            assert server.get(path, "If-Modified-Since: " + date).status == 200


@pytest.mark.parametrize("accepted,status", [(None, 206), ("identity", 206), ("identity;q=1, *;q=0", 206), ("deflate", 206), ("br", 200), ("gzip", 200), ("*", 200)])
@pytest.mark.parametrize("packed", [False, True])
def test_a_date_is_not_enough_for_a_client_that_may_have_begun_with_another_coding(build, root, packed, accepted, status):
    text = b"".join(b"%d\n" % n for n in range(20_000))
    root.write("a.csv", text)
    settled(root.path / "a.csv")
    if packed:
        root.write("a.csv.gz", gzip.compress(text))
    fields = ["Accept-Encoding: " + accepted] if accepted else []
    with Server(build, root, "-j", "1") as server:
        date = server.get("/a.csv")["Last-Modified"]
        for _ in range(3):  # it may be compressed meanwhile
            response = server.get("/a.csv", "Range: bytes=5-9", "If-Range: " + date, *fields)
            assert response.status == status and (status == 200 or response.body == text[5:10])


def test_a_part_with_the_date_of_an_older_version_is_not_continued(build, root):
    root.write("f", LARGE)
    settled(root.path / "f", 200)
    with Server(build, root, "-j", "1") as server:
        date = server.get("/f", method="HEAD")["Last-Modified"]
        assert server.get("/f", "Range: bytes=5-9", "If-Range: " + date).body == LARGE[5:10]
        root.write("new", OTHER)
        settled(root.path / "new", 100)
        (root.path / "new").rename(root.path / "f")
        whole = eventually(lambda: (r := server.get("/f", "Range: bytes=-1", "If-Range: " + date)).status == 200 and r, 5)
        assert whole.body == OTHER


# --- entity-tags of large files ---

LARGE = bytes(range(256)) * 20_000  # more than is waited for
OTHER = LARGE[:-1] + b"x"


def settled(path, seconds_ago=100):
    """Makes a file look unchanged for a while, except for its ctime, which nobody can set."""
    os.utime(path, (time.time() - seconds_ago,) * 2)


@pytest.mark.parametrize("content", [b"x" * 70_000, LARGE], ids=["waited for", "not waited for"])
def test_the_same_content_has_the_same_etag_everywhere(build, content):
    etags = []
    for age in (100, 200):  # two machines, to which rsync -t or a checkout gave other times and inodes
        root = Root({"f": content, "g": content[:-1] + b"y"})
        settled(root.path / "f", age)
        for _ in range(2):  # and after a restart
            with Server(build, root, "-j", "1") as server:
                # a file that has just been made is looked at again, and hashed again, while others are sent
                etags.append(tuple(eventually(lambda: server.get(path)["ETag"]) for path in ("/f", "/g")))
                assert server.get("/f").body == content
        root.remove()
    assert len(set(etags)) == 1 and etags[0][0] != etags[0][1]


def test_a_large_file_without_an_etag_yet_has_its_date_and_who_asks_for_the_etag_waits(build, root):
    root.write("f", LARGE)
    root.write("g", LARGE)
    settled(root.path / "f")
    os.utime(root.path / "g", (time.time() + 100,) * 2)  # of this second, as it could be on another clock
    with Server(build, root, "-j", "1") as server:
        first = server.get("/f")
        assert first["ETag"] is None and first["Last-Modified"] and first.body == LARGE
        unknown = server.get("/g")  # which may change again without a change of its date
        assert unknown["ETag"] is None and unknown["Last-Modified"] is None and unknown.body == LARGE
        etag = eventually(lambda: server.get("/f", method="HEAD")["ETag"])
    with Server(build, root, "-j", "1") as server:
        assert server.get("/f", "If-None-Match: " + etag).status == 304
    with Server(build, root, "-j", "1") as server:
        part = server.get("/f", "Range: bytes=5-9", "If-Range: " + etag)
        assert part.status == 206 and part.body == LARGE[5:10]
    with Server(build, root, "-j", "1") as server:
        assert server.get("/f", "If-Match: " + etag).status == 200
        assert server.get("/f", 'If-Match: "other"').status == 412


def tag_of(server, path):
    return eventually(lambda: server.get(path, method="HEAD")["ETag"], 20)


def test_until_a_file_is_hashed_after_a_restart_the_date_decides(build, root):
    root.write("f", LARGE)
    settled(root.path / "f", 200)

    def restarted(*fields, method="GET"):
        with Server(build, root, "-j", "1") as server:
            return server.get("/f", *fields, method=method)

    with Server(build, root, "-j", "1") as server:
        etag, date = tag_of(server, "/f"), server.get("/f", method="HEAD")["Last-Modified"]
    assert etag.endswith(f'-{len(LARGE)}"')
    wrong = etag.replace("-", "-1")
    same = restarted("If-None-Match: " + etag, "If-Modified-Since: " + date)
    assert (same.status, same["ETag"], same["Last-Modified"]) == (304, None, date)  # it is not known yet
    for tag, since in ((etag, TO_COME), (etag, LONG_AGO), (wrong, date), ('"x"', date)):
        other = restarted("If-None-Match: " + tag, "If-Modified-Since: " + since, method="HEAD")
        assert (other.status, other["ETag"]) == (200, None), (tag, since)
    assert restarted("If-Match: " + wrong).status == 412
    part = restarted("Range: bytes=5-9", "If-Range: " + etag)  # has no date, and waits
    assert (part.status, part["ETag"], part.body) == (206, etag, LARGE[5:10])


def test_once_a_file_is_hashed_the_entity_tag_decides(build, root):
    root.write("f", LARGE)
    with Server(build, root, "-j", "1") as server:
        etag, date = tag_of(server, "/f"), server.get("/f", method="HEAD")["Last-Modified"]
        assert server.get("/f", "If-None-Match: " + etag, "If-Modified-Since: " + LONG_AGO).status == 304
        assert server.get("/f", "If-None-Match: " + etag.replace('"', '"0', 1), "If-Modified-Since: " + date).status == 200


def test_a_file_that_was_replaced_by_an_older_one_of_the_same_size_is_sent(build, root):
    root.write("f", LARGE)
    settled(root.path / "f", 100)
    with Server(build, root, "-j", "1") as server:
        etag, date = tag_of(server, "/f"), server.get("/f", method="HEAD")["Last-Modified"]
    root.write("f", OTHER)
    settled(root.path / "f", 200)
    with Server(build, root, "-j", "1") as server:
        for _ in range(10):  # before and after it is hashed
            response = server.get("/f", "If-None-Match: " + etag, "If-Modified-Since: " + date)
            assert (response.status, response.body) == (200, OTHER)


def threads(server):
    return len(os.listdir(f"/proc/{server.pid}/task"))


@pytest.mark.clear
def test_a_large_file_is_hashed_when_a_second_request_can_use_that(build, root):
    root.write("f", LARGE)
    root.write("g", LARGE)
    settled(root.path / "f")
    changed = os.stat(root.path / "f").st_ctime
    eventually(lambda: time.time() > changed + 0.1)  # FILE_VERSION_SETTLES_MS
    with Server(build, root, "-j", "1") as server:
        date = server.get("/f", method="HEAD")["Last-Modified"]
        before = threads(server)
        for first in range(0, len(LARGE) // 100, 10_000):  # a reader of one percent, in pieces
            server.get("/f", f"Range: bytes={first}-{first + 9_999}", "If-Range: " + date)
            server.get("/f", f"Range: bytes={first}-{first + 9_999}")
        assert server.get("/f", "Range: bytes=0-1", 'If-Range: "x"', method="HEAD").status == 200
        assert server.get("/g", method="HEAD").status == 200  # the first request
        assert threads(server) == before
        server.get("/f", method="HEAD")
        assert threads(server) == before + 1  # which hashes
        assert tag_of(server, "/f")


def test_what_changes_while_it_is_read_has_no_etag_of_another(build, root):
    root.write("f", LARGE)
    with Server(build, root, "-j", "1") as server:
        tags = {}
        for turn in range(6):
            content = (LARGE, OTHER)[turn % 2]
            root.write("new", content)
            (root.path / "new").rename(root.path / "f")
            for _ in range(5):
                response = server.get("/f")
                if response["ETag"]:
                    assert tags.setdefault(response["ETag"], response.body) == response.body
        eventually(lambda: server.get("/f", method="HEAD")["ETag"], 10)


@pytest.mark.tcp
def test_streams_wait_for_an_etag_too(build, root):
    root.write("f", LARGE)
    with Server(build, root, "-j", "1") as server, Http2(server) as c:
        assert c.get("/f", ("if-none-match", f'"x-{len(LARGE)}"'))["etag"]  # it may be this one
