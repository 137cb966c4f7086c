"""Whose rules pass requests on: those of root, of the user who started the server, and of the owner of the site's
directory, where nobody else may write. Other rules do not need that."""

import os

import pytest

from gatling import Root, Server, eventually, unprivileged
from test_site_files import about
from upstream import Upstream

pytestmark = pytest.mark.decided

STARTER, OTHER = unprivileged().get("user", os.geteuid()), 12345
RULES = "/api/* http://{0}/:splat 200\n/forced/* http://{0}/ 200!\n/*.program fcgi://{0} 200\n/old /new 301\n/page /index.html 200\n"
only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


def written(upstream, site=""):
    """Returns a root with the rules at site: "", or the name of a host with a slash."""
    names = "index.html", "api/there", "forced/there", "a.program"
    return Root({"f": b"", f"{site}_redirects": RULES.format(upstream.address).encode(), **{f"{site}{name}": name.encode() for name in names}})


def linked(path, place, mode=0o755, owner=None, of_link=None):
    """Moves the rules at path to a directory beside the root's, or in it."""
    (path / place).mkdir(mode=0o755, parents=True, exist_ok=True)
    (path / "_redirects").rename(path / place / "rules")
    (path / "_redirects").symlink_to(f"{place}/rules")
    (path / place).chmod(mode)
    if owner is not None:
        os.chown(path / place, owner, owner)
    if of_link is not None:
        os.chown(path / "_redirects", of_link, of_link, follow_symlinks=False)


def linked_twice(path, of_link):
    linked(path, "a")
    (path / "a/rules").rename(path / "a/last")
    (path / "a/rules").symlink_to("last")
    os.chown(path / "a/rules", of_link, of_link, follow_symlinks=False)


def owned(file, directory=None):
    def change(path):
        os.chown(path / "_redirects", file, file)
        if directory is not None:
            os.chown(path, directory, directory)

    return change


TRUSTED = {
    "as it is": lambda path: None,
    "file of a group": lambda path: (path / "_redirects").chmod(0o664),
    "directory of a group": lambda path: path.chmod(0o775),
    "link": lambda path: linked(path, "rules"),
    "link upwards": lambda path: linked(path, "api/../rules"),
}
REFUSED = {
    "file for all": (lambda path: (path / "_redirects").chmod(0o666), "everybody may write to {}_redirects (mode 0666): chmod o-w"),
    "directory for all": (lambda path: path.chmod(0o777), "everybody may write to {site} (mode 0777): chmod o-w"),
    "sticky directory for all": (lambda path: path.chmod(0o1777), "everybody may write to {site} (mode 1777): chmod o-w"),
    "link to a directory for all": (lambda path: linked(path, "rules", mode=0o777), "everybody may write to {}rules (mode 0777): chmod o-w"),
}
TRUSTED_OWNERS = {
    "file of the starter": owned(STARTER),
    "file and directory of another": owned(OTHER, OTHER),
    "file of root, directory of another": owned(0, OTHER),
    "file of the starter, directory of another": owned(STARTER, OTHER),
    "link of the starter": lambda path: linked(path, "rules", of_link=STARTER),
    "link to a directory of the starter": lambda path: linked(path, "rules", owner=STARTER),
}
REFUSED_OWNERS = {
    "file of another": (owned(OTHER), "user 12345 owns {}_redirects: chown it"),
    "link of another": (lambda path: linked(path, "rules", of_link=OTHER), "user 12345 owns {}_redirects: chown it"),
    "link to a directory of another": (lambda path: linked(path, "rules", owner=OTHER), "user 12345 owns {}rules: chown it"),
    "second link of another": (lambda path: linked_twice(path, OTHER), "user 12345 owns {}a/rules: chown it"),
}


def check_passed(server, upstream, host):
    upstream.requests.clear()
    assert server.get("/api/x", host=host).status == 200 and server.get("/forced/there", host=host).status == 200
    assert len(upstream.requests) == 2


def check_refused(server, upstream, host):
    upstream.requests.clear()
    for path in "/api/x", "/forced/there", "/forced/x", "/a.program":
        for method in "GET", "POST":
            assert server.get(path, host=host, method=method).status == 503, path
    assert not upstream.requests


def check_others(server, host):
    assert server.get("/old", host=host)["Location"] == "/new"
    assert server.get("/page", host=host).body == b"index.html"
    assert server.get("/api/there", host=host).body == b"api/there"  # the rule is not forced


def check_all(build, change, said=None):
    for site in "", "a.example/":
        with Upstream() as upstream:
            root = written(upstream, site)
            change(root.path / site)
            with Server(build, root, "-j", "2", "--upstream", "127.0.0.1") as server:
                (check_refused if said else check_passed)(server, upstream, "a.example")
                check_others(server, "a.example")
                if said:
                    lines = eventually(lambda: about(server, "503"))  # pylint: disable=cell-var-from-loop
                    reason = said.format(site, site=site.rstrip("/") or "the served directory")
                    assert len(lines) == 1 and lines[0].startswith(f"gatling: {site}_redirects: ") and reason in lines[0], lines
                else:
                    assert not about(server, "_redirects"), server.errors
            root.remove()


@pytest.mark.parametrize("how", TRUSTED)
def test_rules_that_only_their_owner_may_write_pass_requests_on(build, how):
    check_all(build, TRUSTED[how])


@pytest.mark.parametrize("how", REFUSED)
def test_rules_that_everybody_may_write_pass_nothing_on(build, how):
    check_all(build, *REFUSED[how])


@only_root
@pytest.mark.parametrize("how", TRUSTED_OWNERS)
def test_rules_of_root_of_the_starter_and_of_the_sites_owner_pass_requests_on(build, how):
    check_all(build, TRUSTED_OWNERS[how])


@only_root
@pytest.mark.parametrize("how", REFUSED_OWNERS)
def test_rules_of_other_users_pass_nothing_on(build, how):
    check_all(build, *REFUSED_OWNERS[how])


@only_root
def test_the_user_of_u_has_not_started_the_server(build):
    """An application that runs as the same user may write what it is allowed to, and no rules."""
    with Upstream() as upstream:
        root = written(upstream)
        with Server(build, root, "-j", "1", "-u", "nobody", "--upstream", "127.0.0.1", as_root=True) as server:
            check_passed(server, upstream, "a.example")
            os.chown(root.path / "_redirects", 65534, 65534)
            eventually(lambda: server.get("/api/x").status == 503, 5)
            check_refused(server, upstream, "a.example")
        root.remove()


def test_where_everybody_may_make_a_site_none_passes_requests_on(build):
    with Upstream() as upstream:
        root = written(upstream, "a.example/")
        root.path.chmod(0o1777)
        with Server(build, root, "-j", "1", "--upstream", "127.0.0.1") as server:
            check_refused(server, upstream, "a.example")
            check_others(server, "a.example")
        root.remove()


@pytest.mark.parametrize("name", ["_redirects", "."])
def test_a_mode_that_changes_counts_at_once(build, name):
    with Upstream() as upstream:
        root = written(upstream)
        mode = (root.path / name).stat().st_mode & 0o777
        with Server(build, root, "-j", "1", "--upstream", "127.0.0.1") as server:
            for _ in range(2):
                check_passed(server, upstream, "a.example")
                (root.path / name).chmod(mode | 0o2)
                eventually(lambda: server.get("/api/x").status == 503, 5)
                check_refused(server, upstream, "a.example")
                check_others(server, "a.example")
                (root.path / name).chmod(mode)
                eventually(lambda: server.get("/api/x").status == 200, 5)
        root.remove()


@only_root
def test_the_last_good_rules_do_not_speak_for_a_file_that_cannot_be_read(build):
    """Its redirects stay in force, also for a worker that has not seen them."""
    with Upstream() as upstream:
        root = written(upstream)
        with Server(build, root, "-j", "1", "--upstream", "127.0.0.1") as server:
            check_passed(server, upstream, "a.example")
            root.write("new", b"/* /evil 301\n", 0o600)
            (root.path / "new").rename(root.path / "_redirects")
            eventually(lambda: server.get("/api/x").status == 503, 5)
            check_refused(server, upstream, "a.example")
            check_others(server, "a.example")
        root.remove()


def test_a_rule_that_passes_nothing_on_needs_no_owner(build):
    root = Root({"_redirects": b"/old /new 301\n"})
    (root.path / "_redirects").chmod(0o666)
    with Server(build, root, "-j", "1", "--upstream", "127.0.0.1") as server:
        assert server.get("/old")["Location"] == "/new"
        assert not about(server, "_redirects")
    root.remove()
