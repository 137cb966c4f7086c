"""The served directory is followed by its name, and the keeper that does it: signals, ends, what it
holds."""

import contextlib
import os
import re
import shutil
import signal
import socket
import time
from pathlib import Path

import pytest

from gatling import Connection, Root, Server, certificate, children, eventually, listening, server_of, servers_of, trusting
from http2 import Http2
from switching import FOLLOWED_S, Releases, Secure, switch
from test_process import start_download, unread
from test_restart import activated, listener

pytestmark = [pytest.mark.clear, pytest.mark.decided]

PARTS = {"index.html": b"%d", "style.css": b"style %d"}


class Site:
    """A directory, whose parent is the owner's."""

    def __init__(self):
        self.root = Root()
        self.path = self.root.path / "site"
        self.number = 0

    def fill(self, path=None):
        self.number += 1
        for name, content in PARTS.items():
            self.root.write(f"{(path or self.path).name}/{name}", content % self.number)

    def link(self):
        """Makes the next release, to which the name is a symlink that is replaced."""
        self.fill(self.root.path / f"release-{self.number + 1}")
        (self.root.path / "new").symlink_to(f"release-{self.number}")
        (self.root.path / "new").rename(self.path)

    def build_again(self):
        """Does what a builder does: empties the place of its output, and fills it."""
        shutil.rmtree(self.path, ignore_errors=True)
        self.path.mkdir()
        self.fill()

    def swap(self):
        self.fill(self.root.path / "next")
        if self.path.exists():
            self.path.rename(self.root.path / f"old-{self.number}")
        (self.root.path / "next").rename(self.path)


@pytest.fixture
def site():
    own = Site()
    yield own
    own.root.remove()


@contextlib.contextmanager
def as_root(build, site, *flags):
    with Server(build, site.path, "-j", "2", "-u", "nobody", *flags, as_root=True) as server:
        yield server


@contextlib.contextmanager
def as_user(build, site, *flags):
    with Server(build, site.path, "-j", "2", *flags) as server:
        yield server


@contextlib.contextmanager
def inside(build, site, *flags):
    with Server(build, site.path, "-j", "2", "--symlinks", "inside", *flags) as server:
        yield server


@contextlib.contextmanager
def as_service(build, site, *flags):
    with listener() as s, activated(build, site.path, s, flags=("-j", "2", *flags)) as server:
        yield server


WAYS = {"root": as_root, "user": as_user, "inside": inside, "service": as_service}
ways = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
root_only = pytest.mark.skipif(os.geteuid() != 0, reason="takes root")


def served(server, path="/", **options):
    answer = server.get(path, **options)
    return answer.body if answer.status == 200 else answer.status


def becomes(server, what, path="/"):
    """Waits until a path has this content, or status."""
    eventually(lambda: served(server, path) == what)


def said(server, text):
    return [line for line in server.errors if text in line]


# --- what is followed ---


@ways
@pytest.mark.parametrize("change", [Site.link, Site.build_again, Site.swap], ids=["link", "built", "renamed"])
def test_another_directory_of_that_name_is_served(build, site, way, change):
    change(site)
    with way(build, site) as server:
        assert served(server) == b"1"
        for number in (b"2", b"3"):
            change(site)
            becomes(server, number)
            assert served(server, "/style.css") == b"style " + number
        eventually(lambda: len(servers_of(server.keeper)) == 1)
        assert len(said(server, "is another directory now: finishing the connections")) == 2


@pytest.mark.alone
@ways
def test_it_is_served_as_soon_as_is_promised(first_build, site, way):
    site.link()
    with way(first_build, site) as server:
        assert served(server) == b"1"
        for number in (b"2", b"3", b"4"):
            begun = time.monotonic()
            site.link()
            becomes(server, number)
            assert time.monotonic() - begun < FOLLOWED_S


@ways
def test_while_there_is_no_directory_everything_is_503_and_a_line_says_so(build, site, way):
    site.fill()
    cert, key = certificate()
    secure = () if way is as_service else ("--cert", cert, "--key", key, "--tls-port", "0")
    with way(build, site, "--health", "/health", *secure) as server, server.connect() as kept:
        assert served(server) == b"1" and served(server, "/health") != 503 and kept.get("/").body == b"1"
        site.path.rename(site.root.path / "away")
        becomes(server, 503)
        assert [served(server, path) for path in ("/style.css", "/missing", "/health")] == [503] * 3
        assert kept.get("/").status == kept.get("/", method="POST").status == 503
        if secure:
            with Http2(Secure(server), tls=trusting(alpn=("h2",))) as c:
                assert c.get("/").status == 503
        (site.root.path / "away").rename(site.path)
        becomes(server, b"1")
        assert kept.get("/").body == b"1" and served(server, "/health") != 503
        assert len(said(server, f"{site.path} cannot be served, so all requests are answered with 503 until it can: No such file or directory")) == 1
        assert len(said(server, f"{site.path} is served again")) == 1
        site.path.rename(site.root.path / "away")
        becomes(server, 503)
        site.build_again()
        becomes(server, b"2")


def test_a_directory_that_is_gone_for_a_moment_is_not_missed(build, site):
    site.fill()
    with as_user(build, site) as server:
        for _ in range(3):
            site.path.rename(site.root.path / "away")
            until = time.monotonic() + 0.3
            while time.monotonic() < until:
                assert served(server, "/style.css") == b"style 1"
            (site.root.path / "away").rename(site.path)
            assert served(server) == b"1"
            time.sleep(0.8)  # in which it is seen again


@pytest.mark.parametrize("change", ["file", "loop"])
def test_what_is_no_directory_is_not_served(build, site, change):
    site.link()
    with as_user(build, site) as server:
        (site.root.path / "new").write_bytes(b"") if change == "file" else (site.root.path / "new").symlink_to("site")
        (site.root.path / "new").rename(site.path)
        becomes(server, 503)
        site.link()
        becomes(server, b"2")


@root_only
@ways
def test_a_directory_that_may_not_be_entered_is_503_until_it_may(build, site, way):
    site.link()
    with way(build, site) as server:
        (site.root.path / "release-2").mkdir(mode=0o700)
        site.link()
        becomes(server, 503)
        assert eventually(lambda: said(server, f"{site.path} cannot be served, so all requests are answered with 503"))
        (site.root.path / "release-2").chmod(0o755)
        becomes(server, b"2")


def test_a_server_that_cannot_start_is_tried_again_and_the_reason_is_said(build, site, place):
    site.link()
    (place / "types").write_text("text/x-own own\n")
    with as_user(build, site, "--mime", place / "types") as server:
        (place / "types").rename(place / "away")
        site.link()
        becomes(server, 503)
        eventually(lambda: said(server, f"until it can: cannot read {place / 'types'}"))
        eventually(lambda: len(said(server, "until it can: cannot read")) == 3)  # after 1 and 2 s
        (place / "away").rename(place / "types")
        eventually(lambda: served(server) == b"2")


def test_back_to_the_directory_that_is_served_needs_no_other_server(build, site, place):
    site.link()
    (place / "types").write_text("text/x-own own\n")
    with as_user(build, site, "--mime", place / "types") as server:
        (place / "types").unlink()
        site.link()
        becomes(server, 503)
        (site.root.path / "new").symlink_to("release-1")
        (site.root.path / "new").rename(site.path)
        becomes(server, b"1")
        assert server_of(server.keeper) == server.pid


def test_a_directory_named_from_another_is_followed_from_there(build, site):
    site.link()
    with Server(build, "site", "-j", "1", cwd=site.root.path) as server:
        site.link()
        becomes(server, b"2")


def test_the_directory_in_which_it_was_started_may_be_made_again(build, site):
    site.fill()
    with Server(build, ".", "-j", "1", cwd=site.path) as server:
        site.build_again()
        becomes(server, b"2")


@root_only
def test_a_server_that_follows_has_given_up_as_much_as_the_first(build, site):
    site.link()
    with as_root(build, site) as server:
        site.link()
        becomes(server, b"2")
        sandboxes = [line for line in server.errors if "gatling: sandbox:" in line]
        assert [server.sandbox] == sandboxes
        pid = eventually(lambda: len(found := servers_of(server.keeper)) == 1 and found[0])
        assert pid != server.pid and os.readlink(f"/proc/{pid}/root") == str(site.root.path / "release-2")
        status = Path(f"/proc/{pid}/status").read_text()
        assert re.search(r"^Uid:\t65534\t65534\t65534\t65534$", status, re.MULTILINE) and re.search("^CapEff:\t0{16}$", status, re.MULTILINE)


def test_a_server_for_another_directory_starts_though_nobody_reads_its_lines(build, site):
    site.link()
    with unread(build, site.path) as (process, ask):
        eventually(lambda: ask("/").body == b"1")
        full = os.open(f"/proc/self/fd/{process.stderr.fileno()}", os.O_WRONLY | os.O_NONBLOCK)
        with contextlib.suppress(BlockingIOError):
            while os.write(full, b"x"):
                pass
        os.close(full)
        for number in (b"2", b"3"):
            site.link()
            eventually(lambda: ask("/").body == number)


# --- connections that cross the change ---


def test_a_download_goes_on(build, site):
    site.link()
    site.root.write("release-1/huge", b"a" * 30_000_000)
    with as_user(build, site) as server, start_download(server) as download:
        site.link()
        becomes(server, b"2")
        assert len(servers_of(server.keeper)) == 2
        assert len(download.response().body) == 30_000_000
        download.assert_closed()
        eventually(lambda: len(servers_of(server.keeper)) == 1)


def test_an_idle_connection_does_not_stay_with_the_old_directory(build, site):
    site.link()
    with as_user(build, site) as server, server.connect() as idle:
        idle.get("/")
        site.link()
        idle.assert_closed()
        becomes(server, b"2")


def test_of_the_servers_that_finish_downloads_the_last_have_no_time_limit(build, site):
    site.link()
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(as_user(build, site, "-T", "2"))
        downloads = []
        for number in range(2, 8):
            site.root.write(f"release-{number - 1}/huge", b"a" * 30_000_000)
            downloads.append(stack.enter_context(start_download(server)))
            site.link()
            becomes(server, b"%d" % number)
        while len(servers_of(server.keeper)) > 5:
            for download in downloads:
                download.buffer += download.socket.recv(1 << 16)
            time.sleep(0.05)
        for download in downloads[2:]:
            assert len(download.response().body) == 30_000_000


@pytest.mark.parametrize("way", [as_root, inside], ids=["root", "inside"])
def test_no_answer_is_wrong_mixed_late_or_lost_when_releases_are_switched(build, way):
    releases, (cert, key) = Releases(), certificate()
    releases.path = releases.current
    with way(build, releases, "-n", "--cert", cert, "--key", key, "--tls-port", "0") as server:
        server.get("/")
        load, _, kept = switch(server, releases, rate=200, switches=3)
        assert not load.failures(), load.examples()
        assert kept[0] == kept[-1]  # threads and descriptors of the keeper
        eventually(lambda: len(servers_of(server.keeper)) == 1)
    releases.root.remove()


def test_nothing_is_left_behind_by_a_change(build, site):
    site.link()

    def kept(server):
        server.root = site.root
        eventually(lambda: len(children(server.keeper)) == 2)
        server.pid = server_of(server.keeper)
        return len(os.listdir(f"/proc/{server.keeper}/fd")), server.descriptors(cached=False), len(server.thread_ids())

    with as_user(build, site) as server:
        site.link()
        becomes(server, b"2")
        before = kept(server)
        for number in range(3, 6):
            site.link()
            becomes(server, b"%d" % number)
        # when `before` was counted, the keeper may not have heard yet that the first server had ended
        eventually(lambda: all(now <= then for now, then in zip(kept(server), before, strict=True)))


# --- the keeper ---


@root_only
def test_the_keeper_holds_nothing_of_clients_and_gains_no_privileges(build, site):
    site.fill()
    with as_root(build, site) as server:
        server.get("/")
        for fd in Path(f"/proc/{server.keeper}/fd").iterdir():
            if int(fd.name) > 2:
                assert os.readlink(fd).startswith("socket:")
        tcp = {line.split()[9] for table in ("tcp", "tcp6") for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]}
        held = {os.readlink(fd)[8:-1] for fd in Path(f"/proc/{server.keeper}/fd").iterdir()}
        assert not tcp & held
        assert "NoNewPrivs:\t1" in Path(f"/proc/{server.keeper}/status").read_text()


def gone(pid):
    """Returns whether a process has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] in "ZX"
    except FileNotFoundError:
        return True


def test_the_servers_end_with_the_keeper(build, site):
    site.link()
    server = Server(build, site.path, "-j", "2")
    family = [*eventually(lambda: len(found := children(server.keeper)) == 2 and found), server.keeper]
    os.kill(server.keeper, signal.SIGKILL)
    server.wait(-signal.SIGKILL)
    eventually(lambda: all(map(gone, family)))
    with pytest.raises(ConnectionRefusedError):
        server.connect()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_the_keeper_ends_as_the_server_has(plain, site, number):
    site.fill()
    server = Server(plain, site.path, "-j", "2")
    os.kill(server.pid, number)
    server.wait(-number)


@pytest.fixture
def downloading(build, site):
    """A server with a download that takes its time."""
    site.fill()
    site.root.write("site/huge", b"a" * 30_000_000)
    site.root.write("site/a.txt", b"a")
    with as_user(build, site, "--log-file", "/dev/null") as server, start_download(server) as download:
        server.download = download
        yield server


def finishes(server):
    """Checks that the server ends gracefully."""
    eventually(lambda: not listening(server.port))
    assert len(server.download.response().body) == 30_000_000
    server.download.close()
    server.wait()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGQUIT])
def test_a_signal_for_all_processes_counts_once(downloading, number):
    """As pkill(1) and service managers send it."""
    for pid in (downloading.keeper, downloading.pid):
        os.kill(pid, number)
    finishes(downloading)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGQUIT])
def test_a_signal_for_the_server_alone_is_one_for_all(downloading, number):
    os.kill(downloading.pid, number)
    finishes(downloading)


def test_a_signal_that_comes_twice_ends_all_at_once(downloading):
    downloading.signal()
    eventually(lambda: not listening(downloading.port))
    downloading.signal()
    downloading.wait()


def test_a_signal_reaches_those_that_finish_their_connections(build, site):
    site.link()
    site.root.write("release-1/huge", b"a" * 30_000_000)
    with as_user(build, site, "-T", "1") as server, start_download(server):
        site.link()
        becomes(server, b"2")
        assert len(servers_of(server.keeper)) == 2
        server.signal()
        server.wait()


def test_a_terminal_reaches_the_keeper_alone(build, site):
    site.fill()
    with Server(build, site.path, "-j", "1", start_new_session=True) as server:
        assert os.getpgid(server.keeper) == server.keeper != os.getpgid(server.pid)
        os.killpg(server.keeper, signal.SIGINT)
        server.wait()


def state(pid):
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]


def test_a_terminal_stops_and_continues_all(build, site):
    site.fill()
    with Server(build, site.path, "-j", "1", preexec_fn=lambda: os.setpgid(0, 0)) as server:
        for _ in range(2):
            os.kill(server.keeper, signal.SIGTSTP)
            eventually(lambda: state(server.keeper) == state(server.pid) == "T")
            os.kill(server.keeper, signal.SIGCONT)
            assert server.get("/").body == b"1"


def test_a_hangup_for_all_processes_is_told_once(build, site):
    site.fill()
    with as_user(build, site) as server:
        for pid in (server.keeper, server.pid):
            os.kill(pid, signal.SIGHUP)
        eventually(lambda: said(server, "SIGHUP opens the logs again"))
        os.kill(server.pid, signal.SIGHUP)
        eventually(lambda: len(said(server, "SIGHUP opens the logs again")) == 2)
        server.stop()
        assert len(said(server, "SIGHUP opens the logs again")) == 2


def test_the_log_is_opened_again_by_the_server_of_another_directory(build, site, place):
    site.link()
    with as_user(build, site, "--log-file", place / "log") as server:
        site.link()
        becomes(server, b"2")
        (place / "log").rename(place / "old")
        server.signal(signal.SIGUSR1)
        eventually((place / "log").exists)
        server.get("/later")
        eventually(lambda: b"/later" in (place / "log").read_bytes())


def test_without_the_lookout_another_is_started(build, site):
    site.link()
    with as_user(build, site) as server:
        (lookout,) = eventually(lambda: [child for child in children(server.keeper) if child != server.pid])
        os.kill(lookout, signal.SIGKILL)
        site.link()
        eventually(lambda: served(server) == b"2")


def test_a_lookout_that_a_disk_holds_up_is_reported(build, site):
    site.link()
    with as_user(build, site) as server:
        (lookout,) = eventually(lambda: [child for child in children(server.keeper) if child != server.pid])
        os.kill(lookout, signal.SIGSTOP)
        late = f"{site.path} has not been looked up for 10 seconds"
        eventually(lambda: said(server, late))
        assert served(server) == b"1"
        os.kill(lookout, signal.SIGCONT)
        eventually(lambda: said(server, f"{site.path} is looked up again"))
        site.link()
        becomes(server, b"2")
        assert len(said(server, late)) == 1


# --- who else replaces servers ---


def test_after_a_take_over_the_new_one_follows_and_the_old_one_does_not(build, site, place):
    site.link()
    flags = ("--take-over", place / "socket")
    with as_user(build, site, *flags) as old:
        site.link()
        becomes(old, b"2")
        with as_user(build, site, *flags) as new:
            old.wait()
            assert new.port == old.port
            for number in (b"3", b"4"):
                site.link()
                becomes(new, number)
            with as_user(build, site, *flags) as newest:
                new.wait()
                assert newest.port == old.port and served(newest) == b"4"


@pytest.fixture
def manager(place):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.bind(str(place / "notify"))
        (place / "notify").chmod(0o777)
        s.settimeout(20)
        yield s


def test_the_service_manager_hears_of_each_directory_from_the_keeper(build, site, manager):
    site.link()
    manager.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)

    def heard():
        """Returns the next message and who has sent it."""
        text, control, *_ = manager.recvmsg(4096, 256)
        return text.decode(), int.from_bytes(control[0][2][:4], "little")

    with listener() as s, activated(build, site.path, s, environment=[f"NOTIFY_SOCKET={manager.getsockname()}"]) as server:
        for number in (1, 2):
            text, sender = heard()
            assert sender == server.keeper and text.startswith(f"READY=1\nMAINPID={server.keeper}\nSTATUS=serving {site.root.path}/release-{number} on")
            if number == 1:
                site.link()
                becomes(server, b"2")
        assert server.port == s.getsockname()[1]
        server.stop()
        assert heard() == ("STOPPING=1", server.keeper)


def test_signs_of_life_go_on_when_the_directory_changes(build, site, manager):
    site.link()
    with Server(build, site.path, "-j", "1", launcher=("env", f"NOTIFY_SOCKET={manager.getsockname()}", "WATCHDOG_USEC=1000000")) as server:
        site.link()
        becomes(server, b"2")
        manager.settimeout(0.9)
        signs = 0
        while signs < 6:
            signs += manager.recv(4096) == b"WATCHDOG=1"


def test_a_certificate_outside_is_read_again_for_another_directory(build, site):
    site.link()
    cert, key = certificate()
    with as_user(build, site, "--cert", cert, "--key", key, "--tls-port", "0") as server:
        site.link()
        becomes(server, b"2")
        with Connection(("127.0.0.1", server.tls_port), tls=trusting(cert)) as c:
            assert c.get("/").body == b"2"
