"""What an attacker who runs code in the server can still do: intruder.c is loaded into it and
tries."""

import errno
import os
import re
import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from gatling import Root, Server, certificate, eventually, only_child

pytestmark = pytest.mark.clear

REFUSED = {errno.ENOSYS, errno.EACCES}
PASSWD = {"read_passwd", "climb_to_passwd"}
RINGS = {f"{what}_by_ring" for what in ("open", "socket", "connect", "close", "send", "listen")}  # refused by the ring itself, and where there is none
# in a build with sanitizers for its leak checker
SANITIZERS = {"fork", "ptrace", "kill", "kill_other"}

AS_NOBODY = ("-u", "nobody")
INSIDE = ("--symlinks", "inside")

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="takes root to start with")


@pytest.fixture(scope="module")
def intruder():
    directory = Root()
    source = Path(__file__).with_name("intruder.c")
    subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-O1", "-D_GNU_SOURCE", "-o", directory.path / "intruder.so", source], check=True)
    (directory.path / "intruder.so").chmod(0o755)
    yield directory.path / "intruder.so"
    directory.remove()


@pytest.fixture
def open_root():
    """A root whose files everybody may change."""
    root = Root()
    for name in ("a.txt", "victim"):
        root.write(name, b"a", 0o666)
    root.path.chmod(0o777)
    yield root
    root.remove()


def sanitized(build):
    return b"libasan" in (build / "gatling").read_bytes()


def attempts(build, root, intruder, monkeypatch, *flags, as_root=False, process="server", path="/a.txt", status=200):
    """Returns {name: errno} of the intruder's attempts there."""
    with socket.create_server(("127.0.0.1", 0)) as elsewhere, monkeypatch.context() as patch:
        patch.setenv("LD_PRELOAD", str(intruder))
        patch.setenv("ASAN_OPTIONS", "verify_asan_link_order=0")
        patch.setenv("INTRUDER_PORT", str(elsewhere.getsockname()[1]))
        with Server(build, root, "-j", "1", *flags, as_root=as_root, cwd=root.path) as server:
            assert server.get(path).status == status
            said = eventually(lambda: tries(server, process))
    return said


def tries(server, process):
    said = dict(re.findall(rf"^intruder: {process} (\w+) (\d+)$", "\n".join(server.errors), re.MULTILINE))
    return {name: int(error) for name, error in said.items() if name != "end"} if "end" in said else None


def allowed(said):
    return {name for name, error in said.items() if error not in REFUSED}


def unchanged(root):
    return sorted(os.listdir(root.path)) == ["a.txt", "victim"] and (root.path / "a.txt").read_bytes() == b"a"


@root_only
@pytest.mark.parametrize("flags", [AS_NOBODY, (), (*AS_NOBODY, *INSIDE)], ids=["nobody", "root", "inside"])
def test_in_a_chroot_an_intruder_can_do_nothing(build, open_root, intruder, monkeypatch, flags):
    said = attempts(build, open_root, intruder, monkeypatch, *flags, as_root=True)
    assert {said.pop(name) for name in PASSWD} == {errno.ENOENT}
    assert allowed(said) <= (SANITIZERS if sanitized(build) else set())
    assert unchanged(open_root)


def test_without_root_an_intruder_can_do_nothing_if_symlinks_stay_inside(build, open_root, intruder, monkeypatch):
    said = attempts(build, open_root, intruder, monkeypatch, *INSIDE)
    assert allowed(said) <= (SANITIZERS if sanitized(build) else set())
    assert unchanged(open_root)


@pytest.mark.parametrize("as_root", [False, pytest.param(True, marks=root_only)], ids=["user", "root"])
def test_with_upstreams_over_tcp_an_intruder_can_connect_but_not_listen(build, open_root, intruder, monkeypatch, as_root):
    flags = (*INSIDE, "--upstream", "127.0.0.1", *(AS_NOBODY if as_root else ()))
    said = attempts(build, open_root, intruder, monkeypatch, *flags, as_root=as_root)
    assert {said.pop(name) for name in PASSWD} <= {errno.ENOENT, errno.EACCES}
    # the connection that ends the listening takes away what the last attempt needs
    assert allowed(said) <= {"socket", "connect", "connect_by_sending"} | (SANITIZERS if sanitized(build) else set())
    assert said["socket"] == 0 and unchanged(open_root)


@root_only
def test_an_intruder_in_what_connects_to_unix_sockets_can_do_that_alone(build, open_root, intruder, monkeypatch):
    monkeypatch.setenv("INTRUDER_ALL", "1")
    app = Root({"_redirects": b""})
    open_root.path.chmod(0o755)  # else the rule is not believed
    open_root.write("_redirects", f"/x http://unix:{app.path}/none.sock:/ 200\n".encode())
    flags = (*AS_NOBODY, "--no-https", "--upstream", app.path)  # without the process that opens files
    said = attempts(build, open_root, intruder, monkeypatch, *flags, as_root=True, process="broker", path="/x", status=502)
    assert allowed(said) <= {"unix_socket", "connect"} | (SANITIZERS if sanitized(build) else set())
    (open_root.path / "_redirects").unlink()
    assert said["unix_socket"] == 0 and {said[name] for name in PASSWD} == {errno.ENOSYS} and unchanged(open_root)
    app.remove()


def test_where_symlinks_may_lead_anywhere_an_intruder_can_read_but_no_more(build, open_root, intruder, monkeypatch):
    said = attempts(build, open_root, intruder, monkeypatch)
    assert PASSWD <= allowed(said) <= PASSWD | (SANITIZERS if sanitized(build) else set())
    assert unchanged(open_root)


def test_without_the_sandbox_an_intruder_can_do_all_that(build, open_root, intruder, monkeypatch):
    """Otherwise the tests above would show nothing."""
    said = attempts(build, open_root, intruder, monkeypatch, "--sandbox", "off")
    assert said.keys() - allowed(said) <= RINGS
    assert not unchanged(open_root)


def test_the_ring_of_a_worker_does_nothing_but_what_the_worker_needs(uring, open_root, intruder, monkeypatch):
    for flags in ((), ("--sandbox", "off")):
        said = attempts(uring, open_root, intruder, monkeypatch, *flags)
        assert {said[name] for name in RINGS} == {errno.EACCES}


@root_only
def test_an_intruder_in_the_broker_can_open_files_and_no_more(build, open_root, intruder, monkeypatch):
    log = Root()
    flags = (*AS_NOBODY, "--log-file", log.path / "log")
    said = attempts(build, open_root, intruder, monkeypatch, *flags, as_root=True, process="broker")
    assert "socket" in said and allowed(said) <= (SANITIZERS if sanitized(build) else set())
    said = attempts(build, open_root, intruder, monkeypatch, *flags, "--sandbox", "off", as_root=True, process="broker")
    assert allowed(said) == said.keys()
    log.remove()


@root_only
@pytest.mark.parametrize("flags", [AS_NOBODY, ()], ids=["nobody", "root"])
def test_an_intruder_in_what_looks_up_the_directory_can_do_nothing(build, open_root, intruder, monkeypatch, flags):
    monkeypatch.setenv("INTRUDER_ALL", "1")
    said = attempts(build, open_root, intruder, monkeypatch, *flags, "--no-https", as_root=True, process="lookout")  # without a broker
    assert "socket" in said and allowed(said) <= (SANITIZERS if sanitized(build) else set())
    assert unchanged(open_root)


def statuses(pid):
    return [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/status")]


def confined(status):
    return all(re.search(rf"^{field}:\t{value}$", status, re.MULTILINE) for field, value in
               (("Seccomp", 2), ("NoNewPrivs", 1), ("CapEff", "0{16}"), ("CapPrm", "0{16}")))  # fmt: skip


def test_all_threads_are_confined_also_those_that_start_later(build, root):
    root.write("list/a.txt", b"a")
    with Server(build, root, "-j", "2") as server:
        before = len(server.thread_ids())
        assert server.get("/list/").status == 200
        assert len(server.thread_ids()) > before and all(map(confined, statuses(server.pid)))


def test_the_broker_is_confined(build, root, tmp_path):
    cert, key = certificate()
    with Server(build, root, "--cert", cert, "--key", key, "--tls-port", "0") as server:
        assert all(map(confined, statuses(only_child(server.pid))))


@pytest.mark.parametrize(
    "flags,files",
    [
        ((), "Landlock (read-only), seccomp"),
        (INSIDE, "Landlock (read-only, below the directory), seccomp"),
        (("--sandbox", "off"), "; without Landlock (--sandbox off), seccomp (--sandbox off)"),
    ],
)
def test_a_line_at_the_start_says_what_is_in_force(first_build, root, flags, files):
    with Server(first_build, root, *flags) as server:
        begin = "gatling: sandbox: no new privileges, no capabilities"
        assert server.sandbox == begin + (files if files[0] == ";" else ", " + files)


def refusing(calls, error):
    return ["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={calls}", "-e", f"inject={calls}:error={error}"]


@pytest.mark.parametrize(
    "calls,error,missing",
    [
        ("landlock_create_ruleset", "ENOSYS", "seccomp; without Landlock (Function not implemented)"),
        ("landlock_restrict_self", "E2BIG", "seccomp; without Landlock (Argument list too long)"),
        ("seccomp", "EPERM", "Landlock (read-only); without seccomp (Operation not supported)"),
    ],
)
def test_what_the_kernel_refuses_is_named_and_the_server_serves(first_build, root, calls, error, missing):
    with Server(first_build, root, tracer=refusing(calls, error)) as server:
        assert server.sandbox.endswith(missing) and server.get("/a.txt").body == b"a"


def test_what_serving_needs_is_allowed(build, files, tmp_path):
    """No call is refused, except clone3(2), whose flags the filter cannot see."""
    if not shutil.which("strace"):
        pytest.skip("no strace")
    tracer = ["strace", "-f", "-qq", "-Z", "-o", tmp_path / "calls"]
    with Server(build, files, "-j", "1", tracer=tracer) as server:
        for path in ("/", "/small.bin", "/big.bin", "/missing", "/list/", "/list/?format=json"):
            server.get(path)
            server.get(path, "Accept-Encoding: gzip", "Range: bytes=1-2")
    refused = re.findall(r"^\d+ +(\w+)\(.* = -1 ENOSYS", (tmp_path / "calls").read_text(), re.MULTILINE)
    assert set(refused) <= {"clone3"}
