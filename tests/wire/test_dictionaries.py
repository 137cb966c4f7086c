"""Compression dictionaries (RFC 9842): a new version of a script is sent as the difference to the one that the client has."""

import base64
import gzip
import hashlib
import os
import random
import subprocess

import pytest
import zstandard
from browser import Browser
from gatling import TIMEOUT, Root, Server, eventually
from http2 import Http2
from shared_brotli import HEADER, decompress

pytestmark = pytest.mark.decided

WORDS = random.Random(1).choices([f"word{i}" for i in range(3000)], k=40_000)
OLD = " ".join(WORDS).encode()
NEW = " ".join([*WORDS[:20_000], "something", "else", *WORDS[20_000:]]).encode()
OLD_NAME, NEW_NAME = "assets/app-BxK2a9fQ.js", "assets/app-C7dR4t_w.js"
ACCEPT = "Accept-Encoding: gzip, deflate, br, zstd, dcb, dcz"
DIFFERENCES = "dcb", "dcz"


def digest(content):
    return hashlib.sha256(content).digest()


def has(content):
    return "Available-Dictionary: :" + base64.b64encode(digest(content)).decode() + ":"


def apply(response, dictionary, build, body=None):
    """Returns the content of a response that is a difference, of a server of that build. body: if it has none."""
    body = body or response.body
    is_dcb = response["Content-Encoding"] == "dcb"
    start = (HEADER if is_dcb else bytes.fromhex("5e2a4d1820000000")) + digest(dictionary)
    assert body.startswith(start)
    stream = body[len(start) :]
    if is_dcb:
        return decompress(stream, dictionary, build)
    prefix = zstandard.ZstdCompressionDict(dictionary, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
    return zstandard.ZstdDecompressor(dict_data=prefix).decompress(stream, 1 << 23)


def difference(server, path, dictionary, *fields, accept=ACCEPT):
    """Returns the response with the difference, when the dictionary has been kept. On a busy machine that takes long:
    the threads that make differences let all others go first."""
    return eventually(lambda: (r := server.get(path, accept, has(dictionary), *fields))["Content-Encoding"] in DIFFERENCES and r, 5 * TIMEOUT)


def makes_dcb(build):
    """Returns whether a build makes dcb: its brotli is of 1.1 or later."""
    return b"BrotliEncoderAttachPreparedDictionary" in (build / "gatling").read_bytes()


@pytest.fixture(scope="module")
def dcb(build):
    if not makes_dcb(build):
        pytest.skip("the brotli of this build has no dictionaries: that of Debian 13 has, which the build http3 is for")


@pytest.fixture(scope="module")
def site():
    root = Root({OLD_NAME: OLD, NEW_NAME: NEW, "plain.js": NEW, "secret/app-BxK2a9fQ.js": OLD, "secret/app-C7dR4t_w.js": NEW})
    root.write("secret/.htaccess", b"Friends\nann:$1$abcdefgh$vdBSIIpG7R8DPkuUogsqU0\n")
    root.write("cookies/app-BxK2a9fQ.js", OLD)
    root.write("cookies/app-C7dR4t_w.js", NEW)
    root.write("other/app-BxK2a9fQ.js", OLD[:-1])
    root.write("_headers", b"/cookies/*\n  Set-Cookie: a=b\n")
    yield root
    root.remove()


@pytest.fixture(scope="module")
def server(build, site):
    with Server(build, site, "-j", "1") as running:
        yield running


def test_a_version_is_offered_as_a_dictionary_for_those_that_follow(server):
    response = server.get("/" + OLD_NAME, ACCEPT)
    assert response["Use-As-Dictionary"] == 'match="/assets/app-*.js"'
    assert response["Vary"] == "Accept-Encoding, Available-Dictionary"
    assert response["Cache-Control"] == "public, max-age=31536000, immutable"


@pytest.mark.parametrize("path", ["/plain.js", "/cookies/app-C7dR4t_w.js", "/secret/app-C7dR4t_w.js"])
def test_what_has_no_versions_or_is_not_for_everybody_is_not(server, path):
    response = server.get(path, ACCEPT, has(OLD), "Authorization: Basic YW5uOnJpZ2h0")
    assert response.status == 200 and response["Use-As-Dictionary"] is None and "Dictionary" not in response["Vary"]
    assert response["Content-Encoding"] not in DIFFERENCES


def test_who_has_an_older_version_is_sent_the_difference(server, build):
    assert server.get("/" + OLD_NAME, ACCEPT).status == 200
    response = difference(server, "/" + NEW_NAME, OLD)
    assert apply(response, OLD, build) == NEW and len(response.body) < len(NEW) / 500
    whole = server.get("/" + NEW_NAME, ACCEPT)
    for name in ("Content-Type", "Vary", "Cache-Control", "Use-As-Dictionary"):
        assert response[name] == whole[name]
    assert response["ETag"] != whole["ETag"] and whole["Content-Encoding"] not in DIFFERENCES
    again = server.get("/" + NEW_NAME, ACCEPT, has(OLD), "If-None-Match: " + response["ETag"])
    assert again.status == 304 and again["Vary"] == whole["Vary"]


@pytest.mark.parametrize(
    "fields",
    [
        [ACCEPT, has(b"something else")],
        [ACCEPT, has(OLD), "Sec-Fetch-Site: cross-site"],
        [ACCEPT, has(OLD), "Sec-Fetch-Site: same-site"],
        [ACCEPT, "Available-Dictionary: :" + "A" * 44 + ":"],
        [ACCEPT, has(OLD)[:-1]],
        [ACCEPT, has(OLD).replace(": :", ": ")[:-1]],
        [ACCEPT, "Available-Dictionary: " + digest(OLD).hex()],
        [ACCEPT, has(OLD[:-1])],  # of another family
        [ACCEPT, has(OLD), has(OLD)],
        ["Accept-Encoding: gzip, br, zstd", has(OLD)],
        ["Accept-Encoding: gzip, dcz;q=0, dcb;q=0", has(OLD)],
        ["Accept-Encoding: gzip, dcz;q=0.9, dcb;q=0.9", has(OLD)],
        ["Accept-Encoding: *", has(OLD)],
        [has(OLD)],
        [ACCEPT],
    ],
)
def test_nobody_else_is(server, fields):
    difference(server, "/" + NEW_NAME, OLD)
    server.get("/other/app-BxK2a9fQ.js")
    for _ in range(2):
        response = server.get("/" + NEW_NAME, *fields)
        assert response.status == 200 and response["Content-Encoding"] not in DIFFERENCES
        assert "Available-Dictionary" in response["Vary"]


@pytest.mark.tcp
@pytest.mark.clear
def test_streams_are_asked_from_where_they_come(server):
    difference(server, "/" + NEW_NAME, OLD)
    dictionary = ("available-dictionary", has(OLD).partition(": ")[2])
    with Http2(server) as connection:
        for site, coding in (("same-origin", "dcz"), ("cross-site", None), ("same-site", None)):
            answer = connection.get("/" + NEW_NAME, ("accept-encoding", "dcz"), dictionary, ("sec-fetch-site", site))
            assert answer.status == 200 and dict(answer.fields).get("content-encoding") == coding


def test_who_accepts_dcz_alone_is_sent_that(server, build):
    response = difference(server, "/" + NEW_NAME, OLD, accept="Accept-Encoding: br, dcz")
    assert response["Content-Encoding"] == "dcz" and apply(response, OLD, build) == NEW


def test_who_accepts_dcb_alone_is_sent_that(server, build, dcb):
    response = difference(server, "/" + NEW_NAME, OLD, accept="Accept-Encoding: br, dcb")
    assert response["Content-Encoding"] == "dcb" and apply(response, OLD, build) == NEW
    other = difference(server, "/" + NEW_NAME, OLD, accept="Accept-Encoding: br, dcz")
    assert response["ETag"] != other["ETag"]


def test_of_both_the_preferred_one_is_sent(build, site, dcb):
    with Server(build, site, "-j", "1") as server:
        for weights, coding in (("dcz, dcb", "dcb"), ("dcb;q=0.9, dcz", "dcz"), ("dcb, dcz;q=0.9", "dcb")):
            assert difference(server, "/" + NEW_NAME, OLD, accept="Accept-Encoding: " + weights)["Content-Encoding"] == coding


def test_a_difference_is_made_in_one_coding(build, site, dcb):
    with Server(build, site, "-j", "1") as server:
        assert difference(server, "/" + NEW_NAME, OLD, accept="Accept-Encoding: dcz")["Content-Encoding"] == "dcz"
        assert difference(server, "/" + NEW_NAME, OLD)["Content-Encoding"] == "dcz"  # which is there


def test_without_dcb_who_accepts_it_alone_is_sent_the_whole(server, build):
    if makes_dcb(build):
        pytest.skip("of a build without dcb")
    difference(server, "/" + NEW_NAME, OLD)
    response = server.get("/" + NEW_NAME, "Accept-Encoding: gzip, dcb", has(OLD))
    assert response["Content-Encoding"] == "gzip" and gzip.decompress(response.body) == NEW


def test_parts_are_parts_of_the_whole(server):
    difference(server, "/" + NEW_NAME, OLD)
    part = server.get("/" + NEW_NAME, has(OLD), "Accept-Encoding: dcz", "Range: bytes=0-9")
    assert part.status == 206 and part["Content-Encoding"] is None and part.body == NEW[:10]


def test_a_version_that_is_not_there_any_more_is_remembered(build, root):
    root.write(OLD_NAME, OLD)
    root.write("assets/last-BxK2a9fQ.js", b"y" * 1000)
    with Server(build, root, "-j", "1") as server, server.connect() as connection:
        difference(connection, "/" + OLD_NAME, OLD)  # it is kept
        (root.path / OLD_NAME).unlink()
        root.write(NEW_NAME, NEW)
        assert apply(difference(server, "/" + NEW_NAME, OLD), OLD, build) == NEW


def test_differences_to_many_versions_are_made_once_and_then_seldom(build, root):
    contents = {f"assets/app-BxK2a9f{letter}.js": OLD + letter.encode() for letter in "ABCDEFGHIJKLMNOPQRST"}
    for name, content in {**contents, NEW_NAME: NEW}.items():
        root.write(name, content)
    with Server(build, root, "-j", "1") as server:
        def sent(content):
            return server.get("/" + NEW_NAME, ACCEPT, has(content))["Content-Encoding"]

        for name, content in contents.items():  # until each is kept
            difference(server, "/" + name, content)
        assert sum(sent(content) in DIFFERENCES for content in contents.values()) == 16


def test_what_is_not_for_everybody_is_no_dictionary(build, root):
    root.write(OLD_NAME, OLD)
    root.write(NEW_NAME, NEW)
    root.write("assets/.htaccess", f'<Files "{OLD_NAME[7:]}">\nRequire all denied\n</Files>\n'.encode())
    with Server(build, root, "-j", "1") as server:
        assert server.get("/" + OLD_NAME).status == 403
        difference(server, "/" + NEW_NAME, NEW)  # it is kept itself
        assert server.get("/" + NEW_NAME, ACCEPT, has(OLD))["Content-Encoding"] not in DIFFERENCES


def test_without_room_nothing_is_kept(build, site):
    with Server(build, site, "-j", "1", "--limit", "gzip-cache=0") as server:
        for name in (OLD_NAME, NEW_NAME):
            response = server.get("/" + name, ACCEPT, has(OLD))
            assert response["Use-As-Dictionary"] is None and response["Content-Encoding"] is None


@pytest.mark.others
@pytest.mark.clear
@pytest.mark.tcp
def test_a_browser_is_sent_the_difference_after_a_deploy(build, root):
    def deploy(name, version, words):
        root.write(name, f"window.version = {version} /* ".encode() + words + b" */")
        root.write("index.html", f'<!doctype html><meta charset="utf-8"><title>x</title><script src="/{name}"></script>'.encode())

    sent = "performance.getEntriesByType('resource').map(r => r.encodedBodySize)"
    deploy(OLD_NAME, 1, OLD)
    with Server(build, root, "-j", "1") as server, Browser() as browser:
        browser.go(f"http://localhost:{server.port}/")
        assert browser.run("window.version") == 1
        whole = browser.run(sent)[0]
        difference(server, "/" + OLD_NAME, (root.path / OLD_NAME).read_bytes())
        (root.path / OLD_NAME).unlink()
        deploy(NEW_NAME, 2, NEW)
        eventually(lambda: NEW_NAME.encode() in server.get("/").body)
        browser.go(f"http://localhost:{server.port}/?again")
        assert browser.run("window.version") == 2
        assert browser.run(sent)[0] < whole / 50, (browser.run(sent), whole)


@pytest.mark.tcp
@pytest.mark.parametrize("flags", [(), ("--symlinks", "inside"), ("-u", "nobody")])
def test_older_releases_in_a_directory_are_dictionaries(build, root, flags):
    if "-u" in flags and os.geteuid() != 0:
        pytest.skip("takes root")
    releases = Root({f"1/{OLD_NAME}": OLD, "1/index.html": b"old", "2/index.html": b"none", "file": b"x"})
    root.write(NEW_NAME, NEW)
    with Server(build, root, "-j", "2", "--dictionaries", releases.path, *flags, as_root="-u" in flags) as server:
        response = difference(server, "/" + NEW_NAME, OLD)
        assert apply(response, OLD, build) == NEW
        assert server.get("/1/index.html").status == 404
    releases.remove()


@pytest.mark.tcp
def test_a_directory_of_releases_has_to_be_there(build, root):
    run = subprocess.run([build / "gatling", "-c", root.path, "-p", "0", "--dictionaries", root.path / "none"],
                         capture_output=True, text=True, check=False, timeout=20)  # fmt: skip
    assert run.returncode == 1 and "none: No such file or directory" in run.stderr
