"""A client is not sent again what it has in another coding than the one that it would be sent now."""

import pytest
from gatling import Server, eventually

pytestmark = pytest.mark.decided

TEXT = b"".join(b"line %d of a text\n" % n for n in range(500))
ALL = "Accept-Encoding: gzip, deflate, br, zstd"


@pytest.fixture
def served(build, root):
    root.write("text.css", TEXT)
    with Server(build, root, "-j", "1") as server:
        yield server


def improved(server):
    """Returns the answer in brotli, or in zstd if the build has no brotli."""
    return eventually(lambda: (r := server.get("/text.css", ALL))["Content-Encoding"] in ("br", "zstd") and r)


def tags(server):
    """Returns the entity-tags of the codings that were made, by coding; "" is none."""
    return {r["Content-Encoding"] or "": r["ETag"] for r in (server.get("/text.css", "Accept-Encoding: identity"), server.get("/text.css", "Accept-Encoding: gzip"), improved(server))}


def test_what_was_sent_before_there_was_a_better_coding_lasts(served):
    for coding, tag in tags(served).items():
        for _ in range(2):  # the second answer is known
            response = served.get("/text.css", ALL, "If-None-Match: " + tag)
            assert (response.status, response["ETag"]) == (304, tag), coding
            assert response["Vary"] == "Accept-Encoding" and response["Cache-Control"] == "no-cache"


def test_what_was_sent_before_a_restart_lasts(build, root, served):
    known = tags(served)
    with Server(build, root, "-j", "1") as server:  # it has compressed nothing yet
        for _ in range(2):
            for tag in known.values():
                response = server.get("/text.css", ALL, f'If-None-Match: "x", {tag}')
                assert (response.status, response["ETag"]) == (304, tag)


def test_a_coding_that_the_client_does_not_accept_is_not_held(served):
    known = tags(served)
    for coding in set(known) - {""}:
        for accepted in ((), ("Accept-Encoding: identity",), ("Accept-Encoding: " + ALL[17:].replace(coding, coding + ";q=0"),)) * 2:
            assert served.get("/text.css", *accepted, "If-None-Match: " + known[coding]).status == 200


def test_what_has_changed_is_sent(root, served):
    known = tags(served)
    root.write("text.css", TEXT + b"more")
    eventually(lambda: served.get("/text.css").body != TEXT)
    for tag in known.values():
        for _ in range(2):
            assert served.get("/text.css", ALL, "If-None-Match: " + tag).status == 200


def test_other_conditions_count_first(served):
    tag = tags(served)["gzip"]
    for condition, status in (('If-Match: "x"', 412), ("If-Unmodified-Since: Thu, 01 Jan 1980 00:00:00 GMT", 412)):
        assert served.get("/text.css", ALL, "If-None-Match: " + tag, condition).status == status


@pytest.mark.parametrize("fields", [(), ("Want-Repr-Digest: sha-256=1",)])  # the latter is never known
def test_a_cache_that_has_several_codings_is_told_to_use_the_best(served, fields):
    known = tags(served)
    for _ in range(2):
        response = served.get("/text.css", ALL, "If-None-Match: " + ", ".join(known.values()), *fields)
        assert (response.status, response["ETag"]) == (304, improved(served)["ETag"])


def test_a_file_as_it_is_is_not_held_by_who_refuses_that(served):
    tag = tags(served)[""]
    for refused in ("identity;q=0", "*;q=0"):
        response = served.get("/text.css", "Accept-Encoding: gzip, " + refused, "If-None-Match: " + tag)
        assert (response.status, response["Content-Encoding"]) == (200, "gzip")
