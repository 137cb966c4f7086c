"""--log-dir: a log for each site."""

import signal
import subprocess

import pytest

from gatling import Root, Server, eventually, runnable
from http2 import Http2
from upstream import Upstream

pytestmark = [pytest.mark.decided, pytest.mark.tcp]

SITES = ("a.example", "b.example")


def lines(place, site):
    path = place / f"{site}.log"
    return path.read_text().splitlines() if path.exists() else []


def targets(place, site):
    return [line.split()[6] for line in lines(place, site)]


@pytest.fixture
def sites(build, place):
    """Starts servers with these sites, and ends them."""
    running, roots = [], []

    def start(*flags, names=SITES, files=None, **options):
        roots.append(Root({"index.html": b"root", **{f"{name}/index.html": name.encode() for name in names}, **(files or {})}))
        running.append(Server(build, roots[-1], "-j", "1", "--log", "common", "--log-dir", place, *flags, **options))
        return running[-1]

    yield start
    for server in running:
        server.stop()
    for root in roots:
        root.remove()


def test_each_site_has_its_file_and_the_rest_another(sites, place):
    server = sites(files={"a.example/.htaccess_global": b"deny all\n"})
    with server.connect() as c:
        for n in range(3):  # what is known, too
            for host in ("b.example", "a.example", "localhost"):
                c.get(f"/?{n}", host=host)
        assert c.get("/", host="B.Example:80").status == 200
        c.send(b"nonsense\r\n\r\n")
        assert c.response().status == 400
    server.stop()
    assert targets(place, "b.example") == ["/?0", "/?1", "/?2", "/"]
    assert [line.split('" ')[1].split()[0] for line in lines(place, "a.example")] == ["403"] * 3
    assert targets(place, "default")[:3] == ["/?0", "/?1", "/?2"] and len(lines(place, "default")) == 4
    assert sorted(path.name for path in place.iterdir()) == ["a.example.log", "b.example.log", "default.log"]
    assert all(line.startswith("127.0.0.1 - - [") for name in (*SITES, "default") for line in lines(place, name))


@pytest.mark.clear
def test_streams_and_what_is_passed_on_have_it_too(sites, place):
    with Upstream() as upstream:
        server = sites("--upstream", upstream.allowed, files={"b.example/_redirects": f"/api/* http://{upstream.address}/:splat 200".encode()})
        with Http2(server) as c:
            assert [answer.status for answer in c.answers(*(c.ask(path, host="b.example") for path in ("/", "/api/x", "/none")))] == [200, 200, 404]
        server.stop()
    assert sorted(targets(place, "b.example")) == ["/", "/api/x", "/none"] and lines(place, "default") == []


def test_with_v_the_others_have_the_file_of_default(sites, place):
    server = sites("-v", files={"default/index.html": b"others"})
    assert server.get("/", host="c.example").body == b"others"
    server.stop()
    assert targets(place, "default") == ["/"]


def test_a_renamed_file_is_left_after_the_signal(sites, place):
    server = sites()
    for host in SITES:
        server.get("/before", host=host)
    eventually(lambda: all(targets(place, site) == ["/before"] for site in SITES))
    (place / "a.example.log").rename(place / "old")
    server.signal(signal.SIGUSR1)
    eventually(lambda: server.get("/after", host="a.example") and (place / "a.example.log").exists())
    server.get("/after", host="b.example")
    server.stop()
    assert set(targets(place, "a.example")) == {"/after"} and targets(place, "b.example") == ["/before", "/after"]


def test_the_file_of_a_site_that_vanishes_stays(sites, place):
    server = sites()
    server.get("/before", host="a.example")
    (server.root.path / "a.example/index.html").unlink()
    (server.root.path / "a.example").rmdir()
    eventually(lambda: server.get("/after", host="a.example").body == b"root" or server.get("/", host="a.example").body == b"root")
    server.stop()
    assert "/before" in targets(place, "a.example") and "/" in targets(place, "default")


def test_more_sites_than_files_are_open(sites, place):
    names = [f"site{n}.example" for n in range(100)]
    server = sites(names=names)
    before = server.descriptors()
    with server.connect() as c:
        for turn in range(2):
            for name in names:
                assert c.get(f"/?{turn}", host=name).body == name.encode()
    eventually(lambda: all(targets(place, name) == ["/?0", "/?1"] for name in names))
    assert server.descriptors(cached=False) <= before + 64


def test_a_link_is_not_followed_and_others_have_their_lines(sites, place, tmp_path):
    (place / "a.example.log").symlink_to(tmp_path / "elsewhere")
    server = sites()
    for host in SITES:
        server.get("/", host=host)
    eventually(lambda: any(f"cannot write the log {place}: it is a symbolic link, which is not followed: its lines are dropped" in line for line in server.errors))
    eventually(lambda: targets(place, "b.example") == ["/"])
    server.get("/", host="b.example")
    eventually(lambda: lines(place, "default") == ["# 1 log lines dropped"])
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("form", ["combined", "vcombined", "json"])
def test_every_format_goes_there(sites, place, form):
    server = sites("--log", form)
    server.get("/x", host="a.example")
    server.stop()
    (line,) = lines(place, "a.example")
    assert {"combined": line.startswith("127.0.0.1"), "vcombined": line.startswith("a.example:"), "json": line.startswith('{"time":')}[form] and "/x" in line


@pytest.mark.parametrize("flags,said", [
    (("--log-dir", "/nowhere/at/all"), "gatling: cannot log to /nowhere/at/all: No such file or directory\n"),
])  # fmt: skip
def test_a_directory_that_cannot_be_used_is_said(first_build, flags, said):
    root = Root({"index.html": b"hello"})
    done = subprocess.run([runnable(first_build), "-c", root.path, "-p", "0", *flags], capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode != 0 and done.stderr == said
    root.remove()
