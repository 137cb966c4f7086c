"""What rules of _redirects do, beyond what netlify/ compares."""

import pytest

from gatling import Root, Server

pytestmark = pytest.mark.decided


def test_the_status_of_a_rule_is_not_that_of_other_methods(build):
    root = Root({"page.html": b"page", "_redirects": b"/a /page.html 401\n/b/* /none 500\n"})
    with Server(build, root, "--upstream", "127.0.0.1") as server:
        for path in ("/a", "/b/x"):
            assert server.get(path).status in (401, 500)
            assert server.get(path, method="DELETE").status == 405
            assert server.get(path, method="OPTIONS").status == 204
    root.remove()
