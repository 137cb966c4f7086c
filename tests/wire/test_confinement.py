"""What a server that has given up its root and its privileges can still reach."""

import contextlib
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from gatling import Root, Server, certificate, children, eventually, only_child, server_of, servers_of

pytestmark = pytest.mark.clear

NOBODY = ("-u", "nobody", "-j", "2")


@pytest.fixture
def outside():
    """Makes a directory that only root may read, with a log and keys."""
    root = Root()
    root.path.chmod(0o700)
    cert, key = certificate()
    for name, content in (("cert.pem", cert.read_bytes()), ("key.pem", key.read_bytes())):
        root.write(name, content, 0o600)
        root.write(f"live/site/{'fullchain' if name[0] == 'c' else 'privkey'}.pem", content, 0o600)
    yield root.path
    root.remove()


def confined(build, root, outside, *more):
    flags = ("--log-file", outside / "log", "--cert", outside / "cert.pem", "--key", outside / "key.pem",
             "--cert-dir", outside / "live", "--tls-port", "0")  # fmt: skip
    return Server(build, root, *NOBODY, *flags, *more, as_root=True)


def status(pid):
    return dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":\t" in line)


def test_no_descriptor_leads_out_of_the_root(build, root, outside):
    with confined(build, root, outside) as server:
        assert server.get("/a.txt").body == b"a"
        seen = set()
        for thread in server.thread_ids():
            for fd in Path(f"/proc/{server.pid}/task/{thread}/fd").iterdir():
                with contextlib.suppress(FileNotFoundError):  # it has been closed meanwhile
                    target = os.readlink(fd)
                    seen.add(target)
                    if os.path.isdir(fd):
                        assert target.startswith(str(root.path)), target
        assert str(outside / "log") in seen  # the file itself


def test_it_can_gain_nothing_and_leaves_no_core(plain, root, outside):
    with confined(plain, root, outside) as server:
        child = only_child(server.pid)
        for pid in (server.pid, child):
            own = status(pid)
            assert own["NoNewPrivs"] == "1" and int(own["CapBnd"], 16) == 0
            assert re.search(r"Max core file size +0 +0 ", Path(f"/proc/{pid}/limits").read_text())
        assert int(status(server.pid)["CapEff"], 16) == 0 and status(server.pid)["Uid"].split()[1] != "0"
        assert int(status(child)["CapEff"], 16) == 0b110  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
        assert os.stat(f"/proc/{server.pid}/mem").st_uid == 0  # it is not dumpable


def test_the_log_is_opened_again_where_only_root_may(build, root, outside):
    with confined(build, root, outside) as server:
        server.get("/a.txt")
        eventually(lambda: b"/a.txt" in (outside / "log").read_bytes())
        (outside / "log").rename(outside / "old")
        server.signal(signal.SIGUSR1)
        eventually(lambda: (outside / "log").exists())
        server.get("/a.txt?later")
        eventually(lambda: b"later" in (outside / "log").read_bytes())
        assert (outside / "log").stat().st_mode & 0o777 == 0o640


def test_keys_that_only_root_may_read_are_used_and_read_again(build, root, outside):
    with confined(build, root, outside) as server:
        cert, key = certificate("DNS:changed")
        (outside / "cert.pem").write_bytes(cert.read_bytes())
        (outside / "key.pem").write_bytes(key.read_bytes())

        def shown():
            pem = os.popen(f"openssl s_client -servername changed -connect 127.0.0.1:{server.tls_port} </dev/null 2>/dev/null | openssl x509 -noout -ext subjectAltName").read()
            return "DNS:changed" in pem

        assert eventually(shown)


def test_links_in_the_served_directory_do_not_choose_what_root_reads(build, root, outside):
    """Somebody may write there who may not read the key."""
    (root.path / "evil.pem").symlink_to(outside / "both.pem")
    cert, key = certificate("DNS:evil")
    (outside / "both.pem").write_bytes(key.read_bytes() + cert.read_bytes())
    (outside / "both.pem").chmod(0o600)
    os.lchown(root.path / "evil.pem", 65534, 65534)
    # every certificate has to be good at the start: this one appears later
    (root.path / "evil.pem").rename(root.path / "later")
    with confined(build, root, outside) as server:
        (root.path / "later").rename(root.path / "evil.pem")
        eventually(lambda: [line for line in server.errors if "evil.pem" in line], 10)
        assert "symbolic link of neither root nor the owner" in server.errors[-1]


def test_the_process_outside_ends_with_the_server(build, root, outside):
    server = confined(build, root, outside)
    child = only_child(server.pid)
    server.kill()
    eventually(lambda: not Path(f"/proc/{child}").exists() or status(child)["State"][0] in "ZX")
    with confined(build, root, outside) as server:
        child = only_child(server.pid)
    assert not Path(f"/proc/{child}").exists()


def test_without_the_process_outside_the_server_goes_on_until_another_takes_over(build, root, outside):
    with confined(build, root, outside) as server:
        first = server.pid
        os.kill(children(first)[0], signal.SIGKILL)
        assert server.get("/a.txt").body == b"a"
        server.signal(signal.SIGUSR1)
        eventually(lambda: [line for line in server.errors if "cannot open" in line and "going on" in line])
        assert len([line for line in server.errors if "has ended, so" in line]) == 1
        assert "gatling: a process beside the server has ended: starting another server, which takes over" in server.errors
        eventually(lambda: servers_of(server.keeper) not in ([first], []) and first not in servers_of(server.keeper), 20)
        server.pid = server_of(server.keeper)
        assert len(children(server.pid)) == 1 and server.get("/a.txt").body == b"a"
        (outside / "log").rename(outside / "old")
        server.signal(signal.SIGUSR1)
        eventually((outside / "log").exists)
        assert not [line for line in server.errors if "is another directory" in line]


def test_without_anything_outside_there_is_one_process(build, root):
    for flags in ((), ("-E",)):
        with Server(build, root, *NOBODY, *flags, as_root=True) as server:
            assert not children(server.pid) and server.get("/a.txt").body == b"a"


def test_directories_are_read_when_they_change_alone(plain, root, outside, tmp_path):
    """However many files there are, checking them each second is one stat(2)."""
    with confined(plain, root, outside) as server:
        time.sleep(3)  # as long as a change might not show in the times, they are read
        path = tmp_path / "calls"
        command = ["strace", "-qq", "-p", str(only_child(server.pid)), "-o", str(path), "-e", "trace=getdents64,newfstatat"]
        with subprocess.Popen(command) as strace:
            eventually(lambda: path.exists() and path.read_text().count('"."') >= 4, 10)
            assert "getdents64" not in path.read_text()
            root.write("fresh", b"x")
            eventually(lambda: "getdents64" in path.read_text())
            strace.send_signal(signal.SIGINT)
