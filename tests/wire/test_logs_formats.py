"""The formats of the log, and its file: hostile requests, rotation, a full disk."""

import base64
import datetime
import json
import os
import re
import shutil
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest

from gatling import Root, Server, eventually, runnable, unprivileged
from http2 import Http2

pytestmark = pytest.mark.decided

HEAD = r'127\.0\.0\.1 - - \[\d\d/[A-Z][a-z][a-z]/\d{4}:\d\d:\d\d:\d\d \+0000\] "([^"]*)" (\d{3}) (\d+|-)'
COMMON = re.compile(HEAD + r" \d+\.\d{6}")
COMBINED = re.compile(HEAD + r' "([^"]*)" "([^"]*)"')
GET = b"GET /small.bin HTTP/1.1\r\nHost: a\r\n\r\n"
UNPRIVILEGED = 65534
HASH = "$5$wYGyyq6av6A32MH3$Mxe5zp6ZK2Oz/J92gUDRsT.8kFwil71nKqN44pPpNUA"  # of the password "right"
SYSTEM = Path(__file__).parents[2] / "gatling/system"


@pytest.fixture
def logs():
    """Makes a directory that the server may write to."""
    own = Root()
    own.path.chmod(0o755)
    if os.geteuid() == 0:
        os.chown(own.path, UNPRIVILEGED, UNPRIVILEGED)
    yield own.path
    own.remove()


def lines_of(path):
    return path.read_bytes().decode().splitlines() if path.exists() else []


def logged(server, count):
    """Returns the lines, with each octet as a character."""
    eventually(lambda: len(server.lines) >= count)
    assert len(server.lines) == count
    return server.lines


def objects(server, count):
    return [json.loads(line.encode("latin-1")) for line in logged(server, count)]


def ask(connection, target=b"/small.bin", *fields):
    """Sends octets unchanged."""
    connection.send(b"\r\n".join([b"GET " + target + b" HTTP/1.1", b"Host: a", *fields, b"", b""]))
    return connection.response()


# --- formats ---


@pytest.mark.tcp
def test_the_combined_format_is_exactly_that(build, files):
    with Server(build, files, "-j", "1", "--log", "combined") as server, server.connect() as c:
        ask(c, b"/small.bin", b"Referer: http://x/?y", b"User-Agent: me/1.0 (it)")
        ask(c, b"/none")
        c.send(b"BAD\r\n\r\n").rest()
        assert [COMBINED.fullmatch(line).groups() for line in logged(server, 3)] == [
            ("GET /small.bin HTTP/1.1", "200", "1024", "http://x/?y", "me/1.0 (it)"),
            ("GET /none HTTP/1.1", "404", "192", "-", "-"),
            ("BAD", "400", "196", "-", "-"),
        ]


def guessed(build, *flags):
    """Returns the lines of a log with a request for a page, a wrong password, a missing one, the right one, too many requests and
    none."""
    realm = f"realm\nann:{HASH}\n".encode()
    root = Root({"small.bin": b"small", "x 401 ": b"", "secret/.htaccess": realm, "secret/a": b"a"})
    wrong, right = (b"Authorization: Basic " + base64.b64encode(b"ann:" + password) for password in (b"wrong", b"right"))
    with Server(build, root, "-j", "1", *flags, "--limit", "address-rate=5") as server, server.connect() as c:
        ask(c, b"/x%20401%20")
        for fields in ((wrong,), (), (right,)):
            ask(c, b"/secret/a", *fields)
        count = 5
        while ask(c).status != 429:
            count += 1
        c.send(b"BAD\r\n\r\n").rest()
        lines = logged(server, count + 1)
        said = 'gatling: refused user "ann", from 127.0.0.1: a wrong password, or no right to the page; the log has each, as 401 with a user'
        eventually(lambda: said in server.errors)
    root.remove()
    return lines


@pytest.mark.tcp
def test_the_log_names_the_user_whose_password_is_wrong(build):
    lines = [re.search(r'- (\S+) \[.*" (\d{3}) ', line).groups() for line in guessed(build, "--log", "combined")]
    assert lines[:4] == [("-", "200"), ("ann", "401"), ("-", "401"), ("ann", "200")] and lines[-2:] == [("-", "429"), ("-", "400")]


@pytest.mark.tcp
@pytest.mark.others
@pytest.mark.skipif(not shutil.which("fail2ban-regex"), reason="takes fail2ban")
@pytest.mark.parametrize("kind", ["common", "combined", "vcombined"])
def test_the_filter_finds_who_guesses_and_what_is_no_request(build, tmp_path, kind):
    lines = guessed(build, "--log", kind)
    (tmp_path / "log").write_text("".join(f"{line}\n" for line in lines))
    done = subprocess.run(["fail2ban-regex", tmp_path / "log", SYSTEM / "fail2ban.conf"], capture_output=True, text=True, check=True)
    assert f"Lines: {len(lines)} lines, 0 ignored, 3 matched, {len(lines) - 3} missed" in done.stdout, done.stdout


@pytest.mark.tcp
@pytest.mark.others
@pytest.mark.skipif(not shutil.which("goaccess"), reason="takes goaccess")
@pytest.mark.parametrize("kind", ["vcombined", "json"])
def test_goaccess_reads_the_log(build, tmp_path, kind):
    lines = guessed(build, "--log", kind)[:-1]
    (tmp_path / "log").write_text("".join(f"{line}\n" for line in lines))
    options = ["--log-format=VCOMBINED"] if kind == "vcombined" else [f"--config-file={SYSTEM}/goaccess.conf"]
    done = subprocess.run(["goaccess", tmp_path / "log", *options, "-o", "json"], capture_output=True, text=True, check=True)
    general = json.loads(done.stdout[done.stdout.index("{") :])["general"]
    assert general["valid_requests"] == len(lines) and general["failed_requests"] == 0


@pytest.mark.tcp
def test_an_object_has_all_that_is_known(build, files):
    before = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(seconds=2)
    with Server(build, files, "-j", "1", "--log", "json") as server, server.connect() as c:
        ask(c, b"/small.bin?q", b"Referer: http://x/", b"User-Agent: me")
        ask(c, b"/none")
        c.send(b"BAD\r\n\r\n").rest()
        found = objects(server, 3)
    for line in found:
        when = datetime.datetime.fromisoformat(line.pop("time").replace("Z", "+00:00"))
        assert before < when < before + datetime.timedelta(seconds=60)
        assert 0 <= line.pop("seconds") < 5
        assert line.pop("address") == "127.0.0.1"
    assert found == [
        {"method": "GET", "target": "/small.bin?q", "protocol": "HTTP/1.1", "host": "a", "status": 200, "bytes": 1024,
         "referer": "http://x/", "user_agent": "me"},
        {"method": "GET", "target": "/none", "protocol": "HTTP/1.1", "host": "a", "status": 404, "bytes": 192},
        {"request": "BAD", "status": 400, "bytes": 196},
    ]  # fmt: skip


@pytest.mark.tcp
def test_requests_of_http_2_are_in_each_format(build, files):
    fields = (("referer", "http://x/"), ("user-agent", "m\xc3\xa9"))
    with Server(build, files, "-j", "1", "--log", "combined") as server, Http2(server) as c:
        c.get("/small.bin", *fields)
        c.get("/big.bin")
        assert [COMBINED.fullmatch(line).groups() for line in logged(server, 2)] == [
            ("GET /small.bin HTTP/2.0", "200", "1024", "http://x/", r"m\xc3\xa9"),
            ("GET /big.bin HTTP/2.0", "200", "3000000", "-", "-"),
        ]
    with Server(build, files, "-j", "1", "--log", "json") as server, Http2(server) as c:
        c.get("/small.bin", *fields)
        c.get("/none", *[("x", "y")] * 110)
        known, refused = objects(server, 2)
        assert (known["method"], known["target"], known["protocol"]) == ("GET", "/small.bin", "HTTP/2.0")
        assert (known["host"], known["referer"], known["user_agent"]) == ("localhost", "http://x/", "mé")
        assert refused["status"] == 431 and not {"method", "target", "request", "user_agent"} & set(refused)


HOSTILE = [
    (b'" 200 5 "x" "forged', '" 200 5 "x" "forged'),
    (b"\\\" \\x22 \\u0022 \\", '\\" \\x22 \\u0022 \\'),
    (b'"}\t{"status":200}', '"}\t{"status":200}'),
    ("caf\xe9 \u20ac \U0001f600 \u2028".encode(), "caf\xe9 \u20ac \U0001f600 \u2028"),
    (b"caf\xe9 \xff\xfe", "caf\xe9 \xff\xfe"),
    (b"\xed\xa0\x80 \xc0\xaf \xf4\x90\x80\x80", "\xed\xa0\x80 \xc0\xaf \xf4\x90\x80\x80"),
    (b"\xc2\x9b31m", "\x9b31m"),
    (b"%0d%0a127.0.0.1 - -", "%0d%0a127.0.0.1 - -"),
]


@pytest.mark.tcp
@pytest.mark.parametrize("octets, text", HOSTILE, ids=range(len(HOSTILE)))
def test_no_field_forges_anything(build, files, octets, text):
    fields = b"Referer: " + octets, b"User-Agent: " + octets
    with Server(build, files, "-j", "1", "--log", "combined") as server, server.connect() as c:
        ask(c, b"/small.bin", *fields)
        _, status, size, referer, agent = COMBINED.fullmatch(logged(server, 1)[0]).groups()
        assert (status, size) == ("200", "1024") and referer == agent
        assert re.sub(rb"\\x([0-9a-f]{2})", lambda m: bytes([int(m[1], 16)]), agent.encode()) == octets
    with Server(build, files, "-j", "1", "--log", "json") as server, server.connect() as c:
        ask(c, b"/small.bin", *fields)
        line = logged(server, 1)[0].encode("latin-1")
        assert line.decode().isprintable() or "\u2028" in text
        found = json.loads(line)
        assert found["status"] == 200 and found["referer"] == found["user_agent"] == text


@pytest.mark.tcp
@pytest.mark.parametrize("target", [b'/"x"\\', "/\u20ac\U0001f600".encode(), b"/\xe9\xff", b'/"}{"status":"1', b"/%0d%0a%00%22"], ids=range(5))
@pytest.mark.parametrize("kind", ["common", "combined", "json"])
def test_no_target_forges_anything(build, files, kind, target):
    with Server(build, files, "-j", "1", "--log", kind) as server, server.connect() as c:
        status = ask(c, target).status
        if kind == "json":
            found = objects(server, 1)[0]
            assert found["status"] == status
            assert found["target"] == target.decode("utf-8" if b"\xe2" in target else "latin-1")
        else:
            found = (COMMON if kind == "common" else COMBINED).fullmatch(logged(server, 1)[0])
            assert found[2] == str(status)


@pytest.mark.parametrize("octets", [b"GET / HTTP/1.1\r\nHost: a\r\nUser-Agent: a\0b\r\n\r\n", b"GET /\0 HTTP/1.1\r\n\r\n",
                                    b"GET / HTTP/1.1\r\nUser-Agent: a\rb\r\n\r\n", b"\x16\x03\x01\r\n\r\n", b"\r\n\n",
                                    b"G\"\\ET / HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a\r\nUser-Agent: a\r\n b\r\n\r\n",
                                    b"GET " + b"/\xff" * 9000 + b" HTTP/1.1\r\n"], ids=range(8))  # fmt: skip
@pytest.mark.parametrize("kind", ["common", "combined", "json"])
@pytest.mark.clear
def test_what_is_refused_is_one_line(build, files, kind, octets):
    with Server(build, files, "-j", "1", "--log", kind) as server:
        with server.connect() as c:
            c.send(octets)
            c.rest()
        if kind == "json":
            assert objects(server, 1)[0]["status"] == (414 if len(octets) > 1000 else 400)
        else:
            line = logged(server, 1)[0]
            assert (COMMON if kind == "common" else COMBINED).fullmatch(line) and line.isascii()


@pytest.mark.tcp
@pytest.mark.parametrize("kind, room", [("common", 20000), ("combined", 30000), ("json", 90000)])
def test_of_an_endless_field_the_start_is_logged(build, files, kind, room):
    with Server(build, files, "-j", "1", "--log", kind) as server, server.connect() as c:
        ask(c, b"/small.bin", b"Referer: " + b"\xff" * 6000, b"User-Agent: " + b'"' * 6000)
        assert len(logged(server, 1)[0]) < room
        if kind == "json":
            assert (found := objects(server, 1)[0])["referer"] == "\xff" * 1024 and found["user_agent"] == '"' * 1024


@pytest.mark.parametrize("flags", [["-n"], ["--no-log"], ["--log", "off"], ["--log", "json", "-n"]])
def test_without_a_log_nothing_is_written(build, files, flags):
    with Server(build, files, "-j", "1", *flags) as server:
        server.get("/small.bin")
        server.signal(signal.SIGUSR1)
        assert server.get("/small.bin").status == 200
        server.stop()
        assert server.lines == []


@pytest.mark.parametrize("flags, words", [(["--log", "xml"], "--log takes"), (["--log"], "needs a value"),
                                          (["--log-file"], "needs a value")])  # fmt: skip
@pytest.mark.clear
def test_options_that_make_no_sense_are_refused(build, flags, words):
    ran = subprocess.run([runnable(build), *flags], capture_output=True, text=True, check=False)
    assert ran.returncode == 2 and words in ran.stderr and ran.stderr.count("\n") == 1


# --- the file ---


@pytest.mark.clear
def test_a_file_that_cannot_be_written_is_said_in_a_line(build, files, logs):
    (logs / "link").symlink_to("elsewhere")
    for path in ("/none/at/all", logs, logs / "link", f"{logs}/"):
        command = [runnable(build), "-c", files.path, "-p", "0", "-i", "127.0.0.1", "--log-file", path]
        ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=20)
        assert ran.returncode == 1 and ran.stdout == ""
        assert ran.stderr.startswith(f"gatling: cannot log to {path}: ") and ran.stderr.count("\n") == 1


def test_a_file_is_appended_to_and_not_for_everybody(build, files, logs):
    for expected in (1, 2):
        with Server(build, files, "-j", "1", "--log-file", logs / "log") as server:
            server.get("/small.bin")
            server.stop()
            assert server.lines == [] and len(lines_of(logs / "log")) == expected
    assert (logs / "log").stat().st_mode & 0o777 & ~0o640 == 0


def test_a_file_may_be_relative_to_where_the_server_is_started(build, files, logs):
    with Server(build, files, "-j", "1", "--log-file", "log", cwd=logs) as server:
        server.get("/small.bin")
        eventually(lambda: len(lines_of(logs / "log")) == 1)
        (logs / "log").rename(logs / "old")
        server.signal(signal.SIGUSR1)
        eventually((logs / "log").exists)


@pytest.mark.skipif(os.geteuid() != 0, reason="takes root")
@pytest.mark.parametrize("in_the_way", [False, True])
def test_the_file_is_opened_again_out_of_the_chroot_as_another_user(build, files, logs, in_the_way):
    os.chown(logs, 0, 0)
    with Server(build, files, "-j", "1", "-u", "nobody", "--log-file", logs / "log", as_root=True) as server:
        server.get("/small.bin")
        eventually(lambda: len(lines_of(logs / "log")) == 1)
        (logs / "log").rename(logs / "old")
        if in_the_way:
            (logs / "log").mkdir()
        server.signal(signal.SIGUSR1)
        if in_the_way:
            eventually(lambda: server.errors)
            assert re.fullmatch(rf"gatling: cannot open {logs}/log again, .*: Is a directory", server.errors[0])
            (logs / "log").rmdir()
        else:
            eventually((logs / "log").exists)
        server.get("/small.bin")
        eventually(lambda: len(lines_of(logs / "old")) + len(lines_of(logs / "log")) == 2)
        assert len(lines_of(logs / "old")) == (2 if in_the_way else 1)
        server.stop()
        assert len(server.errors) == in_the_way


def test_a_directory_in_the_place_of_that_of_the_log_is_not_written_to_but_told(build, files, logs):
    """A user who may rename it, or a directory above it, must not be able to choose where the
    server writes."""
    (logs / "web").mkdir()
    (logs / "web").chmod(0o777)
    with Server(build, files, "-j", "1", "--log-file", logs / "web/log") as server:
        why = f"gatling: cannot open {logs}/web/log again, going on with the old file: "
        (logs / "web").rename(logs / "old")
        server.signal(signal.SIGUSR1)
        assert eventually(lambda: server.errors) == [why + "its directory does not exist"]
        (logs / "other").mkdir()
        (logs / "other").chmod(0o777)
        (logs / "web").symlink_to("other")
        server.signal(signal.SIGUSR1)
        eventually(lambda: len(server.errors) == 2)
        assert server.errors[1] == why + "another directory has taken the place of its own: restart gatling to use that"
        server.get("/small.bin")
        eventually(lambda: lines_of(logs / "old/log"))
    assert list((logs / "other").iterdir()) == []


def test_on_stdout_nothing_is_opened_again(build, files):
    with Server(build, files, "-j", "1") as server:
        server.get("/small.bin")
        server.signal(signal.SIGUSR1)
        server.get("/small.bin")
        logged(server, 2)
        assert server.errors == []


@pytest.mark.tcp
@pytest.mark.parametrize("kind", ["common", "json"])
def test_rotation_under_load_loses_no_line(build, files, logs, kind):
    clients, batches, each, turns, answered = 4, 40, 25, 8, [0] * 4

    def load(i):
        with server.connect() as c:
            for n in range(batches):
                c.send(b"".join(b"GET /none/%d/%d HTTP/1.1\r\nHost: a\r\n\r\n" % (i, n * each + k) for k in range(each)))
                for _ in range(each):
                    answered[i] += c.response().status == 404

    with Server(build, files, "-j", "2", "--log", kind, "--log-file", logs / "log") as server:
        threads = [threading.Thread(target=load, args=(i,)) for i in range(clients)]
        for thread in threads:
            thread.start()
        for turn in range(turns):
            before = sum(answered)
            eventually(lambda: sum(answered) > before or sum(answered) == clients * batches * each)
            (logs / "log").rename(logs / f"log.{turn}")
            server.signal(signal.SIGUSR1)
            eventually((logs / "log").exists)
        for thread in threads:
            thread.join()
        server.stop()
    lines = [line for path in sorted(logs.iterdir()) for line in lines_of(path)]
    found = re.findall(r"/none/(\d)/(\d+)", "\n".join(lines))
    assert len(lines) == len(found) == len(set(found)) == sum(answered) == clients * batches * each
    assert all(json.loads(line) if kind == "json" else COMMON.fullmatch(line) for line in lines)


# --- no room ---


def pipelined(server, count):
    with server.connect() as c:
        for _ in range(count // 50):
            c.send(GET * 50)
            for _ in range(50):
                assert c.response().status == 200


def check_all_are_told(path, kind, asked):
    """Checks that every line is whole, and that missing ones are counted."""
    lines, dropped = 0, 0
    for line in lines_of(path):
        if kind == "json":
            found = json.loads(line)
            note, whole = found.get("dropped"), found.get("status") == 200
        else:
            note = (note := re.fullmatch(r"# (\d+) log lines dropped", line)) and int(note[1])
            whole = (COMBINED if kind == "combined" else COMMON).fullmatch(line)
        assert note or whole, line
        lines, dropped = lines + (not note), dropped + (note or 0)
    assert dropped > 0 and lines > 0 and lines + dropped == asked


@pytest.mark.tcp
@pytest.mark.parametrize("kind", ["common", "combined", "json"])
def test_what_a_full_disk_takes_is_counted_and_lines_stay_whole(build, files, logs, kind):
    """A limit of the file size acts like a full disk for one process."""

    def limit(most):
        command = ["prlimit", "--pid", str(server.pid), f"--fsize={most}:"]  # the soft one
        subprocess.run(command, check=True, **unprivileged())

    with Server(build, files, "-j", "2", "--log", kind, "--log-file", logs / "log") as server:
        limit(5003)
        pipelined(server, 500)
        eventually(lambda: (logs / "log").stat().st_size == 5003)
        time.sleep(0.3)  # further lines are written, or not
        pipelined(server, 500)
        time.sleep(0.3)
        assert (logs / "log").stat().st_size == 5003
        limit(20021)
        pipelined(server, 500)
        eventually(lambda: (logs / "log").stat().st_size == 20021)
        limit("unlimited")
        time.sleep(0.3)
        pipelined(server, 50)
        server.stop()
    check_all_are_told(logs / "log", kind, 1550)


@pytest.mark.tcp
@pytest.mark.skipif(os.geteuid() != 0, reason="takes root")
def test_a_full_file_system_stops_nobody_and_room_brings_the_lines_back(build, files, logs):
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k,mode=777", "none", logs], check=False).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        (logs / "filler").write_bytes(b"x" * 40960)
        with Server(build, files, "-j", "2", "--log", "json", "--log-file", logs / "log") as server:
            pipelined(server, 1000)
            time.sleep(0.3)  # the rest is written, or not
            (logs / "filler").unlink()
            pipelined(server, 50)
            server.stop()
        check_all_are_told(logs / "log", "json", 1050)
    finally:
        subprocess.run(["umount", logs], check=True)


@pytest.mark.tcp
def test_a_device_that_is_always_full_stops_nobody(build, files):
    with Server(build, files, "-j", "2", "--log-file", "/dev/full") as server:
        pipelined(server, 500)
        server.signal(signal.SIGUSR1)
        time.sleep(0.3)  # lines are written
        pipelined(server, 500)
        assert server.cpu_seconds() < 5
        server.stop()
        assert "/dev/full: No space left on device" in server.errors[0] or "cannot log to" in server.errors[0]
