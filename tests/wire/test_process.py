"""The process: options, addresses, signals, the log."""

import contextlib
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from authority import free_port
from gatling import TIMEOUT, Connection, Root, Server, certificate, descriptors_limited_to, eventually, listening, runnable, unprivileged


def run(build, *flags, **popen):
    return subprocess.run(
        [runnable(build), *flags], capture_output=True, text=True, timeout=20, check=False, **{**unprivileged(), **popen}
    )


def one_line(text):
    return re.fullmatch(r"gatling: [^\n]+\n", text)


# --- options ---


@pytest.mark.parametrize(
    "flags,named",
    [
        (["-x"], "-x"), (["--nope"], "--nope"), (["-p"], "-p"), (["-p", "x"], "'x'"), (["-p", "65536"], "65536"),
        (["-p", "-1"], "-1"), (["-p", "80x"], "80x"), (["-j", "0"], "--workers"), (["-j", "1000"], "1000"),
        (["-T", "soon"], "soon"), (["--symlinks", "x"], "--symlinks"), (["--defer-accept", "x"], "--defer-accept"), (["--sandbox", "x"], "--sandbox"), (["dir", "other"], "'other'"), (["--port"], "--port"),
        (["--no-log=1"], "'--no-log=1' takes no value"), (["--check=1"], "'--check=1' takes no value"),
        (["--strict-sni=1"], "'--strict-sni=1' takes no value"), (["--no"], "--no"),
        (["-i", "127.0.0.1"] * 65, "64"),
    ],
)  # fmt: skip
def test_a_wrong_option_is_named_in_one_line(build, flags, named):
    done = run(build, *flags)
    assert done.returncode == 2 and done.stdout == ""
    assert one_line(done.stderr) and named in done.stderr


@pytest.mark.parametrize(
    "given,meant",
    [
        ("--lisings", "--listings"), ("--lsitings", "--listings"), ("--adress-rate=5", "--limit address-rate=N[:BURST]"), ("--head-timeout", "--limit head-timeout=SECONDS"), ("--cache=1M", "--limit cache=SIZE"), ("--no-listing-s", "--no-listings"),
        ("--virtual-hosts", None), ("--x", None), ("--statsu", "--status"), ("--cert_dir", "--cert-dir"), ("--" + "x" * 200, None), ("--=", None),
    ],
)  # fmt: skip
def test_of_an_unknown_option_the_nearest_name_is_told(first_build, given, meant):
    done = run(first_build, given)
    assert done.returncode == 2 and one_line(done.stderr) and f"unknown option '{given}'" in done.stderr
    assert ("did you mean" in done.stderr) == bool(meant) and (not meant or f"did you mean {meant}?" in done.stderr)


@pytest.mark.parametrize("earlier,later", [("listings", "no-listings"), ("vhosts", "no-vhosts"), ("https", "no-https")])
@pytest.mark.parametrize("turned", [False, True])
def test_an_option_that_a_later_one_overrules_is_said_to_have_no_effect(first_build, root, earlier, later, turned):
    if turned:
        earlier, later = later, earlier
    done = run(first_build, "--check", f"--{earlier}", f"--{later}", root.path)
    assert f"gatling: --{earlier} has no effect, since --{later} comes after it\n" in done.stderr
    assert "has no effect" not in run(first_build, "--check", f"--{later}", f"--{later}", root.path).stderr


def test_the_status_page_has_a_port(first_build, root):
    done = run(first_build, "--status", "0", "-p", "0", "-E", root.path)
    assert done.returncode == 1 and one_line(done.stderr) and "with a port from 1 to 65535" in done.stderr


def test_help_that_cannot_be_written_is_an_error(build):
    with open("/dev/full", "wb") as full:
        done = subprocess.run([runnable(build), "--help"], stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 1 and b"stdout" in done.stderr


@pytest.mark.parametrize("stream", [0, 1, 2])
def test_a_closed_standard_stream_does_no_harm(build, root, stream):
    root.path.chmod(0o777)
    path = root.path / "socket"
    command = [runnable(build), "-c", root.path, "-j", "1", "-i", f"unix:{path}"]
    with subprocess.Popen(command, preexec_fn=lambda: os.close(stream), **unprivileged()) as process:
        try:
            eventually(lambda: listens(path))
            for _ in range(3):  # what goes to the log could be taken for the command to end
                with Connection(str(path), family=socket.AF_UNIX) as c:
                    assert c.get("/quit").status == 404
            assert process.poll() is None
            process.send_signal(signal.SIGTERM)
            assert process.wait(20) == 0
        finally:
            process.kill()


def listens(path):
    try:
        Connection(str(path), family=socket.AF_UNIX).close()
        return True
    except (ConnectionRefusedError, FileNotFoundError):
        return False


def test_a_file_that_is_no_socket_is_not_replaced_by_one(build, root):
    root.path.chmod(0o777)
    (root.path / "link").symlink_to("socket")
    for name in ("a.txt", "link"):
        for options in (("-i", f"unix:{root.path / name}"), ("-i", "127.0.0.1", "--status", f"unix:{root.path / name}")):
            done = run(build, "-c", root.path, "-p", "0", *options)
            assert done.returncode == 1 and "it exists, and is not a socket" in done.stderr
    assert (root.path / "a.txt").read_bytes() == b"a" and (root.path / "link").is_symlink()


@pytest.mark.clear
def test_help_and_version(build, request):
    done = run(build, "--help")
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and max(map(len, lines)) <= 80 and len(lines) <= 60
    assert run(build, "-h").stdout == done.stdout
    limits = run(build, "--help", "limits")
    assert limits.returncode == 0 and max(map(len, limits.stdout.splitlines())) <= 80
    assert len(re.findall(r"^  [a-z-]+=(?:SECONDS|SIZE|N|N\[:BURST\]|BYTES) +\S.*\n +\(default: .+\)$", limits.stdout, re.MULTILINE)) == 20
    version = run(build, "--version").stdout
    mechanism = request.node.callspec.id
    http3 = r"HTTP/3: ngtcp2 [\d.]+, nghttp3 [\d.]+|no HTTP/3 \(needs libngtcp2 >= .*, OpenSSL >= 3\.5\.1\)"
    assert re.fullmatch(rf"gatling [\d.]+ \({mechanism}; libowfat .+, OpenSSL .+, zlib .+\)\n({http3})\n", version)


@pytest.mark.parametrize(
    "flags,named",
    [
        (["-c", "/nonexistent"], "/nonexistent"),
        (["-c", "/etc/passwd"], "/etc/passwd"),
        (["-i", "example.org"], "example.org"),
        (["-i", "1.2.3"], "1.2.3"),
        (["-i", "198.51.100.1"], "198.51.100.1"),
        (["-i", "unix:"], "unix:"),
        (["-i", "unix:/nonexistent/socket"], "/nonexistent/socket"),
        (["-i", "unix:/" + "x" * 200], "xxx"),
        (["-u", "no-such-user"], "no-such-user"),
    ],
)
def test_what_cannot_be_served_is_named_in_one_line(build, flags, named):
    done = run(build, "-p", "0", *flags, cwd="/")  # the checkout may be root's alone
    assert done.returncode == 1 and done.stdout == ""
    assert one_line(done.stderr) and named in done.stderr


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_port_in_use_is_named_also_when_another_gatling_has_it(build, files, workers):
    with Server(build, files, "-j", workers) as server:
        done = run(build, "-c", files.path, "-i", "127.0.0.1", "-p", str(server.port), "-j", workers)
        assert done.returncode == 1 and one_line(done.stderr)
        assert str(server.port) in done.stderr and "in use" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="takes root to start with")
def test_a_port_that_takes_privileges_is_named(build, files):
    with open("/proc/sys/net/ipv4/ip_unprivileged_port_start", encoding="ascii") as f:
        if int(f.read()) <= 1:
            pytest.skip("every port is free for all here")
    done = run(build, "-c", files.path, "-i", "127.0.0.1", "-p", "1")
    assert done.returncode == 1 and "port 1:" in done.stderr and "ermission" in done.stderr


# --- addresses ---


def answers(connection):
    with connection as c:
        return c.get("/small.bin").status == 200


@pytest.mark.clear
def test_by_default_it_listens_on_ipv4_and_ipv6(build, files):
    with Server(build, files, address=()) as server:
        assert f"http://localhost:{server.port}/" in server.banner
        assert answers(server.connect())
        assert answers(Connection(("::1", server.port), socket.AF_INET6))
        eventually(lambda: len(server.lines) == 2)
        assert {line.split()[0] for line in server.lines} == {"127.0.0.1", "::1"}


def test_several_addresses(build, files):
    path = files.path.with_suffix(".sock")
    with Server(build, files, address=("-i", "127.0.0.1", "-i", "::1", "-i", f"unix:{path}")) as server:
        ports = dict(re.findall(r"http://(\S+):(\d+)/", server.banner))
        assert f"unix:{path}" in server.banner
        assert answers(Connection(("127.0.0.1", int(ports["127.0.0.1"]))))
        assert answers(Connection(("::1", int(ports["[::1]"])), socket.AF_INET6))
        for _ in range(4):
            assert answers(Connection(str(path), socket.AF_UNIX))
        done = run(build, "-c", files.path, "-i", f"unix:{path}")
        assert done.returncode == 1 and "in use" in done.stderr
    # a socket that was left behind is in nobody's way
    with Server(build, files, address=("-i", f"unix:{path}")):
        assert answers(Connection(str(path), socket.AF_UNIX))
    path.unlink()


@pytest.mark.clear
def test_the_banner_says_what_is_served_where_by_what(build, files, request):
    with Server(build, files, "-j", "2") as server:
        mechanism = request.node.callspec.id
        assert server.banner == f"gatling: serving {files.path} on http://127.0.0.1:{server.port}/ ({mechanism}, 2 workers)\n"
    with Server(build, files, "-j", "1") as server:
        assert server.banner.endswith("1 worker)\n")


@pytest.mark.skipif(os.geteuid() != 0, reason="takes root")
def test_started_as_root_it_is_locked_in_and_can_become_somebody_else(build, root):
    outside = Root({"x": b"outside"})
    (root.path / "out").symlink_to(outside.path / "x")
    (root.path / "in").symlink_to("/a.txt")
    with Server(build, root, "-u", "nobody", as_root=True) as server:
        assert server.get("/out").status == 404
        assert server.get("/in").body == b"a"
        with open(f"/proc/{server.pid}/status", encoding="ascii") as f:
            status = f.read()
        assert re.search(r"Uid:\t65534\t65534\t65534\t65534\n", status)
        assert re.search(r"Gid:\t65534\t65534\t65534\t65534\n", status)
        assert re.search(r"Groups:\t65534 \n", status)
        assert os.readlink(f"/proc/{server.pid}/root") == str(root.path)
    outside.remove()


@pytest.mark.skipif(os.geteuid() != 0, reason="takes root")
def test_a_link_out_of_the_chroot_is_said_once_with_the_remedy(build, root):
    outside = Root({"x.txt": b"outside", "d/x.txt": b"outside"})
    root.write("in/x.txt", b"in")
    root.write("app/index.html", b"app")
    root.write("app/_redirects", b"/* /index.html 200\n")
    links = {"file.txt": outside.path / "x.txt", "uploads": outside.path / "d", "relative": f"../{outside.path.name}/d", "itself": "../itself",
             "own": root.path / "in", "app/media": outside.path / "d", "www.example.org": outside.path, "good": "in", "dangling": "in/nothing",
             "far": "https://example.org/"}  # fmt: skip
    for name, target in links.items():
        (root.path / name).symlink_to(target)
    paths = ["/file.txt", "/uploads/x.txt", "/uploads/deep/x.txt", "/relative/x.txt", "/itself/d/x.txt", "/own/x.txt", "/app/media/x.txt", "/dangling",
             "/good/missing", "/in/missing", "/missing/x.txt", "/far/x", "/x/" * 60, "/uploads" + "/d" * 60]  # fmt: skip
    with Server(build, root, "-j", "2", as_root=True) as server:
        for _ in range(3):
            assert [server.get(path).status for path in paths] == [403 if "itself" in path else 404 for path in paths]
            assert server.get("/good/x.txt").body == b"in"
            server.get("/", host="www.example.org")
        lines = eventually(lambda: len(found := [line.strip() for line in server.errors if "symbolic link" in line]) >= 7 and found)
    seen = "which the server, started by root, cannot see:"
    remedy = f"{seen} mount that in the served directory (mount --bind), or start gatling as another user"
    relative = f"{seen} to it the served directory is /, so make the link relative (ln -sr)"
    told = {name: f"gatling: {name}: a symbolic link to {links[name]}, {relative if name == 'own' else remedy}" for name in links}
    assert sorted(lines) == sorted(told[name] for name in ("file.txt", "uploads", "relative", "itself", "own", "app/media", "www.example.org"))
    with Server(build, root, "-j", "1") as server:  # not in a chroot: they are served
        assert server.get("/file.txt").body == server.get("/uploads/x.txt").body == b"outside"
        assert server.get("/dangling").status == 404
        assert not [line for line in server.errors if "symbolic link" in line]
    outside.remove()


def test_each_worker_answers(build, files):
    with Server(build, files, "-j", "2", "-n") as server:
        before = {t: cpu(server, t) for t in server.thread_ids()}
        for _ in range(400):
            server.get("/small.bin")
        busy = [t for t in before if cpu(server, t) > before[t]]
        assert len(busy) >= 2


@pytest.mark.clear
def test_each_processor_has_a_worker_though_there_are_more_than_a_set_has_room_for(plain, files):
    tracer = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=sched_getaffinity", "-e", "inject=sched_getaffinity:error=EINVAL"]
    with Server(plain, files, tracer=tracer) as server:
        assert f", {os.sysconf('SC_NPROCESSORS_ONLN')} worker" in server.banner


@pytest.mark.clear
def test_a_worker_that_could_not_be_told_anything_is_not_started(plain, files):
    """The second descriptor to wait for is that of the main thread."""
    tracer = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=epoll_ctl", "-e", "inject=epoll_ctl:error=ENOMEM:when=2"]
    with pytest.raises(AssertionError, match="cannot start a worker: Cannot allocate memory"):
        Server(plain, files, "-j", "1", tracer=tracer).kill()


def cpu(server, thread):
    """Returns the nanoseconds that a thread has run."""
    with open(f"/proc/{server.pid}/task/{thread}/schedstat", encoding="ascii") as f:
        return int(f.read().split()[0])


# --- signals ---


def start_download(server):
    """Returns a connection in the middle of 30 MB."""
    c = server.connect(receive_buffer=65536)
    c.send(b"GET /huge HTTP/1.1\r\nHost: a\r\n\r\n")
    while b"\r\n\r\n" not in c.buffer:
        c._fill()
    return c


@pytest.fixture
def huge(root):
    root.write("huge", b"a" * 30_000_000)
    return root


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_after_the_answers_under_way_and_refuses_new_ones_meanwhile(build, huge, number):
    with Server(build, huge, "-j", "2") as server:
        idle = server.connect()
        assert idle.get("/a.txt").status == 200
        download = start_download(server)
        server.signal(number)
        idle.assert_closed()
        eventually(lambda: refused(server))
        assert len(download.response().body) == 30_000_000
        download.assert_closed()
        server.wait()


def test_a_connection_kept_open_is_told_that_the_end_has_come(build, huge):
    with Server(build, huge, "-j", "1") as server:
        c = server.connect()
        c.send(b"GET /a.txt HTTP/1.1\r\nHost: a\r\n")  # half a request
        server.get("/a.txt")
        server.signal()
        eventually(lambda: refused(server))
        c.send(b"\r\n")
        response = c.response()
        assert response.status == 200 and response["Connection"] == "close"
        c.assert_closed()


def refused(server):
    try:
        server.connect().close()
    except ConnectionRefusedError:
        return True
    except ConnectionResetError:
        pass  # it was waiting to be accepted when the socket closed
    return False


@pytest.mark.clear
def test_what_waits_to_be_accepted_when_the_end_comes_is_answered(build, files):
    with Server(build, files, "-j", "1") as server:
        server.signal(signal.SIGSTOP)
        waiting = [server.connect() for _ in range(100)]
        for c in waiting:
            c.send(b"GET /small.bin HTTP/1.1\r\nHost: a\r\n\r\n")
        server.signal()
        server.signal(signal.SIGCONT)
        for c in waiting:
            response = c.response()
            assert response.status == 200
            c.assert_closed()
        server.wait()


def test_the_end_waits_no_longer_than_the_timeout(build, huge):
    with Server(build, huge, "-j", "1", "-T", "1") as server:
        download = start_download(server)
        started = time.monotonic()
        server.signal()
        read_slowly(download, lambda: server.process.poll() is not None or time.monotonic() > started + 10)
        assert time.monotonic() - started < 5
        server.wait()


def read_slowly(download, until):
    """Reads so that it is never idle for a second, and far from the end."""
    while not until():
        download.buffer += download.socket.recv(1 << 16)
        time.sleep(0.05)


def test_a_sigquit_sets_no_time_limit_and_a_later_signal_does(build, huge):
    with Server(build, huge, "-j", "1", "-T", "1") as server, start_download(server) as download:
        started = time.monotonic()
        server.signal(signal.SIGQUIT)
        read_slowly(download, lambda: time.monotonic() > started + 2.5)
        assert server.process.poll() is None
        server.signal()
        read_slowly(download, lambda: server.process.poll() is not None or time.monotonic() > started + 12)
        assert time.monotonic() - started < 8
        server.wait()


def test_after_a_sigquit_a_download_may_take_its_time(build, huge):
    with Server(build, huge, "-j", "1", "-T", "1") as server, start_download(server) as download:
        started = time.monotonic()
        server.signal(signal.SIGQUIT)
        read_slowly(download, lambda: time.monotonic() > started + 2)
        assert len(download.response().body) == 30_000_000


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGQUIT])
def test_the_answer_under_way_is_whole_when_more_requests_wait_behind_it(build, huge, number):
    with Server(build, huge, "-j", "1") as server, start_download(server) as download:
        download.send(b"GET /a.txt HTTP/1.1\r\nHost: a\r\n\r\n")
        server.signal(number)
        eventually(lambda: refused(server))
        assert len(download.response().body) == 30_000_000
        response = download.response()
        assert response.body == b"a" and response["Connection"] == "close"
        download.assert_closed()


FLOOD = """
import socket, sys, time
held = []
until = time.monotonic() + 8
while time.monotonic() < until:
    try:
        s = socket.create_connection(("127.0.0.1", int(sys.argv[1])), 1)
        s.send(b"GET /a.txt HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n")
        held.append(s)
    except OSError:
        break
    if len(held) > 500:
        held.pop(0).close()
"""


def test_it_ends_under_a_flood_of_connections(build, root):
    with Server(build, root, "-j", "1", "-n", "-T", "1") as server:
        clients = [subprocess.Popen([sys.executable, "-c", FLOOD, str(server.port)]) for _ in range(4)]
        time.sleep(1)  # for the flood to rise
        started = time.monotonic()
        server.signal()
        server.wait()
        assert time.monotonic() - started < 6
        for client in clients:
            client.wait(20)


def test_a_second_signal_ends_it_at_once(build, huge):
    with Server(build, huge, "-j", "2") as server:
        with start_download(server):
            server.signal()
            eventually(lambda: refused(server))
            assert server.process.poll() is None
            started = time.monotonic()
            server.signal()
            server.wait()
            assert time.monotonic() - started < 10  # the timeout is 23 s


@pytest.mark.clear
def test_after_a_sigquit_a_successor_has_the_port_while_downloads_go_on(build, huge):
    with Server(build, huge, "-j", "2", "--limit", "keepalive-timeout=1") as old:
        download = start_download(old)
        old.signal(signal.SIGQUIT)
        eventually(lambda: refused(old))
        address = ("-i", "127.0.0.1", "-p", str(old.port))
        with Server(build, huge, "-j", "2", address=address) as new:
            assert new.port == old.port
            assert new.get("/a.txt").body == b"a"
            assert len(download.response().body) == 30_000_000
            old.wait()
            assert new.get("/a.txt").body == b"a"


# --- limits and permissions ---


def test_the_limit_of_descriptors_is_raised(build, files):
    with Server(build, files, **descriptors_limited_to(256, 4096)) as server:
        limits = Path(f"/proc/{server.pid}/limits").read_text()
        assert re.search(r"Max open files +4096 +4096", limits)


def test_too_few_descriptors_are_an_error(build, files):
    done = run(build, "-c", files.path, "-p", "0", **descriptors_limited_to(30))
    assert done.returncode == 1 and one_line(done.stderr) and "open files" in done.stderr


def test_everybody_may_connect_to_a_unix_socket(build, root):
    root.path.chmod(0o777)
    path = root.path / "socket"
    with Server(build, root, "-j", "1", address=("-i", f"unix:{path}")):
        assert stat.S_IMODE(path.stat().st_mode) == 0o666


@pytest.mark.alone  # another server may have that port of another address
def test_an_ipv6_address_is_that_alone(build, files):
    with Server(build, files, "-j", "1", address=("-i", "::")) as server:
        port = int(re.search(r"\[::\]:(\d+)", server.banner).group(1))
        with Connection(("::1", port), family=socket.AF_INET6) as c:
            assert c.get("/small.bin").status == 200
        with pytest.raises(ConnectionRefusedError):
            Connection(("127.0.0.1", port))


# --- what an owner is told ---


@pytest.mark.clear
@pytest.mark.decided
def test_lines_for_the_journal_begin_with_their_level(build, root):
    root.write("secret.txt", b"secret", 0o600)
    reading, writing = os.pipe()
    stream = os.fstat(writing)
    environment = {**os.environ, "JOURNAL_STREAM": f"{stream.st_dev}:{stream.st_ino}"}
    process = subprocess.Popen([runnable(build), "-c", root.path, "-p", "0", "-i", "127.0.0.1", "-n"], stderr=writing, env=environment)
    os.close(writing)
    with open(reading, encoding="ascii") as lines:
        assert re.match("<4>gatling: running as root", lines.readline()) or os.geteuid() != 0
        assert lines.readline().startswith("<6>gatling: sandbox:")
        banner = lines.readline()
        assert banner.startswith("<6>gatling: serving")
        with Connection(("127.0.0.1", int(re.search(r":(\d+)/", banner).group(1)))) as c:
            assert c.get("/secret.txt").status == 403
        assert lines.readline().startswith("<4>gatling: ")
        process.terminate()
        assert process.wait(TIMEOUT) == 0


# --- the log ---

LINE = r'127\.0\.0\.1 - - \[\d\d/[A-Z][a-z][a-z]/\d{4}:\d\d:\d\d:\d\d \+0000\] "(.*)" (\d{3}) (\d+|-) (\d+\.\d{6})'


def test_each_request_is_a_line_in_the_common_log_format(build, files):
    with Server(build, files, "-j", "1") as server, server.connect() as c:
        c.get("/small.bin?q")
        c.get("/nope", method="HEAD")
        c.get('/"\\\x7f\xe9'.replace("\x7f", ""))
        c.send(b"BAD\r\n\r\n")
        c.response()
        eventually(lambda: len(server.lines) == 4)
        found = [re.fullmatch(LINE, line).groups() for line in server.lines]
        assert [f[:3] for f in found] == [
            ("GET /small.bin?q HTTP/1.1", "200", "1024"),
            ("HEAD /nope HTTP/1.1", "404", "-"),
            (r"GET /\x22\x5c\xe9 HTTP/1.1", "404", "192"),
            ("BAD", "400", "196"),
        ]
        assert all(float(f[3]) < 5 for f in found)


def test_the_time_in_the_log_is_that_of_the_whole_answer(build, huge):
    with Server(build, huge, "-j", "1") as server:
        download = start_download(server)
        time.sleep(0.3)  # tests that this shows
        download.response()
        line = eventually(lambda: server.lines and server.lines[0])
        assert 0.3 <= float(line.split()[-1]) < 10 and " 30000000 " in line


def test_answers_without_content_and_broken_off_ones_are_logged(build, huge):
    with Server(build, huge, "-j", "1") as server:
        with server.connect() as c:
            etag = c.get("/a.txt")["ETag"]
            c.get("/a.txt", method="HEAD")
            c.get("/a.txt", "If-None-Match: " + etag)
        start_download(server).reset()
        eventually(lambda: len(server.lines) == 4)
        found = [re.fullmatch(LINE, line).groups()[:3] for line in server.lines]
        assert found[1:] == [
            ("HEAD /a.txt HTTP/1.1", "200", "-"),
            ("GET /a.txt HTTP/1.1", "304", "-"),
            ("GET /huge HTTP/1.1", "200", "30000000"),
        ]


def test_a_log_that_does_not_block_and_is_not_read_costs_nothing(build, files):
    read, write = os.pipe()
    os.set_blocking(write, False)
    with Server(build, files, "-j", "1", stdout=write) as server:
        os.close(write)
        with server.connect() as c:
            for _ in range(20):
                c.send((b"GET /nope" + b"x" * 200 + b" HTTP/1.1\r\nHost: a\r\n\r\n") * 100)
                for _ in range(100):
                    assert c.response().status == 404
        used = server.cpu_seconds()
        time.sleep(1)  # tests that nothing is done in this time
        assert server.cpu_seconds() - used < 0.3
        os.close(read)


def test_no_line_is_lost_at_the_end(build, files):
    with Server(build, files, "-j", "2") as server:
        for _ in range(50):
            with server.connect() as c:
                c.send(b"GET /small.bin HTTP/1.1\r\nHost: a\r\n\r\n" * 20)
                for _ in range(20):
                    c.response()
        server.stop()
        assert len(server.lines) == 1000


def test_a_log_that_nobody_reads_stops_nobody(build, files):
    read, write = os.pipe()
    with Server(build, files, "-j", "1", stdout=write) as server:
        os.close(write)
        with server.connect() as c:
            for _ in range(60):  # more than pipe and buffers hold
                c.send((b"GET /nope" + b"x" * 200 + b" HTTP/1.1\r\nHost: a\r\n\r\n") * 100)
                for _ in range(100):
                    assert c.response().status == 404
        os.set_blocking(read, False)
        text = b""

        def said():
            nonlocal text
            try:
                text += os.read(read, 1 << 20)
            except BlockingIOError:
                pass
            server.get("/small.bin")
            return b"log lines dropped" in text

        eventually(said)
        assert server.errors == ["gatling: cannot write the log: its reader or disk is too slow: its lines are dropped"]
        os.close(read)


def test_that_nobody_reads_the_end_of_a_log_is_said(build, files):
    read, write = os.pipe()
    with Server(build, files, "-j", "1", stdout=write) as server:
        os.close(write)
        with server.connect() as c:
            c.send((b"GET /nope" + b"x" * 200 + b" HTTP/1.1\r\nHost: a\r\n\r\n") * 600)  # more than the pipe holds
            for _ in range(600):
                assert c.response().status == 404
        server.stop()
        assert server.errors == ["gatling: the last lines of the log are lost: its reader or disk is too slow"]
    os.close(read)


def test_without_a_log_there_is_none(build, files):
    with Server(build, files, "-j", "1", "-n") as server:
        server.get("/small.bin")
        server.stop()
        assert server.lines == []


def test_a_log_whose_reader_has_gone_stops_nobody(build, files):
    read, write = os.pipe()
    os.close(read)
    with Server(build, files, "-j", "1", stdout=write) as server:
        os.close(write)
        for _ in range(3):
            assert server.get("/small.bin").status == 200


@contextlib.contextmanager
def unread(build, path):
    """Starts a server whose standard error nobody reads. Yields the process and a function that asks for a path."""
    command = [runnable(build), "-c", path, "-p", str(port := free_port()), "-i", "127.0.0.1", "-E", "-n", "--limit", "drain-delay=0"]

    def ask(target):
        with Connection(("127.0.0.1", port)) as c:
            return c.get(target)

    with subprocess.Popen(command, stderr=subprocess.PIPE, pipesize=8192, **unprivileged()) as process:
        try:
            eventually(lambda: listening(port))
            yield process, ask
        finally:
            process.kill()


def test_standard_error_that_nobody_reads_stops_nobody(build, root):
    name = "x" * 200
    for i in range(60):  # of each a line says that it is not served: more than the pipe holds
        root.write(f"{i}{name}", b"", mode=0o600)
    with unread(build, root.path) as (process, ask):
        for i in range(60):
            assert ask(f"/{i}{name}").status == 403
        process.terminate()
        assert process.wait(TIMEOUT) == 0
        assert b"serving" in process.stderr.read()


# --- who and where ---


@pytest.mark.clear
@pytest.mark.parametrize("user,uid,gid", [("nobody", 65534, 65534), ("65534", 65534, 65534), ("1234", 1234, 1234), ("65534:100", 65534, 100)])
def test_a_user_may_be_a_number(first_build, root, user, uid, gid):
    with Server(first_build, root, "-j", "1", "-u", user, as_root=True) as server:
        status = Path(f"/proc/{server.pid}/status").read_text()
        assert re.search(rf"^Uid:\t{uid}\t{uid}\t{uid}\t", status, re.MULTILINE) and re.search(rf"^Gid:\t{gid}\t", status, re.MULTILINE)
        assert server.get("/a.txt").body == b"a" and not server.errors


@pytest.mark.clear
def test_who_stays_root_is_told(first_build, root):
    with Server(first_build, root, "-j", "1", as_root=True) as server:
        assert server.errors == ["gatling: running as root: -u USER gives that up"]


@pytest.mark.clear
@pytest.mark.parametrize("user,why", [("12x", "no such user"), ("1:", "no such user"), ("4294967295", "no such user")])
def test_what_is_no_user_is_named(first_build, root, user, why):
    done = subprocess.run([first_build / "gatling", "-c", root.path, "-E", "-p", "0", "-u", user], capture_output=True, text=True,
                          timeout=20, check=False)  # fmt: skip
    assert done.returncode == 1 and done.stderr == f"gatling: cannot become user {user}: {why}\n"


@pytest.mark.clear
def test_who_is_not_root_cannot_become_somebody_else(first_build, root):
    done = run(first_build, "-c", root.path, "-E", "-i", "127.0.0.1", "-p", "0", "-u", "root")
    assert done.returncode == 1 and done.stderr == "gatling: cannot become user root: only root can do that\n"


@pytest.mark.clear
def test_a_name_is_all_of_its_addresses(first_build, root):
    with Server(first_build, root, "-j", "2", "-E", address=("-i", "localhost")) as server:
        assert server.banner.count(f"http://localhost:{server.port}/") == 1
        assert server.get("/a.txt").body == b"a"


@pytest.mark.clear
def test_with_all_addresses_one_is_named_that_others_reach(first_build, root):
    own = [word for word in subprocess.run(["ip", "-4", "-o", "addr", "show", "scope", "global", "up"], capture_output=True, text=True,
                                           check=True).stdout.split() if "/" in word and word[0].isdigit()]  # fmt: skip
    with Server(first_build, root, "-j", "1", "-E", address=()) as server:
        named = re.findall(r"http://([\d.]+):\d+/", server.banner)
        assert named == [own[0].split("/")[0]] if own else not named
        assert "all other addresses" in server.banner


@pytest.mark.clear
@pytest.mark.parametrize("option,other", [("-p", "-p 8000"), ("--tls-port", "--tls-port 8443")])
def test_a_port_that_is_roots_is_told(first_build, root, option, other):
    cert, key = certificate()
    flags = ["-c", root.path, "-i", "127.0.0.1", "-p", "0", "--tls-port", "0", "--cert", cert, "--key", key]
    done = run(first_build, *flags, option, "80")
    assert done.returncode == 1 and f"Permission denied (only root may use ports below 1024; try {other})" in done.stderr
