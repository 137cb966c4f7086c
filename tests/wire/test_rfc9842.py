"""What RFC 9842 requires of a server, and what it advises and gatling follows. Its sections, and the tests (those without a file are here):

    2.1     Use-As-Dictionary is a structured dictionary      the_offer_is_a_structured_field
    2.1.1   match is there, is a string, and a URL pattern    the_offer_is_a_structured_field, the_pattern_matches_what_follows_and_nothing_else,
            without groups of regular expressions             odd_names_are_not_offered
    2.1.1   the pattern is of the same origin                 the_pattern_has_no_origin
    2.1.2   match-dest is a list of strings                   test_pages_as_dictionaries.py: a_page_is_offered_to_those_who_go_to_it
    2.1.3   id is at most 1024 characters; 2.3: a client      there_is_no_id
            sends it back as Dictionary-ID
    2.1.4   type is raw, which is the default                 there_is_no_type_but_raw
    2.2     Available-Dictionary is one byte sequence, of     the_dictionary_has_to_be_named_as_one_digest
            SHA-256; others are not used
    2.2     nothing else is asked of the client               a_digest_alone_is_enough
    2.2.1   what is offered is fresh, or may be served stale  what_is_offered_lasts, test_pages_as_dictionaries.py: nobody_else_sees_that
    2.2.2   a dictionary is for what its pattern matches      test_dictionaries.py: nobody_else_is ("of another family"),
                                                              test_pages_as_dictionaries.py: a_page_elsewhere_is_not
    3       Link with compression-dictionary, optional        there_is_no_link
    4       dcb: magic, SHA-256, then a stream of brotli      the_header_of_dcb, test_dictionaries.py: who_accepts_dcb_alone_is_sent_that
    4       its window is at most 16 MB                       the_window_of_dcb
    5       dcz: magic in a skippable frame, SHA-256, zstd    the_header_of_dcz, test_dictionaries.py: who_accepts_dcz_alone_is_sent_that
    5       its window is at most 8 MB, or 1.25 times the     the_window_of_dcz
            dictionary
    6       Accept-Encoding has to name dcb or dcz            an_encoding_that_is_not_named_is_not_used
    6.1     Content-Encoding is dcb or dcz                    the_header_of_dcb, the_header_of_dcz
    6.2     Vary has Accept-Encoding and Available-Dictionary every_answer_varies, errors_do_not_depend_on_the_dictionary
    6.2     caches never mix representations up               test_dictionaries_cached.py
    8       a hash that is not the one announced is an error  the_header_of_dcb, the_header_of_dcz (theirs is the announced one)
    9.2     dictionaries are of the same origin               hosts_have_nothing_to_do_with_each_other
    9.3.3   no difference for requests from another origin,   a_request_from_another_origin_gets_the_whole
            by Sec-Fetch-Site, -Mode and Origin
    9.3.3   not for what is not for everybody                 test_dictionaries.py: what_has_no_versions_or_is_not_for_everybody_is_not,
                                                              what_is_not_for_everybody_is_no_dictionary

7 is for IANA, and 10 (privacy) for clients."""

import itertools
import re

import pytest
from gatling import Root, Server, eventually
from shared_brotli import HEADER
from test_dictionaries import ACCEPT, DIFFERENCES, NEW, NEW_NAME, OLD, OLD_NAME, difference, digest, has, makes_dcb

pytestmark = pytest.mark.decided

PATH = "/" + NEW_NAME
VARY = "Accept-Encoding, Available-Dictionary"
LARGE = 4  # times as long: more than a megabyte


@pytest.fixture(scope="module")
def server(build):
    root = Root({OLD_NAME: OLD, NEW_NAME: NEW, "assets/odd(1)-C7dR4t_w.js": NEW, "a.b/x-C7dR4t_w.js": OLD})
    for content in (OLD, NEW):
        root.write(f"large/lib-{'BxK2a9fQ' if content is OLD else 'C7dR4t_w'}.js", content * LARGE)
    with Server(build, root, "-j", "1") as running:
        difference(running, PATH, OLD)
        yield running
    root.remove()


# --- 2.1 Use-As-Dictionary ---


def offered(server, path=PATH):
    return server.get(path, ACCEPT)["Use-As-Dictionary"]


def test_the_offer_is_a_structured_field(server):
    assert re.fullmatch(r'match="[!#-~ ]+"', offered(server))


def test_the_pattern_matches_what_follows_and_nothing_else(server):
    pattern = re.fullmatch(r'match="(.*)"', offered(server))[1]
    assert not set(pattern) & set("(){}?+:\\") and pattern.count("*") == 1
    matches = re.compile(re.escape(pattern).replace(r"\*", "[^?#]*"))
    assert matches.fullmatch("/" + OLD_NAME) and matches.fullmatch("/assets/app-Zz9yX8wv.js")
    for other in ("/assets/lib-C7dR4t_w.js", "/assets/app-C7dR4t_w.css", "/assets/app.js", "/other/app-C7dR4t_w.js"):
        assert not matches.fullmatch(other)


def test_odd_names_are_not_offered(server):
    assert offered(server, "/assets/odd(1)-C7dR4t_w.js") is None


def test_the_pattern_has_no_origin(server):
    for path in (PATH, "/a.b/x-C7dR4t_w.js"):
        assert offered(server, path).startswith('match="/') and "//" not in offered(server, path)


def test_there_is_no_id(server):
    assert "id=" not in offered(server)
    response = server.get(PATH, ACCEPT, has(OLD), 'Dictionary-ID: "what a client should not send"')
    assert response.status == 200 and response["Content-Encoding"] in DIFFERENCES


def test_there_is_no_type_but_raw(server):
    assert "type=" not in offered(server)


# --- 2.2 Available-Dictionary ---


@pytest.mark.parametrize(
    "fields",
    [
        [has(OLD), has(OLD)],
        [has(OLD), has(NEW)],
        [has(OLD) + ", " + has(NEW).partition(": ")[2]],
        [has(OLD).replace(" :", ' ":')[:-1] + '"'],
        [has(OLD)[:-1]],
        [has(OLD).replace(": :", ": ")],
        ["Available-Dictionary: ?1"],
        ["Available-Dictionary: ::"],
        ["Available-Dictionary:"],
        ["Available-Dictionary: " + digest(OLD).hex()],
        ["Available-Dictionary: :" + "QUFB" * 10 + "QQ==:"],  # 31 bytes
        ["Available-Dictionary: :" + "QUFB" * 11 + ":"],  # 33
        ["Available-Dictionary: :" + "QUFB" * 500 + ":"],
        [has(OLD).replace("=", "*")],
    ],
)
def test_the_dictionary_has_to_be_named_as_one_digest(server, fields):
    response = server.get(PATH, "Accept-Encoding: gzip, dcb, dcz", *fields)
    assert response.status == 200 and response["Content-Encoding"] == "gzip" and response["Vary"] == VARY


@pytest.mark.tcp
def test_a_field_that_is_too_long_is_refused(server):
    response = server.get(PATH, ACCEPT, "Available-Dictionary: :" + "A" * 70_000 + ":")
    assert response.status == 431 and response["Content-Encoding"] is None


def test_a_digest_alone_is_enough(server):
    response = server.get(PATH, "Accept-Encoding: dcz", has(OLD))
    assert response.status == 200 and response["Content-Encoding"] == "dcz"


def test_what_is_offered_lasts(server):
    assert server.get(PATH, ACCEPT)["Cache-Control"] == "public, max-age=31536000, immutable"


# --- 3 ---


def test_there_is_no_link(server):
    assert server.get(PATH, ACCEPT)["Link"] is None


# --- 4, 5: the formats ---


def test_the_header_of_dcb(server, build):
    if not makes_dcb(build):
        pytest.skip("the brotli of this build has no dictionaries: that of Debian 13 has, which the build http3 is for")
    response = difference(server, PATH, OLD, accept="Accept-Encoding: dcb")
    assert response["Content-Encoding"] == "dcb" and response.body.startswith(HEADER + digest(OLD))


def test_the_header_of_dcz(server):
    response = difference(server, PATH, OLD, accept="Accept-Encoding: dcz")
    assert response["Content-Encoding"] == "dcz" and response.body.startswith(bytes.fromhex("5e2a4d18 20000000") + digest(OLD))


def window_bits(first):
    """Returns the logarithm of the window of a stream of brotli, by its first byte (RFC 7932, section 9.1); None: it is larger."""
    if not first & 1:
        return 16
    if first >> 1 & 7:
        return 17 + (first >> 1 & 7)
    return {0: 17, 1: None}.get(first >> 4 & 7, 8 + (first >> 4 & 7))


@pytest.mark.parametrize("name", ["assets/app", "large/lib"])
def test_the_window_of_dcb(server, build, name):
    if not makes_dcb(build):
        pytest.skip("the brotli of this build has no dictionaries: that of Debian 13 has, which the build http3 is for")
    content = OLD * (LARGE if "large" in name else 1)
    body = difference(server, f"/{name}-C7dR4t_w.js", content, accept="Accept-Encoding: dcb").body
    assert window_bits(body[36]) <= 24


@pytest.mark.parametrize("name", ["assets/app", "large/lib"])
def test_the_window_of_dcz(server, name):
    content = OLD * (LARGE if "large" in name else 1)
    frame = difference(server, f"/{name}-C7dR4t_w.js", content, accept="Accept-Encoding: dcz").body[40:]
    assert frame[:4] == bytes.fromhex("28b52ffd")  # RFC 8878, section 3.1.1
    single, size_flag, id_flag = frame[4] >> 5 & 1, frame[4] >> 6, frame[4] & 3
    if single:
        start = 5 + (0, 1, 2, 4)[id_flag]
        length = (1, 2, 4, 8)[size_flag]
        window = int.from_bytes(frame[start : start + length], "little") + (256 if length == 2 else 0)
    else:
        window = (1 << 10 + (frame[5] >> 3)) * (8 + (frame[5] & 7)) // 8
    assert window <= max(8 << 20, len(content) * 5 // 4)


# --- 6: negotiation ---


@pytest.mark.parametrize("accept", [None, "", "*", "*;q=1", "gzip, br, zstd", "dcz;q=0", "dcb;q=0, dcz;q=0.000", "dczx, xdcb", "identity;q=0, *"])
def test_an_encoding_that_is_not_named_is_not_used(server, accept):
    response = server.get(PATH, *([] if accept is None else ["Accept-Encoding: " + accept]), has(OLD))
    assert response.status == 200 and response["Content-Encoding"] not in DIFFERENCES and response["Vary"] == VARY


@pytest.mark.parametrize("accept", [None, "gzip", "gzip, br, zstd, dcb, dcz", "identity;q=0, compress"])
@pytest.mark.parametrize("dictionary", [None, OLD, b"something else"], ids=["none", "old", "other"])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_every_answer_varies(server, method, accept, dictionary):
    fields = [*([f"Accept-Encoding: {accept}"] if accept else []), *([has(dictionary)] if dictionary else [])]
    whole = server.get(PATH, *fields, method=method)
    assert whole.status == 200 and whole["Vary"] == VARY
    for status, more in ((304, "If-None-Match: " + whole["ETag"]), (304, "If-None-Match: *"), (206, "Range: bytes=0-9"), (206, "Range: bytes=0-0,5-6")):
        response = server.get(PATH, *fields, more, method=method)
        assert response.status == (status if method == "GET" or status == 304 else 200) and response["Vary"] == VARY
    unlike = server.get(PATH, *fields, 'If-None-Match: "other"', method=method)
    assert unlike.status == 200 and unlike["Vary"] == VARY


@pytest.mark.parametrize("status,method,path,fields", [
    (412, "GET", PATH, ['If-Match: "other"']),
    (416, "GET", PATH, ["Range: bytes=90000000-"]),
    (405, "POST", PATH, []),
    (404, "GET", "/assets/app-ZxK2a9fQ.js", []),
])  # fmt: skip
def test_errors_do_not_depend_on_the_dictionary(server, status, method, path, fields):
    answers = [server.get(path, ACCEPT, *fields, *more, method=method) for more in ([], [has(OLD)], [has(b"x")])]
    assert {answer.status for answer in answers} == {status} and len({answer.body for answer in answers}) == 1
    assert all(answer["Content-Encoding"] not in DIFFERENCES and answer["Use-As-Dictionary"] is None for answer in answers)


# --- 9: other origins ---


def may_differ(site, mode):
    """The algorithm of section 9.3.3, for an answer without Access-Control-Allow-Origin, where Origin does not matter."""
    return site in (None, "same-origin") or mode in (None, "navigate", "same-origin")


@pytest.mark.parametrize("site", [None, "same-origin", "same-site", "cross-site"])
def test_a_request_from_another_origin_gets_the_whole(server, site):
    for mode, origin in itertools.product([None, "navigate", "same-origin", "cors", "no-cors"], [None, "https://localhost", "https://elsewhere.example", "null"]):
        named = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode, "Origin": origin}
        response = server.get(PATH, ACCEPT, has(OLD), *(f"{name}: {value}" for name, value in named.items() if value))
        differs = response["Content-Encoding"] in DIFFERENCES
        assert response.status == 200 and response["Vary"] == VARY
        assert may_differ(site, mode) or not differs
        assert differs == (site in (None, "same-origin"))  # stricter than the algorithm, which asks a mode that is not known


def test_hosts_have_nothing_to_do_with_each_other(build):
    root = Root({f"one.example/{OLD_NAME}": OLD, f"two.example/{NEW_NAME}": NEW, f"one.example/{NEW_NAME}": NEW})
    with Server(build, root, "-j", "1", "-v") as server, server.connect() as connection:
        def ask(host):
            response = connection.get(PATH, ACCEPT, has(OLD), host=host)
            assert response.status == 200
            return response["Content-Encoding"]

        eventually(lambda: ask("one.example") in DIFFERENCES)
        assert ask("two.example") not in DIFFERENCES
    root.remove()
