"""Unix sockets to which requests are passed on: those that the owner allows and the user who serves
may connect to, but never the server's own."""

import contextlib
import grp
import os
import pwd
import re
import subprocess
from pathlib import Path

import pytest

from gatling import Root, Server, children, eventually
from upstream import Upstream

pytestmark = [pytest.mark.clear, pytest.mark.decided]

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="takes root to start with")


@contextlib.contextmanager
def passing(build, rule, *flags, **options):
    root = Root({"index.html": b"hello", "_redirects": rule.encode()})
    with Server(build, root, "-j", "1", *flags, **options) as server:
        yield server
    root.remove()


def said(server, pattern):
    return eventually(lambda: next((line for line in server.errors if re.search(pattern, line)), None))


# --- the server's own ---


WAYS = {"path": lambda own, way: None, "symlink": lambda own, way: way.symlink_to(own), "hard link": lambda own, way: os.link(own, way)}

OWN = {
    "take-over": lambda path: ("--take-over", path),
    "status": lambda path: ("--status", f"unix:{path}"),
    "listener": lambda path: ("-i", f"unix:{path}"),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", OWN)
def test_no_request_reaches_a_socket_of_the_server_itself(build, place, kind, way):
    own = place / "own.sock"
    name = "own.sock" if way == "path" else "other.sock"
    with passing(build, f"/x/* http://unix:{place}/{name}:/:splat 200", "--upstream", place, *OWN[kind](own)) as server:
        WAYS[way](own, place / name)
        for method in ("GET", "rGET", "fGET"):
            assert server.get("/x/json", method=method).status == 502
        assert said(server, rf"{name}: it is a socket of this server itself: correct the rule")
        assert server.get("/").body == b"hello"


# --- whose rights ---


@contextlib.contextmanager
def application(mode, owner=(0, 0)):
    """Runs an upstream whose socket has that owner and mode."""
    with Upstream(unix=True) as upstream:
        path = upstream.directory / "app.sock"
        os.chown(path, *owner)
        path.chmod(mode)
        yield upstream


NOBODY = pwd.getpwnam("nobody")


@root_only
@pytest.mark.parametrize(
    "owner,mode,status",
    [
        ((0, 0), 0o600, 502),
        ((0, 0), 0o660, 502),
        ((0, 0), 0o666, 200),
        ((NOBODY.pw_uid, 0), 0o600, 200),
        ((0, NOBODY.pw_gid), 0o660, 200),
    ],
)
def test_a_server_of_root_connects_as_the_user_who_serves(build, owner, mode, status):
    with application(mode, owner) as upstream:
        rule = f"/x/* http://{upstream.address}:/:splat 200"
        with passing(build, rule, "-u", "nobody", "--upstream", upstream.allowed, as_root=True) as server:
            assert server.get("/x/").status == status
            if status == 502:
                assert said(server, r"app.sock: the user who serves \(-u\) may not: change the owner, group or mode of the socket \(for php-fpm: listen.owner")


@root_only
def test_a_directory_that_the_user_may_not_enter_is_closed_to_rules(build):
    with application(0o666) as upstream:
        upstream.directory.chmod(0o700)
        rule = f"/x/* http://{upstream.address}:/:splat 200"
        with passing(build, rule, "-u", "nobody", "--upstream", upstream.allowed, as_root=True) as server:
            assert server.get("/x/").status == 502 and said(server, "or of a directory above it")


@root_only
@pytest.mark.parametrize("mode,status", [(0o600, 502), (0o666, 200)])
def test_a_server_that_stays_root_has_no_more_rights_than_it_serves_with(build, mode, status):
    """It may search any directory (CAP_DAC_READ_SEARCH), but write only where root may."""
    with application(mode, (NOBODY.pw_uid, NOBODY.pw_gid)) as upstream:
        upstream.directory.chmod(0o700)
        os.chown(upstream.directory, NOBODY.pw_uid, NOBODY.pw_gid)
        with passing(build, f"/x/* http://{upstream.address}:/:splat 200", "--upstream", upstream.allowed, as_root=True) as server:
            assert server.get("/x/").status == status


def field(process, name):
    return re.search(rf"^{name}:\s+(.*)$", Path(f"/proc/{process}/status").read_text(), re.MULTILINE).group(1).split()


@root_only
@pytest.mark.parametrize("user", ["nobody", "65534", "65534:65533"])
def test_what_connects_is_that_user_in_all_its_groups(build, place, user):
    # Debian has users in more than one group only where an administrator has put them
    groups = [entry.gr_gid for entry in grp.getgrall() if NOBODY.pw_name in entry.gr_mem]
    with passing(build, "", "-u", user, "--upstream", place, as_root=True) as server:
        (process,) = children(server.pid)
        gid = 65533 if ":" in user else NOBODY.pw_gid
        eventually(lambda: set(field(process, "Uid")) == {str(NOBODY.pw_uid)})
        assert set(field(process, "Gid")) == {str(gid)}
        assert sorted(map(int, field(process, "Groups"))) == sorted({gid, *([] if ":" in user else groups)})
        for name in ("CapPrm", "CapEff", "CapInh", "CapBnd", "CapAmb"):
            assert int(field(process, name)[0], 16) == 0


@root_only
def test_the_groups_of_the_user_count(build, tmp_path):
    """The user is in a group of a file with groups that takes the place of /etc/group."""
    other = 64123
    lines = Path("/etc/group").read_text() + f"gatling-test:x:{other}:nobody\n"
    (tmp_path / "group").write_text(lines)
    launcher = ("unshare", "-m", "sh", "-c", f'mount --bind {tmp_path}/group /etc/group && exec "$0" "$@"')
    with application(0o660, (0, other)) as upstream:
        rule = f"/x/* http://{upstream.address}:/:splat 200"
        with passing(build, rule, "-u", "nobody", "--upstream", upstream.allowed, as_root=True, launcher=launcher) as server:
            assert server.get("/x/").status == 200


# --- which of them ---


@pytest.mark.parametrize("allowed,status", [("unix:{}/app.sock", 200), ("unix:{}/app", 404), ("unix:{}/app.sock2", 404), ("{}", 200)])
def test_a_path_allows_one_socket_and_no_other(build, allowed, status):
    with Upstream(unix=True) as upstream:
        rule = f"/x/* http://{upstream.address}:/:splat 200"
        with passing(build, rule, "--upstream", allowed.format(upstream.directory)) as server:
            assert server.get("/x/").status == status
            if status == 404:
                assert said(server, rf"nothing is passed on to {upstream.directory}/app.sock without --upstream unix:{upstream.directory}/app.sock$")


@pytest.mark.parametrize("path", ["", "a.sock", "/run/", "/run/../a.sock", "/run//a.sock", "/run/.a.sock", "/run/a,b", "/run/a:b", "/" + 107 * "a"])
def test_a_path_that_no_rule_can_have_is_refused(first_build, path):
    ran = subprocess.run([first_build / "gatling", "--upstream", f"unix:{path}"], capture_output=True, text=True)
    assert ran.returncode == 2 and "--upstream takes" in ran.stderr and "unix:PATH" in ran.stderr


def test_check_knows_the_socket_that_is_allowed(first_build):
    root = Root({"index.html": b"hello", "_redirects": b"/x/* http://unix:/run/app.sock:/:splat 200\n"})
    for allowed, status in (("unix:/run/app.sock", 0), ("unix:/run/other.sock", 1)):
        ran = subprocess.run([first_build / "gatling", "--check", "-c", root.path, "--upstream", allowed], capture_output=True, text=True)
        assert ran.returncode == status and ("--upstream unix:/run/app.sock" in ran.stdout) == bool(status)
    root.remove()
