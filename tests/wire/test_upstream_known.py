"""Requests that a rule passes on, like others before them: what the worker remembers of those (answer_cache.h) must not
differ from what it would decide anew."""

import pytest

from gatling import Root, Server, eventually
from upstream import Upstream

pytestmark = [pytest.mark.decided, pytest.mark.tcp]

REALM = b"Private\nann:$2b$04$abcdefghijklmnopqrstuuxSJM4VN1mrL6gu9y7tEbGoBgTLHmGzS\n"
TIMES = 3  # equal requests


@pytest.fixture
def passing(build):
    """Starts servers whose rules pass requests on, and ends them."""
    running = []
    with Upstream() as upstream:

        def start(rules, files=None, *flags):
            root = Root({**(files or {}), "_redirects": rules.replace("{}", upstream.address).encode()})
            running.append(Server(build, root, "-j", "1", "--upstream", upstream.allowed, *flags))
            return running[-1]

        start.upstream = upstream
        yield start
        for server in running:
            server.stop()
            server.root.remove()


def passed(server, path, *fields, **options):
    """Returns the target with which the request was passed on, or the status of another answer."""
    response = server.get(path, *fields, **options)
    return response.body.split()[1].decode() if response.status == 200 else response.status


def test_each_request_has_its_own_query(passing):
    server = passing("/a/* http://{}/x/:splat 200!\n/b/* http://{}/y?own=:splat 200!\n")
    for query in ("?one=1", "", "?", "?two=%2e/&a+b", "?three\xff"):
        wanted = "" if query == "?" else query.replace("\xff", "%FF")
        assert passed(server, "/a/p%20q" + query) == "/x/p%20q" + wanted
        assert passed(server, "/b/p" + query) == "/y?own=p"
    assert passed(server, "/a/p%20q?" + "\xff" * 3000) == 503  # it does not fit


def test_what_a_rule_asks_of_a_request_is_asked_each_time(passing):
    server = passing("/c/* http://{}/cookie 200! Cookie=member\n/c/* http://{}/none 200!\n"
                     "/l/* http://{}/german 200! Language=de\n/l/* http://{}/other 200!\n"
                     "/q/* id=:id http://{}/with/:id 200!\n/q/* http://{}/without 200!\n")  # fmt: skip
    for _ in range(TIMES):
        assert passed(server, "/c/x") == "/none"
        assert passed(server, "/c/x", "Cookie: member=1") == "/cookie"
        assert passed(server, "/l/x") == "/other"
        assert passed(server, "/l/x", "Accept-Language: de") == "/german"
        assert passed(server, "/q/x") == "/without"
        assert passed(server, "/q/x?id=7") == "/with/7"


@pytest.mark.clear
def test_other_hosts_ports_and_methods_are_not_the_same(passing):
    server = passing("http://one.test/* http://{}/one/:splat 200!\n/* http://{}/all/:splat 200!\n")
    for _ in range(TIMES):
        assert passed(server, "/x", host="one.test") == "/one/x"
        assert passed(server, "/x", host="two.test") == "/all/x"
        assert passed(server, "/x", method="POST") == "/all/x"
        assert server.get("/x", method="TRACE").status == 405


def test_a_file_that_comes_before_a_rule_is_found_at_once(passing):
    server = passing("/* http://{}/app/:splat 200\n")
    for _ in range(TIMES):
        assert passed(server, "/new") == "/app/new"
    server.root.write("new", b"a file")
    assert server.get("/new").body == b"a file"


@pytest.mark.parametrize("place", ["private/.htaccess", "private/deep/.htaccess", ".htaccess", ".htaccess_global"])
def test_a_new_password_is_asked_for(passing, place):
    server = passing("/private/* http://{}/:splat 200!\n", {"private/deep/file": b""})
    for _ in range(TIMES):
        assert passed(server, "/private/deep/x") == "/deep/x"
    server.root.write(place, REALM)
    eventually(lambda: server.get("/private/deep/x").status == 401, seconds=3)
    for _ in range(TIMES):
        assert server.get("/private/deep/x").status == 401


def test_what_needs_a_password_needs_it_each_time(passing):
    server = passing("/private/* http://{}/:splat 200!\n", {"private/.htaccess": REALM})
    for _ in range(TIMES):
        assert server.get("/private/x").status == 401


def test_a_rate_counts_each_request(passing):
    server = passing("/* http://{}/:splat 200!\n", {"_limits": b"/* address-rate=1:2\n"})
    statuses = [server.get("/x").status for _ in range(6)]
    assert statuses[:2] == [200, 200] and 429 in statuses[2:]


def test_a_new_rule_applies(passing):
    server = passing("/* http://{}/old/:splat 200!\n")
    for _ in range(TIMES):
        assert passed(server, "/x") == "/old/x"
    server.root.write("_redirects", f"/x http://{passing.upstream.address}/new 200!\n".encode())
    eventually(lambda: passed(server, "/x") == "/new", seconds=3)
    server.root.write("_redirects", b"/x / 403!\n")
    eventually(lambda: server.get("/x").status == 403, seconds=3)


def test_an_upstream_that_fails_is_answered_for(passing):
    def handle(link):
        while link.request() and len(link.requests) <= TIMES:
            link.answer()

    passing.upstream.handle = handle
    server = passing("/* http://{}/:splat 200!\n")
    assert [server.get("/x").status for _ in range(2 * TIMES)] == [200] * TIMES + [502] * TIMES
